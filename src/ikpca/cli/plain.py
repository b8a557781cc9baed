"""Help and version without the optional dependencies of the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version

#: First sentence of the help of each command; a test compares them with the application.
COMMANDS = {
    "fit": "Compute the kernel principal components of rows and write a model file.",
    "transform": "Project rows on the components of a model.",
    "inverse": "Transform projections back to rows or pictures.",
    "denoise": "Remove Gaussian noise from a picture or from recorded motion.",
    "upscale": "Enlarge a picture by super-resolution learned from sharp pictures.",
    "cluster": "Cluster rows by their kernel components.",
    "info": "Show versions, threads, memory and extras; or describe a model file.",
}


def run_without_extras(arguments: Sequence[str], missing: Sequence[str]) -> int:
    """Answer help and version without the missing packages, and return the exit code.

    Everything else fails with an error that names the install command.
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
    commands = "\n".join(f"  {name:<10} {summary}" for name, summary in COMMANDS.items())
    return (
        "Usage: ikpca COMMAND [OPTIONS] ...\n\n"
        "Kernel PCA of tables, pictures and motion in files.\n\n"
        f"{commands}\n\n"
        f"Not installed: {remedy}\n"
        "The library itself works without it: from ikpca import KernelPCA\n"
    )
