"""Run the command line in this process."""

from __future__ import annotations

import contextlib
import io
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from ikpca.cli import main


def run(main, name, *arguments):
    """Run a command; return exit status, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *map(str, arguments)])
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main()
    return SimpleNamespace(code=ended.value.code, out=out.getvalue(), err=err.getvalue())


ikpca = partial(run, main, "ikpca")
