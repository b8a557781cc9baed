"""Pre-images of many samples at once against one sample after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from ikpca.estimators import KernelPCA
from ikpca.kernels import Floats

__all__ = ["PREIMAGES", "PreimageSpeed", "together_and_apart"]

PREIMAGES = ("fixed-point", "gradient", "mds", "neighbours")


@dataclass(frozen=True)
class PreimageSpeed:
    """Seconds for all samples."""

    preimage: str
    dtype: str
    threads: int
    together: float
    apart: float

    @property
    def ratio(self) -> float:
        """How many times faster all at once is."""
        return self.apart / self.together


def together_and_apart(
    threads: int,
    dtype: Any = np.float64,
    n_train: int = 5000,
    n_samples: int = 1000,
    n_looped: int = 50,
) -> Iterator[PreimageSpeed]:
    """Time ``inverse_transform`` of all projections, and of one at a time.

    The loop runs over the first ``n_looped`` samples and is scaled up; BLAS has one thread in it,
    as products with a single row are too small to be shared.
    """
    X = _rows(n_train + n_samples).astype(dtype)
    model = KernelPCA(64, kernel="rbf", gamma=0.1, tol=1e-3, n_jobs=threads).fit(X[:n_train])
    Y = model.transform(X[n_train:])

    def one_by_one() -> None:
        for i in range(n_looped):
            model.inverse_transform(Y[i : i + 1])

    for preimage in PREIMAGES:
        model.set_params(preimage=preimage, n_jobs=threads)
        with threadpool_limits(threads, user_api="blas"):
            together = _seconds(lambda: model.inverse_transform(Y), 3)
        model.set_params(n_jobs=1)
        with threadpool_limits(1, user_api="blas"):
            apart = _seconds(one_by_one, 3) * n_samples / n_looped
        yield PreimageSpeed(preimage, np.dtype(dtype).name, threads, together, apart)


def _rows(number: int) -> Floats:
    """Digits, drawn again and again, each time with other noise."""
    rng = np.random.default_rng(0)
    X = load_digits().data / 16
    return X[rng.integers(len(X), size=number)] + 0.1 * rng.normal(size=(number, X.shape[1]))


def _seconds(work: Callable[[], object], times: int) -> float:
    spent = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begun)
    return min(spent)
