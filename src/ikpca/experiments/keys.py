"""Keys of a spec file: all that are needed, and none that nobody reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ikpca.errors import InvalidInput

__all__ = ["checked", "fault"]


def fault(file: str, what: str, remedy: str) -> InvalidInput:
    """Build the error for a spec file: one sentence that begins with its name."""
    return InvalidInput(f"{file}: {what}; {remedy}.")


def checked(
    entry: Any, file: str, what: str, required: Sequence[str], optional: Sequence[str]
) -> Mapping[str, Any]:
    """Refuse an entry with a key that is missing or unknown.

    Examples
    --------
    >>> checked({"id": 1, "titel": 2}, "a.toml", "an experiment", ["id"], ["title"])
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: a.toml: an experiment has the unknown key 'titel'; known are id, \
title.
    """
    if not isinstance(entry, dict):
        raise fault(file, f"{what} is no table", "write key = value pairs")
    known = [*required, *optional]
    for key in entry:
        if key not in known:
            raise fault(
                file, f"{what} has the unknown key {key!r}", f"known are {', '.join(known)}"
            )
    for key in required:
        if key not in entry:
            raise fault(file, f"{what} lacks the key {key!r}", "add it")
    return entry
