"""Checkpoints of the runs of iterative solvers."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from ikpca.errors import FLAG, InvalidInput, Number, UnreadableFile, invalid_parameter
from ikpca.gram import tile_slices
from ikpca.kernels import Rows
from ikpca.model_files import decode, read_file, write_file
from ikpca.solvers import Outcome
from ikpca.solvers.base import Run

_KIND = "checkpoint"
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
#: Final outcomes; after any other, a run can be continued with more passes.
_FINAL_OUTCOMES = (Outcome.CONVERGED, Outcome.STALLED, Outcome.DIVERGED)
#: Parameters that do not change the result of a given number of passes.
_RUNTIME_PARAMETERS = (
    "checkpoint", "verbose", "n_jobs", "max_iter", "max_memory", "copy_X", "client",
)  # fmt: skip


@dataclass(frozen=True)
class Checkpoint:
    """File in which a fit stores its progress.

    The file is written atomically, so that it is valid at any time. Resuming is bit-exact: the
    result is the same as without an interruption. A file of other rows or parameters raises an
    error; only ``max_iter``, ``max_memory`` and parameters without effect on the result may differ.
    A resumed fit keeps the sizes that it was started with; with other memory, results may
    differ by rounding errors.

    Parameters
    ----------
    path : str or path
    every : int or str, default=1
        Interval in passes, or a time such as "30s", "5min" or "1h".
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
    def from_parameter(cls, checkpoint: Checkpoint | str | os.PathLike[str]) -> Checkpoint:
        """Return the checkpoint of a path or an object; raise an error if it is invalid."""
        valid = checkpoint if isinstance(checkpoint, cls) else cls(checkpoint)  # type: ignore[arg-type]
        try:
            folder = Path(valid.path).absolute().parent
        except TypeError:
            raise invalid_parameter(
                "checkpoint", checkpoint, "must be a path, a Checkpoint or None", "pass a path"
            ) from None
        if not folder.is_dir():
            rule = f"the folder {folder} does not exist"
            raise invalid_parameter("checkpoint", str(valid.path), rule, "create it first")
        FLAG.check("resume", valid.resume)
        valid._interval()
        return valid

    def _interval(self) -> tuple[int, float]:
        """Return passes and seconds between writes."""
        rule, remedy = "must be a count or a time", "pass 1, '30s', '5min' or '1h'"
        if not isinstance(self.every, str):
            Number(rule, remedy, low=1, integer=True).check("every", self.every)
            return int(self.every), 0.0
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", self.every)
        if match is None:
            raise invalid_parameter("every", self.every, rule, remedy)
        return 1, float(match[1]) * _UNITS[match[2]]


class CheckpointFile:
    """Checkpoint of one run: the earlier run to resume, its seed, and the progress to store."""

    def __init__(
        self, checkpoint: Checkpoint, parameters: dict[str, object], X: Rows, seed: int
    ) -> None:
        self.path, self._interval = Path(checkpoint.path), checkpoint._interval()
        self._fingerprint = _fingerprint(parameters, X)
        self.seed = seed
        self.saved: Run | None = None
        self._n_written, self._last_write = 0, time.monotonic()
        self._pending: tuple[Run, Callable[[], object]] | None = None
        if checkpoint.resume and self.path.exists():
            self._read()

    def _read(self) -> None:
        manifest, arrays = read_file(self.path, _KIND)
        try:
            content = decode(manifest["content"], arrays)
            before, self.seed = dict(content["fingerprint"]), int(content["seed"])
            self.saved = Run(content["progress"], content["outcome"], content["records"])
        except (UnreadableFile, KeyError, TypeError, ValueError, OverflowError) as error:
            # Checksums are valid, so that the file is not damaged.
            raise UnreadableFile(
                f"{self.path} was written by another version of ikpca, whose checkpoints have "
                f"other fields ({error}); pass resume=False to overwrite it, or another path."
            ) from error
        differences = _differences(before, self._fingerprint)
        if differences:
            raise InvalidInput(
                f"checkpoint={str(self.path)!r} belongs to another fit: {'; '.join(differences)}. "
                "Fit without resuming (resume=False) to overwrite it, or pass the path of another "
                "file."
            )
        self._n_written = len(self.saved.records)
        # The interval continues over restarts.
        self._last_write -= time.time() - self.path.stat().st_mtime

    def record(self, run: Run, progress: Callable[[], object]) -> None:
        """Record a finished pass; write if the interval has passed or the outcome is final."""
        run = run._replace(outcome=run.outcome if run.outcome in _FINAL_OUTCOMES else None)
        self._pending = (run, progress)
        n_passes, seconds = self._interval
        waited = time.monotonic() - self._last_write >= seconds
        if run.outcome is not None or (len(run.records) - self._n_written >= n_passes and waited):
            self.finish()

    def finish(self) -> None:
        """Write the last finished pass unless it is in the file already."""
        if self._pending is None:
            return
        run, make_progress = self._pending
        content = {
            "fingerprint": self._fingerprint,
            "seed": self.seed,
            "progress": make_progress(),
            "records": run.records,
            "outcome": run.outcome,
        }
        # Without progress, an interrupted pass has overwritten its data.
        if content["progress"] is not None:
            write_file(self.path, _KIND, content)
            self._n_written, self._last_write = len(run.records), time.monotonic()
        self._pending = None


def _fingerprint(parameters: dict[str, object], X: Rows) -> dict[str, str]:
    """Return the parameters that affect the result, and a digest of the rows, as short texts."""
    texts = {
        name: _text(value)
        for name, value in parameters.items()
        # The checkpoint holds the seed that was drawn from a generator.
        if name not in _RUNTIME_PARAMETERS
        and (name != "random_state" or isinstance(value, int | np.integer))
    }
    return {**texts, "rows": _digest(X)}


def _differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Describe the entries in which two fingerprints differ."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    # Options that the other solver does not have are not compared.
    shared = [name for name in names if name in before and name in now]
    return [
        "the training data differ from those of the checkpoint"
        if name == "rows"
        else f"{name} was {before.get(name)} and is {now.get(name)}"
        for name in shared or names
    ]


def _digest(X: Rows) -> str:
    """Compute the SHA-256 of type, shape and values, one tile of rows at a time."""
    sha = hashlib.sha256(f"{X.dtype.str}{X.shape}".encode())
    for strip in tile_slices(X.shape[0]):
        part = X[strip]
        arrays = (part.data, part.indices, part.indptr) if sparse.issparse(part) else (part,)
        for array in arrays:
            sha.update(np.ascontiguousarray(array).reshape(-1).view("u1").data)
    return sha.hexdigest()


def _text(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"array {_digest(value)[:12]}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)
