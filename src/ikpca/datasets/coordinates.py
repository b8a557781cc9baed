"""The coordinates of a motion: body-centred, in metres, noisy, as rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ikpca.datasets.skeleton import Motion
from ikpca.errors import InvalidInput, refuse
from ikpca.kernels import Floats

__all__ = ["as_rows", "body_centred", "from_rows", "in_metres", "with_noise"]


def body_centred(motion: Motion) -> Motion:
    """Subtract the root from every joint: what the body does, wherever it is.

    Parameters
    ----------
    motion : Motion

    Returns
    -------
    Motion

    Examples
    --------
    >>> from ikpca.datasets import body_centred, synthetic_walker
    >>> centred = body_centred(synthetic_walker(frames=10))
    >>> float(abs(centred.positions[:, 0]).max())
    0.0
    """
    return motion.with_positions(motion.positions - motion.positions[:, :1])


def in_metres(motion: Motion, metres_per_unit: float | None = None) -> Motion:
    """Scale lengths to metres.

    Parameters
    ----------
    motion : Motion
    metres_per_unit : float, optional
        Needed where the file did not say; BVH files never do.

    Returns
    -------
    Motion

    Examples
    --------
    >>> from ikpca.datasets import Motion, Skeleton, in_metres
    >>> stick = Skeleton(("root", "tip"), [-1, 0], [[0, 0, 0], [0, 30, 0]])
    >>> motion = Motion(stick, [[[0, 0, 0], [0, 30, 0]]], frame_rate=120.0)
    >>> in_metres(motion, 0.01).positions[0, 1]
    array([0. , 0.3, 0. ])
    """
    unit = motion.metres_per_unit if metres_per_unit is None else metres_per_unit
    if unit is None:
        raise refuse(
            "metres_per_unit", None, "the file does not say what its lengths are measured in",
            "pass metres_per_unit; CMU's recordings have 0.0254 / 0.45",
        )  # fmt: skip
    if not 0 < unit < np.inf:
        raise refuse("metres_per_unit", unit, "must be positive and finite", "pass 0.01 for cm")
    return replace(
        motion,
        skeleton=replace(motion.skeleton, offsets=unit * motion.skeleton.offsets),
        positions=unit * motion.positions,
        metres_per_unit=1.0,
    )


def with_noise(motion: Motion, scale: float, seed: int) -> Motion:
    """Add independent Gaussian noise to every coordinate of every joint.

    Parameters
    ----------
    motion : Motion
    scale : float
        Standard deviation, in the motion's unit of length.
    seed : int
        The same seed gives the same noise.

    Returns
    -------
    Motion

    Examples
    --------
    >>> from ikpca.datasets import synthetic_walker, with_noise
    >>> walk = synthetic_walker(frames=200)
    >>> noisy = with_noise(walk, 0.05, seed=0)
    >>> round(float((noisy.positions - walk.positions).std()), 2)
    0.05
    """
    if not 0 <= scale < np.inf:
        raise refuse("scale", scale, "must be finite and not negative", "pass 0.05, say")
    noise = np.random.default_rng(seed).normal(size=motion.positions.shape)
    return motion.with_positions(motion.positions + scale * noise)


def as_rows(motion: Motion) -> Floats:
    """One row of 3 · joints coordinates per frame.

    Parameters
    ----------
    motion : Motion

    Returns
    -------
    ndarray of shape (frames, 3 · joints)

    Examples
    --------
    >>> from ikpca.datasets import as_rows, synthetic_walker
    >>> as_rows(synthetic_walker(frames=10)).shape
    (10, 81)
    """
    return motion.positions.reshape(motion.n_frames, -1)


def from_rows(motion: Motion, rows: ArrayLike) -> Motion:
    """The motion with positions taken from rows, the inverse of :func:`as_rows`.

    Parameters
    ----------
    motion : Motion
        Gives the skeleton and the frame rate.
    rows : array of shape (frames, 3 · joints)

    Returns
    -------
    Motion

    Examples
    --------
    >>> from ikpca.datasets import as_rows, from_rows, synthetic_walker
    >>> walk = synthetic_walker(frames=10)
    >>> bool((from_rows(walk, as_rows(walk)).positions == walk.positions).all())
    True
    """
    values = np.asarray(rows)
    width = 3 * len(motion.skeleton.names)
    if values.ndim != 2 or values.shape[1] != width:
        raise InvalidInput(
            f"rows of shape {values.shape}: this skeleton has {width} coordinates per frame; "
            "pass rows as as_rows returns them."
        )
    return motion.with_positions(values.reshape(len(values), -1, 3))
