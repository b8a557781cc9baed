"""The command in this process, as a terminal would see it."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from types import SimpleNamespace

import pytest

from ikpca.cli import main


def ikpca(*arguments):
    """Exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ikpca", *map(str, arguments)])
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main()
    return SimpleNamespace(code=ended.value.code, out=out.getvalue(), err=err.getvalue())


def succeeds(*arguments):
    """The same, for what must succeed; standard output as JSON where that was asked for."""
    said = ikpca(*arguments)
    assert said.code == 0, said.err
    return json.loads(said.out) if "--json" in arguments else said


def fails(*arguments, code=1):
    """The one sentence of what must fail."""
    said = ikpca(*arguments)
    assert said.code == code, said.err
    assert said.out == ""
    (sentence,) = said.err.splitlines()
    assert sentence.endswith((".", "?"))
    return sentence
