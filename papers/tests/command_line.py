"""Run ``ikpca-papers`` in this process."""

from __future__ import annotations

import contextlib
import io
import sys
from types import SimpleNamespace

import pytest

from ikpca_papers.cli import main


def ikpca_papers(*arguments):
    """Run the command; return exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ikpca-papers", *map(str, arguments)])
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main()
    return SimpleNamespace(code=ended.value.code, out=out.getvalue(), err=err.getvalue())
