"""Run ``ikpca-papers`` in this process."""

from functools import partial

from ikpca_papers.cli import main
from tests.command_line import run

ikpca_papers = partial(run, main, "ikpca-papers")
