"""Pre-image methods: denoising of digits, and batches against single samples.

Denoising: 1,000 training rows and 200 test rows with noise 0.3. Every method chooses its settings
on a fifth of the training rows with added noise, never on the test rows.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from contestants import best_seconds
from ikpca import KernelPCA
from ikpca.kernels import Floats
from ikpca.preimages import MDS, FixedPoint, Gradient

Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class NoisyDigits:
    """scikit-learn's digits scaled to [0, 1]: training rows, and test rows with and without noise.

    Compared and hashed by identity, so that fits can be cached.
    """

    train: Floats
    clean: Floats
    noisy: Floats

    @classmethod
    def draw(
        cls, n_train: int = 1000, n_test: int = 200, noise: float = 0.3, seed: int = 0
    ) -> NoisyDigits:
        """Draw different rows for training and test, and add normal noise to the latter."""
        rng = np.random.default_rng(seed)
        X = rng.permutation(load_digits().data / 16)
        clean = X[n_train : n_train + n_test]
        return cls(X[:n_train], clean, clean + noise * rng.normal(size=clean.shape))

    def validation(self, noise: float = 0.3, seed: int = 1) -> NoisyDigits:
        """Split off a fifth of the training rows, with noise of their own, to choose settings."""
        cut = len(self.train) * 4 // 5
        clean = self.train[cut:]
        noisy = clean + noise * np.random.default_rng(seed).normal(size=clean.shape)
        return NoisyDigits(self.train[:cut], clean, noisy)

    def error(self, denoise: Callable[..., Floats], settings: Settings) -> float:
        """Compute the mean squared error per pixel."""
        return float(np.mean(np.square(denoise(self, **settings) - self.clean)))


@dataclass(frozen=True)
class DenoisingRow:
    """Settings chosen by validation, and the error on the test rows."""

    method: str
    settings: Settings
    error: float


def compare_denoisers(
    digits: NoisyDigits, names: Iterable[str] | None = None
) -> Iterator[DenoisingRow]:
    """Choose settings on the training rows, then denoise the test rows."""
    validation = digits.validation()
    for name in DENOISERS if names is None else names:
        denoise, grid = DENOISERS[name]
        best = min(grid, key=partial(validation.error, denoise))
        yield DenoisingRow(name, best, digits.error(denoise, best))


def _linear_pca(digits: NoisyDigits, n_components: int) -> Floats:
    model = PCA(n_components).fit(digits.train)
    return model.inverse_transform(model.transform(digits.noisy))


def _neighbor_mean(digits: NoisyDigits, n_neighbors: int) -> Floats:
    """Average the nearest training rows, without kernel PCA."""
    nearest = NearestNeighbors(n_neighbors=n_neighbors).fit(digits.train)
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


def _preimage(digits: NoisyDigits, preimage: Any, **settings: Any) -> Floats:
    """Reconstruct with a pre-image method; all methods share one cached fit."""
    return _fitted(digits, **settings).set_params(preimage=preimage).reconstruct(digits.noisy)


def _mds(digits: NoisyDigits, n_neighbors: int, **settings: Any) -> Floats:
    return _preimage(digits, MDS(n_neighbors), **settings)


def _grid(**choices: Iterable[Any]) -> list[Settings]:
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


_GAMMAS = (0.02, 0.05, 0.1, 0.2, 0.4)
_RANKS = (16, 32, 64, 128, 256)
_KERNEL_GRID = _grid(gamma=_GAMMAS, n_components=_RANKS)

#: Each with the settings to choose from.
DENOISERS: dict[str, tuple[Callable[..., Floats], list[Settings]]] = {
    "linear PCA": (_linear_pca, _grid(n_components=(4, 8, 12, 16, 24, 32, 48))),
    "scikit-learn's inverse, alpha=1": (
        _scikit_learn,
        _grid(gamma=_GAMMAS, n_components=_RANKS[:-1]),
    ),
    "kernel ridge": (
        _ridge,
        _grid(gamma=(0.01, 0.02, 0.05), n_components=(16, 32, 64), alpha=(0.01, 0.1)),
    ),
    "fixed point": (partial(_preimage, preimage=FixedPoint()), _KERNEL_GRID),
    "gradient": (partial(_preimage, preimage=Gradient()), _KERNEL_GRID),
    "MDS": (_mds, _grid(gamma=_GAMMAS, n_components=_RANKS, n_neighbors=(5, 7, 10, 15))),
    "neighbor mean": (_neighbor_mean, _grid(n_neighbors=(3, 5, 7, 10, 15))),
}


@dataclass(frozen=True)
class PreimageSpeed:
    """Seconds for all samples: in one call (``together``), and one call each (``apart``)."""

    preimage: str
    dtype: str
    threads: int
    together: float
    apart: float

    @property
    def ratio(self) -> float:
        """Speed-up of one call for all samples."""
        return self.apart / self.together


def measure_speed(
    threads: int, dtype: str, n_train: int, n_samples: int, n_looped: int = 50
) -> Iterator[PreimageSpeed]:
    """Time ``inverse_transform`` of all projections at once and one at a time.

    The loop takes the first ``n_looped`` samples and is scaled up. It gives BLAS one thread, since
    products with a single row are too small to share.
    """
    X = _noisy_rows(n_train + n_samples).astype(dtype)
    model = KernelPCA(64, kernel="rbf", gamma=0.1, tol=1e-3, n_jobs=threads).fit(X[:n_train])
    Y = model.transform(X[n_train:])

    def one_by_one() -> None:
        for i in range(n_looped):
            model.inverse_transform(Y[i : i + 1])

    for preimage in ("fixed-point", "gradient", "mds", "neighbors"):
        model.set_params(preimage=preimage, n_jobs=threads)
        with threadpool_limits(threads, user_api="blas"):
            together = best_seconds(partial(model.inverse_transform, Y), 3)
        model.set_params(n_jobs=1)
        with threadpool_limits(1, user_api="blas"):
            apart = best_seconds(one_by_one, 3) * n_samples / n_looped
        yield PreimageSpeed(preimage, dtype, threads, together, apart)


def _noisy_rows(number: int) -> Floats:
    """Draw digits with replacement and add noise."""
    rng = np.random.default_rng(0)
    X = load_digits().data / 16
    return X[rng.integers(len(X), size=number)] + 0.1 * rng.normal(size=(number, X.shape[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    parser.add_argument("--methods", nargs="+", choices=DENOISERS, help="all by default")
    parser.add_argument("--rows", type=int, default=5000, help="training rows for the speed")
    parser.add_argument("--samples", type=int, default=1000, help="for the speed")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print("mean squared error per pixel, noise 0.3 (of the noisy rows themselves: 0.09)")
    table = []
    for row in compare_denoisers(NoisyDigits.draw(), arguments.methods):
        settings = ", ".join(f"{key} {value}" for key, value in row.settings.items())
        print(f"{row.method:32s} {row.error:8.4f}   {settings}", flush=True)
        table.append(asdict(row))
    print(f"\nseconds for {arguments.samples:,} samples, {arguments.rows:,} training rows of 64 "
          "features, 64 components")  # fmt: skip
    print(f"{'method':12s} {'type':8s} {'threads':>7s} {'together':>9s} {'apart':>8s} "
          f"{'ratio':>6s}")  # fmt: skip
    speeds = []
    for threads, dtype in product(sorted({1, arguments.threads}), ("float64", "float32")):
        for speed in measure_speed(threads, dtype, arguments.rows, arguments.samples):
            print(
                f"{speed.preimage:12s} {speed.dtype:8s} {speed.threads:7d} {speed.together:9.3f} "
                f"{speed.apart:8.2f} {speed.ratio:6.1f}",
                flush=True,
            )
            speeds.append({**asdict(speed), "ratio": speed.ratio})
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {"digits": table, "speed": speeds}
    (arguments.out / "preimages.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
