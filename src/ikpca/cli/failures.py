"""From an exception to a sentence and an exit code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["FAILED", "MISTAKE", "Failure", "Mistake", "told"]

#: The files are at fault, or the command line is.
FAILED, MISTAKE = 1, 2
#: Not imported, as that would cost numerics.
_OURS = ("ContestantFailed", "DataChanged")
_PARAMETER = re.compile(r"(\w+)=")


class Failure(NamedTuple):
    """One sentence, and whose fault it was."""

    sentence: str
    code: int


class Mistake(Exception):
    """Options that do not go together."""


def told(error: Exception, flags: Mapping[str, str]) -> Failure | None:
    """What to tell of an error; None for one that nobody expected.

    Parameters
    ----------
    error : Exception
    flags : mapping of str to str
        From the names of the verb's parameters to their options: the library says gamma=-1, and a
        user wrote --gamma.
    """
    # Typer carries its own copy of click in some versions and not in others, so its errors are
    # known by what they can do.
    if hasattr(error, "format_message"):
        sentence = " ".join(str(error.format_message()).split())
        return Failure(_ended(sentence), int(getattr(error, "exit_code", FAILED)))
    if isinstance(error, Mistake):
        return Failure(str(error), MISTAKE)
    if isinstance(error, MemoryError):
        return Failure(
            "there is not enough memory; pass --max-memory, fewer rows or fewer components.", FAILED
        )
    if isinstance(error, OSError):
        return Failure(_of_the_system(error), FAILED)
    if isinstance(error, ValueError) or type(error).__name__ in _OURS:
        return _of_a_value(error, flags)
    return None


def _of_a_value(error: Exception, flags: Mapping[str, str]) -> Failure:
    """Ours and scikit-learn's; the latter go on for several lines after the first."""
    sentence = (str(error) or type(error).__name__).split("\n", maxsplit=1)[0]
    sentence = _ended(sentence)
    found = _PARAMETER.match(sentence)
    if found is None or found[1] not in flags:
        return Failure(sentence, FAILED)
    return Failure(f"{flags[found[1]]}={sentence[found.end() :]}", MISTAKE)


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _of_the_system(error: OSError) -> str:
    reason = error.strerror or str(error)
    named = [str(name) for name in (error.filename,) if name is not None and name not in reason]
    return f"{': '.join([*named, reason])}."
