"""What a verb tells: a table or JSON on standard output, warnings on standard error."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Report", "megabytes"]

#: For pipes and logs, which have no width of their own.
_WIDTH = 100


class Report:
    """Open while a verb works; a warning becomes a sentence, and part of the JSON.

    Parameters
    ----------
    quiet : bool
        Whether to leave out everything but errors and JSON.
    as_json : bool
        Whether one JSON document takes the place of tables.
    """

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self._warnings: list[str] = []
        self._catch = warnings.catch_warnings()

    @property
    def shows_progress(self) -> bool:
        """Whether bars may be drawn."""
        return not self.quiet

    def __enter__(self) -> Self:
        self._catch.__enter__()
        # A user is told, whatever Python was told to do with warnings.
        warnings.simplefilter("default")
        # Of others' future only their programmers want to hear.
        for category in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = self._warned  # type: ignore[assignment]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._catch.__exit__(kind, error, trace)

    def show(
        self, document: Mapping[str, Any], *tables: Table | str, wrote: Sequence[str | Path] = ()
    ) -> None:
        """Print the document as JSON, or tables and lines of text, and the files written."""
        if self.as_json:
            files = {"wrote": [str(path) for path in wrote]} if wrote else {}
            whole = {**document, **files, "warnings": self._warnings}
            sys.stdout.write(json.dumps(_plain(whole), indent=2, allow_nan=False) + "\n")
        elif not self.quiet:
            self._print(tables, wrote)

    def _print(self, tables: Sequence[Table | str], wrote: Sequence[str | Path]) -> None:
        from rich.console import Console

        console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
        for table in tables:
            console.print(table, markup=False)
        # Paths are for copying: neither wrapped nor read as markup.
        for path in wrote:
            console.print(f"Wrote {path}", soft_wrap=True, markup=False)

    def _warned(self, message: Warning | str, category: type[Warning], *_: Any) -> None:
        """Without the file and the line of code that Python adds."""
        sentence = str(message).split("\n", maxsplit=1)[0]
        self._warnings.append(sentence)
        if not self.quiet:
            sys.stderr.write(f"ikpca: warning: {sentence}\n")


def _plain(value: Any) -> Any:
    """Lists and numbers of Python; what is no number is null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def megabytes(n_bytes: float | None) -> float | None:
    """In millions of bytes."""
    return None if n_bytes is None else n_bytes / 1e6
