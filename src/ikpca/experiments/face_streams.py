"""Table 2 of Chin and Suter 2006: kernel eigenfaces of a stream against those of a subset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import TransformerMixin
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from ikpca.estimators import IncrementalKernelPCA, KernelPCA
from ikpca.experiments.claims import Claim
from ikpca.kernels import Floats

__all__ = ["KERNELS", "TEST_SHARE", "Splits", "claims", "mean_interval", "recognise_streams"]

#: 760 of the paper's 5,760 images.
TEST_SHARE = 760 / 5760
#: The paper's two, and a width near the median distance of the faces: at σ = 1 every face is nearly
#: orthogonal to most others, and 36 components hold 12 % of the variance.
KERNELS: dict[str, dict[str, Any]] = {
    "polynomial, degree 2": {"kernel": "poly", "degree": 2},
    "Gaussian, σ = 1": {"kernel": "rbf", "gamma": 0.5},
    "Gaussian, σ = 6": {"kernel": "rbf", "gamma": 1 / 72},
}


@dataclass(frozen=True)
class Splits:
    """Error rates of one kernel over the same random splits.

    Parameters
    ----------
    kernel : str
    subset : int
        Images that batch could store the kernel matrix of.
    train : int
        All training images.
    batch, streamed, streamed_all : tuple of float
        Of batch and stream on the subset, and of a stream of all training images.
    """

    kernel: str
    subset: int
    train: int
    batch: tuple[float, ...]
    streamed: tuple[float, ...]
    streamed_all: tuple[float, ...]

    @property
    def difference(self) -> float:
        """Stream minus batch on the same images, in percentage points, on average."""
        return float(100 * np.mean(np.subtract(self.streamed, self.batch)))

    @property
    def gain(self) -> tuple[float, float]:
        """Stream of all minus batch on the subset, in points: the paired 95 % interval."""
        return mean_interval(100 * np.subtract(self.streamed_all, self.batch))


def mean_interval(differences: Floats, confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean.

    Examples
    --------
    >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0]))
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    half = stats.sem(differences) * stats.t.ppf((1 + confidence) / 2, len(differences) - 1)
    return float(np.mean(differences) - half), float(np.mean(differences) + half)


def recognise_streams(
    X: Floats,
    y: NDArray[Any],
    subset: int = 1000,
    splits: int = 10,
    n_components: int = 36,
    kernels: dict[str, dict[str, Any]] | None = None,
    **settings: Any,
) -> Iterator[Splits]:
    """Every kernel on the same splits.

    Streams come in batches of 30, as in the paper, on a library of half of the subset, unless
    ``settings`` say otherwise.
    """
    streaming = {"batch_size": 30, "library_size": subset // 2, **settings}
    for name, kernel in (kernels or KERNELS).items():
        batch = KernelPCA(n_components, eigen_solver="dense", n_jobs=1, **kernel)
        stream = IncrementalKernelPCA(n_components, **streaming, **kernel)
        rows = [_one_split(X, y, subset, seed, batch, stream) for seed in range(splits)]
        rates = zip(*(row[1:] for row in rows), strict=True)
        yield Splits(name, subset, rows[0][0], *(tuple(rate) for rate in rates))


def _one_split(
    X: Floats, y: NDArray[Any], subset: int, seed: int, batch: KernelPCA,
    stream: IncrementalKernelPCA,
) -> tuple[int, float, float, float]:  # fmt: skip
    """How many images train, and the error rates: batch, stream, stream of all."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed)
    few = X[:subset], y[:subset], X_test, y_test
    every = X, y, X_test, y_test
    return len(X), error_rate(batch, *few), error_rate(stream, *few), error_rate(stream, *every)


def error_rate(
    model: TransformerMixin, X: Floats, y: NDArray[Any], X_test: Floats, y_test: NDArray[Any],
    n_neighbors: int = 10,
) -> float:  # fmt: skip
    """Of a vote of the nearest, among the projections of what the model was trained on."""
    nearest = KNeighborsClassifier(n_neighbors).fit(model.fit_transform(X), y)
    return float(np.mean(nearest.predict(model.transform(X_test)) != y_test))


def claims(found: Splits) -> list[Claim]:
    """A stream is as good as batch; on more images it is better (polynomial)."""
    same = Claim(
        f"{found.kernel}: points between batch and stream on the same {found.subset:,} images",
        abs(found.difference), 1.5,
    )  # fmt: skip
    more = Claim(
        f"{found.kernel}: upper end of the 95 % interval, stream of {found.train:,} minus batch",
        found.gain[1], 0, "below",
    )  # fmt: skip
    return [same, more]
