"""Run ``ikpca-papers`` in this process."""

import json
from functools import partial

from ikpca_papers.cli import main
from tests.command_line import run

ikpca_papers = partial(run, main, "ikpca-papers")


def succeeds(*arguments):
    """Return the output of a successful command; with --json the document."""
    result = ikpca_papers(*arguments)
    assert result.code == 0, result.err
    return json.loads(result.out) if "--json" in arguments else result


def fails(*arguments, code=1):
    """Return the error message of a failing command."""
    result = ikpca_papers(*arguments)
    assert result.code == code, result.err
    (sentence,) = result.err.splitlines()
    return sentence
