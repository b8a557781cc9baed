"""Incremental kernel PCA, including the mean shift (Chin 2006, section 4).

All computations of an update use coordinates on Z = [u_1 … u_r, µ, Φ(b_1) … Φ(b_c)] and the inner
products of these r + 1 + c vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.reduced_sets import IteratedPreimages, ReducedSet, Reduction, reorthonormalize
from ikpca.solvers.rayleigh_ritz import deterministic_signs
from ikpca.streams.span import Stored, narrowed
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

    @classmethod
    def empty(cls, kernel: Kernel, rows: Rows) -> IncrementalState:
        """Return the state before the first sample, for rows of this width and type."""
        zeros = np.zeros((1, 0))
        return cls(kernel, rows[:0], zeros, zeros, np.zeros(0), 0.0, 0.0)

    @property
    def n_components(self) -> int:
        """Number of components r."""
        return len(self.singular_values)

    @property
    def gram(self) -> Floats:
        """Inner products of the components and the mean, (r + 1)×(r + 1)."""
        gram = self.vectors @ self.products.T
        return (gram + gram.T) / 2

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
    min_growth: int = 1

    def enforce_limit(
        self, state: IncrementalState, count: int
    ) -> tuple[IncrementalState, Floats | None]:
        """Reduce the basis if it exceeds the limit after ``count`` new rows; also return errors."""
        if state.basis.shape[0] <= self.limit:
            return state, None
        min_size = state.n_components + 1
        return self.reduce(state, max(self.limit - max(0, self.min_growth - count), min_size))

    def reduce(self, state: IncrementalState, size: int) -> tuple[IncrementalState, Floats]:
        """Return the state on fewer rows, and the relative errors of components and mean."""
        original = state.subspace()
        # Errors δu_i and δµ change the scatter by σ_i² ‖δu_i‖² and n ‖δµ‖².
        weights = np.append(state.singular_values, np.sqrt(state.n_samples))
        reduced = self.reduction.reduce(original, size, weights)
        subspace, singular_values = self.orthonormalize(original, reduced, state.singular_values)
        compressed = replace(
            state,
            basis=subspace.basis,
            vectors=subspace.coefficients,
            products=subspace.products,
            singular_values=singular_values,
        )
        return compressed, reduced.relative_errors

    def orthonormalize(
        self, original: Subspace, reduced: ReducedSet, singular_values: Floats
    ) -> tuple[Subspace, Floats]:
        """Return orthonormal components on the new rows (section 5.3)."""
        if not len(singular_values):
            return reduced.subspace, singular_values
        return reorthonormalize(
            original, reduced.subspace, singular_values, inner_products=reduced.inner_products
        )


def update_step(
    state: IncrementalState, rows: Rows, settings: IncrementalSettings
) -> tuple[IncrementalState, Floats]:
    """Update the state with a batch: forget, update, truncate, compress; also return the novelty.

    The novelty of a row is ‖Φ(x) − µ − P(Φ(x) − µ)‖² before the update.
    """
    n_components = settings.n_components
    batch = BatchUpdate(state.forget(settings.forgetting), rows)
    novelty = batch.novelty(state.n_components if n_components is None else n_components)
    state = batch.update()
    if settings.n_kept is not None:
        state = state.truncate(settings.n_kept)
    state = reorthonormalize_if_needed(state)
    if settings.compression is not None:
        state, _ = settings.compression.enforce_limit(state, rows.shape[0])
    return state, novelty


@dataclass(frozen=True, eq=False)
class PreimageState(Stored):
    """State of a stream whose basis is reduced to iterated pre-images after every batch.

    Parameters
    ----------
    state : IncrementalState
    n_components, max_rows : int
    decay : float
        f²: every row multiplies the weights of earlier rows.
    seen : int
    row_sum : ndarray of shape (N,)
        Weighted sum of the rows.
    """

    state: IncrementalState
    n_components: int
    max_rows: int
    decay: float
    row_sum: Floats
    seen: int = 0

    def learn(self, rows: Rows, weights: Floats) -> tuple[PreimageState, Floats]:
        """Return the state after a batch, and the novelty of its rows; weights are not used."""
        decay = self.decay ** rows.shape[0]
        settings = IncrementalSettings(
            self.n_components,
            forgetting=decay**0.5,
            compression=Compression(IteratedPreimages(), self.max_rows),
        )
        state, novelty = update_step(self.state, rows, settings)
        row_sum = decay * self.row_sum + rows.sum(axis=0, dtype=np.float64)
        seen = self.seen + rows.shape[0]
        return replace(self, state=state, seen=seen, row_sum=row_sum), novelty

    @property
    def kernel(self) -> Kernel:
        """Kernel of the stream."""
        return self.state.kernel

    @property
    def basis_rows(self) -> Rows:
        """Basis rows."""
        return self.state.basis

    @property
    def n_seen(self) -> int:
        """Number of rows."""
        return self.seen

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays in bytes."""
        state = self.state
        arrays = state.basis, state.vectors, state.products, state.singular_values
        return sum(int(array.nbytes) for array in arrays)

    def with_settings(self, n_components: int, decay: float) -> PreimageState:
        """Return the state with another number of components and decay of the weights."""
        state = self.state.truncate(n_components)
        return replace(self, state=state, n_components=n_components, decay=decay)

    def ends_block(self, n_rows: int) -> bool:
        """Return True: every batch is learned at once."""
        return True

    @property
    def n(self) -> float:
        """Weight of all rows."""
        return self.state.n_samples

    @property
    def total_variance(self) -> float:
        """Trace of K'."""
        return self.state.total_variance

    @property
    def current(self) -> PreimageState:
        """The state itself: all rows have been learned."""
        return self

    @cached_property
    def solution(self) -> tuple[Subspace, Floats]:
        """Components, padded with zeros, and mean; and the eigenvalues."""
        state, found = self.state, self.state.n_components
        missing = self.n_components - found
        vectors, products = (
            np.insert(part, [found] * missing, 0, axis=0)
            for part in (state.vectors, state.products)
        )
        gram = vectors @ products.T
        subspace = narrowed(state.kernel, state.basis, vectors, products, (gram + gram.T) / 2)
        return subspace, np.pad(np.square(state.singular_values), (0, missing))


class BatchUpdate:
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

    def update(self) -> IncrementalState:
        """Return the updated state, with all components of the numerical rank."""
        state, products = self.state, self.inner_products
        count, r, n = len(self.batch_values), state.n_components, state.n_samples
        G = np.block([[state.gram, products], [products.T, self.batch_values]])
        deviations, mean = self.deviations(r, n, count)
        L, H = _split(G, deviations, r)
        J, K = _orthonormal(G, H, r)
        U, singular_values = _left_singular(state.singular_values, L, K)
        components = U[:r].T @ np.eye(r, len(G)) + U[r:].T @ J.T  # eq. 18
        components *= _signs(U[:r], components @ G[:, r + 1 :])[:, None]
        variance = float(np.einsum("ij,ij->", deviations, G @ deviations))
        return self._extend_basis(np.vstack([components, mean]), singular_values, variance)

    def deviations(self, r: int, n: float, count: int) -> tuple[Floats, Floats]:
        """Return E = [B − µ_B, √(nc/(n+c))(µ_A − µ_B)] and µ = (nµ_A + cµ_B)/(n+c) (eqs. 7–10)."""
        E = np.zeros((r + 1 + count, count + 1))
        E[r + 1 :, :-1] = np.eye(count) - 1 / count
        E[r, -1] = np.sqrt(n * count / (n + count))
        E[r + 1 :, -1] = -E[r, -1] / count
        mean = np.full(len(E), 1 / (n + count))
        mean[:r], mean[r] = 0, n / (n + count)
        return E, mean

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
        )


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


def reorthonormalize_if_needed(state: IncrementalState) -> IncrementalState:
    """Return the state with orthonormal components, from inner products that are recomputed."""
    if _defect(state) <= _MAX_DEFECT:
        return state
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
    return replace(state, vectors=T @ state.vectors, products=T @ products)


def _defect(state: IncrementalState) -> float:
    r = state.n_components
    defect = float(np.abs(state.gram[:r, :r] - np.eye(r)).max(initial=0.0))
    return defect if np.isfinite(defect) else np.inf
