"""State of incremental kernel PCA, and kernel values of its basis."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ikpca.kernels import Floats, Kernel, Rows
from ikpca.subspace import Subspace


@dataclass(frozen=True, eq=False)
class IncrementalState:
    """Orthonormal components and a mean on basis rows (Chin 2006, eq. 6).

    Rows keep their precision; all else is in double precision.

    Parameters
    ----------
    kernel : Kernel
    library : rows of shape (m, N)
        The basis rows x_j.
    vectors : ndarray of shape (r + 1, m)
        α, one component per row, and ν last: u_i = Σ_j α_ij Φ(x_j), µ = Σ_j ν_j Φ(x_j).
    products : ndarray of shape (r + 1, m)
        ⟨u_i, Φ(x_j)⟩ and ⟨µ, Φ(x_j)⟩, stored so that an update needs no m×m products.
    singular_values : ndarray of shape (r,)
        Σ; their squares are eigenvalues of K' over all samples seen.
    n_samples : float
        Number of samples n of which µ is the mean, not the number of basis rows; with forgetting,
        the effective number.
    total_variance : float
        Σ‖Φ(x) − µ‖² over all samples seen, including truncated variance: the trace of K'.
    values : BasisGram or None
        k(x_i, x_j) of the basis, if a reduction needs them.
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
        arrays = (self.library, self.vectors, self.products, self.singular_values)
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
        return Subspace(self.kernel, self.library, self.vectors, self.products, self.gram)


@dataclass(frozen=True, eq=False)
class BasisGram:
    """Kernel matrix of the basis as strips of columns; a batch adds one strip without copying.

    Parameters
    ----------
    strips : tuple of ndarray of shape (rows so far, rows added)
        Kernel values of all rows up to the end of a batch with the rows of the batch.
    """

    strips: tuple[Floats, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of basis rows."""
        return sum(strip.shape[1] for strip in self.strips)

    @property
    def n_bytes(self) -> int:
        """Memory of the strips in bytes."""
        return sum(int(strip.nbytes) for strip in self.strips)

    def append(self, cross_values: Floats, batch_values: Floats) -> BasisGram:
        """Return a new object with the kernel values of a batch, with the basis and itself."""
        return BasisGram((*self.strips, np.vstack([cross_values, batch_values])))

    def matrix(self) -> Floats:
        """Return the m×m kernel matrix."""
        K = np.empty((self.n_rows, self.n_rows))
        start = 0
        for strip in self.strips:
            end, width = strip.shape
            K[:end, start : start + width] = strip
            K[start : start + width, :end] = strip.T
            start += width
        return K
