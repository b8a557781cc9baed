"""Help and version without the optional dependencies of the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version

#: The first sentence of each verb's help; a test compares them with the application.
COMMANDS = {
    "fit": "Find the kernel principal components of rows, and write them to a model file.",
    "transform": "Project rows on the components of a model.",
    "inverse": "Find the rows, pictures or frames that projections stand for.",
    "denoise": "Remove Gaussian noise from a picture or from recorded motion.",
    "upscale": "Enlarge a picture by what windows of sharp pictures are like.",
    "cluster": "Put rows into clusters by their kernel components.",
    "info": "Show versions, threads, memory and extras; or describe a model file.",
}


def answer_without_extras(arguments: Sequence[str], missing: Sequence[str]) -> int:
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
    verbs = "\n".join(f"  {verb:<10} {about}" for verb, about in COMMANDS.items())
    return (
        "Usage: ikpca VERB [OPTIONS] ...\n\n"
        "Kernel PCA of tables, pictures and motion in files.\n\n"
        f"{verbs}\n\n"
        f"Not installed: {remedy}\n"
        "The library itself works without it: from ikpca import KernelPCA\n"
    )
