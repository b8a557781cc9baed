"""A whole subspace on fewer rows: reduced, orthonormal again, and measured as it then is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.kernels import Floats
from ikpca.reduced_sets.orthonormal import reorthonormalise
from ikpca.reduced_sets.reduction import Reduction
from ikpca.reduced_sets.subspace import Subspace

__all__ = ["CompactSubspace", "compact", "compact_within"]

#: Rows per vector that a search for the size begins with.
_FIRST_ROWS = 10


@dataclass(frozen=True, eq=False)
class CompactSubspace:
    """Orthonormal components and a mean on a reduced set.

    Parameters
    ----------
    subspace : Subspace
    singular_values : ndarray of shape (r,)
        Of the original covariance as the components see it.
    relative_errors : ndarray of shape (r + 1,)
        ‖u_i − u'_i‖/‖u_i‖ of the components as they are now, and last that of the mean; 1 for a
        component that there is no direction left for.
    values : ndarray of shape (s, s)
        Kernel values of the library.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.preimages import Expansion
    >>> from ikpca.reduced_sets import ChosenSamples, Subspace, compact
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0], [-3.0, 0.0]])
    >>> along = Subspace(Expansion(Linear(), X, np.array([[0.5, -0.5, 0.0, 0.0], [0.25] * 4])))
    >>> compact(along, np.array([4.5]), 2.0, ChosenSamples(), 2).relative_errors.round(6)
    array([0., 0.])
    """

    subspace: Subspace
    singular_values: Floats
    relative_errors: Floats
    values: Floats


def compact(
    original: Subspace,
    singular_values: Floats,
    mean_weight: float,
    reduction: Reduction,
    size: int,
    values: Floats | None = None,
) -> CompactSubspace:
    """Reduce to ``size`` rows at most.

    Parameters
    ----------
    original : Subspace
    singular_values : ndarray of shape (r,)
        Also the weights of the components.
    mean_weight : float
        The root of the number of samples makes errors alike in what they do to the covariance.
    reduction : Reduction
    size : int
    values : ndarray of shape (m, m), optional
        Kernel values of the basis, where they are known.

    Returns
    -------
    CompactSubspace

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.preimages import Expansion
    >>> from ikpca.reduced_sets import ChosenSamples, Subspace, compact
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0], [-3.0, 0.0]])
    >>> along = Subspace(Expansion(Linear(), X, np.array([[0.5, -0.5, 0.0, 0.0], [0.25] * 4])))
    >>> small = compact(along, np.array([4.5]), 2.0, ChosenSamples(), 2)
    >>> small.subspace.library.shape, small.subspace.project(X[:1]).round(6)
    ((2, 2), array([[1.]]))
    """
    weights = np.append(singular_values, mean_weight)
    found = reduction.reduce(original.expansion, size, weights, values=values)
    after, new_values = reorthonormalise(
        original, found.expansion, singular_values, across=found.across
    )
    number, lengths = len(new_values), found.squared_lengths[:-1]
    mixed = np.einsum("ik,ik->i", after.coefficients[:-1], found.across[:number])
    squares = lengths.copy()
    squares[:number] += np.diagonal(after.gram)[:-1] - 2 * mixed
    shares = np.divide(squares, lengths, out=np.zeros_like(squares), where=lengths > 0)
    errors = np.append(np.sqrt(np.maximum(shares, 0)), found.relative_errors[-1])
    return CompactSubspace(Subspace(after), new_values, errors, found.values)


def compact_within(
    original: Subspace,
    singular_values: Floats,
    mean_weight: float,
    reduction: Reduction,
    tol: float,
    values: Floats | None = None,
) -> CompactSubspace:
    """Reduce to as few rows as an error of ``tol`` takes, in steps of two, or to half of them.

    Sizes are doubled from ten rows per vector until no component is farther off than ``tol``.

    Parameters
    ----------
    original : Subspace
    singular_values : ndarray of shape (r,)
        Also the weights of the components.
    mean_weight : float
        As for :func:`compact`.
    reduction : Reduction
    tol : float
        The largest relative error of a component or of the mean.
    values : ndarray of shape (m, m), optional
        Kernel values of the basis, where they are known.

    Returns
    -------
    CompactSubspace
        ``relative_errors`` says whether ``tol`` was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.preimages import Expansion
    >>> from ikpca.reduced_sets import ChosenSamples, Subspace, compact_within
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0], [-3.0, 0.0]])
    >>> along = Subspace(Expansion(Linear(), X, np.array([[0.5, -0.5, 0.0, 0.0], [0.25] * 4])))
    >>> small = compact_within(along, np.array([4.5]), 2.0, ChosenSamples(), 0.01)
    >>> len(small.subspace.library) <= 2
    True
    """
    n_vectors, n_rows = original.expansion.coefficients.shape
    most = max(n_rows // 2, n_vectors)
    size = min(_FIRST_ROWS * n_vectors, most)
    while True:
        found = compact(original, singular_values, mean_weight, reduction, size, values)
        if size == most or (found.relative_errors <= tol).all():
            return found
        size = min(2 * size, most)
