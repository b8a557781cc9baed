"""Update of a kernel PCA with new samples, including the mean shift (Chin 2006, section 4).

All computations use coordinates on Z = [u_1 … u_r, µ, Φ(b_1) … Φ(b_c)] and the inner products of
these r + 1 + c vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Rows
from ikpca.reduced_sets import Reduction, reorthonormalize
from ikpca.solvers import deterministic_signs
from ikpca.streams.incremental_state import BasisGram, IncrementalState
from ikpca.subspace import Subspace

#: max |UᵀU − I| above which components are orthonormalized again.
_MAX_DEFECT = 1e-4
#: Squared length of a new direction, relative to the largest k(x, x), below which it is dropped. A
#: direction of relative length t has a relative error of eps/t, and dropping it causes an error t;
#: this value keeps both small.
_RANK_TOL = float(np.finfo(np.float64).eps ** (2 / 3))
#: Negative squared length, relative to the largest positive one, that is not rounding.
_NEGATIVE_TOL = 1e-5


@dataclass(frozen=True)
class IncrementalSettings:
    """Settings of incremental updates.

    Parameters
    ----------
    n_components : int or None
        Number of components; None keeps all of the numerical rank.
    n_oversamples : int
        Additional components, since truncated variance cannot be recovered by a later batch.
    forgetting : float
        f in (0, 1]: before each batch, Σ ← fΣ and n ← f²n.
    compression : Compression or None
        None: exact, and the basis grows with the stream.
    move_mean : bool
        False for the ablation of :func:`update`.
    """

    n_components: int | None = None
    n_oversamples: int = 0
    forgetting: float = 1.0
    compression: Compression | None = None
    move_mean: bool = True

    @property
    def n_kept(self) -> int | None:
        """Number of components kept between batches; None for all."""
        return None if self.n_components is None else self.n_components + self.n_oversamples


@dataclass(frozen=True)
class Compression:
    """Compression of the basis to a limited number of rows.

    Parameters
    ----------
    reduction : Reduction
    limit : int
        Maximum number of basis rows after a step.
    room : int
        Minimum number of rows between two reductions. For smaller batches the basis is reduced
        further, so that not every batch needs a reduction.
    orthonormal : bool
        False does not orthonormalize the components after a reduction (an ablation: without
        section 5.3 errors accumulate).
    """

    reduction: Reduction
    limit: int
    room: int = 1
    orthonormal: bool = True

    def enforce_limit(
        self, state: IncrementalState, count: int
    ) -> tuple[IncrementalState, Floats | None]:
        """Reduce the basis if it exceeds the limit after ``count`` new rows; also return errors."""
        if state.library.shape[0] <= self.limit:
            return state, None
        min_size = state.n_components + 1
        return self.reduce(state, max(self.limit - max(0, self.room - count), min_size))

    def reduce(self, state: IncrementalState, size: int) -> tuple[IncrementalState, Floats]:
        """Return the state on fewer rows, and the relative errors of components and mean."""
        original = state.subspace()
        # Errors δu_i and δµ change the scatter by σ_i² ‖δu_i‖² and n ‖δµ‖².
        weights = np.append(state.singular_values, np.sqrt(state.n_samples))
        values = None if state.values is None else state.values.matrix()
        reduced = self.reduction.reduce(original, size, weights, values=values)
        subspace, singular_values = reduced.subspace, state.singular_values
        signs = np.ones(len(subspace.coefficients))
        if self.orthonormal and state.n_components:
            subspace, singular_values = reorthonormalize(
                original, subspace, singular_values, inner_products=reduced.inner_products
            )
            # A component keeps the sign of the original one.
            overlaps = subspace.coefficients[:-1] @ reduced.inner_products[:-1].T
            signs = np.append(deterministic_signs(overlaps), 1)
        compressed = replace(
            state,
            library=subspace.basis,
            vectors=subspace.coefficients * signs[:, None],
            products=subspace.products * signs[:, None],
            singular_values=singular_values,
            values=BasisGram((reduced.values,)),
        )
        return compressed, reduced.relative_errors


@dataclass(frozen=True, eq=False)
class UpdateReport:
    """Diagnostics of an update.

    Parameters
    ----------
    novelty : ndarray of shape (c,)
        ‖Φ(x) − µ − P(Φ(x) − µ)‖² of the batch before the update.
    compression_errors : ndarray of shape (r + 1,) or None
        Relative errors of the components and the mean, if the basis was compressed.
    recovery : str
        Numerical problem that was corrected; empty if there was none.
    """

    novelty: Floats
    compression_errors: Floats | None = None
    recovery: str = ""


def update_step(
    state: IncrementalState, rows: Rows, settings: IncrementalSettings
) -> tuple[IncrementalState, UpdateReport]:
    """Update the state with a batch of rows: forget, update, truncate, compress."""
    n_components = settings.n_components
    batch = batch_products(state.forget(settings.forgetting), rows)
    novelty = batch.novelty(state.n_components if n_components is None else n_components)
    state = apply_update(batch, move_mean=settings.move_mean)
    if settings.n_kept is not None:
        state = state.truncate(settings.n_kept)
    recovery = ""
    # The ablation does without orthonormal components.
    if settings.compression is None or settings.compression.orthonormal:
        state, recovery = reorthonormalize_if_needed(state)
    if settings.compression is None:
        return state, UpdateReport(novelty, recovery=recovery)
    state, errors = settings.compression.enforce_limit(state, rows.shape[0])
    return state, UpdateReport(novelty, errors, recovery)


def join_reports(reports: list[UpdateReport]) -> UpdateReport:
    """Join the reports of the parts of a batch: all novelties, and the last errors."""
    errors = [each.compression_errors for each in reports if each.compression_errors is not None]
    novelty = np.concatenate([each.novelty for each in reports])
    recoveries = [each.recovery for each in reports if each.recovery]
    return UpdateReport(
        novelty, errors[-1] if errors else None, recoveries[-1] if recoveries else ""
    )


def update(state: IncrementalState, rows: Rows, *, move_mean: bool = True) -> IncrementalState:
    """Update the state with a batch of rows.

    Parameters
    ----------
    state : IncrementalState
        State after all earlier batches; :meth:`IncrementalState.empty` before the first.
    rows : rows of shape (c, N)
    move_mean : bool
        False keeps the mean of the first batch (an ablation: incremental kernel SVD about a fixed
        point).

    Returns
    -------
    IncrementalState
        State with all components of the numerical rank; ``truncate`` keeps the leading ones.
    """
    return apply_update(batch_products(state, rows), move_mean=move_mean)


@dataclass(frozen=True, eq=False)
class BatchProducts:
    """State, batch of rows, and the kernel values that an update needs.

    Parameters
    ----------
    state : IncrementalState
    rows : rows of shape (c, N)
    cross_values : ndarray of shape (m, c)
        Kernel values of the basis with the batch.
    batch_values : ndarray of shape (c, c)
        Kernel values of the batch.
    """

    state: IncrementalState
    rows: Rows
    cross_values: Floats
    batch_values: Floats

    @cached_property
    def inner_products(self) -> Floats:
        """⟨u_i, Φ(b_j)⟩, and ⟨µ, Φ(b_j)⟩ last: (r + 1)×c."""
        return self.state.vectors @ self.cross_values

    @cached_property
    def gram(self) -> Floats:
        """Inner products of u_1 … u_r, µ, Φ(b_1) … Φ(b_c)."""
        products = self.inner_products
        return np.block([[self.state.gram, products], [products.T, self.batch_values]])

    def novelty(self, n_components: int) -> Floats:
        """Return ‖Φ(b) − µ − P(Φ(b) − µ)‖², P on the leading components; NaN in the first batch."""
        if not self.state.n_samples:
            return np.full(len(self.batch_values), np.nan)
        gram, products = self.state.gram, self.inner_products
        y = products[:-1] - gram[:-1, -1:]
        lengths = np.diagonal(self.batch_values) - 2 * products[-1] + gram[-1, -1]
        return np.maximum(lengths - np.square(y[:n_components]).sum(axis=0), 0)


def batch_products(state: IncrementalState, rows: Rows) -> BatchProducts:
    """Compute the kernel values of a batch with the basis and with itself, in double precision."""
    batch = rows.astype(np.float64, copy=False)
    basis = state.library.astype(np.float64, copy=False)
    cross_values = np.zeros((0, rows.shape[0]))
    if basis.shape[0]:
        cross_values = cross_gram(state.kernel, basis, batch)
    batch_values = cross_gram(state.kernel, batch, batch)
    _check_finite(batch_values, cross_values)
    return BatchProducts(state, rows, cross_values, (batch_values + batch_values.T) / 2)


def _check_finite(batch_values: Floats, cross_values: Floats) -> None:
    """Raise an error for rows whose kernel values overflow; they would corrupt the state."""
    bad = ~(np.isfinite(batch_values).all(axis=0) & np.isfinite(cross_values).all(axis=0))
    if bad.any():
        listed = ", ".join(map(str, np.flatnonzero(bad)[:5]))
        raise InvalidInput(
            f"The kernel values of rows {listed} of the batch are not finite: the update needs "
            "finite values; scale the rows, or remove these."
        )


def apply_update(batch: BatchProducts, *, move_mean: bool = True) -> IncrementalState:
    """Return the updated state from precomputed kernel values."""
    state, G = batch.state, batch.gram
    count, r, n = len(batch.batch_values), state.n_components, state.n_samples
    if n and not move_mean:
        deviations, mean = _fixed_mean_deviations(r, count)
    else:
        deviations, mean = _moving_mean_deviations(r, n, count)
    L, H = _split(G, deviations, r)
    J, K = _orthonormal(G, H, r)
    U, singular_values = _left_singular(state.singular_values, L, K)
    components = U[:r].T @ np.eye(r, len(G)) + U[r:].T @ J.T  # eq. 18
    components *= _signs(U[:r], components @ G[:, r + 1 :])[:, None]
    return _extend_basis(
        batch,
        np.vstack([components, mean]),
        singular_values,
        float(np.einsum("ij,ij->", deviations, G @ deviations)),
    )


def _moving_mean_deviations(r: int, n: float, count: int) -> tuple[Floats, Floats]:
    """Return E = [B − µ_B, √(nc/(n+c))(µ_A − µ_B)] and µ = (nµ_A + cµ_B)/(n+c) (eqs. 7–10)."""
    E = np.zeros((r + 1 + count, count + 1))
    E[r + 1 :, :-1] = np.eye(count) - 1 / count
    E[r, -1] = np.sqrt(n * count / (n + count))
    E[r + 1 :, -1] = -E[r, -1] / count
    mean = np.full(len(E), 1 / (n + count))
    mean[:r], mean[r] = 0, n / (n + count)
    return E, mean


def _fixed_mean_deviations(r: int, count: int) -> tuple[Floats, Floats]:
    """Return E = B − µ and the unchanged µ."""
    E = np.zeros((r + 1 + count, count))
    E[r], E[r + 1 :] = -1, np.eye(count)
    return E, np.eye(len(E))[r]


def _split(G: Floats, E: Floats, r: int) -> tuple[Floats, Floats]:
    """Return L = UᵀE and H = E − UL (eqs. 14, 15); computed twice because of rounding."""
    L, H = np.zeros((r, E.shape[1])), E.copy()
    for _ in range(2):
        part = G[:r] @ H
        H[:r] -= part
        L += part
    return L, H


def _orthonormal(G: Floats, H: Floats, r: int) -> tuple[Floats, Floats]:
    """Return J and K with H = JK, J orthonormal with the numerical rank of H (eqs. 16, 17)."""
    values, Q = linalg.eigh(H.T @ G @ H, check_finite=False)
    # For an indefinite kernel even the largest may be negative.
    rounding = _RANK_TOL * max(float(np.diagonal(G)[r:].max()), 0.0)
    if values[0] < -max(rounding, _NEGATIVE_TOL * values[-1]):
        raise InvalidInput(
            f"The kernel is not positive semi-definite on these rows (a squared length is "
            f"{values[0]:.2g}): unlike a batch fit, a stream cannot ignore its negative part; "
            "choose another kernel."
        )
    kept = values > rounding
    roots, Q = np.sqrt(values[kept]), Q[:, kept]
    J, K = H @ Q / roots, roots[:, None] * Q.T
    # Division by small roots has amplified rounding errors: orthogonalize again.
    J[:r] -= G[:r] @ J
    try:
        R = linalg.cholesky(J.T @ G @ J, check_finite=False)
    except linalg.LinAlgError:
        # All of these directions are rounding noise.
        return J[:, :0], K[:0]
    return linalg.solve_triangular(R, J.T, trans="T", check_finite=False).T, R @ K


def _left_singular(singular_values: Floats, L: Floats, K: Floats) -> tuple[Floats, Floats]:
    """Return U' and Σ' of F = [Σ L; 0 K] (eqs. 12, 13)."""
    F = np.block([[np.diag(singular_values), L], [np.zeros((len(K), len(L))), K]])
    if not len(F):
        return F[:, :0], np.zeros(0)
    U, values, _ = linalg.svd(F, full_matrices=False, check_finite=False)
    return U, values


def _signs(overlaps: Floats, projections: Floats) -> Floats:
    """Return signs: that of an earlier component close to the new one, else from the batch."""
    if not len(overlaps):
        return deterministic_signs(projections)
    continued = np.square(overlaps).sum(axis=0) > 0.5
    return np.where(continued, deterministic_signs(overlaps.T), deterministic_signs(projections))


def _extend_basis(
    batch: BatchProducts, coordinates: Floats, singular_values: Floats, variance: float
) -> IncrementalState:
    """Return the state with the batch in its basis, from coordinates of the vectors on Z."""
    state = batch.state
    on_vectors, on_batch = np.split(coordinates, [state.n_components + 1], axis=1)
    products = on_vectors @ np.hstack([state.products, batch.inner_products])
    products += on_batch @ np.hstack([batch.cross_values.T, batch.batch_values])
    return replace(
        state,
        library=np.vstack([state.library, batch.rows]),
        vectors=np.hstack([on_vectors @ state.vectors, on_batch]),
        products=products,
        singular_values=singular_values,
        n_samples=state.n_samples + len(batch.batch_values),
        total_variance=state.total_variance + variance,
        values=state.values and state.values.append(batch.cross_values, batch.batch_values),
    )


def reorthonormalize_if_needed(state: IncrementalState) -> tuple[IncrementalState, str]:
    """Return the state with orthonormal components, and a message if it had to be corrected.

    In that case the stored inner products are recomputed from the kernel.
    """
    defect = _defect(state)
    if defect <= _MAX_DEFECT:
        return state, ""
    rows = state.library.astype(np.float64, copy=False)
    products = Subspace(state.kernel, rows, state.vectors).products
    gram = state.vectors[:-1] @ products[:-1].T
    if not np.isfinite(gram).all():
        raise InvalidInput(
            "The components of the stream overflowed: nothing was learned from this X; scale the "
            "rows and start again with fit."
        )
    values, vectors = linalg.eigh((gram + gram.T) / 2)
    if values[0] <= _MAX_DEFECT * values[-1]:
        raise InvalidInput(
            "The components of the stream have become linearly dependent: nothing was learned from "
            "this X; start again with fit and fewer components."
        )
    T = linalg.block_diag((vectors / np.sqrt(values)) @ vectors.T, np.ones((1, 1)))
    corrected = replace(state, vectors=T @ state.vectors, products=T @ products)
    return corrected, (
        f"components had lost their orthonormality (by {defect:.1e}) and were made orthonormal "
        f"again (to {_defect(corrected):.1e})"
    )


def _defect(state: IncrementalState) -> float:
    r = state.n_components
    defect = float(np.abs(state.gram[:r, :r] - np.eye(r)).max(initial=0.0))
    return defect if np.isfinite(defect) else np.inf
