"""What the command line answers where its extra is not installed: help, version, the remedy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version

__all__ = ["VERBS", "answered"]

#: The first sentence of each verb's help; a test compares them with the application.
VERBS = {
    "fit": "Find the kernel principal components of rows, and write them to a model file.",
    "transform": "Project rows on the components of a model.",
    "inverse": "Find the rows, pictures or frames that projections stand for.",
    "denoise": "Remove Gaussian noise from a picture or from recorded motion.",
    "upscale": "Enlarge a picture by what windows of sharp pictures are like.",
    "cluster": "Put rows into clusters by their kernel components.",
    "bench": "Time kernel PCA of ikpca, scikit-learn and others, each in a process of its own.",
    "demo": "Compare KHA, KHA/t, KHA/et and KHA-SMD with the exact components of handwritten "
    "digits.",
    "reproduce": "Run the papers' experiments and write one page with every claim.",
    "data": "Data sets: what there is, getting one, where it lies.",
    "info": "Show versions, threads, memory and extras; or describe a model file.",
}


def answered(arguments: Sequence[str], missing: Sequence[str]) -> int:
    """Tell what can be told without the missing packages; the exit code.

    Help and the version are what was asked for, so they are successes. All else is a failure, in
    one sentence.
    """
    remedy = f"the command line needs {' and '.join(missing)}; run: pip install 'ikpca[cli]'."
    if not arguments or {"-h", "--help"} & {*arguments}:
        sys.stdout.write(_help(remedy))
    elif "--version" in arguments:
        sys.stdout.write(f"ikpca {version('ikpca')}\n")
    else:
        sys.stderr.write(f"ikpca: {remedy}\n")
        return 1
    return 0


def _help(remedy: str) -> str:
    verbs = "\n".join(f"  {verb:<10} {about}" for verb, about in VERBS.items())
    return (
        "Usage: ikpca VERB [OPTIONS] ...\n\n"
        "Iterative kernel PCA of files of numbers, pictures and motion.\n\n"
        f"{verbs}\n\n"
        f"Not installed: {remedy}\n"
        "The library itself works without it: from ikpca import KernelPCA\n"
    )
