"""Output of the commands: tables, JSON and progress bars."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.table import Table

#: Width of tables in pipes and logs.
_WIDTH = 100
#: Called with the number of finished steps and the total.
Advance = Callable[[int, int | None], None]


class Report:
    """Output of a command, which also collects its warnings.

    Parameters
    ----------
    quiet : bool
        If True, print only errors and JSON.
    as_json : bool
        If True, print one JSON document instead of tables.
    """

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self._warnings: list[str] = []
        self._catch = warnings.catch_warnings()

    @property
    def shows_progress(self) -> bool:
        """True if progress bars are shown."""
        return not self.quiet

    def __enter__(self) -> Self:
        self._catch.__enter__()
        # Warnings are shown regardless of Python's own filters.
        warnings.simplefilter("default")
        # Deprecations concern developers, not users of the command line.
        for category in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = self._show_warning  # type: ignore[assignment]
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
            sys.stdout.write(json.dumps(_to_json(whole), indent=2, allow_nan=False) + "\n")
        elif not self.quiet:
            self._print(tables, wrote)

    def _print(self, tables: Sequence[Table | str], wrote: Sequence[str | Path]) -> None:
        from rich.console import Console

        console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
        for table in tables:
            console.print(table, markup=False)
        # Paths are printed for copying: not wrapped, no markup.
        for path in wrote:
            console.print(f"Wrote {path}", soft_wrap=True, markup=False)

    def _show_warning(self, message: Warning | str, category: type[Warning], *_: Any) -> None:
        """Print a warning without file and line number."""
        sentence = str(message).split("\n", maxsplit=1)[0]
        self._warnings.append(sentence)
        if not self.quiet:
            sys.stderr.write(f"ikpca: warning: {sentence}\n")


def _to_json(value: Any) -> Any:
    """Convert a value to types of JSON; NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(key): _to_json(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        return _to_json(value.tolist())
    if isinstance(value, list | tuple):
        return [_to_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


@contextmanager
def progress_bar(title: str, *, shown: bool) -> Iterator[Advance]:
    """Show a progress bar; it is indeterminate until the total is known."""
    if not shown:
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left at most"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    # No bar in log files.
    with Progress(*columns, console=console, transient=True, disable=not _is_terminal()) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _is_terminal() -> bool:
    return sys.stderr.isatty()


@contextmanager
def pass_progress(model: Any, title: str, *, shown: bool) -> Iterator[None]:
    """Show a progress bar of the passes of a fit if scikit-learn supports callbacks."""
    with progress_bar(title, shown=shown) as advance:
        supported = hasattr(model, "set_callbacks")
        if supported:
            model.set_callbacks(_PassCallback(advance))
        try:
            yield
        finally:
            if supported:
                model.set_callbacks()


class _PassCallback:
    """Callback of scikit-learn 1.9 that advances a progress bar."""

    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._done = 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Initialize the bar."""
        self._advance(0, context.max_subtasks)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> bool:
        """Advance the bar after a pass; never stop the fit."""
        if context.parent is not None:
            self._done += 1
            self._advance(self._done, context.parent.max_subtasks)
        return False


@contextmanager
def resume_hint(path: Path | None, *, resume: bool) -> Iterator[None]:
    """Print how to resume after an interrupt if a checkpoint was written."""
    before = _modified_time(path)
    try:
        yield
    except KeyboardInterrupt:
        now = _modified_time(path)
        if now is not None and (resume or now != before):
            again = "the same command" if resume else "the same command and --resume"
            sys.stderr.write(f"ikpca fit: the checkpoint is {path}; resume with {again}.\n")
        raise


def _modified_time(path: Path | None) -> int | None:
    return path.stat().st_mtime_ns if path is not None and path.exists() else None
