"""Incremental kernel PCA, including the mean shift (Chin 2006, section 4).

All computations of an update use coordinates on Z = [u_1 … u_r, µ, Φ(b_1) … Φ(b_c)] and the inner
products of these r + 1 + c vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.reduced_sets import Reduction, reorthonormalize
from ikpca.solvers.rayleigh_ritz import deterministic_signs
from ikpca.subspace import Subspace

#: max |UᵀU − I| above which components are orthonormalized again.
_MAX_DEFECT = 1e-4
#: Squared length of a new direction, relative to the largest k(x, x), below which it is dropped. A
#: direction of relative length t has a relative error of eps/t, and dropping it causes an error t;
#: this value keeps both small.
_RANK_TOL = float(np.finfo(np.float64).eps ** (2 / 3))
#: Negative squared length, relative to the largest positive one, that is not rounding.
_NEGATIVE_TOL = 1e-5


@dataclass(frozen=True, eq=False)
class IncrementalState:
    """Orthonormal components and a mean on basis rows (Chin 2006, eq. 6).

    Rows keep their precision; all else is in double precision.
    """

    kernel: Kernel
    #: The rows x_j.
    basis: Rows
    #: α, one component per row, and ν last: u_i = Σ_j α_ij Φ(x_j), µ = Σ_j ν_j Φ(x_j).
    vectors: Floats
    #: ⟨u_i, Φ(x_j)⟩ and ⟨µ, Φ(x_j)⟩, stored so that an update needs no m×m products.
    products: Floats
    #: Σ; their squares are eigenvalues of K' over all samples seen.
    singular_values: Floats
    #: Number of samples n of which µ is the mean; with forgetting, the effective number.
    n_samples: float
    #: Σ‖Φ(x) − µ‖² over all samples seen, including truncated variance: the trace of K'.
    total_variance: float
    #: k(x_i, x_j) of the basis, if a reduction needs them.
    values: BasisGram | None

    @classmethod
    def empty(cls, kernel: Kernel, rows: Rows, *, keep_values: bool = False) -> IncrementalState:
        """Return the state before the first sample, for rows of this width and type."""
        zeros = np.zeros((1, 0))
        values = BasisGram() if keep_values else None
        return cls(kernel, rows[:0], zeros, zeros, np.zeros(0), 0.0, 0.0, values)

    @property
    def n_components(self) -> int:
        """Number of components r."""
        return len(self.singular_values)

    @property
    def gram(self) -> Floats:
        """Inner products of the components and the mean, (r + 1)×(r + 1)."""
        gram = self.vectors @ self.products.T
        return (gram + gram.T) / 2

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays in bytes."""
        arrays = (self.basis, self.vectors, self.products, self.singular_values)
        values = 0 if self.values is None else self.values.n_bytes
        return sum(int(array.nbytes) for array in arrays) + values

    def truncate(self, n_components: int) -> IncrementalState:
        """Keep the leading components; the total variance does not change."""
        if n_components >= self.n_components:
            return self
        kept = np.append(np.arange(n_components), self.n_components)
        return replace(
            self,
            vectors=self.vectors[kept],
            products=self.products[kept],
            singular_values=self.singular_values[:n_components],
        )

    def forget(self, factor: float) -> IncrementalState:
        """Multiply the weights of all samples seen so far by f²: Σ ← fΣ, n ← f²n."""
        squared = factor * factor
        return replace(
            self,
            singular_values=factor * self.singular_values,
            n_samples=squared * self.n_samples,
            total_variance=squared * self.total_variance,
        )

    def subspace(self) -> Subspace:
        """Return the components and the mean as a subspace."""
        return Subspace(self.kernel, self.basis, self.vectors, self.products, self.gram)


@dataclass(frozen=True, eq=False)
class BasisGram:
    """Kernel matrix of the basis as strips of columns; a batch adds one strip without copying.

    The strip of a batch has the kernel values of all rows so far with the rows of the batch.
    """

    strips: tuple[Floats, ...] = ()

    @property
    def n_bytes(self) -> int:
        """Memory of the strips in bytes."""
        return sum(int(strip.nbytes) for strip in self.strips)

    def append(self, cross_values: Floats, batch_values: Floats) -> BasisGram:
        """Return a new object with the kernel values of a batch, with the basis and itself."""
        return BasisGram((*self.strips, np.vstack([cross_values, batch_values])))

    def matrix(self) -> Floats:
        """Return the m×m kernel matrix."""
        n_rows = sum(strip.shape[1] for strip in self.strips)
        K = np.empty((n_rows, n_rows))
        start = 0
        for strip in self.strips:
            end, width = strip.shape
            K[:end, start : start + width] = strip
            K[start : start + width, :end] = strip.T
            start += width
        return K


@dataclass(frozen=True)
class IncrementalSettings:
    """Settings of incremental updates."""

    #: Number of components; None keeps all of the numerical rank.
    n_components: int | None = None
    #: Additional components, since truncated variance cannot be recovered by a later batch.
    n_oversamples: int = 0
    #: f in (0, 1]: before each batch, Σ ← fΣ and n ← f²n.
    forgetting: float = 1.0
    #: None: exact, and the basis grows with the stream.
    compression: Compression | None = None
    #: False for the ablation of :func:`update`.
    move_mean: bool = True

    @property
    def n_kept(self) -> int | None:
        """Number of components kept between batches; None for all."""
        return None if self.n_components is None else self.n_components + self.n_oversamples


@dataclass(frozen=True)
class Compression:
    """Compression of the basis to a limited number of rows."""

    reduction: Reduction
    #: Maximum number of basis rows after a step.
    limit: int
    #: Minimum number of rows between two reductions. For smaller batches the basis is reduced
    #: further, so that not every batch needs a reduction.
    room: int = 1
    #: False does not orthonormalize the components after a reduction (an ablation: without section
    #: 5.3 errors accumulate).
    orthonormal: bool = True

    def enforce_limit(
        self, state: IncrementalState, count: int
    ) -> tuple[IncrementalState, Floats | None]:
        """Reduce the basis if it exceeds the limit after ``count`` new rows; also return errors."""
        if state.basis.shape[0] <= self.limit:
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
        if self.orthonormal and state.n_components:
            subspace, singular_values = reorthonormalize(
                original, subspace, singular_values, inner_products=reduced.inner_products
            )
        compressed = replace(
            state,
            basis=subspace.basis,
            vectors=subspace.coefficients,
            products=subspace.products,
            singular_values=singular_values,
            values=BasisGram((reduced.values,)),
        )
        return compressed, reduced.relative_errors


@dataclass(frozen=True, eq=False)
class UpdateReport:
    """Diagnostics of an update."""

    #: ‖Φ(x) − µ − P(Φ(x) − µ)‖² of the batch before the update.
    novelty: Floats
    #: Relative errors of the components and the mean, if the basis was compressed.
    compression_errors: Floats | None = None
    #: Numerical problem that was corrected; empty if there was none.
    recovery: str = ""


def update_step(
    state: IncrementalState, rows: Rows, settings: IncrementalSettings
) -> tuple[IncrementalState, UpdateReport]:
    """Update the state with a batch of rows: forget, update, truncate, compress."""
    n_components, compression = settings.n_components, settings.compression
    batch = _Batch(state.forget(settings.forgetting), rows)
    novelty = batch.novelty(state.n_components if n_components is None else n_components)
    state = batch.update(move_mean=settings.move_mean)
    if settings.n_kept is not None:
        state = state.truncate(settings.n_kept)
    recovery, errors = "", None
    # The ablation does without orthonormal components.
    if compression is None or compression.orthonormal:
        state, recovery = _reorthonormalize_if_needed(state)
    if compression is not None:
        state, errors = compression.enforce_limit(state, rows.shape[0])
    return state, UpdateReport(novelty, errors, recovery)


def join_reports(reports: list[UpdateReport]) -> UpdateReport:
    """Join the reports of the parts of a batch: all novelties, and the last errors."""
    errors = [each.compression_errors for each in reports if each.compression_errors is not None]
    recoveries = [each.recovery for each in reports if each.recovery]
    novelty = np.concatenate([each.novelty for each in reports])
    return UpdateReport(novelty, errors[-1] if errors else None, "".join(recoveries[-1:]))


def update(state: IncrementalState, rows: Rows, *, move_mean: bool = True) -> IncrementalState:
    """Update the state with a batch of rows, with all components of the numerical rank.

    With ``move_mean=False`` the mean of the first batch is kept (an ablation: incremental kernel
    SVD about a fixed point).
    """
    return _Batch(state, rows).update(move_mean=move_mean)


class _Batch:
    """State, batch of rows, and their kernel values in double precision."""

    def __init__(self, state: IncrementalState, rows: Rows) -> None:
        batch = rows.astype(np.float64, copy=False)
        basis = state.basis.astype(np.float64, copy=False)
        self.state, self.rows = state, rows
        self.cross_values: Floats = np.zeros((0, rows.shape[0]))
        if basis.shape[0]:
            self.cross_values = cross_gram(state.kernel, basis, batch)
        values = cross_gram(state.kernel, batch, batch)
        # Infinite values would corrupt the state.
        bad = ~np.isfinite(np.vstack([self.cross_values, values])).all(axis=0)
        if bad.any():
            listed = ", ".join(map(str, np.flatnonzero(bad)[:5]))
            raise InvalidInput(
                f"The kernel values of rows {listed} of the batch are not finite: the update needs "
                "finite values; scale the rows, or remove these."
            )
        self.batch_values = (values + values.T) / 2
        #: ⟨u_i, Φ(b_j)⟩, and ⟨µ, Φ(b_j)⟩ last: (r + 1)×c.
        self.inner_products = state.vectors @ self.cross_values

    def novelty(self, n_components: int) -> Floats:
        """Return ‖Φ(b) − µ − P(Φ(b) − µ)‖², P on the leading components; NaN in the first batch."""
        if not self.state.n_samples:
            return np.full(len(self.batch_values), np.nan)
        gram, products = self.state.gram, self.inner_products
        y = products[:-1] - gram[:-1, -1:]
        lengths = np.diagonal(self.batch_values) - 2 * products[-1] + gram[-1, -1]
        return np.maximum(lengths - np.square(y[:n_components]).sum(axis=0), 0)

    def update(self, *, move_mean: bool) -> IncrementalState:
        """Return the updated state."""
        state, products = self.state, self.inner_products
        count, r, n = len(self.batch_values), state.n_components, state.n_samples
        G = np.block([[state.gram, products], [products.T, self.batch_values]])
        if n and not move_mean:
            deviations, mean = _fixed_mean_deviations(r, count)
        else:
            deviations, mean = _moving_mean_deviations(r, n, count)
        L, H = _split(G, deviations, r)
        J, K = _orthonormal(G, H, r)
        U, singular_values = _left_singular(state.singular_values, L, K)
        components = U[:r].T @ np.eye(r, len(G)) + U[r:].T @ J.T  # eq. 18
        components *= _signs(U[:r], components @ G[:, r + 1 :])[:, None]
        variance = float(np.einsum("ij,ij->", deviations, G @ deviations))
        return self._extend_basis(np.vstack([components, mean]), singular_values, variance)

    def _extend_basis(
        self, coordinates: Floats, singular_values: Floats, variance: float
    ) -> IncrementalState:
        """Return the state with the batch in its basis, from coordinates of the vectors on Z."""
        state = self.state
        on_vectors, on_batch = np.split(coordinates, [state.n_components + 1], axis=1)
        products = on_vectors @ np.hstack([state.products, self.inner_products])
        products += on_batch @ np.hstack([self.cross_values.T, self.batch_values])
        return replace(
            state,
            basis=np.vstack([state.basis, self.rows]),
            vectors=np.hstack([on_vectors @ state.vectors, on_batch]),
            products=products,
            singular_values=singular_values,
            n_samples=state.n_samples + len(self.batch_values),
            total_variance=state.total_variance + variance,
            values=state.values and state.values.append(self.cross_values, self.batch_values),
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
    if not len(K):
        # Older versions of SciPy cannot solve empty systems.
        return J, K
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


def _reorthonormalize_if_needed(state: IncrementalState) -> tuple[IncrementalState, str]:
    """Return the state with orthonormal components, and a message if it had to be corrected.

    In that case the stored inner products are recomputed from the kernel.
    """
    defect = _defect(state)
    if defect <= _MAX_DEFECT:
        return state, ""
    rows = state.basis.astype(np.float64, copy=False)
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
