"""Streams that can be gone on with: steps of ``fit`` and ``partial_fit``, kept in checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from ikpca.errors import InvalidInput, UnreadableFile, refuse
from ikpca.estimators.checkpoints import Checkpoint, guarded, open_checkpoint
from ikpca.estimators.fingerprint import fingerprint
from ikpca.estimators.shortage import memory_named
from ikpca.estimators.trail import Trail
from ikpca.loop import FORGETFUL, Observer, Outcome, interruptible, run

__all__ = ["StreamProgress", "drawn_seed", "fit_stream", "learn_batch", "recalled"]

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
    trail: Trail


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
        checkpoint.describe_with(lambda state: _described(model, state, Trail()))
    with guarded(checkpoint):
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
    before: Trail = getattr(model, "_trail", Trail())
    after = before.after(rows)
    checkpoint = Checkpoint(model.checkpoint, model.checkpoint_every)
    checkpoint.begin(fingerprint(model, None), 0)
    checkpoint.count_from(before.batches)
    checkpoint.describe_with(lambda state: _described(model, state, after))
    with guarded(checkpoint):
        grown, interrupted = _run(step, stream, 1, checkpoint)
        if grown is not stream:
            model._trail = after
            if interrupted:
                checkpoint.finish()
        elif before.batches:
            checkpoint.describe_with(lambda state: _described(model, state, before))
            checkpoint.write(stream)
    return grown, interrupted


def recalled(model: Any, *, needed: bool) -> StreamProgress | None:
    """What the checkpoint of a stream holds; None where there is none and none is needed."""
    if model.checkpoint is None:
        raise refuse("checkpoint", None, "there is nothing to load", "pass checkpoint=path")
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


def _described(model: Any, stream: Any, trail: Trail) -> StreamProgress:
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
        with interruptible(), memory_named("pass smaller batches, or a smaller library or budget"):
            return step(state), None, None

    keeper = FORGETFUL if checkpoint is None else checkpoint
    done = run(stepped, stream, max_steps=number, observers=observers, keeper=keeper)
    return done.state, done.outcome is Outcome.INTERRUPTED
