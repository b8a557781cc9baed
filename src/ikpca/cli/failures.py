"""From an exception to a sentence and an exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NamedTuple

__all__ = [
    "FAILED",
    "MISTAKE",
    "Failure",
    "Mistake",
    "Stop",
    "check_drawing",
    "naming_mistakes",
    "told",
]

#: The files are at fault, or the command line is.
FAILED, MISTAKE = 1, 2
#: Known by name: asking for help must not import what raises them.
_OURS = ("ContestantFailed", "DataChanged", "DataUnavailable")
_PARAMETER = re.compile(r"(\w+)=")


class Failure(NamedTuple):
    """One sentence, and whose fault it was."""

    sentence: str
    code: int


class Stop(Exception):
    """A verb ends with a sentence and an exit code."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


class Mistake(Stop):
    """Options that do not go together, or a name that nobody has."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, MISTAKE)


@contextmanager
def naming_mistakes() -> Iterator[None]:
    """For verbs that open no files of the user: what they refuse stands in the command line."""
    from ikpca.errors import InvalidInput

    try:
        yield
    except InvalidInput as error:
        raise Mistake(str(error)) from error


def check_drawing() -> None:
    """For verbs that draw: what is missing is told before any work, not after it."""
    if find_spec("matplotlib") is None:
        raise Stop("the figures need matplotlib; run: pip install 'ikpca[plot]'.")


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
    if isinstance(error, Stop):
        return Failure(str(error), error.code)
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
