"""Command line of ikpca."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]

_NEEDED = ("typer", "rich")


def main() -> None:
    """Run ``ikpca`` and exit: 0 success, 1 failure, 2 usage error, 130 interrupt.

    Expected errors are reported in one sentence.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        from ikpca.cli.plain import run_without_extras

        sys.exit(run_without_extras(sys.argv[1:], missing))
    try:
        from ikpca.cli.app import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        # The application was not imported yet.
        sys.stderr.write("ikpca: interrupted\n")
        sys.exit(130)
