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
from sklearn.utils import check_random_state

from ikpca.errors import DataChanged, InvalidInput, UnreadableFile, invalid_parameter
from ikpca.estimators.input_checks import named_memory_errors
from ikpca.estimators.validation import check_choice, check_number
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


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Within it, SIGTERM raises KeyboardInterrupt, as Ctrl-C does; where signals can be had."""
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


#: What changes how a fit runs or how long, but not where it gets in a given number of passes.
_RUNNING = {
    "checkpoint", "checkpoint_every", "resume", "verbose", "n_jobs", "max_iter", "n_passes",
    "copy_X", "client",
}  # fmt: skip
#: In place of a digest, where rows come as they come.
_STREAM = "a stream"


def fingerprint(model: Any, X: Any, **others: Any) -> dict[str, str]:
    """Parameters, rows and ``others`` of a fit, each as a short text; X is None for a stream."""
    parameters = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _RUNNING and not _is_drawn(name, value)
    }
    texts = {name: _text(value) for name, value in {**parameters, **others}.items()}
    return {
        "estimator": type(model).__name__,
        **texts,
        "rows": _STREAM if X is None else rows_digest(X),
    }


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Every entry that is not the same, in words."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [_difference(name, before.get(name), now.get(name)) for name in names]


def _difference(name: str, before: str | None, now: str | None) -> str:
    if name != "rows":
        return f"{name} was {before} and is {now}"
    if _STREAM in (before, now):
        before, now = ("partial_fit" if one == _STREAM else "fit" for one in (before, now))
        return f"it was written by {before} and is read by {now}"
    return "the rows are others"


def rows_digest(X: Any) -> str:
    """SHA-256 over type, shape and values, a tile of rows at a time."""
    sha = hashlib.sha256(f"{X.dtype.str}{X.shape}".encode())
    for strip in tile_slices(X.shape[0]):
        part = X[strip]
        arrays = (part.data, part.indices, part.indptr) if sparse.issparse(part) else (part,)
        for array in arrays:
            sha.update(np.ascontiguousarray(array).reshape(-1).view("u1").data)
    return sha.hexdigest()


def _is_drawn(name: str, value: Any) -> bool:
    """Whether a seed comes from elsewhere: it is then in the checkpoint itself."""
    return name == "random_state" and not isinstance(value, int | np.integer)


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


@dataclass(frozen=True)
class StreamFingerprint:
    """Batches that ``partial_fit`` was given, one after the other.

    Parameters
    ----------
    batches, rows : int
        How many.
    digest : str
        Of all of them, and of where each one ends.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4)
    >>> Trail().after(X[:2]).after(X[2:]) == Trail().after(X[:2]).after(X[2:])
    True
    >>> Trail().after(X[:1]).after(X[1:]) == Trail().after(X[:2]).after(X[2:])
    False
    """

    batches: int = 0
    rows: int = 0
    digest: str = ""

    def after(self, batch: Any) -> StreamFingerprint:
        """With one more batch."""
        chained = hashlib.sha256((self.digest + rows_digest(batch)).encode()).hexdigest()
        return StreamFingerprint(self.batches + 1, self.rows + int(batch.shape[0]), chained)

    def check_leads_to(self, goal: StreamFingerprint) -> None:
        """Refuse batches that are not those of a checkpoint, as soon as that is known."""
        if self.batches < goal.batches and self.rows < goal.rows:
            return
        if self != goal:
            raise InvalidInput(
                f"X: the checkpoint is of a stream of {goal.rows} rows in {goal.batches} batches, "
                f"and these {self.rows} rows in {self.batches} batches are others; pass the same "
                "batches again, or go on after them with load_checkpoint."
            )


_KIND = "checkpoint"
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
#: After these a run has nothing more to do; after others it may go on, given more passes.
_ENDINGS = (Outcome.CONVERGED, Outcome.SETTLED, Outcome.PRECISE, Outcome.DIVERGED)


def check_checkpoint(model: Any) -> None:
    """``checkpoint``, ``checkpoint_every`` and ``resume``, before any work."""
    check_choice("resume", model.resume, (True, False))
    interval(model.checkpoint_every)
    if model.checkpoint is None:
        if model.resume:
            raise invalid_parameter(
                "resume", True, "there is no checkpoint to go on from", "pass checkpoint=path"
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
            "checkpoint", str(model.checkpoint), f"there is no folder {folder}", "create it first"
        )


def interval(every: Any) -> tuple[int, float]:
    """Steps and seconds between checkpoints, from 5 or "30s" (also min and h)."""
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
    """The keeper that the model asks for, and the seed: that of the fit which is gone on with."""
    if model.checkpoint is None:
        return None, seed
    checkpoint = Checkpoint(model.checkpoint, model.checkpoint_every)
    earlier = checkpoint.open() if model.resume else None
    seed = seed if earlier is None else earlier
    checkpoint.begin(fingerprint(model, X, start=start), seed)
    return checkpoint, seed


def interruptible_fit(checkpoint: Checkpoint | None) -> AbstractContextManager[None]:
    """Within it, SIGTERM ends a fit as Ctrl-C does, if there is a checkpoint to write then."""
    return nullcontext() if checkpoint is None else sigterm_as_interrupt()


class Checkpoint:
    """The keeper of a run that writes to a file; what it wrote last can be gone on from.

    Parameters
    ----------
    path : path
    every : int or str
        As ``checkpoint_every``.
    """

    def __init__(self, path: Any, every: Any) -> None:
        self._path = Path(path)
        self._every, self._seconds = interval(every)
        self._described: Callable[[Any], Any] | None = None
        self._of: dict[str, str] = {}
        self._seed = 0
        self._kept: SavedRun | None = None
        self._state: Any = None
        self._reports: list[Any] = []
        self._outcome: Outcome | None = None
        self._unwritten, self._moment = 0, time.monotonic()

    def open(self) -> int | None:
        """Read what there is, and return the seed of that fit; None where there is nothing."""
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
            self._of, self._seed = content["of"], int(content["seed"])
            self._kept = SavedRun(content["progress"], content["reports"], content["outcome"])
            self._reports = list(self._kept.reports)
        except (UnreadableFile, KeyError, TypeError, ValueError, OverflowError) as error:
            raise UnreadableFile(f"{path} cannot be read: {error}.") from error
        return self._seed

    def begin(self, of: dict[str, str], seed: int) -> None:
        """Say what the fit is of; refuse to go on with a checkpoint of something else."""
        if self._kept is not None:
            unlike = differences(self._of, of)
            if unlike:
                raise InvalidInput(
                    f"checkpoint={str(self._path)!r} belongs to another fit: {'; '.join(unlike)}. "
                    "Start afresh, without resume, or name another file."
                )
        self._of, self._seed = of, seed

    def count_from(self, steps: int) -> None:
        """Go on with the interval of a keeper that is no more, after so many steps in all."""
        self._unwritten = steps % self._every
        age = time.time() - self._path.stat().st_mtime if self._path.exists() else float("inf")
        self._moment = time.monotonic() - age

    def recall(self) -> SavedRun | None:
        """Where the earlier run was."""
        return self._kept

    def describe_with(self, describe: Callable[[Any], Any]) -> None:
        """Hear how a state is turned into what is written."""
        self._described = describe

    def keep(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Write, if it is time or the run has nothing more to do."""
        self._state, self._outcome = state, outcome if outcome in _ENDINGS else None
        if report is not None:
            self._reports.append(report)
        self._unwritten += 1
        due = self._unwritten >= self._every and time.monotonic() - self._moment >= self._seconds
        if due or self._outcome is not None:
            self.write(state)

    def finish(self) -> None:
        """Write what the last finished step left, if that is not on disk."""
        if self._state is not None and self._unwritten:
            self.write(self._state)

    def write(self, state: Any) -> None:
        """Write now."""
        assert self._described is not None
        encoder = Encoder()
        content = encoder.encode(
            {
                "of": self._of,
                "seed": self._seed,
                "progress": self._described(state),
                "reports": self._reports,
                "outcome": self._outcome,
            },
            _KIND,
        )
        manifest = Manifest(_KIND, content, digests_of(encoder.arrays), version("ikpca"))
        write_generation(self._path, manifest, encoder.arrays)
        self._unwritten, self._moment = 0, time.monotonic()


@dataclass(frozen=True, eq=False)
class VarianceSearchProgress:
    """Where a fit for a share of the variance is.

    Parameters
    ----------
    number : int
        Components of the round.
    records : list of PassRecord
        Of the rounds before it.
    progress : object
        The solver's own.
    """

    number: int
    records: list[PassRecord]
    progress: Any


class NestedCheckpoint:
    """The keeper of one round, which writes into that of the whole fit.

    Parameters
    ----------
    keeper : Keeper
    number : int
    records : list of PassRecord
        Of the rounds before.
    """

    def __init__(self, keeper: CheckpointProtocol, number: int, records: list[PassRecord]) -> None:
        self._keeper = keeper
        self._number = number
        self._records = records

    def recall(self) -> SavedRun | None:
        """Where this round was, if it is the one that was cut short."""
        kept = self._keeper.recall()
        if kept is None or kept.progress.number != self._number:
            return None
        return SavedRun(kept.progress.progress, kept.reports[len(self._records) :], kept.outcome)

    def describe_with(self, describe: Callable[[Any], Any]) -> None:
        """Put the number of components beside what the solver says."""
        self._keeper.describe_with(
            lambda state: VarianceSearchProgress(self._number, self._records, describe(state))
        )

    def keep(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """As the whole fit does."""
        self._keeper.keep(state, report, outcome)


def resume_variance_search(keeper: CheckpointProtocol, number: int) -> tuple[int, list[PassRecord]]:
    """Components to begin with, and the records of earlier rounds."""
    kept = keeper.recall()
    if kept is None:
        return number, []
    return int(kept.progress.number), list(kept.progress.records)


State = TypeVar("State")
_NAMES = ("n_features_in_", "feature_names_in_")


@dataclass(frozen=True, eq=False)
class StreamProgress:
    """All that a stream needs to go on, beside the parameters of its model.

    Parameters
    ----------
    stream : Stream or OnlineStream
        Without its kernel, which may be a function: parameters bring it back.
    names : dict
        Width of the rows, and their names if they have any.
    trail : Trail
        Batches of ``partial_fit`` so far.
    """

    stream: Any
    names: dict[str, Any]
    trail: StreamFingerprint


def drawn_seed(model: Any) -> int:
    """From ``random_state``, once for a stream."""
    return int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))


def fit_stream(
    model: Any,
    X: Any,
    begun: Callable[[int], State],
    step: Callable[[State], State],
    left: Callable[[State], int],
    observers: Sequence[Observer[Any, Any]] = (),
) -> tuple[State, bool]:
    """Learn from rows that are all there, from their beginning or from a checkpoint.

    Parameters
    ----------
    model : estimator
    X : rows
        Checked.
    begun : callable
        The stream before the first row, from a seed.
    step : callable
        The stream after the next rows.
    left : callable
        How many steps a stream still has to go.
    observers : sequence of Observer
        Look on after every step.

    Returns
    -------
    stream
        After the last finished step.
    interrupted : bool
    """
    checkpoint, seed = open_checkpoint(model, X, drawn_seed(model))
    earlier = None if checkpoint is None else _progress(checkpoint)
    stream = begun(seed) if earlier is None else earlier.stream.dressed(model)
    if checkpoint is not None:
        checkpoint.describe_with(lambda state: _describe(model, state, StreamFingerprint()))
    with interruptible_fit(checkpoint):
        stream, interrupted = _run(step, stream, left(stream), checkpoint, observers)
        if checkpoint is not None:
            checkpoint.finish()
    return stream, interrupted


def learn_batch(
    model: Any, stream: State, rows: Any, step: Callable[[State], State]
) -> tuple[State, bool]:
    """One step of ``partial_fit``, kept if the model asks for it and it is time.

    An interrupt leaves the stream as it was, and on disk, too.
    """
    if model.checkpoint is None:
        return _run(step, stream, 1, None)
    before: StreamFingerprint = getattr(model, "_trail", StreamFingerprint())
    after = before.after(rows)
    checkpoint = Checkpoint(model.checkpoint, model.checkpoint_every)
    checkpoint.begin(fingerprint(model, None), 0)
    checkpoint.count_from(before.batches)
    checkpoint.describe_with(lambda state: _describe(model, state, after))
    with interruptible_fit(checkpoint):
        grown, interrupted = _run(step, stream, 1, checkpoint)
        if grown is not stream:
            model._trail = after
            if interrupted:
                checkpoint.finish()
        elif before.batches:
            checkpoint.describe_with(lambda state: _describe(model, state, before))
            checkpoint.write(stream)
    return grown, interrupted


def recall_stream(model: Any, *, needed: bool) -> StreamProgress | None:
    """What the checkpoint of a stream holds; None where there is none and none is needed."""
    if model.checkpoint is None:
        raise invalid_parameter(
            "checkpoint", None, "there is nothing to load", "pass checkpoint=path"
        )
    checkpoint = Checkpoint(model.checkpoint, model.checkpoint_every)
    if checkpoint.open() is None:
        if needed:
            raise InvalidInput(f"{model.checkpoint} does not exist: pass the path of a checkpoint.")
        return None
    checkpoint.begin(fingerprint(model, None), 0)
    return _progress(checkpoint)


def _progress(checkpoint: Checkpoint) -> StreamProgress | None:
    kept = checkpoint.recall()
    if kept is None:
        return None
    if not isinstance(kept.progress, StreamProgress):
        raise UnreadableFile("the checkpoint holds no stream; pass another path.")
    return kept.progress


def _describe(model: Any, stream: Any, trail: StreamFingerprint) -> StreamProgress:
    names = {name: getattr(model, name) for name in _NAMES if hasattr(model, name)}
    return StreamProgress(stream.bare(), names, trail)


def _run(
    step: Callable[[State], State],
    stream: State,
    number: int,
    checkpoint: Checkpoint | None,
    observers: Sequence[Observer[Any, Any]] = (),
) -> tuple[State, bool]:
    def stepped(state: State) -> tuple[State, None, None]:
        # States are never changed, so that a step may be broken off anywhere.
        with (
            interruptible(),
            named_memory_errors("pass smaller batches, or a smaller library or budget"),
        ):
            return step(state), None, None

    keeper = NO_CHECKPOINT if checkpoint is None else checkpoint
    done = run_passes(stepped, stream, max_steps=number, observers=observers, keeper=keeper)
    return done.state, done.outcome is Outcome.INTERRUPTED


#: Rows that are read again after every pass: few, so that it costs nothing, and fewer where each
#: takes a whole chunk to be decompressed.
_MAPPED_SAMPLE, _CHUNKED_SAMPLE = 32, 3


class UnchangedRows:
    """An observer that compares, after every pass, a sample of rows and the age of their file.

    Parameters
    ----------
    X : rows
        On disk.
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self._file = _mapped_file(X)
        number = _CHUNKED_SAMPLE if self._file is None else _MAPPED_SAMPLE
        self._places = np.unique(np.linspace(0, X.shape[0] - 1, number).astype(np.intp))
        self._before = self._look()

    def see(self, state: object, report: object) -> None:
        """Raise if anything is not what it was."""
        if self._look() != self._before:
            where = "X" if self._file is None else f"X ({self._file})"
            raise DataChanged(
                f"{where} was written to while the fit read it: what was found belongs to no data "
                "set at all; copy the rows or wait for whoever writes them, and fit again."
            )

    def _look(self) -> tuple[Any, ...]:
        sample = np.concatenate([self._X[place : place + 1] for place in self._places])
        return (*_age(self._file), rows_digest(sample))


def watch_rows(X: Any) -> list[Observer[Any, Any]]:
    """The observer for rows that others may write to; none for rows in memory."""
    return [UnchangedRows(X)] if _is_elsewhere(X) else []


def _is_elsewhere(X: Any) -> bool:
    in_memory = isinstance(X, np.ndarray) or hasattr(X, "tocsr")
    return not in_memory or _mapped_file(X) is not None


def _mapped_file(X: Any) -> str | None:
    """The file of a memory map, also of a view of one."""
    while X is not None:
        if isinstance(X, np.memmap):
            return None if X.filename is None else str(X.filename)
        X = getattr(X, "base", None)
    return None


def _age(file: str | None) -> tuple[int, ...]:
    if file is None:
        return ()
    try:
        status = os.stat(file)
    except FileNotFoundError:
        # A map outlives the name of its file, and nobody can write to it any more.
        return (-1,)
    return status.st_size, status.st_mtime_ns, status.st_ino
