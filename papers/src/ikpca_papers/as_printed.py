"""Methods and settings of the papers, as printed.

The experiments take from here whatever a paper states. Settings that a paper leaves open are in the
spec files, which name them as open, by the same rules for all experiments:

1. Rows are scaled so that the start is small: pixels from 0 to 1 (``inputs``).
2. One η0 and one µ per problem for all seeds, by the mean of log errors (``tuning.tune``).
3. KHA-SMD from ρ0 = 1 and from ρ0 = 0; e·η0 is compared with the limit of KHA/et.
4. An open unit or noise is a table; one value is fixed by a printed number other than the claim.
5. A sentence counts once; "k orders of magnitude" is a factor of at least 10^(k − ¼).
6. Words about images are measured as such; linear PCA has min(r, N) components.
7. Chin: n = 10, a reduction for more than n(r + 1) rows only, means over partitions.
8. A random clustering has twice the entropy of the labels; "as good as" means from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin

from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Gaussian, Kernel, Polynomial
from ikpca.preimages import MDS, Gradient, PreimageMethod, Preimages
from ikpca.reduced_sets import ReducedSet, Reduction, SelectedRows
from ikpca.solvers import KHA
from ikpca.streams import PreimageState
from ikpca.subspace import Subspace
from ikpca_papers.preimage_schemes import PreimageScheme

# Günter, Schraudolph, Vishwanathan 2006.

#: ρ0 of KHA-SMD (algorithm 1).
LOG_GAIN_INIT = 1.0
#: Decay ξ of KHA-SMD, "set a priori" (section 5).
META_DECAY = 0.99
#: KHA-SMD that starts from the gains of KHA/et; not in the paper, shown beside it.
SMD_FROM_ZERO = "kha-smd, ρ0 = 0"


def paper_solver(method: str, n_components: int, n_samples: int, seed: int, **options: Any) -> KHA:
    """Return a solver of the papers: random start, no Rayleigh–Ritz step, no safety rule.

    A ~ N(0, 1/(rl)). KHA/t decays at every pattern; λ and the gains of KHA/et and KHA-SMD are
    determined once per pass (section 4). ρ0 = 1 for KHA-SMD, 0 for ``SMD_FROM_ZERO``.
    """
    if method == SMD_FROM_ZERO:
        return paper_solver("kha-smd", n_components, n_samples, seed, log_gain_init=0.0, **options)
    shape = (n_components, n_samples)
    start = np.random.default_rng(seed).normal(size=shape) / np.sqrt(n_components * n_samples)
    printed: dict[str, Any] = {"init": start, "rayleigh_ritz": False, "backoff": False}
    if method in ("kha/et", "kha-smd"):
        printed["clock"] = "pass"
    if method == "kha-smd":
        printed |= {"log_gain_init": LOG_GAIN_INIT, "meta_decay": META_DECAY}
    return KHA(method, **{**printed, **options})


# Kim, Franz, Schölkopf 2003.

#: Iterations for faces and for natural images (section 5).
FACE_PASSES, NATURAL_PASSES = 40, 120
#: σ for faces, for the components of patches and for enlarging photographs (figures 2, 4, 5). The
#: unit of the pixels is not given: the specs state how it was chosen.
FACE_SIGMA, COMPONENT_SIGMA, PHOTOGRAPH_SIGMA = 1.0, 40.0, 0.5


class GradientFromMDS(PreimageMethod):
    """Gradient descent from the pre-image by MDS (section 4.2), to less than a gray level."""

    def supports(self, kernel: Kernel) -> bool:
        """Return True for kernels with a gradient that determine distances in input space."""
        return Gradient().supports(kernel) and MDS().supports(kernel)

    def _find(self, subspace: Subspace, coordinates: Floats, starts: Floats | None) -> Preimages:
        starts = MDS().find(subspace, coordinates).rows
        return Gradient(tol=1e-4).find(subspace, coordinates, starts)


KIM_PREIMAGE = GradientFromMDS()


def printed_online(gain: float, init: Any = "random", method: str = "kha") -> dict[str, Any]:
    """Return settings of online KHA (appendix A): random points, and a gain."""
    return {"rule": KHA(method, gain=gain, init=init, rayleigh_ritz=False)}


# Chin, Suter 2006.

#: Table 1: sizes, and seconds on a Pentium 4 with Matlab, so only their growth is comparable.
TABLE_1_ROWS = (520, 1000, 1510, 2020, 2530, 3100)
TABLE_1_SECONDS: dict[str, tuple[float, ...]] = {
    "batch": (7.23, 44.10, 161.23, 413.05, 990.29, 1394.91),
    "incremental": (29.05, 60.23, 93.14, 127.45, 141.28, 165.29),
    "KHA": (93.75, 198.73, 381.92, 695.31, 990.86, 1569.02),
}
#: n and c of section 6.
PREIMAGES_PER_VECTOR, BATCH_ROWS = 10, 30
#: Kernels of section 6: RBF with σ = 1, and the second-degree polynomial (x·y)².
RBF, POLYNOMIAL = Gaussian(0.5), Polynomial(2, 1.0, 0.0)


@dataclass(frozen=True)
class Compression:
    """Reduction of the basis of a stream to a limited number of rows (section 5).

    Parameters
    ----------
    reduction : Reduction
    limit : int
        Maximum number of basis rows after a batch.
    min_growth : int
        Minimum number of rows between two reductions. For smaller batches the basis is reduced
        further, so that not every batch needs a reduction.
    """

    reduction: Reduction
    limit: int
    min_growth: int = 1

    def enforce_limit(self, state: PreimageState, count: int) -> PreimageState:
        """Reduce the basis if it exceeds the limit after ``count`` new rows."""
        if len(state.basis_rows) <= self.limit:
            return state
        size = self.limit - max(0, self.min_growth - count)
        return self.reduce(state, max(size, len(state.vectors)))[0]

    def reduce(self, state: PreimageState, size: int) -> tuple[PreimageState, Floats]:
        """Return the state on fewer rows, and the relative errors of components and mean."""
        weights = np.append(state.singular_values, np.sqrt(state.n))
        reduced = self.reduction.reduce(state.subspace, size, weights)
        subspace, singular_values = self.orthonormalize(reduced, state.singular_values)
        return state.on_subspace(subspace, singular_values), reduced.relative_errors

    def orthonormalize(
        self, reduced: ReducedSet, singular_values: Floats
    ) -> tuple[Subspace, Floats]:
        """Return orthonormal components on the new rows (section 5.3)."""
        return reduced.orthonormalize(singular_values)


@dataclass
class PaperIncrementalPCA(TransformerMixin):
    """IKPCA of Chin and Suter: r components, and a reduction to pre-images after every batch.

    Each of the r components and the mean gets n pre-images, those of earlier vectors are reused,
    and a second pass estimates all coefficients again. "n = 10" beside r = 36 cannot be the whole
    basis, since 36 orthonormal vectors need at least as many rows; it is read as n per vector.
    A pre-image is the one nearest to what is left of its vector, as in the textbook that the paper
    refers to: an eigenvector for (x·y)², otherwise searched in the box of the data. Components are
    made orthonormal by eq. 22 with the inverse root of M_o, since eqs. 23 and 24 as printed only
    scale them.

    Parameters
    ----------
    kernel : Kernel
    n_components : int
        r.
    per_vector : int
        n.
    batch_rows : int
        c.
    """

    kernel: Kernel
    n_components: int
    per_vector: int = PREIMAGES_PER_VECTOR
    batch_rows: int = BATCH_ROWS

    def fit(self, X: Floats, y: object = None) -> Self:
        """Update the components with one batch after the other."""
        compression = self._compression
        state = PreimageState.empty(self.kernel, X, self.n_components + self._n_oversamples)
        for batch in tile_slices(len(X), self.batch_rows):
            rows = X[batch]
            state, _ = state.learn(rows)
            if compression is not None:
                state = compression.enforce_limit(state, len(rows))
        self.state_ = state
        return self

    @property
    def _n_oversamples(self) -> int:
        """Number of additional components."""
        return 0

    @property
    def _compression(self) -> Compression | None:
        limit = self.per_vector * (self.n_components + 1)
        return Compression(PreimageScheme(self.per_vector, nearest=True), limit)

    def transform(self, X: Floats) -> Floats:
        """Project rows on the components."""
        return self.state_.subspace.project(X)

    @property
    def eigenvalues_(self) -> Floats:
        """Eigenvalues of K'."""
        return self.state_.singular_values**2

    @property
    def basis_(self) -> Floats:
        """Basis rows."""
        return self.state_.basis_rows


class SelectedRowsPCA(PaperIncrementalPCA):
    """IKPCA with our reduction to rows of the stream instead of pre-images, and more components.

    Parameters
    ----------
    kernel : Kernel
    n_components : int
    max_rows : int or None
        Rows of the basis after a batch; None keeps all rows.
    batch_rows : int
    n_oversamples : int or None
        Additional components; None is half of their number, at least 8, or fewer for few rows.
    reduction : Reduction
    """

    def __init__(
        self,
        kernel: Kernel,
        n_components: int,
        max_rows: int | None,
        batch_rows: int = BATCH_ROWS,
        n_oversamples: int | None = None,
        reduction: Reduction | None = None,
    ) -> None:
        super().__init__(kernel, n_components, batch_rows=batch_rows)
        self.max_rows = max_rows
        self.n_oversamples = n_oversamples
        self.reduction = reduction

    @property
    def _n_oversamples(self) -> int:
        if self.n_oversamples is not None:
            return self.n_oversamples
        more = max(self.n_components // 2, 8)
        if self.max_rows is None:
            return more
        # A small basis supports fewer components.
        return max(0, min(more, self.max_rows // 4 - self.n_components - 1))

    @property
    def _compression(self) -> Compression | None:
        if self.max_rows is None:
            return None
        reduction = self.reduction or SelectedRows()
        return Compression(reduction, self.max_rows, max(1, self.max_rows // 8))

    def transform(self, X: Floats) -> Floats:
        """Project rows on the leading components."""
        return super().transform(X)[:, : self.n_components]

    @property
    def eigenvalues_(self) -> Floats:
        """Leading eigenvalues of K'."""
        return super().eigenvalues_[: self.n_components]
