"""Choice of a reduction, and reduction of a subspace with orthonormal components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ikpca.errors import Choice, invalid_parameter
from ikpca.kernels import DifferentiableKernel, Floats, Kernel
from ikpca.reduced_sets.base import Reduction
from ikpca.reduced_sets.joint_preimages import JointPreimages
from ikpca.reduced_sets.select_rows import SelectedRows
from ikpca.subspace import Subspace

REDUCTION_NAMES = ("auto", "preimages", "samples")
#: Eigenvalues of a Gram matrix below this fraction of the largest are rounding noise.
_DROP = 1e-12
#: Rows per vector at the start of a search for the size.
_INITIAL_ROWS = 10


def make_reduction(
    reduction: str | Reduction,
    kernel: Kernel,
    *,
    tol: float = 1e-4,
    seed: int = 0,
) -> Reduction:
    """Return a reduction for a kernel.

    "preimages" optimizes all rows jointly. "auto" is "preimages" for kernels that have pre-images,
    and "samples" for others.
    """
    if isinstance(reduction, Reduction):
        method = reduction
    else:
        Choice(REDUCTION_NAMES).check("reduction", reduction)
        differentiable = isinstance(kernel, DifferentiableKernel)
        if reduction == "samples" or (reduction == "auto" and not differentiable):
            return SelectedRows(seed=seed)
        method = JointPreimages(tol=tol, seed=seed)
    if not method.supports(kernel):
        raise invalid_parameter(
            "reduction",
            reduction,
            f"{kernel!r} has no gradient for pre-images",
            "choose 'samples'",
        )
    return method


class ReducedSubspace(NamedTuple):
    """Orthonormal components and a mean on a reduced set."""

    subspace: Subspace
    #: Of the original covariance in the span of the components.
    singular_values: Floats
    #: ‖u_i − u'_i‖/‖u_i‖ of the components, and of the mean; 1 for a dropped component.
    relative_errors: Floats


def reduce_subspace(
    original: Subspace,
    singular_values: Floats,
    mean_weight: float,
    reduction: Reduction,
    size: int,
) -> ReducedSubspace:
    """Reduce a subspace to at most ``size`` rows.

    The singular values are also the weights of the components. The weight √n of the mean, with n
    samples, weighs errors by their effect on the covariance.
    """
    weights = np.append(singular_values, mean_weight)
    reduced = reduction.reduce(original, size, weights)
    after, new_values = reorthonormalize(
        original, reduced.subspace, singular_values, inner_products=reduced.inner_products
    )
    number, lengths = len(new_values), reduced.squared_lengths[:-1]
    mixed = np.einsum("ik,ik->i", after.coefficients[:-1], reduced.inner_products[:number])
    squares = lengths.copy()
    squares[:number] += np.diagonal(after.gram)[:-1] - 2 * mixed
    ratios = np.divide(squares, lengths, out=np.zeros_like(squares), where=lengths > 0)
    errors = np.append(np.sqrt(np.maximum(ratios, 0)), reduced.relative_errors[-1])
    return ReducedSubspace(after, new_values, errors)


def reduce_to_tolerance(
    original: Subspace,
    singular_values: Floats,
    mean_weight: float,
    reduction: Reduction,
    tol: float,
) -> ReducedSubspace:
    """Reduce a subspace to the fewest rows with relative errors of at most ``tol``.

    The size is doubled, from ten rows per vector, until the errors are small enough or half of the
    rows are used.
    """
    n_vectors, n_rows = original.coefficients.shape
    max_size = max(n_rows // 2, n_vectors)
    size = min(_INITIAL_ROWS * n_vectors, max_size)
    while True:
        reduced = reduce_subspace(original, singular_values, mean_weight, reduction, size)
        if size == max_size or (reduced.relative_errors <= tol).all():
            return reduced
        size = min(2 * size, max_size)


def reorthonormalize(
    original: Subspace,
    reduced: Subspace,
    singular_values: Floats,
    *,
    inner_products: Floats | None = None,
) -> tuple[Subspace, Floats]:
    """Make the components on the reduced set orthonormal (Chin 2006, eqs. 22 to 25).

    With M_o the Gram matrix of the reduced components α', π = α' M_o^{-1/2} are the nearest
    orthonormal ones; eqs. 23 and 24 as printed give α' instead. S = πᵀA'ᵀAαΣ (eq. 25) represents
    the original covariance in the basis π, and its singular vectors rotate π to the components; all
    of S is used, not only its diagonal. Components keep the signs of the original ones.

    ``inner_products`` are ⟨u_i, Φ(z_k)⟩ of the original vectors and the new rows, as in a reduced
    set. The mean, which is last, does not change. There are fewer components than before if the
    reduced ones are linearly dependent; all is in double precision.
    """
    if inner_products is None:
        double = (original.basis.astype(np.float64), original.coefficients.astype(np.float64))
        rows = reduced.basis.astype(np.float64)
        inner_products = Subspace(original.kernel, *double).products_with(rows)
    T = _inverse_root(reduced.gram[:-1, :-1].astype(np.float64))
    orthonormal = T @ reduced.coefficients[:-1].astype(np.float64)
    S = (orthonormal @ inner_products[:-1].T) * singular_values
    U, values, _ = linalg.svd(S, full_matrices=False)
    T = (U * np.where(np.einsum("ki,ki->i", U, S[:, : len(S)]) < 0, -1, 1)).T @ T
    full = linalg.block_diag(T, np.ones((1, 1)))
    gram = full @ reduced.gram @ full.T
    coefficients, products = full @ reduced.coefficients, full @ reduced.products
    gram = (gram + gram.T) / 2
    return Subspace(reduced.kernel, reduced.basis, coefficients, products, gram), values


def _inverse_root(gram: Floats) -> Floats:
    """Return M^{-1/2} on the eigenvectors of M with nonzero eigenvalues."""
    values, vectors = linalg.eigh(gram)
    positive = values > _DROP * max(values[-1], 0)
    root = (vectors[:, positive] / np.sqrt(values[positive])).T
    return vectors @ root if positive.all() else root
