"""State of incremental kernel PCA, and kernel values of its basis."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ikpca.kernels import Floats, Kernel, Rows
from ikpca.subspace import Expansion, Subspace


@dataclass(frozen=True, eq=False)
class BasisGram:
    """k(x_i, x_j), as strips of columns: every batch adds one, and no matrix is copied for it.

    Parameters
    ----------
    strips : tuple of ndarray of shape (rows so far, rows added)
        From the first row of the library down to the last one of the batch.
    """

    strips: tuple[Floats, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows of the library."""
        return sum(strip.shape[1] for strip in self.strips)

    @property
    def n_bytes(self) -> int:
        """Memory of the strips."""
        return sum(int(strip.nbytes) for strip in self.strips)

    def grown(self, across: Floats, own: Floats) -> BasisGram:
        """With the values of new rows: those with the library above those of their own."""
        return BasisGram((*self.strips, np.vstack([across, own])))

    def matrix(self) -> Floats:
        """All of them, m×m."""
        K = np.empty((self.n_rows, self.n_rows))
        begin = 0
        for strip in self.strips:
            end, width = strip.shape
            K[:end, begin : begin + width] = strip
            K[begin : begin + width, :end] = strip.T
            begin += width
        return K


@dataclass(frozen=True, eq=False)
class IncrementalState:
    """Orthonormal components and a mean on a library of rows (Chin 2006, eq. 6).

    Rows keep their precision; all else is in double.

    Parameters
    ----------
    kernel : Kernel
    library : rows of shape (m, N)
        The rows x_j.
    vectors : ndarray of shape (r + 1, m)
        α, a component per row, and ν last: u_i = Σ_j α_ij Φ(x_j), µ = Σ_j ν_j Φ(x_j).
    products : ndarray of shape (r + 1, m)
        ⟨u_i, Φ(x_j)⟩ and ⟨µ, Φ(x_j)⟩, carried along so that an update takes no products of m×m.
    singular_values : ndarray of shape (r,)
        Σ; their squares are eigenvalues of K' over all samples seen.
    n_samples : float
        n: the samples that µ is the mean of, not the rows of the library; a fraction where earlier
        samples are forgotten.
    total_variance : float
        Σ‖Φ(x) − µ‖² over all samples seen, what was truncated included: the trace of K'.
    values : LibraryValues or None
        k(x_i, x_j) of the library, where a reduction will need them.
    """

    kernel: Kernel
    library: Rows
    vectors: Floats
    products: Floats
    singular_values: Floats
    n_samples: float
    total_variance: float
    values: BasisGram | None

    @classmethod
    def empty(cls, kernel: Kernel, rows: Rows, *, keep_values: bool = False) -> IncrementalState:
        """Before the first sample, for rows of this width and type."""
        nothing = np.zeros((1, 0))
        values = BasisGram() if keep_values else None
        return cls(kernel, rows[:0], nothing, nothing, np.zeros(0), 0.0, 0.0, values)

    @property
    def n_components(self) -> int:
        """r."""
        return len(self.singular_values)

    @property
    def gram(self) -> Floats:
        """Inner products of the components and the mean, (r + 1)×(r + 1)."""
        gram = self.vectors @ self.products.T
        return (gram + gram.T) / 2

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays."""
        arrays = (self.library, self.vectors, self.products, self.singular_values)
        values = 0 if self.values is None else self.values.n_bytes
        return sum(int(array.nbytes) for array in arrays) + values

    def truncate(self, n_components: int) -> IncrementalState:
        """The leading components only; their total variance stays that of the samples."""
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
        """Σ ← fΣ, n ← f²n: every sample seen so far weighs f² of what it did."""
        squared = factor * factor
        return replace(
            self,
            singular_values=factor * self.singular_values,
            n_samples=squared * self.n_samples,
            total_variance=squared * self.total_variance,
        )

    def subspace(self) -> Subspace:
        """The same components and mean in double precision, for all that needs no stream."""
        return Subspace(
            Expansion(self.kernel, self.library, self.vectors, self.products, self.gram)
        )
