"""The command line; one file per verb."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]

_NEEDED = ("typer", "rich")


def main() -> None:
    """Run ``ikpca``; every mistake is one sentence, and the exit code says whose it was.

    0 is success, 1 a failure, 2 a mistake in the command line, 130 an interrupt.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        from ikpca.cli.plain import answer_without_extras

        sys.exit(answer_without_extras(sys.argv[1:], missing))
    try:
        from ikpca.cli.app import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        # Before the application could answer.
        sys.stderr.write("ikpca: interrupted\n")
        sys.exit(130)
