"""Orthonormal components on a reduced set, and the singular values that go with them."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ikpca.gram import cross_gram
from ikpca.kernels import Floats
from ikpca.preimages import Expansion
from ikpca.reduced_sets.subspace import Subspace

__all__ = ["reorthonormalise"]

#: Directions shorter than this share of the longest are rounding of the others.
_DROP = 1e-12


def reorthonormalise(
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
    >>> from ikpca.preimages import Expansion
    >>> from ikpca.reduced_sets import ChosenSamples, Subspace, reorthonormalise
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
