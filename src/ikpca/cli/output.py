"""Output of the commands: tables, JSON and progress bars."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ikpca.cli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from ikpca.estimators.base import SavedEstimator

#: Path of an input or output; None for an option that is not given.
_Path: TypeAlias = str | Path | None
#: Called with the number of finished steps and the total.
Advance = Callable[[int, int | None], None]


@dataclass
class Report:
    """Output of a command, with the warnings that it caused."""

    quiet: bool
    as_json: bool
    warnings: list[str] = field(default_factory=list)

    def show(
        self, document: Mapping[str, Any], *tables: Table | str, wrote: Sequence[str | Path] = ()
    ) -> None:
        """Print the document as JSON, or tables and lines of text, and the files written.

        Nothing is printed if results were written to standard output.
        """
        if "-" in wrote:
            return
        if self.as_json:
            files = {"wrote": [str(path) for path in wrote]} if wrote else {}
            whole = {**document, **files, "warnings": self.warnings}
            sys.stdout.write(json.dumps(_to_json(whole), indent=2, allow_nan=False) + "\n")
            return
        if self.quiet:
            return
        from rich.console import Console

        # Tables in pipes and logs have a fixed width.
        console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
        for table in tables:
            console.print(table, markup=False)
        # Paths are printed for copying: not wrapped, no markup.
        for path in wrote:
            console.print(f"Wrote {path}", soft_wrap=True, markup=False)

    def progress(self, title: str) -> AbstractContextManager[Advance]:
        """Show a progress bar unless the command is quiet."""
        return progress_bar(title, shown=not self.quiet)

    def _show_warning(self, message: Warning | str, *_: Any, **__: Any) -> None:
        """Print a warning without file and line number."""
        sentence = str(message).split("\n", maxsplit=1)[0]
        self.warnings.append(sentence)
        if not self.quiet:
            sys.stderr.write(f"ikpca: warning: {sentence}\n")


@contextmanager
def reporting(quiet: bool, as_json: bool) -> Iterator[Report]:
    """Return the output of a command; its warnings are shown whatever the filters of Python."""
    report = Report(quiet, as_json)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        # Deprecations concern developers, not users of the command line.
        for category in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = report._show_warning
        yield report


def check_outputs(outputs: Iterable[_Path], inputs: Iterable[_Path], *, force: bool) -> None:
    """Raise an error, before the work, if an output cannot be written or a file would be lost.

    An output must not be an input or a file of an input folder, and no two outputs may be the same
    file. Any other existing file is overwritten only with ``force``.
    """
    from ikpca.cli.files import split_member
    from ikpca.model_files import check_writable

    read = [split_member(path)[0] for path in inputs if path is not None]
    seen = set()
    for path in (split_member(path)[0] for path in outputs if path is not None):
        if path.resolve() in seen:
            raise UsageError(f"{path}: is the path of two outputs; pass different paths.")
        seen.add(path.resolve())
        if path.is_dir():
            raise UsageError(f"{path}: is a folder; pass the path of a file.")
        check_writable(path)
        if not path.exists():
            continue
        files = [file for one in read for file in (one.iterdir() if one.is_dir() else [one])]
        if any(file.exists() and path.samefile(file) for file in files):
            raise UsageError(f"{path}: is an input, which is never overwritten; pass another path.")
        if not force:
            raise UsageError(f"{path}: exists already; pass another path, or --force.")


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
    from rich import progress
    from rich.console import Console

    columns = (
        "{task.description}", progress.BarColumn(30), progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(), "left at most", progress.TimeRemainingColumn(),
    )  # fmt: skip
    # No bar in log files.
    settings: Any = {"transient": True, "disable": not sys.stderr.isatty()}
    with progress.Progress(*columns, console=Console(stderr=True), **settings) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


@contextmanager
def rows_without_names() -> Iterator[None]:
    """Ignore the warning that rows have no names: they were compared when a table was read."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


@contextmanager
def pass_progress(model: SavedEstimator, title: str, *, shown: bool) -> Iterator[None]:
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
        self._advance(0, context.max_subtasks)

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> bool:
        if context.parent is not None:
            self._done += 1
            self._advance(self._done, context.parent.max_subtasks)
        # True would stop the fit.
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
