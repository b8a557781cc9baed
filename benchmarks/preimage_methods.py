"""Denoising of digits by every pre-image method."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from ikpca import KernelPCA
from ikpca.kernels import Floats
from ikpca.preimages import MDS, FixedPoint, Gradient

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


#: Learns from the training rows with some settings, and cleans the noisy ones.
Denoise: TypeAlias = Callable[..., Floats]
Settings: TypeAlias = Mapping[str, Any]

_GAMMAS = (0.02, 0.05, 0.1, 0.2, 0.4)
_RANKS = (16, 32, 64, 128, 256)


@dataclass(frozen=True, eq=False)
class NoisyDigits:
    """scikit-learn's digits over 16; clean training rows, test rows with and without noise."""

    train: Floats
    clean: Floats
    noisy: Floats

    @classmethod
    def draw(
        cls, n_train: int = 1000, n_test: int = 200, noise: float = 0.3, seed: int = 0
    ) -> NoisyDigits:
        """Different rows for training and test, and normal noise on the latter."""
        rng = np.random.default_rng(seed)
        X = rng.permutation(load_digits().data / 16)
        clean = X[n_train : n_train + n_test]
        return cls(X[:n_train], clean, clean + noise * rng.normal(size=clean.shape))

    def validation(self, noise: float = 0.3, seed: int = 1) -> NoisyDigits:
        """A fifth of the training rows with noise of their own: what settings are chosen on."""
        cut = len(self.train) * 4 // 5
        clean = self.train[cut:]
        shaken = clean + noise * np.random.default_rng(seed).normal(size=clean.shape)
        return NoisyDigits(self.train[:cut], clean, shaken)

    def error(self, denoise: Denoise, settings: Settings) -> float:
        """Mean squared error per pixel."""
        return float(np.mean(np.square(denoise(self, **settings) - self.clean)))


@dataclass(frozen=True)
class DigitsRow:
    """A method, the settings that validation chose, and its error on the test rows."""

    method: str
    settings: Settings
    error: float


def compare_denoisers(digits: NoisyDigits, names: Iterable[str] | None = None) -> list[DigitsRow]:
    """Choose settings on the training part, then clean the test rows."""
    validation = digits.validation()
    rows = []
    for name in DENOISERS if names is None else names:
        denoise, grid = DENOISERS[name]
        best = min(grid, key=partial(validation.error, denoise))
        rows.append(DigitsRow(name, best, digits.error(denoise, best)))
    return rows


def _linear(digits: NoisyDigits, n_components: int) -> Floats:
    model = PCA(n_components).fit(digits.train)
    return model.inverse_transform(model.transform(digits.noisy))


def _neighbours(digits: NoisyDigits, n_neighbours: int) -> Floats:
    """No kernel PCA at all: the mean of the nearest training rows."""
    nearest = NearestNeighbors(n_neighbors=n_neighbours).fit(digits.train)
    return digits.train[nearest.kneighbors(digits.noisy, return_distance=False)].mean(axis=1)


def _scikit_learn(digits: NoisyDigits, **settings: Any) -> Floats:
    model = ScikitKernelPCA(kernel="rbf", fit_inverse_transform=True, **settings)
    return model.fit(digits.train).inverse_transform(model.transform(digits.noisy))


def _ridge(digits: NoisyDigits, **settings: Any) -> Floats:
    model = KernelPCA(kernel="rbf", preimage="ridge", **settings)
    return model.fit(digits.train).reconstruct(digits.noisy)


@lru_cache(maxsize=64)
def _fitted(digits: NoisyDigits, **settings: Any) -> KernelPCA:
    return KernelPCA(kernel="rbf", **settings).fit(digits.train)


def _ours(digits: NoisyDigits, preimage: Any, **settings: Any) -> Floats:
    """A fit serves all methods: they differ in what is done with it."""
    return _fitted(digits, **settings).set_params(preimage=preimage).reconstruct(digits.noisy)


def _mds(digits: NoisyDigits, n_neighbours: int, **settings: Any) -> Floats:
    return _ours(digits, MDS(n_neighbours), **settings)


def _grid(**choices: Iterable[Any]) -> list[Settings]:
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


_KERNEL_GRID = _grid(gamma=_GAMMAS, n_components=_RANKS)

#: Each with the settings that it may choose from.
DENOISERS: dict[str, tuple[Denoise, list[Settings]]] = {
    "linear PCA": (_linear, _grid(n_components=(4, 8, 12, 16, 24, 32, 48))),
    "scikit-learn's inverse, alpha=1": (
        _scikit_learn,
        _grid(gamma=_GAMMAS, n_components=_RANKS[:-1]),
    ),
    "kernel ridge": (
        _ridge,
        _grid(gamma=(0.01, 0.02, 0.05), n_components=(16, 32, 64), alpha=(0.01, 0.1)),
    ),
    "fixed point": (partial(_ours, preimage=FixedPoint()), _KERNEL_GRID),
    "gradient": (partial(_ours, preimage=Gradient()), _KERNEL_GRID),
    "MDS": (_mds, _grid(gamma=_GAMMAS, n_components=_RANKS, n_neighbours=(5, 7, 10, 15))),
    "neighbour mean": (_neighbours, _grid(n_neighbours=(3, 5, 7, 10, 15))),
}
