"""What a command says when it must succeed, and when it must fail."""

from __future__ import annotations

import json

from tests.command_line import ikpca


def succeeds(*arguments):
    """Exit code and output; standard output as JSON where that was asked for."""
    said = ikpca(*arguments)
    assert said.code == 0, said.err
    return json.loads(said.out) if "--json" in arguments else said


def fails(*arguments, code=1):
    """The one sentence on standard error."""
    said = ikpca(*arguments)
    assert said.code == code, said.err
    assert said.out == ""
    (sentence,) = said.err.splitlines()
    assert sentence.endswith((".", "?"))
    return sentence
