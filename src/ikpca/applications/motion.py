"""Denoising of joint positions (Günter 2006, section 5.4), one pre-image per frame."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from ikpca.errors import InvalidInput, RankWarning, invalid_parameter
from ikpca.estimators import KernelPCA
from ikpca.estimators.input_checks import check_overflow
from ikpca.kernels import Floats

#: Differences in time of this order leave noise, and next to nothing of a body's motion.
_ORDER = 3
#: A component with a larger share of noise would bring back more noise than motion.
_LARGEST_NOISE_SHARE = 0.4
#: Fewer frames have too few third differences to tell noise from motion.
_FEWEST_FRAMES = 12


class MotionSettings(NamedTuple):
    """γ of the Gaussian kernel and the number of components.

    Parameters
    ----------
    gamma : float
        Of the Gaussian kernel, 1/(2σ²).
    n_components : int

    Examples
    --------
    >>> from ikpca.applications import motion_settings
    >>> from ikpca_papers.mocap import body_centred, synthetic_walker, with_noise
    >>> noisy = with_noise(body_centred(synthetic_walker()), 0.05, seed=0)
    >>> gamma, n_components = motion_settings(noisy.positions, random_state=0)
    >>> gamma > 0, 1 <= n_components <= 81
    (True, True)
    """

    gamma: float
    n_components: int


def denoise_motion(
    positions: ArrayLike,
    *,
    gamma: float | str = "auto",
    n_components: int | str = "auto",
    eigen_solver: str = "auto",
    random_state: Any = None,
) -> Floats:
    """Replace every frame by the pre-image of its projection on the leading components.

    Parameters
    ----------
    positions : array of shape (frames, joints, 3)
        Noisy, in the order of time, best relative to the root: a body that crosses the room has
        the room in its components. Any unit of length.
    gamma : float or "auto", default="auto"
        Of the Gaussian kernel, 1/(2σ²). "auto": see :func:`motion_settings`.
    n_components : int or "auto", default="auto"
        "auto": see :func:`motion_settings`.
    eigen_solver : str, default="auto"
        As for :class:`ikpca.KernelPCA`.
    random_state : int, RandomState or None, default=None
        For the iterative solvers.

    Returns
    -------
    array of shape (frames, joints, 3)

    Examples
    --------
    >>> from ikpca.applications import denoise_motion
    >>> from ikpca_papers.mocap import body_centred, synthetic_walker, with_noise
    >>> clean = body_centred(synthetic_walker())
    >>> noisy = with_noise(clean, 0.05, seed=0)
    >>> denoised = denoise_motion(noisy.positions)
    >>> error = ((denoised - clean.positions) ** 2).mean() / 0.05**2
    >>> bool(error < 0.1)
    True
    """
    rows = _rows(positions)
    if isinstance(gamma, str):
        gamma = _gamma(rows, gamma)
    if isinstance(n_components, str):
        n_components = _smooth_components(rows, gamma, n_components, random_state)
    model: Any = KernelPCA(
        n_components,
        kernel="rbf",
        gamma=gamma,
        eigen_solver=eigen_solver,
        random_state=random_state,
    )
    return model.fit(rows).reconstruct(rows).reshape(np.shape(positions))


def motion_settings(positions: ArrayLike, *, random_state: Any = None) -> MotionSettings:
    """Find settings in the noisy frames alone.

    Frames follow each other fast against what a body can do, so noise is what differs from frame to
    frame: third differences in time hold 20 times the variance of white noise and next to nothing
    of the motion. A component stays when noise is at most 0.4 of the variance of its projections.
    γ is 1 over the summed variance of all coordinates, noise included.

    Parameters
    ----------
    positions : array of shape (frames, joints, 3)
        In the order of time; 12 frames or more.
    random_state : int, RandomState or None, default=None
        Beyond some thousands of frames, where components are found by iteration.

    Returns
    -------
    MotionSettings

    Examples
    --------
    >>> from ikpca.applications import motion_settings
    >>> from ikpca_papers.mocap import body_centred, synthetic_walker, with_noise
    >>> clean = body_centred(synthetic_walker())
    >>> little, much = (with_noise(clean, scale, seed=0).positions for scale in (0.01, 0.1))
    >>> motion_settings(little).n_components > motion_settings(much).n_components
    True
    """
    rows = _rows(positions)
    gamma = _gamma(rows, "auto")
    return MotionSettings(gamma, _smooth_components(rows, gamma, "auto", random_state))


def _rows(positions: ArrayLike) -> Floats:
    frames = check_array(
        positions,
        dtype=[np.float64, np.float32],
        ensure_2d=False,
        allow_nd=True,
        input_name="positions",
    )
    if frames.ndim != 3 or frames.shape[2] != 3 or frames.shape[0] < 2 or not frames.shape[1]:
        raise InvalidInput(
            f"positions of shape {frames.shape}: must be (frames, joints, 3) with two frames or "
            "more; pass Motion.positions, or rows.reshape(len(rows), -1, 3)."
        )
    rows = frames.reshape(len(frames), -1)
    check_overflow(rows)
    return rows


def _gamma(rows: Floats, wanted: str) -> float:
    if wanted != "auto":
        raise invalid_parameter(
            "gamma", wanted, "must be a number or 'auto'", "pass 'auto' or 1 / (2σ²)"
        )
    variance = float(rows.var(axis=0, dtype=np.float64).sum())
    if not variance > 0:
        raise invalid_parameter(
            "gamma",
            wanted,
            "all frames are equal, which leaves no scale",
            "leave the frames as they are",
        )
    return 1 / variance


def _smooth_components(rows: Floats, gamma: float, wanted: str, random_state: Any) -> int:
    """How many components move like a body and not like noise; one at least."""
    if wanted != "auto":
        raise invalid_parameter(
            "n_components", wanted, "must be a number or 'auto'", "pass 'auto' or 25, say"
        )
    if len(rows) < _FEWEST_FRAMES:
        raise invalid_parameter(
            "n_components",
            wanted,
            f"needs {_FEWEST_FRAMES} frames to tell noise from motion, not {len(rows)}",
            "pass a number",
        )
    most = min(len(rows) - 1, rows.shape[1])
    with warnings.catch_warnings():
        # That there are fewer is no news to someone who asked for all.
        warnings.simplefilter("ignore", RankWarning)
        projections = KernelPCA(
            most, kernel="rbf", gamma=gamma, random_state=random_state
        ).fit_transform(rows)
    return max(1, int(np.count_nonzero(_noise_shares(projections) <= _LARGEST_NOISE_SHARE)))


def _noise_shares(projections: Floats) -> Floats:
    """Variance of white noise in each column, over its whole variance."""
    differences = np.diff(projections, n=_ORDER, axis=0)
    noise = np.mean(differences * differences, axis=0) / math.comb(2 * _ORDER, _ORDER)
    variance = projections.var(axis=0)
    return np.divide(noise, variance, out=np.ones_like(noise), where=variance > 0)
