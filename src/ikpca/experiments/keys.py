"""Keys of a spec file: all that are needed, and none that nobody reads."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ikpca.errors import InvalidInput

__all__ = ["checked", "fault", "typed"]

_KINDS = {str: "text", dict: "a table", list: "a list", float: "a number", bool: "true or false"}
#: As much of a wrong value as a message quotes.
_QUOTED = 40


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


def typed(value: Any, file: str, what: str, kind: type) -> Any:
    """Refuse a value of another kind than text, a table, a list, a number, true or false.

    Examples
    --------
    >>> typed(3, "a.toml", "title", str)
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: a.toml: title is 3; write text.
    """
    # To Python a truth is a whole number, and a whole number no floating-point one.
    whole = kind is float and isinstance(value, int) and not isinstance(value, bool)
    number = whole and abs(value) < sys.maxsize
    if not number and not isinstance(value, kind):
        raise fault(file, f"{what} is {repr(value)[:_QUOTED]}", f"write {_KINDS[kind]}")
    return value
