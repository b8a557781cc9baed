"""Excess error, agreement of streamed and batch models, growth exponents, contour surfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ikpca import KernelPCA
from ikpca.gram import CenteredGram
from ikpca.kernels import Floats


def excess_error(
    gram: CenteredGram, projections: Floats, eigenvalues: Floats, norm_squared: float
) -> float:
    """Return E/E_min − 1 for E = ‖K' − (AK')ᵀ(AK')‖_F (Günter 2006, eq. 22), without an l×l matrix.

    If E_min is at most 1e-10 ‖K'‖, the excess is undefined, and E/‖K'‖ is returned instead.

    Parameters
    ----------
    gram : CenteredGram
        K', in double precision; in single precision the formula is limited to about 3e-6.
    projections : ndarray of shape (r, l)
        Y = AK'.
    eigenvalues : ndarray of shape (r,)
        The exact leading eigenvalues of K'.
    norm_squared : float
        ‖K'‖².

    Returns
    -------
    float
        From E² = ‖K'‖² − 2 tr(Y K' Yᵀ) + ‖YYᵀ‖² and E²_min = ‖K'‖² − Σ λ_i².

    Examples
    --------
    >>> from ikpca.gram import PrecomputedGram, center_gram
    >>> K, _ = center_gram(PrecomputedGram(np.diag([2.0, 1.0, 0.0])))
    >>> excess_error(K, np.zeros((1, 3)), np.zeros(1), np.sum(K.rows(np.arange(3)) ** 2))
    0.0
    """
    Y, exact = np.asarray(projections, np.float64), np.asarray(eigenvalues, np.float64)
    captured, inner = float(np.einsum("il,li->", Y, gram.multiply(Y.T))), Y @ Y.T
    error = np.sqrt(max(norm_squared - 2 * captured + float(np.sum(inner * inner)), 0.0))
    minimum = np.sqrt(max(norm_squared - float(np.sum(exact * exact)), 0.0))
    if minimum <= 1e-10 * np.sqrt(norm_squared):
        return float(error / np.sqrt(norm_squared)) if norm_squared else 0.0
    return float(error / minimum - 1)


def correlations(first: Floats, second: Floats) -> Floats:
    """Absolute correlation of every column with the same column of the other array.

    Examples
    --------
    >>> Y = np.random.default_rng(0).normal(size=(9, 2))
    >>> correlations(Y, -3 * Y + 1).round(12).tolist()
    [1.0, 1.0]
    """
    a, b = first - first.mean(axis=0), second - second.mean(axis=0)
    lengths = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    return np.abs(np.einsum("li,li->i", a, b)) / lengths


def align_signs(projections: Floats, like: Floats) -> Floats:
    """Return the projections with the signs of others."""
    return projections * np.sign(np.einsum("li,li->i", projections, like))


def overlaps(batch: KernelPCA, projections: Floats) -> Floats:
    """Inner products ⟨u_i, v_j⟩ of batch components u and orthonormal components v.

    Parameters
    ----------
    batch : KernelPCA
        Fitted.
    projections : ndarray of shape (l, q)
        Of the rows of that fit onto v, about any mean: Σ_k a_ik = 0, so the mean cancels.
    """
    A = batch.coefficients_
    centered = A - A.mean(axis=1, keepdims=True)
    return np.asarray(centered @ projections, dtype=np.float64)


def feature_angles(
    inner: Floats, first: Floats | None = None, second: Floats | None = None
) -> Floats:
    """Principal angles in degrees, largest first, between subspaces of feature space.

    Parameters
    ----------
    inner : ndarray of shape (p, q)
        Inner products of the components of the first and of the second subspace.
    first, second : ndarray of shape (p, p) and (q, q), optional
        Gram matrices of the components; by default they are orthonormal.
    """
    p, q = inner.shape
    corners = np.eye(p) if first is None else first, np.eye(q) if second is None else second
    values, vectors = linalg.eigh(np.block([[corners[0], inner], [inner.T, corners[1]]]))
    coordinates = (vectors * np.sqrt(np.maximum(values, 0))).T
    return np.degrees(linalg.subspace_angles(coordinates[:, :p], coordinates[:, p:]))


def captured_variance(projections: Floats) -> float:
    """Σ_i ‖P_i‖² of centered projections: the part of tr K' that the components explain."""
    return float(np.sum(np.square(projections - projections.mean(axis=0, dtype=np.float64))))


def separated(eigenvalues: Floats, n_rows: int) -> NDArray[np.intp]:
    """Indices of components that North's rule (1982) separates from both neighbors; not the last.

    The sampling error of an eigenvalue is λ√(2/l). If the nearest neighbor is closer than that,
    another sample would mix the components: only their span is determined.

    Examples
    --------
    >>> separated(np.array([4.0, 2.0, 1.95, 0.1, 0.0]), n_rows=800)
    array([0, 3])
    """
    steps = eigenvalues[:-1] - eigenvalues[1:]
    nearest = np.minimum(np.concatenate([[np.inf], steps[:-1]]), steps)
    return np.flatnonzero(nearest > eigenvalues[:-1] * np.sqrt(2 / n_rows))


def exponent(rows: Sequence[int], values: Sequence[float]) -> float:
    """Slope of log(values) over log(rows).

    Examples
    --------
    >>> round(exponent([10, 100, 1000], [3.0, 300.0, 30000.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(rows), np.log(values), 1)[0])


#: Points per side of the grid.
_SIDE = 100
#: Around the rows.
_MARGIN = 0.2


class FittedTransformer(Protocol):
    """Fitted estimator with ``transform``."""

    def transform(self, X: Floats) -> Floats:
        """Project rows."""


def surfaces(
    X: Floats, models: Mapping[str, FittedTransformer], n_components: int
) -> dict[str, Floats]:
    """Projections of a grid around the rows, by the name of the model.

    Signs of components are arbitrary: all models get those of the first.

    Parameters
    ----------
    X : array of shape (l, 2)
    models : mapping from str to fitted estimator
    n_components : int
        Number of leading components.

    Returns
    -------
    dict from str to array
        ``x`` and ``y``, the sides of the grid; ``points``, the rows; and every model's surfaces,
        of shape (len(y), len(x), n_components).
    """
    low, high = X.min(axis=0) - _MARGIN, X.max(axis=0) + _MARGIN
    x, y = (np.linspace(*ends, _SIDE) for ends in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    heights = {name: model.transform(grid)[:, :n_components] for name, model in models.items()}
    first = next(iter(heights.values()))
    surfaces_by_name = {"x": x, "y": y, "points": X}
    for name, values in heights.items():
        signs = np.where(np.sum(values * first, axis=0) < 0, -1.0, 1.0)
        surfaces_by_name[name] = (signs * values).reshape(_SIDE, _SIDE, n_components)
    return surfaces_by_name
