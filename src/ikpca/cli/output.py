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


#: Tells how much is done, and of how much.
Advance = Callable[[int, int | None], None]


@contextmanager
def progress_bar(title: str, *, shown: bool) -> Iterator[Advance]:
    """A bar that runs to and fro until it is told how much there is to do."""
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
    # A bar in a log file helps nobody.
    with Progress(*columns, console=console, transient=True, disable=not _is_terminal()) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _is_terminal() -> bool:
    return sys.stderr.isatty()


@contextmanager
def with_progress(model: Any, title: str, *, shown: bool) -> Iterator[None]:
    """A bar of the passes of a fit, where scikit-learn is recent enough to tell of them."""
    with progress_bar(title, shown=shown) as move:
        told = hasattr(model, "set_callbacks")
        if told:
            model.set_callbacks(_Passes(move))
        try:
            yield
        finally:
            if told:
                model.set_callbacks()


class _Passes:
    """A callback as scikit-learn 1.9 has them."""

    def __init__(self, move: Advance) -> None:
        self._move = move
        self._done = 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin."""
        self._move(0, context.max_subtasks)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is left over."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """A pass begins."""

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> bool:
        """A pass is done; never stops the fit."""
        if context.parent is not None:
            self._done += 1
            self._move(self._done, context.parent.max_subtasks)
        return False


@contextmanager
def checkpoint_hint(path: Path | None, *, resume: bool) -> Iterator[None]:
    """Say how to go on, if an interrupt left something to go on from."""
    before = _age(path)
    try:
        yield
    except KeyboardInterrupt:
        now = _age(path)
        if now is not None and (resume or now != before):
            again = "the same command" if resume else "the same command and --resume"
            sys.stderr.write(f"ikpca fit: {path} says how far it came; go on with {again}.\n")
        raise


def _age(path: Path | None) -> int | None:
    return path.stat().st_mtime_ns if path is not None and path.exists() else None
