"""Denoising of joint positions by one pre-image per frame (Günter 2006, section 5.4)."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from ikpca import KernelPCA
from ikpca.errors import InvalidInput, RankWarning, invalid_parameter
from ikpca.kernels import Floats

#: Differences in time of this order contain noise and almost no motion.
_DIFFERENCE_ORDER = 3
#: Largest fraction of noise in the variance of a component that is kept.
_MAX_NOISE_SHARE = 0.4
#: Largest coordinate.
_MAX_POSITION = 1e12
#: Minimum number of frames to estimate noise from third differences.
_MIN_FRAMES = 12


class MotionSettings(NamedTuple):
    """Parameters of :func:`denoise_motion` chosen from the data."""

    gamma: float
    n_components: int


def denoise_motion(
    positions: ArrayLike,
    *,
    gamma: float | str = "auto",
    n_components: int | str = "auto",
    eigen_solver: str = "auto",
    random_state: int | np.random.RandomState | None = None,
) -> Floats:
    """Replace every frame by the pre-image of its projection on the leading components.

    Parameters
    ----------
    positions : array of shape (frames, joints, 3)
        Noisy positions in the order of time, in any unit; relative to the root, so that components
        do not describe the path of the body.
    gamma : float or "auto", default="auto"
        Coefficient 1/(2σ²) of the Gaussian kernel. "auto": see :func:`motion_settings`.
    n_components : int or "auto", default="auto"
        "auto": see :func:`motion_settings`.
    eigen_solver : str, default="auto"
        As for :class:`ikpca.KernelPCA`.
    random_state : int, RandomState or None, default=None
        Seed of the iterative solvers.

    Returns
    -------
    array of shape (frames, joints, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca_papers.applications import denoise_motion
    >>> rng = np.random.default_rng(0)
    >>> phases = rng.uniform(0, 6, size=(1, 9, 3))
    >>> clean = np.sin(np.arange(200)[:, None, None] / 20 + phases)
    >>> noisy = clean + rng.normal(scale=0.2, size=clean.shape)
    >>> error = np.mean((denoise_motion(noisy) - clean) ** 2) / 0.2**2
    >>> bool(error < 0.1)
    True
    """
    rows = _validate_positions(positions)
    for name, value in (("gamma", gamma), ("n_components", n_components)):
        if isinstance(value, str) and value != "auto":
            raise invalid_parameter(name, value, "must be a number or 'auto'", "pass 'auto'")
    if isinstance(gamma, str):
        gamma = _choose_gamma(rows)
    if isinstance(n_components, str):
        n_components = _choose_n_components(rows, gamma, random_state)
    model = KernelPCA(
        n_components, kernel="rbf", gamma=gamma, eigen_solver=eigen_solver,
        random_state=random_state,
    )  # fmt: skip
    return model.fit(rows).reconstruct(rows).reshape(np.shape(positions))


def motion_settings(
    positions: ArrayLike, *, random_state: int | np.random.RandomState | None = None
) -> MotionSettings:
    """Choose γ and the number of components from noisy frames.

    Motion is smooth on the scale of the frame rate, so third differences in time contain 20 times
    the variance of white noise and almost no motion. Components are kept if noise is at most 0.4
    of the variance of their projections. γ is 1 divided by the summed variance of all coordinates,
    including noise.

    Parameters
    ----------
    positions : array of shape (frames, joints, 3)
        In the order of time; at least 12 frames.
    random_state : int, RandomState or None, default=None
        Seed of the iterative solver, used for more than some thousands of frames.

    Returns
    -------
    (gamma, n_components) : named tuple of float and int

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca_papers.applications import motion_settings
    >>> rng = np.random.default_rng(0)
    >>> phases = rng.uniform(0, 6, size=(1, 9, 3))
    >>> clean = np.sin(np.arange(200)[:, None, None] / 20 + phases)
    >>> noise = rng.normal(size=clean.shape)
    >>> little, much = (motion_settings(clean + scale * noise) for scale in (0.02, 0.5))
    >>> little.n_components > much.n_components
    True
    """
    rows = _validate_positions(positions)
    gamma = _choose_gamma(rows)
    return MotionSettings(gamma, _choose_n_components(rows, gamma, random_state))


def _validate_positions(positions: ArrayLike) -> Floats:
    frames = check_array(
        positions, dtype=[np.float64, np.float32], ensure_2d=False, allow_nd=True,
        input_name="positions",
    )  # fmt: skip
    if frames.ndim != 3 or frames.shape[2] != 3 or frames.shape[0] < 2 or not frames.shape[1]:
        raise InvalidInput(
            f"positions of shape {frames.shape}: must be (frames, joints, 3) with at least two "
            "frames; pass rows.reshape(len(rows), -1, 3)."
        )
    if abs(frames).max() > _MAX_POSITION:
        raise InvalidInput(
            f"positions are as large as {abs(frames).max():.3g}: they must not exceed "
            f"{_MAX_POSITION:g}, as sums of squares would overflow; scale them."
        )
    return frames.reshape(len(frames), -1)


def _choose_gamma(rows: Floats) -> float:
    variance = float(rows.var(axis=0, dtype=np.float64).sum())
    if not variance > 0:
        rule = "needs frames that differ, and all frames are equal"
        raise invalid_parameter("gamma", "auto", rule, "pass a number")
    return 1 / variance


def _choose_n_components(
    rows: Floats, gamma: float, random_state: int | np.random.RandomState | None
) -> int:
    """Return the number of components with little noise, at least one."""
    if len(rows) < _MIN_FRAMES:
        rule = f"needs at least {_MIN_FRAMES} frames, not {len(rows)}"
        raise invalid_parameter("n_components", "auto", rule, "pass a number")
    max_components = min(len(rows) - 1, rows.shape[1])
    model = KernelPCA(max_components, kernel="rbf", gamma=gamma, random_state=random_state)
    with warnings.catch_warnings():
        # All components are requested, so a smaller rank is expected.
        warnings.simplefilter("ignore", RankWarning)
        projections = model.fit_transform(rows)
    differences = np.diff(projections, n=_DIFFERENCE_ORDER, axis=0)
    # The squares of the weights of the differences sum to this binomial coefficient.
    noise = np.mean(np.square(differences), axis=0, dtype=np.float64)
    noise /= math.comb(2 * _DIFFERENCE_ORDER, _DIFFERENCE_ORDER)
    variances = projections.var(axis=0, dtype=np.float64)
    return max(1, int(np.count_nonzero(noise < _MAX_NOISE_SHARE * variances)))
