"""Checkpoints of fits and streams, and resuming from them."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ikpca.errors import (
    InvalidInput,
    UnreadableFile,
    check_choice,
    check_number,
    invalid_parameter,
)
from ikpca.gram import tile_slices
from ikpca.model_files import (
    Decoder,
    Encoder,
    Manifest,
    digests_of,
    read_newest,
    write_generation,
)
from ikpca.solvers import Outcome, PassRecord, SavedRun

_KIND = "checkpoint"
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
#: Final outcomes; after any other, a run can be continued with more passes.
_FINAL_OUTCOMES = (Outcome.CONVERGED, Outcome.SMALL_CHANGE, Outcome.STALLED, Outcome.DIVERGED)
#: Parameters that do not change the result of a given number of passes.
_RUNTIME_PARAMETERS = ("checkpoint", "verbose", "n_jobs", "max_iter", "copy_X", "client")
#: Replaces the digest of the rows in checkpoints of ``partial_fit``.
_STREAM = "a stream"


@dataclass(frozen=True)
class Checkpoint:
    """File in which a fit or a stream stores its progress.

    The file is written atomically, and the previous one is kept next to it. Resuming is bit-exact:
    the result is the same as without an interruption. A file of other rows or parameters raises an
    error; only ``max_iter`` and parameters without effect on the result may differ.

    Parameters
    ----------
    path : str or path
    every : int or str, default=1
        Interval in passes (batches of a stream), or a time such as "30s", "5min" or "1h".
    resume : bool, default=True
        If True, resume from the file if it exists; if False, start again and overwrite it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca import Checkpoint, KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> path = Path(tempfile.mkdtemp(), "fit.ikpca")
    >>> model = KernelPCA(2, kernel="rbf", eigen_solver="kha/et", max_iter=3, random_state=0)
    >>> model = model.set_params(checkpoint=Checkpoint(path, every="5min")).fit(X)
    >>> model.set_params(max_iter=5).fit(X).n_iter_  # two more passes
    5
    """

    path: str | os.PathLike[str]
    every: int | str = 1
    resume: bool = True

    @classmethod
    def from_parameter(cls, checkpoint: Any) -> Checkpoint:
        """Return the checkpoint of a path or an object; raise an error if it is invalid."""
        found = checkpoint if isinstance(checkpoint, cls) else cls(checkpoint)
        try:
            folder = Path(found.path).absolute().parent
        except TypeError:
            raise invalid_parameter(
                "checkpoint", checkpoint, "must be a path, a Checkpoint or None", "pass a path"
            ) from None
        if not folder.is_dir():
            raise invalid_parameter(
                "checkpoint",
                str(found.path),
                f"the folder {folder} does not exist",
                "create it first",
            )
        check_choice("resume", found.resume, (True, False))
        parse_interval(found.every)
        return found


def parse_interval(every: Any) -> tuple[int, float]:
    """Return steps and seconds between checkpoints, from 5 or "30s" (also min and h)."""
    rule, remedy = "must be a count or a time", "pass 1, '30s', '5min' or '1h'"
    if isinstance(every, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", every)
        if match is None:
            raise invalid_parameter("every", every, rule, remedy)
        return 1, float(match[1]) * _UNITS[match[2]]
    check_number("every", every, rule, remedy, low=1, integer=True)
    return int(every), 0.0


class CheckpointFile:
    """Checkpoint of one run: the earlier run to resume, and the progress to store.

    Parameters
    ----------
    checkpoint : Checkpoint
    fingerprint : dict
        Parameters and rows of the fit as texts.
    seed : int
        Seed of a new run; that of the earlier run replaces it.
    """

    def __init__(self, checkpoint: Checkpoint, fingerprint: dict[str, str], seed: int = 0) -> None:
        self.path = Path(checkpoint.path)
        self._every, self._seconds = parse_interval(checkpoint.every)
        self._fingerprint = fingerprint
        self.seed = seed
        self.saved: SavedRun | None = None
        self.n_written, self._last_write = 0, time.monotonic()
        self._pending: tuple[Callable[[], Any], int, Sequence[PassRecord], Outcome | None] | None
        self._pending = None
        if checkpoint.resume:
            self._read()

    def _read(self) -> None:
        newest = read_newest(self.path)
        if newest is None:
            return
        manifest, arrays, path = newest
        if manifest.kind != _KIND:
            raise UnreadableFile(
                f"{path} is a {manifest.kind}, not a checkpoint; pass another path."
            )
        try:
            content = Decoder(arrays).decode(manifest.content)
            found = differences(content["fingerprint"], self._fingerprint)
            saved = SavedRun(content["progress"], content["records"], content["outcome"])
            seed, n_steps = int(content["seed"]), int(content["steps"])
        except (UnreadableFile, KeyError, TypeError, ValueError, OverflowError) as error:
            raise UnreadableFile(f"{path} cannot be read: {error}.") from error
        if found:
            raise InvalidInput(
                f"checkpoint={str(self.path)!r} belongs to another fit: {'; '.join(found)}. Fit "
                "without resuming (resume=False) to overwrite it, or pass the path of another file."
            )
        self.saved, self.seed, self.n_written = saved, seed, n_steps
        # The interval continues over restarts.
        self._last_write -= time.time() - path.stat().st_mtime

    def continue_interval(self, n_steps: int) -> None:
        """Continue the interval of earlier calls of ``partial_fit``, ``n_steps`` in total."""
        self.n_written = n_steps - n_steps % self._every
        # The first batch is written at once.
        age = time.time() - self.path.stat().st_mtime if self.path.exists() else np.inf
        self._last_write -= age

    def restore(self) -> SavedRun | None:
        """Return the earlier run; None if there is none."""
        return self.saved

    def record(
        self, progress: Callable[[], Any], records: list[PassRecord], outcome: Outcome | None
    ) -> None:
        """Record a finished pass; write if the interval has passed or the outcome is final."""
        self.record_step(progress, len(records), records, outcome)

    def record_step(
        self,
        progress: Callable[[], Any],
        n_steps: int,
        records: Sequence[PassRecord] = (),
        outcome: Outcome | None = None,
    ) -> None:
        """Record that ``n_steps`` are finished, with the progress after them."""
        outcome = outcome if outcome in _FINAL_OUTCOMES else None
        self._pending = (progress, n_steps, records, outcome)
        waited = time.monotonic() - self._last_write >= self._seconds
        if outcome is not None or (n_steps - self.n_written >= self._every and waited):
            self.finish()

    def finish(self) -> None:
        """Write the last finished step unless it is in the file already."""
        if self._pending is None:
            return
        progress, n_steps, records, outcome = self._pending
        content = {
            "fingerprint": self._fingerprint,
            "seed": self.seed,
            "steps": n_steps,
            "progress": progress(),
            "records": list(records),
            "outcome": outcome,
        }
        # Without progress, an interrupted step has overwritten the data of that step.
        if content["progress"] is not None:
            encoder = Encoder()
            encoded = encoder.encode(content, _KIND)
            manifest = Manifest(_KIND, encoded, digests_of(encoder.arrays), version("ikpca"))
            write_generation(self.path, manifest, encoder.arrays)
            self.n_written, self._last_write = n_steps, time.monotonic()
        self._pending = None


def fingerprint(name: str, parameters: dict[str, Any], X: Any) -> dict[str, str]:
    """Return parameters and rows of a fit as short texts.

    Parameters
    ----------
    name : str
        Class of the estimator.
    parameters : dict
        Parameters of the estimator and of its solver.
    X : rows or None
        None for a stream.
    """
    compared = {
        key: value
        for key, value in parameters.items()
        if key not in _RUNTIME_PARAMETERS and not _is_drawn_seed(key, value)
    }
    texts = {key: _text(value) for key, value in compared.items()}
    return {"estimator": name, **texts, "rows": _STREAM if X is None else rows_digest(X)}


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Describe the entries in which two fingerprints differ."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    # Options that the other estimator or solver does not have are not compared.
    shared = [name for name in names if name in before and name in now]
    return [_difference(name, before.get(name), now.get(name)) for name in shared or names]


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
    batches : StreamFingerprint
        Batches of ``partial_fit`` so far.
    """

    stream: Any
    names: dict[str, Any]
    batches: StreamFingerprint
