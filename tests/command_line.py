"""The command line, as a user meets it."""

from __future__ import annotations

import contextlib
import io
import sys
from types import SimpleNamespace

import pytest

from ikpca.cli import main


def ikpca(*arguments):
    """The command in this process: exit code, standard output, standard error."""
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
