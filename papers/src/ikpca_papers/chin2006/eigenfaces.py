"""Chin and Suter 2006, table 2: kernel eigenfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import TransformerMixin
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.kernels import Floats
from ikpca_papers.claims import Rows, Tables
from ikpca_papers.experiment import Findings, Part, Request

#: Pixels of a reduced face in each direction.
FACE_SIDE = 20
#: The paper's two; eigenfaces (linear); and two improvements: a width from the training faces, and
#: whitened components, which reduce the influence of light.
PIPELINES: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial, degree 2": {"kernel": "poly", "degree": 2},
    "Gaussian, σ = 1": {"kernel": "rbf", "gamma": 0.5},
    "Gaussian, median σ": {"kernel": "rbf", "gamma": "median"},
    "linear, whitened": {"kernel": "linear", "whiten": True},
    "polynomial, whitened": {"kernel": "poly", "degree": 2, "whiten": True},
}


@dataclass(frozen=True)
class Recognition:
    """Error rates of one pipeline, one per fold."""

    name: str
    errors: Floats


def eigenfaces(n_components: int = 36, n_neighbors: int = 10, **settings: Any) -> Pipeline:
    """Build the pipeline: kernel PCA, then nearest neighbors.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = eigenfaces(kernel="poly", degree=2).fit(X[:1000] / 16, y[:1000])
    >>> bool(model.score(X[1000:] / 16, y[1000:]) > 0.93)
    True
    """
    return make_pipeline(
        KernelPCA(n_components, random_state=0, **settings), KNeighborsClassifier(n_neighbors)
    )


def recognise(
    X: Floats, y: NDArray[Any], n_components: int = 36, n_neighbors: int = 10, folds: int = 10
) -> Iterator[Recognition]:
    """Cross-validate every kernel, and raw pixels, on the same folds."""
    split = StratifiedKFold(folds, shuffle=True, random_state=0)
    pipelines = {"raw pixels": make_pipeline(KNeighborsClassifier(n_neighbors))}
    for name, settings in PIPELINES.items():
        pipelines[name] = eigenfaces(n_components, n_neighbors, **settings)
    for name, pipeline in pipelines.items():
        yield Recognition(name, 1 - cross_val_score(pipeline, X, y, cv=split))


def faces(folder: Path) -> tuple[Floats, NDArray[Any]]:
    """Load Extended Yale B from a local folder, reduced as in the paper; pixels from 0 to 1."""
    with np.load(folder / "yaleb_cropped_64x56.npz") as data:
        return reduced_faces(data["images"]), data["subject"]


def reduced_faces(pixels: NDArray[np.uint8]) -> Floats:
    """Reduce faces of bytes to rows of 20×20 means, from 0 to 1."""
    images = pixels / 255
    rows, columns = (_averaging_matrix(length, FACE_SIDE) for length in images.shape[1:])
    return (rows @ images @ columns.T).reshape(len(images), -1)


def _averaging_matrix(length: int, short: int) -> Floats:
    """Return the matrix that averages ``length`` pixels over ``short`` equal intervals."""
    edges, pixels = np.linspace(0, length, short + 1), np.arange(length)
    begins, ends = np.maximum.outer(edges[:-1], pixels), np.minimum.outer(edges[1:], pixels + 1)
    return np.clip(ends - begins, 0, None) * short / length


#: 760 of the paper's 5,760 images.
TEST_SHARE = 760 / 5760
#: The paper's two, and a width near the median distance of the faces: at σ = 1 most faces are
#: nearly orthogonal, and 36 components explain 12 % of the variance.
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
        Number of images whose kernel matrix can be stored.
    train : int
        Number of all training images.
    batch, streamed, streamed_all : tuple of float
        Error rates of batch and stream on the subset, and of a stream of all training images.
    """

    kernel: str
    subset: int
    train: int
    batch: tuple[float, ...]
    streamed: tuple[float, ...]
    streamed_all: tuple[float, ...]

    @property
    def difference(self) -> float:
        """Mean of stream minus batch on the same images, in percentage points."""
        return float(100 * np.mean(np.subtract(self.streamed, self.batch)))

    @property
    def gain(self) -> tuple[float, float]:
        """Paired 95 % interval of stream of all minus batch on the subset, in percentage points."""
        return mean_interval(100 * np.subtract(self.streamed_all, self.batch))


def mean_interval(differences: Floats, confidence: float = 0.95) -> tuple[float, float]:
    """Student's confidence interval of a mean.

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
    """Compare batch and streams for every kernel on the same splits.

    By default streams have batches of 30, as in the paper, and a basis of half of the subset.
    """
    streaming = {"batch_size": 30, "max_basis_rows": subset // 2, **settings}
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
    """Return the number of training images, and error rates of batch, stream, stream of all."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed)
    few = X[:subset], y[:subset], X_test, y_test
    every = X, y, X_test, y_test
    return len(X), error_rate(batch, *few), error_rate(stream, *few), error_rate(stream, *every)


def error_rate(
    model: TransformerMixin, X: Floats, y: NDArray[Any], X_test: Floats, y_test: NDArray[Any],
    n_neighbors: int = 10,
) -> float:  # fmt: skip
    """Return the error rate of nearest neighbors among the projections."""
    nearest = KNeighborsClassifier(n_neighbors).fit(model.fit_transform(X), y)
    return float(np.mean(nearest.predict(model.transform(X_test)) != y_test))


def plan(request: Request) -> list[Part]:
    """Plan one part per kernel, all with the same splits."""
    settings, arrays = request.settings, request.inputs.arrays
    number = settings["rows"] or len(arrays["X"])
    order = np.random.default_rng(request.seed).permutation(len(arrays["X"]))[:number]
    X, y = arrays["X"][order], arrays["y"][order]
    return [Part(name, partial(_recognise, X, y, name, settings)) for name in settings["kernels"]]


def _recognise(X: Floats, y: NDArray[Any], name: str, settings: Mapping[str, Any]) -> Findings:
    found = next(
        recognise_streams(
            X, y, settings["subset"], settings["splits"], settings["components"],
            {name: KERNELS[name]}, batch_size=settings["batch"],
        )
    )  # fmt: skip
    rates = zip(found.batch, found.streamed, found.streamed_all, strict=True)
    rows: Rows = [
        {
            "kernel": name,
            "split": number,
            "batch": 100 * batch,
            "streamed": 100 * streamed,
            "streamed_all": 100 * streamed_all,
        }
        for number, (batch, streamed, streamed_all) in enumerate(rates)
    ]
    return Findings({"errors": rows})


def summary(tables: Tables) -> dict[str, Rows]:
    """Compute means over the splits in per cent, and paired differences in points."""
    rows: Rows = []
    for kernel in dict.fromkeys(row["kernel"] for row in tables["errors"]):
        chosen = [row for row in tables["errors"] if row["kernel"] == kernel]
        columns = ("batch", "streamed", "streamed_all")
        rates = {name: np.array([float(row[name] or 0) for row in chosen]) for name in columns}
        low, high = mean_interval(rates["streamed_all"] - rates["batch"])
        rows.append(
            {
                "kernel": kernel,
                **{name: float(values.mean()) for name, values in rates.items()},
                "same_subset": abs(float(np.mean(rates["streamed"] - rates["batch"]))),
                "gain_low": low,
                "gain_high": high,
            }
        )
    return {"summary": rows}
