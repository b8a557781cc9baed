"""Reduction of a subspace: fewer rows, orthonormal components, measured loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ikpca.gram import cross_gram
from ikpca.kernels import Floats
from ikpca.reduced_sets.base import Reduction
from ikpca.subspace import Expansion, Subspace

#: Directions shorter than this share of the longest are rounding of the others.
_DROP = 1e-12


def reorthonormalize(
    original: Subspace,
    reduced: Expansion,
    singular_values: Floats,
    *,
    across: Floats | None = None,
    rotate: bool = True,
) -> tuple[Expansion, Floats]:
    """Make the components on the reduced set orthonormal (Chin 2006, eqs. 22 to 25).

    With M_o the gram of the reduced components α', π = α' M_o^{-1/2} are the orthonormal ones
    nearest to them; eqs. 23 and 24 as printed lead back to α' instead. S = πᵀA'ᵀAαΣ (eq. 25) is
    what the original covariance looks like from there, and its singular vectors turn π into the
    components: all of it is used, not only the diagonal. Signs stay those of the original ones.

    Parameters
    ----------
    original : Subspace
        Components and mean before the reduction.
    reduced : Expansion
        The same after it, the mean last; it stays as it is.
    singular_values : ndarray of shape (r,)
        Σ.
    across : ndarray of shape (r + 1, s), optional
        ⟨u_i, Φ(z_k)⟩ of the original vectors and the new rows, as a reduced set knows them.
    rotate : bool
        False is the paper's own choice: π as they are, and of S the diagonal.

    Returns
    -------
    expansion : Expansion
        Components and mean, in double precision; fewer components than before where the reduced
        ones are linearly dependent.
    singular_values : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import SelectedRows, reorthonormalize
    >>> from ikpca.subspace import Subspace
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0], [-3.0, 0.0]])
    >>> along = Subspace(Expansion(Linear(), X, np.array([[0.5, -0.5, 0.0, 0.0], [0.25] * 4])))
    >>> longer = Expansion(Linear(), X, 2 * along.expansion.coefficients)
    >>> after, values = reorthonormalise(along, longer, np.array([4.5]))
    >>> float(np.linalg.norm(after.coefficients[0] @ X))
    1.0
    """
    if across is None:
        vectors = original.expansion
        across = _across(vectors, reduced.basis)
    T = _inverse_root(reduced.gram[:-1, :-1].astype(np.float64))
    turned = T @ reduced.coefficients[:-1].astype(np.float64)
    S = (turned @ across[:-1].T) * singular_values
    if rotate:
        U, values, _ = linalg.svd(S, full_matrices=False)
        T = (U * np.where(np.einsum("ki,ki->i", U, S[:, : len(S)]) < 0, -1, 1)).T @ T
    else:
        values = np.abs(np.einsum("ii->i", S[:, : len(S)]))
    return _transformed(reduced, T), values


def _across(vectors: Expansion, rows: Floats) -> Floats:
    X, Z = vectors.basis.astype(np.float64), rows.astype(np.float64)
    return vectors.coefficients @ cross_gram(vectors.kernel, X, Z)


def _inverse_root(gram: Floats) -> Floats:
    """M^{-1/2}, without the directions that M does not have."""
    values, vectors = linalg.eigh(gram)
    there = values > _DROP * max(values[-1], 0)
    root = (vectors[:, there] / np.sqrt(values[there])).T
    return vectors @ root if there.all() else root


def _transformed(reduced: Expansion, T: Floats) -> Expansion:
    """Components by T, the mean as it is, and what is known of them likewise."""
    whole = linalg.block_diag(T, np.ones((1, 1)))
    gram = whole @ reduced.gram @ whole.T
    return Expansion(
        reduced.kernel,
        reduced.basis,
        whole @ reduced.coefficients,
        whole @ reduced.products,
        (gram + gram.T) / 2,
    )


#: Rows per vector that a search for the size begins with.
_FIRST_ROWS = 10


@dataclass(frozen=True, eq=False)
class ReducedSubspace:
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
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import SelectedRows, reduce_subspace
    >>> from ikpca.subspace import Subspace
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0], [-3.0, 0.0]])
    >>> along = Subspace(Expansion(Linear(), X, np.array([[0.5, -0.5, 0.0, 0.0], [0.25] * 4])))
    >>> compact(along, np.array([4.5]), 2.0, ChosenSamples(), 2).relative_errors.round(6)
    array([0., 0.])
    """

    subspace: Subspace
    singular_values: Floats
    relative_errors: Floats
    values: Floats


def reduce_subspace(
    original: Subspace,
    singular_values: Floats,
    mean_weight: float,
    reduction: Reduction,
    size: int,
    values: Floats | None = None,
) -> ReducedSubspace:
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
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import SelectedRows, reduce_subspace
    >>> from ikpca.subspace import Subspace
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [3.0, 0.0], [-3.0, 0.0]])
    >>> along = Subspace(Expansion(Linear(), X, np.array([[0.5, -0.5, 0.0, 0.0], [0.25] * 4])))
    >>> small = compact(along, np.array([4.5]), 2.0, ChosenSamples(), 2)
    >>> small.subspace.library.shape, small.subspace.project(X[:1]).round(6)
    ((2, 2), array([[1.]]))
    """
    weights = np.append(singular_values, mean_weight)
    found = reduction.reduce(original.expansion, size, weights, values=values)
    after, new_values = reorthonormalize(
        original, found.expansion, singular_values, across=found.across
    )
    number, lengths = len(new_values), found.squared_lengths[:-1]
    mixed = np.einsum("ik,ik->i", after.coefficients[:-1], found.across[:number])
    squares = lengths.copy()
    squares[:number] += np.diagonal(after.gram)[:-1] - 2 * mixed
    shares = np.divide(squares, lengths, out=np.zeros_like(squares), where=lengths > 0)
    errors = np.append(np.sqrt(np.maximum(shares, 0)), found.relative_errors[-1])
    return ReducedSubspace(Subspace(after), new_values, errors, found.values)


def reduce_within(
    original: Subspace,
    singular_values: Floats,
    mean_weight: float,
    reduction: Reduction,
    tol: float,
    values: Floats | None = None,
) -> ReducedSubspace:
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
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import SelectedRows, reduce_within
    >>> from ikpca.subspace import Subspace
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
        found = reduce_subspace(original, singular_values, mean_weight, reduction, size, values)
        if size == most or (found.relative_errors <= tol).all():
            return found
        size = min(2 * size, most)
