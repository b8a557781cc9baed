"""Checkpoints: where a fit or a stream is after every so many steps, on disk."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ikpca.errors import InvalidInput, UnreadableFile, refuse
from ikpca.estimators.fingerprint import differences, fingerprint
from ikpca.estimators.interrupts import terminated_like_interrupted
from ikpca.estimators.known_classes import KNOWN, class_finder
from ikpca.estimators.parameters import check_choice, check_number
from ikpca.loop import Kept, Outcome
from ikpca.storage import Decoder, Encoder, Manifest, digests_of, read_newest, write_generation

__all__ = ["Checkpoint", "check_checkpoint", "guarded", "interval", "open_checkpoint"]

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
            raise refuse("resume", True, "there is no checkpoint to go on from",
                         "pass checkpoint=path")  # fmt: skip
        return
    try:
        folder = Path(model.checkpoint).absolute().parent
    except TypeError:
        raise refuse("checkpoint", model.checkpoint, "must be a path or None", "pass a path") \
            from None  # fmt: skip
    if not folder.is_dir():
        raise refuse("checkpoint", str(model.checkpoint), f"there is no folder {folder}",
                     "create it first")  # fmt: skip


def interval(every: Any) -> tuple[int, float]:
    """Steps and seconds between checkpoints, from 5 or "30s" (also min and h)."""
    if isinstance(every, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", every)
        if match is None:
            raise refuse("checkpoint_every", every, "must be a count or a time",
                         "pass 1, '30s', '5min' or '1h'")  # fmt: skip
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


def guarded(checkpoint: Checkpoint | None) -> AbstractContextManager[None]:
    """Within it, SIGTERM ends a fit as Ctrl-C does, if there is a checkpoint to write then."""
    return nullcontext() if checkpoint is None else terminated_like_interrupted()


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
        self._kept: Kept | None = None
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
            content = Decoder(arrays, class_finder(KNOWN)).decode(manifest.content)
            self._of, self._seed = content["of"], int(content["seed"])
            self._kept = Kept(content["progress"], content["reports"], content["outcome"])
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

    def recall(self) -> Kept | None:
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
