"""Checkpoints of fits and streams, and resuming from them."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ikpca.errors import DataChanged, InvalidInput, UnreadableFile, invalid_parameter
from ikpca.estimators.input_checks import explain_memory_errors
from ikpca.estimators.validation import check_choice, check_number, draw_seed
from ikpca.gram import tile_slices
from ikpca.model_files import (
    Decoder,
    Encoder,
    Manifest,
    digests_of,
    find_class,
    read_newest,
    write_generation,
)
from ikpca.solvers import (
    NO_CHECKPOINT,
    CheckpointProtocol,
    Observer,
    Outcome,
    PassRecord,
    SavedRun,
    interruptible,
    run_passes,
)

_KIND = "checkpoint"
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
#: Final outcomes; after any other, a run can be continued with more passes.
_FINAL_OUTCOMES = (Outcome.CONVERGED, Outcome.SETTLED, Outcome.PRECISE, Outcome.DIVERGED)
#: Parameters that do not change the result of a given number of passes.
_RUNTIME_PARAMETERS = {
    "checkpoint", "checkpoint_every", "resume", "verbose", "n_jobs", "max_iter",
    "copy_X", "client",
}  # fmt: skip
#: Replaces the digest of the rows in checkpoints of ``partial_fit``.
_STREAM = "a stream"
_FEATURE_ATTRIBUTES = ("n_features_in_", "feature_names_in_")
#: Number of rows compared after every pass; fewer if each row needs a chunk to be decompressed.
_MAPPED_SAMPLE, _CHUNKED_SAMPLE = 32, 3
State = TypeVar("State")


class Checkpoint:
    """Checkpoint file of a run, from which it can be resumed.

    Parameters
    ----------
    path : path
    every : int or str
        As ``checkpoint_every``.
    """

    def __init__(self, path: Any, every: Any) -> None:
        self._path = Path(path)
        self._every, self._seconds = parse_interval(every)
        self._snapshot: Callable[[Any], Any] | None = None
        self._fingerprint: dict[str, str] = {}
        self._seed = 0
        self._saved: SavedRun | None = None
        self._state: Any = None
        self._reports: list[Any] = []
        self._outcome: Outcome | None = None
        self._unwritten, self._last_write = 0, time.monotonic()

    def open(self) -> int | None:
        """Read the newest checkpoint and return its seed; None if there is no file."""
        newest = read_newest(self._path)
        if newest is None:
            return None
        manifest, arrays, path = newest
        if manifest.kind != _KIND:
            raise UnreadableFile(
                f"{path} is a {manifest.kind}, not a checkpoint; pass another path."
            )
        try:
            content = Decoder(arrays, find_class).decode(manifest.content)
            self._fingerprint, self._seed = content["of"], int(content["seed"])
            self._saved = SavedRun(content["progress"], content["reports"], content["outcome"])
            self._reports = list(self._saved.reports)
        except (UnreadableFile, KeyError, TypeError, ValueError, OverflowError) as error:
            raise UnreadableFile(f"{path} cannot be read: {error}.") from error
        return self._seed

    def begin(self, current: dict[str, str], seed: int) -> None:
        """Set the fingerprint of the fit; raise an error if the file belongs to another fit."""
        if self._saved is not None:
            found = differences(self._fingerprint, current)
            if found:
                raise InvalidInput(
                    f"checkpoint={str(self._path)!r} belongs to another fit: {'; '.join(found)}. "
                    "Fit without resume, or pass the path of another file."
                )
        self._fingerprint, self._seed = current, seed

    def resume_interval(self, steps: int) -> None:
        """Continue the interval of the earlier calls of ``partial_fit``, ``steps`` in total."""
        self._unwritten = steps % self._every
        age = time.time() - self._path.stat().st_mtime if self._path.exists() else float("inf")
        self._last_write = time.monotonic() - age

    def restore(self) -> SavedRun | None:
        """Return the earlier run; None if there is none."""
        return self._saved

    def set_snapshot(self, snapshot: Callable[[Any], Any]) -> None:
        """Set the function that turns a state into the progress to store."""
        self._snapshot = snapshot

    def record(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Record a finished step; write if the interval has passed or the outcome is final."""
        self._state, self._outcome = state, outcome if outcome in _FINAL_OUTCOMES else None
        if report is not None:
            self._reports.append(report)
        self._unwritten += 1
        due = (
            self._unwritten >= self._every and time.monotonic() - self._last_write >= self._seconds
        )
        if due or self._outcome is not None:
            self.write(state)

    def finish(self) -> None:
        """Write the last finished step unless it is in the file already."""
        if self._state is not None and self._unwritten:
            self.write(self._state)

    def write(self, state: Any) -> None:
        """Write a state to the file."""
        assert self._snapshot is not None
        encoder = Encoder()
        content = encoder.encode(
            {
                "of": self._fingerprint,
                "seed": self._seed,
                "progress": self._snapshot(state),
                "reports": self._reports,
                "outcome": self._outcome,
            },
            _KIND,
        )
        manifest = Manifest(_KIND, content, digests_of(encoder.arrays), version("ikpca"))
        write_generation(self._path, manifest, encoder.arrays)
        self._unwritten, self._last_write = 0, time.monotonic()


def check_checkpoint(model: Any) -> None:
    """Validate ``checkpoint``, ``checkpoint_every`` and ``resume``."""
    check_choice("resume", model.resume, (True, False))
    parse_interval(model.checkpoint_every)
    if model.checkpoint is None:
        if model.resume:
            raise invalid_parameter(
                "resume", True, "needs the path of a checkpoint", "pass checkpoint=path"
            )
        return
    try:
        folder = Path(model.checkpoint).absolute().parent
    except TypeError:
        raise invalid_parameter(
            "checkpoint", model.checkpoint, "must be a path or None", "pass a path"
        ) from None
    if not folder.is_dir():
        raise invalid_parameter(
            "checkpoint",
            str(model.checkpoint),
            f"the folder {folder} does not exist",
            "create it first",
        )


def parse_interval(every: Any) -> tuple[int, float]:
    """Return steps and seconds between checkpoints, from 5 or "30s" (also min and h)."""
    if isinstance(every, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", every)
        if match is None:
            raise invalid_parameter(
                "checkpoint_every",
                every,
                "must be a count or a time",
                "pass 1, '30s', '5min' or '1h'",
            )
        return 1, float(match[1]) * _UNITS[match[2]]
    check_number("checkpoint_every", every, "must be a count or a time",
                 "pass 1, '30s', '5min' or '1h'", low=1, integer=True)  # fmt: skip
    return int(every), 0.0


def open_checkpoint(
    model: Any, X: Any, seed: int, start: Any = None
) -> tuple[Checkpoint | None, int]:
    """Return the checkpoint of a model, or None, and the seed; resuming keeps the stored seed."""
    if model.checkpoint is None:
        return None, seed
    checkpoint = Checkpoint(model.checkpoint, model.checkpoint_every)
    earlier = checkpoint.open() if model.resume else None
    seed = seed if earlier is None else earlier
    checkpoint.begin(fingerprint(model, X, start=start), seed)
    return checkpoint, seed


def interruptible_fit(checkpoint: Checkpoint | None) -> AbstractContextManager[None]:
    """Treat SIGTERM like Ctrl-C during a fit that writes a checkpoint."""
    return nullcontext() if checkpoint is None else sigterm_as_interrupt()


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM; other threads than the main one cannot set handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def fingerprint(model: Any, X: Any, **others: Any) -> dict[str, str]:
    """Return parameters, rows and ``others`` of a fit as short texts; X is None for a stream."""
    parameters = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _RUNTIME_PARAMETERS and not _is_drawn_seed(name, value)
    }
    texts = {name: _text(value) for name, value in {**parameters, **others}.items()}
    return {
        "estimator": type(model).__name__,
        **texts,
        "rows": _STREAM if X is None else rows_digest(X),
    }


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Describe the entries in which two fingerprints differ."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [_difference(name, before.get(name), now.get(name)) for name in names]


def _difference(name: str, before: str | None, now: str | None) -> str:
    if name != "rows":
        return f"{name} was {before} and is {now}"
    if _STREAM in (before, now):
        before, now = ("partial_fit" if one == _STREAM else "fit" for one in (before, now))
        return f"it was written by {before} and is read by {now}"
    return "the training data differ from those of the checkpoint"


def rows_digest(X: Any) -> str:
    """Compute the SHA-256 of type, shape and values, one tile of rows at a time."""
    sha = hashlib.sha256(f"{X.dtype.str}{X.shape}".encode())
    for strip in tile_slices(X.shape[0]):
        part = X[strip]
        arrays = (part.data, part.indices, part.indptr) if sparse.issparse(part) else (part,)
        for array in arrays:
            sha.update(np.ascontiguousarray(array).reshape(-1).view("u1").data)
    return sha.hexdigest()


def _is_drawn_seed(name: str, value: Any) -> bool:
    """Return True for a ``random_state`` that is not an integer; the checkpoint holds its seed."""
    return name == "random_state" and not isinstance(value, int | np.integer)


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


@dataclass(frozen=True, eq=False)
class VarianceSearchProgress:
    """Progress of a fit that searches the number of components for a fraction of the variance.

    Parameters
    ----------
    number : int
        Number of components of the current run.
    records : list of PassRecord
        Records of the earlier runs.
    progress : object
        Progress of the solver.
    """

    number: int
    records: list[PassRecord]
    progress: Any


class NestedCheckpoint:
    """Checkpoint of one run of a variance search, stored in the checkpoint of the fit.

    Parameters
    ----------
    parent : CheckpointProtocol
        Checkpoint of the fit.
    number : int
        Number of components of the run.
    records : list of PassRecord
        Records of the earlier runs.
    """

    def __init__(self, parent: CheckpointProtocol, number: int, records: list[PassRecord]) -> None:
        self._parent = parent
        self._number = number
        self._records = records

    def restore(self) -> SavedRun | None:
        """Return the saved progress of this run; None if another run was interrupted."""
        saved = self._parent.restore()
        if saved is None or saved.progress.number != self._number:
            return None
        return SavedRun(saved.progress.progress, saved.reports[len(self._records) :], saved.outcome)

    def set_snapshot(self, snapshot: Callable[[Any], Any]) -> None:
        """Store the number of components with the progress of the solver."""
        self._parent.set_snapshot(
            lambda state: VarianceSearchProgress(self._number, self._records, snapshot(state))
        )

    def record(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Record a finished step in the checkpoint of the fit."""
        self._parent.record(state, report, outcome)


def resume_variance_search(
    checkpoint: CheckpointProtocol, number: int
) -> tuple[int, list[PassRecord]]:
    """Return the number of components to start with, and the records of the earlier runs."""
    saved = checkpoint.restore()
    if saved is None:
        return number, []
    return int(saved.progress.number), list(saved.progress.records)


@dataclass(frozen=True)
class StreamFingerprint:
    """Fingerprint of the sequence of batches passed to ``partial_fit``.

    Parameters
    ----------
    batches, rows : int
        Number of batches and rows.
    digest : str
        Chained digest of the batches; depends on the batch boundaries.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4)
    >>> empty = StreamFingerprint()
    >>> halves = empty.add_batch(X[:2]).add_batch(X[2:])
    >>> halves == empty.add_batch(X[:2]).add_batch(X[2:])
    True
    >>> halves == empty.add_batch(X[:1]).add_batch(X[1:])
    False
    """

    batches: int = 0
    rows: int = 0
    digest: str = ""

    def add_batch(self, batch: Any) -> StreamFingerprint:
        """Return the fingerprint extended by one batch."""
        chained = hashlib.sha256((self.digest + rows_digest(batch)).encode()).hexdigest()
        return StreamFingerprint(self.batches + 1, self.rows + int(batch.shape[0]), chained)

    def check_prefix_of(self, goal: StreamFingerprint) -> None:
        """Raise an error as soon as the batches are known to differ from those of a checkpoint."""
        if self.batches < goal.batches and self.rows < goal.rows:
            return
        if self != goal:
            raise InvalidInput(
                f"X: these {self.rows} rows in {self.batches} batches differ from the {goal.rows} "
                f"rows in {goal.batches} batches of the checkpoint; pass the same batches again, "
                "or continue after them with load_checkpoint."
            )


@dataclass(frozen=True, eq=False)
class StreamProgress:
    """State of a streaming model without its parameters.

    Parameters
    ----------
    stream : IncrementalStream or OnlineStream
        Without its kernel, which may be a function and is rebuilt from the parameters.
    names : dict
        ``n_features_in_``, and ``feature_names_in_`` if there are names.
    trail : StreamFingerprint
        Batches of ``partial_fit`` so far.
    """

    stream: Any
    names: dict[str, Any]
    trail: StreamFingerprint


def fit_stream(
    model: Any,
    X: Any,
    initial: Callable[[int], State],
    step: Callable[[State], State],
    n_steps_left: Callable[[State], int],
    observers: Sequence[Observer[Any, Any]] = (),
) -> tuple[State, bool]:
    """Learn from all rows of a data set, from the start or from a checkpoint.

    Parameters
    ----------
    model : estimator
    X : rows
        Validated.
    initial : callable
        Returns the stream before the first row for a seed.
    step : callable
        Returns the stream after the next rows.
    n_steps_left : callable
        Returns the number of remaining steps of a stream.
    observers : sequence of Observer
        Called after every step.

    Returns
    -------
    stream
        After the last finished step.
    interrupted : bool
    """
    checkpoint, seed = open_checkpoint(model, X, draw_seed(model.random_state))
    earlier = None if checkpoint is None else _stream_progress(checkpoint)
    stream = initial(seed) if earlier is None else earlier.stream.wrap(model)
    if checkpoint is not None:
        checkpoint.set_snapshot(lambda state: _snapshot_stream(model, state, StreamFingerprint()))
    with interruptible_fit(checkpoint):
        stream, interrupted = _run(step, stream, n_steps_left(stream), checkpoint, observers)
        if checkpoint is not None:
            checkpoint.finish()
    return stream, interrupted


def learn_batch(
    model: Any, stream: State, rows: Any, step: Callable[[State], State]
) -> tuple[State, bool]:
    """Run one step of ``partial_fit`` and update the checkpoint if there is one.

    An interrupt leaves the stream and its checkpoint unchanged.
    """
    if model.checkpoint is None:
        return _run(step, stream, 1, None)
    before: StreamFingerprint = getattr(model, "_trail", StreamFingerprint())
    after = before.add_batch(rows)
    checkpoint = Checkpoint(model.checkpoint, model.checkpoint_every)
    checkpoint.begin(fingerprint(model, None), 0)
    checkpoint.resume_interval(before.batches)
    checkpoint.set_snapshot(lambda state: _snapshot_stream(model, state, after))
    with interruptible_fit(checkpoint):
        updated, interrupted = _run(step, stream, 1, checkpoint)
        if updated is not stream:
            model._trail = after
            if interrupted:
                checkpoint.finish()
        elif before.batches:
            checkpoint.set_snapshot(lambda state: _snapshot_stream(model, state, before))
            checkpoint.write(stream)
    return updated, interrupted


def load_stream_progress(model: Any, *, needed: bool) -> StreamProgress | None:
    """Return the content of a stream's checkpoint; None if there is no file and none is needed."""
    if model.checkpoint is None:
        raise invalid_parameter(
            "checkpoint", None, "needs the path of a checkpoint", "pass checkpoint=path"
        )
    checkpoint = Checkpoint(model.checkpoint, model.checkpoint_every)
    if checkpoint.open() is None:
        if needed:
            raise InvalidInput(f"{model.checkpoint} does not exist: pass the path of a checkpoint.")
        return None
    checkpoint.begin(fingerprint(model, None), 0)
    return _stream_progress(checkpoint)


def _stream_progress(checkpoint: Checkpoint) -> StreamProgress | None:
    saved = checkpoint.restore()
    if saved is None:
        return None
    if not isinstance(saved.progress, StreamProgress):
        raise UnreadableFile("the checkpoint is not that of a stream; pass another path.")
    return saved.progress


def _snapshot_stream(model: Any, stream: Any, trail: StreamFingerprint) -> StreamProgress:
    names = {name: getattr(model, name) for name in _FEATURE_ATTRIBUTES if hasattr(model, name)}
    return StreamProgress(stream.unwrap(), names, trail)


def _run(
    step: Callable[[State], State],
    stream: State,
    number: int,
    checkpoint: Checkpoint | None,
    observers: Sequence[Observer[Any, Any]] = (),
) -> tuple[State, bool]:
    def run_step(state: State) -> tuple[State, None, None]:
        # States are immutable, so a step can be interrupted at any point.
        with (
            interruptible(),
            explain_memory_errors("pass smaller batches, or a smaller max_basis_rows"),
        ):
            return step(state), None, None

    done = run_passes(
        run_step,
        stream,
        max_steps=number,
        observers=observers,
        checkpoint=NO_CHECKPOINT if checkpoint is None else checkpoint,
    )
    return done.state, done.outcome is Outcome.INTERRUPTED


class DataChangeObserver:
    """Observer that detects changes of rows on disk by a sample of rows and the file status.

    Parameters
    ----------
    X : rows
        On disk.
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self._file = _mapped_file(X)
        number = _CHUNKED_SAMPLE if self._file is None else _MAPPED_SAMPLE
        self._indices = np.unique(np.linspace(0, X.shape[0] - 1, number).astype(np.intp))
        self._before = self._snapshot()

    def on_step_end(self, state: object, report: object) -> None:
        """Raise DataChanged if rows or file changed."""
        if self._snapshot() != self._before:
            where = "X" if self._file is None else f"X ({self._file})"
            raise DataChanged(
                f"{where} was written to during the fit: the result would mix two versions of the "
                "data; copy the rows, or wait until they are complete, and fit again."
            )

    def _snapshot(self) -> tuple[Any, ...]:
        sample = np.concatenate([self._X[index : index + 1] for index in self._indices])
        return (*_file_status(self._file), rows_digest(sample))


def data_change_observers(X: Any) -> list[Observer[Any, Any]]:
    """Return an observer for rows outside of this process's memory, none for rows in memory."""
    return [DataChangeObserver(X)] if _is_external(X) else []


def _is_external(X: Any) -> bool:
    in_memory = isinstance(X, np.ndarray) or hasattr(X, "tocsr")
    return not in_memory or _mapped_file(X) is not None


def _mapped_file(X: Any) -> str | None:
    """Return the file of a memory map or of a view of one."""
    while X is not None:
        if isinstance(X, np.memmap):
            return None if X.filename is None else str(X.filename)
        X = getattr(X, "base", None)
    return None


def _file_status(file: str | None) -> tuple[int, ...]:
    if file is None:
        return ()
    try:
        status = os.stat(file)
    except FileNotFoundError:
        # The map of a deleted file stays readable and can no longer be written to by its name.
        return (-1,)
    return status.st_size, status.st_mtime_ns, status.st_ino
