"""Command line of ikpca."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run ``ikpca`` and exit: 0 success, 1 failure, 2 usage error, 130 interrupt.

    Expected errors are reported in one sentence.
    """
    packages = ("typer", "rich", "pandas", "pyarrow", "openpyxl")
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        sys.exit(
            f"ikpca: the command line needs {' and '.join(missing)}; run: pip install 'ikpca[cli]'."
        )
    try:
        from ikpca.cli.app import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        # The application was not imported yet.
        sys.stderr.write("ikpca: interrupted\n")
        sys.exit(130)
