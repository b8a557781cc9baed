"""The three schemes of Chin 2006, figure 1, and what this library does instead, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from ikpca.estimators import KernelPCA, compress
from ikpca.experiments.manifold_rows import rising_parabola
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Gaussian, Kernel
from ikpca.preimages import Expansion
from ikpca.reduced_sets import ChosenSamples, IteratedPreimages, JointPreimages, Reduction

__all__ = [
    "SCHEMES",
    "CompressRow",
    "SchemeRow",
    "compare_schemes",
    "components_of",
    "compress_digits",
]

#: Figure 1 (a), (b), (c); then choosing among the rows, and moving what was chosen.
SCHEMES: dict[str, Reduction] = {
    "separate": IteratedPreimages(reuse=False, second_pass=False),
    "reuse": IteratedPreimages(second_pass=False),
    "second pass": IteratedPreimages(),
    "chosen samples": ChosenSamples(),
    "joint pre-images": JointPreimages(tol=0.0),
}


@dataclass(frozen=True)
class SchemeRow:
    """A scheme at one size of the library.

    Parameters
    ----------
    data, scheme : str
    per_vector, rows : int
        n', and the rows that came of it.
    error : float
        √(Σ w² ‖u − u'‖² / Σ w² ‖u‖²) over components and mean; w are the singular values, and the
        largest of them for the mean.
    first, worst : float
        Relative errors of the first component, and of the one that fares worst.
    seconds : float
        Of processor time.
    """

    data: str
    scheme: str
    per_vector: int
    rows: int
    error: float
    first: float
    worst: float
    seconds: float


@dataclass(frozen=True)
class CompressRow:
    """A compressed model beside its original.

    Parameters
    ----------
    compression : str
    rows : int
        Of the library.
    first, worst : float
        Relative errors in feature space of the first component and of the one that fares worst.
    moved : float
        Root mean square change of the projections, as a share of their root mean square.
    speedup : float
        Processor time of ``transform``, the original's over the compressed one's.
    """

    compression: str
    rows: int
    first: float
    worst: float
    moved: float
    speedup: float


def compare_schemes(
    n_samples: int = 500,
    n_components: int = 8,
    sizes: tuple[int, ...] = (1, 2, 4, 8),
    seed: int = 0,
) -> Iterator[SchemeRow]:
    """Reduce components and mean of parabola and digits to n' rows per vector."""
    digits = np.random.default_rng(seed).permutation(load_digits().data / 16)[:n_samples]
    problems: dict[str, tuple[Kernel, Floats]] = {
        "parabola": (Gaussian(0.5), rising_parabola(n_samples, seed)),
        "digits": (Gaussian(0.02), digits),
    }
    for data, (kernel, X) in problems.items():
        vectors, singular_values = components_of(kernel, X, n_components)
        weights = np.append(singular_values, singular_values[0])
        for per_vector in sizes:
            for scheme, reduction in SCHEMES.items():
                start = process_time()
                found = reduction.reduce(vectors, per_vector * (n_components + 1), weights)
                seconds = process_time() - start
                lost, whole = weights**2 @ found.squared_errors, weights**2 @ found.squared_lengths
                errors = found.relative_errors
                yield SchemeRow(
                    data,
                    scheme,
                    per_vector,
                    len(found.expansion.basis),
                    float(np.sqrt(lost / whole)),
                    float(errors[0]),
                    float(errors.max()),
                    seconds,
                )


def compress_digits(
    sizes: tuple[int, ...] = (50, 100, 200, 400), n_components: int = 16
) -> Iterator[CompressRow]:
    """Compress a model of 1,500 digits, and look at the other 297."""
    X = np.random.default_rng(0).permutation(load_digits().data / 16)
    train, test = X[:1500], X[1500:]
    model = KernelPCA(n_components, kernel="rbf", gamma=0.02).fit(train)
    before, seconds = _transformed(model, test)
    for compression in ("samples", "preimages"):
        for size in sizes:
            small = compress(model, size, compression=compression, random_state=0)
            after, less = _transformed(small, test)
            errors = small.compression_error_
            yield CompressRow(
                compression,
                len(small.library_),
                float(errors[0]),
                float(errors.max()),
                float(np.linalg.norm(after - before) / np.linalg.norm(before)),
                seconds / less,
            )


def _transformed(model: Any, X: Floats, repeats: int = 20) -> tuple[Floats, float]:
    """Projections, and the shortest time that they took."""
    times = []
    for _ in range(repeats):
        start = process_time()
        projections = model.transform(X)
        times.append(process_time() - start)
    return projections, min(times)


def components_of(kernel: Kernel, X: Floats, n_components: int) -> tuple[Expansion, Floats]:
    """Components and mean of batch kernel PCA, from scratch, and the singular values."""
    K = cross_gram(kernel, X, X)
    means = K.mean(axis=0)
    values, vectors = np.linalg.eigh(K - means - means[:, None] + means.mean())
    values, vectors = values[: -n_components - 1 : -1], vectors[:, : -n_components - 1 : -1]
    singular_values = np.sqrt(values)
    components = (vectors / singular_values).T
    components -= components.mean(axis=1, keepdims=True)
    uniform = np.full((1, len(X)), 1 / len(X))
    return Expansion(kernel, X, np.vstack([components, uniform])), singular_values
