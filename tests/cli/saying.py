"""Output of commands that succeed or fail."""

from __future__ import annotations

import json

from tests.command_line import ikpca


def succeeds(*arguments):
    """Return the result of a successful command; with --json the document."""
    said = ikpca(*arguments)
    assert said.code == 0, said.err
    return json.loads(said.out) if "--json" in arguments else said


def fails(*arguments, code=1):
    """Return the error message of a failing command, one sentence."""
    said = ikpca(*arguments)
    assert said.code == code, said.err
    assert said.out == ""
    (sentence,) = said.err.splitlines()
    assert sentence.endswith((".", "?"))
    return sentence
