"""Incremental kernel PCA, including the mean shift (Chin 2006), on a basis of pre-images.

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
from ikpca.reduced_sets import IteratedPreimages
from ikpca.solvers.rayleigh_ritz import deterministic_signs
from ikpca.streams.span import Stored, narrowed
from ikpca.subspace import Subspace

#: Squared length of a new direction, relative to the largest k(x, x), below which it is dropped. A
#: direction of relative length t has a relative error of eps/t, and dropping it causes an error t;
#: this value keeps both small.
_RANK_TOL = float(np.finfo(np.float64).eps ** (2 / 3))
#: Negative squared length, relative to the largest positive one, that is not rounding.
_NEGATIVE_TOL = 1e-5


@dataclass(frozen=True, eq=False)
class PreimageState(Stored):
    """Orthonormal components and a mean on basis rows (Chin 2006, eq. 6).

    Rows keep their precision; all else is in double precision.
    """

    kernel: Kernel
    #: The rows x_j.
    basis_rows: Rows
    #: α, one component per row, and ν last: u_i = Σ_j α_ij Φ(x_j), µ = Σ_j ν_j Φ(x_j).
    vectors: Floats
    #: ⟨u_i, Φ(x_j)⟩ and ⟨µ, Φ(x_j)⟩, stored so that an update needs no m×m products.
    products: Floats
    #: Σ; their squares are eigenvalues of K' over all samples seen.
    singular_values: Floats
    #: Weighted sum of the rows.
    row_sum: Floats
    #: Maximum numbers of components and of basis rows; None for no limit.
    n_components: int | None = None
    max_rows: int | None = None
    #: f²: every row multiplies the weights of earlier rows.
    decay: float = 1.0
    #: Weight of all rows, of which µ is the mean.
    n: float = 0.0
    #: Σ‖Φ(x) − µ‖², including truncated variance: the trace of K'.
    total_variance: float = 0.0
    #: Number of rows.
    n_seen: int = 0

    @classmethod
    def empty(
        cls,
        kernel: Kernel,
        rows: Rows,
        n_components: int | None = None,
        max_rows: int | None = None,
        decay: float = 1.0,
    ) -> PreimageState:
        """Return the state before the first sample, for rows of this width and type."""
        zeros, row_sum = np.zeros((1, 0)), np.zeros(rows.shape[1])
        return cls(kernel, rows[:0], zeros, zeros, zeros[0], row_sum, n_components, max_rows, decay)

    @property
    def gram(self) -> Floats:
        """Inner products of the components and the mean, (r + 1)×(r + 1)."""
        gram = self.vectors @ self.products.T
        return (gram + gram.T) / 2

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays in bytes."""
        arrays = self.basis_rows, self.vectors, self.products, self.singular_values
        return sum(int(array.nbytes) for array in arrays)

    @property
    def current(self) -> PreimageState:
        """The state itself: all rows have been learned."""
        return self

    @property
    def subspace(self) -> Subspace:
        """Components and mean in double precision."""
        return Subspace(self.kernel, self.basis_rows, self.vectors, self.products, self.gram)

    @cached_property
    def solution(self) -> tuple[Subspace, Floats]:
        """Components, padded with zeros, and mean in the precision of the rows; eigenvalues."""
        number = len(self.singular_values)
        missing = (self.n_components or number) - number
        vectors, products = (
            np.insert(part, [number] * missing, 0, axis=0) for part in (self.vectors, self.products)
        )
        gram = vectors @ products.T
        subspace = narrowed(self.kernel, self.basis_rows, vectors, products, (gram + gram.T) / 2)
        return subspace, np.pad(np.square(self.singular_values), (0, missing))

    def ends_block(self, n_rows: int) -> bool:
        """Return True: every batch is learned at once."""
        return True

    def with_settings(self, n_components: int, decay: float) -> PreimageState:
        """Return the state with another number of components and decay of the weights."""
        return replace(self, n_components=n_components, decay=decay).truncate()

    def learn(self, rows: Rows, weights: Floats | None = None) -> tuple[PreimageState, Floats]:
        """Return the state after a batch, and the novelty of its rows; weights are not used.

        The novelty of a row is ‖Φ(x) − µ − P(Φ(x) − µ)‖² before the update.
        """
        state, novelty = self.forget(self.decay ** rows.shape[0]).update(rows)
        state = state.truncate()
        if self.max_rows is not None and state.basis_rows.shape[0] > self.max_rows:
            state = state.reduce(self.max_rows)
        return state, novelty

    def forget(self, factor: float) -> PreimageState:
        """Multiply the weights of all samples seen so far."""
        return replace(
            self,
            singular_values=factor**0.5 * self.singular_values,
            n=factor * self.n,
            total_variance=factor * self.total_variance,
            row_sum=factor * self.row_sum,
        )

    def truncate(self) -> PreimageState:
        """Keep the leading components; the total variance does not change."""
        number = len(self.singular_values)
        if self.n_components is None or self.n_components >= number:
            return self
        kept = np.append(np.arange(self.n_components), number)
        return replace(
            self,
            vectors=self.vectors[kept],
            products=self.products[kept],
            singular_values=self.singular_values[: self.n_components],
        )

    def reduce(self, size: int) -> PreimageState:
        """Return the state on pre-images, with orthonormal components (section 5)."""
        # Errors δu_i and δµ change the scatter by σ_i² ‖δu_i‖² and n ‖δµ‖².
        weights = np.append(self.singular_values, np.sqrt(self.n))
        reduced = IteratedPreimages().reduce(self.subspace, size, weights)
        return self.on_subspace(*reduced.orthonormalize(self.singular_values))

    def on_subspace(self, subspace: Subspace, singular_values: Floats) -> PreimageState:
        """Return the state with other components and mean, whose products are known."""
        return replace(
            self,
            basis_rows=subspace.basis,
            vectors=subspace.coefficients,
            products=subspace.products,
            singular_values=singular_values,
        )

    def update(self, rows: Rows) -> tuple[PreimageState, Floats]:
        """Return the state after a batch, with all rows and all components, and the novelty."""
        r, count = len(self.singular_values), rows.shape[0]
        across, within = self._kernel_values(rows)
        products = self.vectors @ across
        G = np.block([[self.gram, products], [products.T, within]])
        E, mean = self.deviations(count)
        L, H = _split(G, E, r)
        J, K = _orthonormal(G, H, r)
        U, singular_values = _left_singular(self.singular_values, L, K)
        components = U[:r].T @ np.eye(r, len(G)) + U[r:].T @ J.T  # eq. 18
        components *= _signs(U[:r], components @ G[:, r + 1 :])[:, None]
        on_vectors, on_batch = np.split(np.vstack([components, mean]), [r + 1], axis=1)
        old_products = on_vectors @ np.hstack([self.products, products])
        state = replace(
            self,
            basis_rows=np.vstack([self.basis_rows, rows]),
            vectors=np.hstack([on_vectors @ self.vectors, on_batch]),
            products=old_products + on_batch @ np.hstack([across.T, within]),
            singular_values=singular_values,
            n=self.n + count,
            total_variance=self.total_variance + float(np.einsum("ij,ij->", E, G @ E)),
            row_sum=self.row_sum + rows.sum(axis=0, dtype=np.float64),
            n_seen=self.n_seen + count,
        )
        if not self.n:
            return state, np.full(count, np.nan)
        y = products[:-1] - self.gram[:-1, -1:]
        lengths = np.diagonal(within) - 2 * products[-1] + self.gram[-1, -1]
        return state, np.maximum(lengths - np.square(y).sum(axis=0), 0)

    def deviations(self, count: int) -> tuple[Floats, Floats]:
        """Return E = [B − µ_B, √(nc/(n+c))(µ_A − µ_B)] and µ = (nµ_A + cµ_B)/(n+c) (eqs. 7–10)."""
        r, n = len(self.singular_values), self.n
        E = np.zeros((r + 1 + count, count + 1))
        E[r + 1 :, :-1] = np.eye(count) - 1 / count
        E[r, -1] = np.sqrt(n * count / (n + count))
        E[r + 1 :, -1] = -E[r, -1] / count
        mean = np.full(len(E), 1 / (n + count))
        mean[:r], mean[r] = 0, n / (n + count)
        return E, mean

    def _kernel_values(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return kernel values of a batch with the basis and with itself in double precision."""
        batch = rows.astype(np.float64, copy=False)
        basis = self.basis_rows.astype(np.float64, copy=False)
        across = cross_gram(self.kernel, basis, batch) if len(basis) else np.zeros((0, len(batch)))
        within = cross_gram(self.kernel, batch, batch)
        # Infinite values would corrupt the state.
        bad = ~np.isfinite(np.vstack([across, within])).all(axis=0)
        if bad.any():
            listed = ", ".join(map(str, np.flatnonzero(bad)[:5]))
            raise InvalidInput(
                f"The kernel values of rows {listed} of the batch are not finite: the update needs "
                "finite values; scale the rows, or remove these."
            )
        return across, (within + within.T) / 2


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
