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

from ikpca import KernelPCA
from ikpca.kernels import Floats, Gaussian, Kernel
from ikpca_papers.as_printed import (
    POLYNOMIAL,
    RBF,
    PaperIncrementalPCA,
    SelectedRowsPCA,
)
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


def recognize(
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


def reduced_faces(pixels: NDArray[Any], white: float = 255) -> Floats:
    """Reduce faces to rows of 20×20 means, from 0 to 1."""
    images = pixels / white
    rows, columns = (_averaging_matrix(length, FACE_SIDE) for length in images.shape[1:])
    return (rows @ images @ columns.T).reshape(len(images), -1)


def _averaging_matrix(length: int, short: int) -> Floats:
    """Return the matrix that averages ``length`` pixels over ``short`` equal intervals."""
    edges, pixels = np.linspace(0, length, short + 1), np.arange(length)
    begins, ends = np.maximum.outer(edges[:-1], pixels), np.minimum.outer(edges[1:], pixels + 1)
    return np.clip(ends - begins, 0, None) * short / length


#: 760 of the paper's 5,760 images.
TEST_SHARE = 760 / 5760
#: The paper's two, and a width near the median distance of the cropped faces.
KERNELS: dict[str, Kernel] = {
    "polynomial, degree 2": POLYNOMIAL,
    "Gaussian, σ = 1": RBF,
    "Gaussian, σ = 6": Gaussian(1 / 72),
}


#: Kernels of table 2, and its algorithms on the subset (1) and on all training images (0).
PRINTED_KERNELS = ("polynomial, degree 2", "Gaussian, σ = 1")
TABLE_2 = (("KPCA", 1), ("IKPCA", 1), ("IKPCA", 0))
#: Columns of error rates.
RATES = ("batch", "streamed", "streamed_all", "batch_fifth")


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
    batch, streamed, streamed_all, batch_fifth : tuple of float
        Error rates of batch and stream on the subset, of a stream of all training images, and of
        batch on a fifth of them: the paper's subset was a fifth.
    """

    kernel: str
    subset: int
    train: int
    batch: tuple[float, ...]
    streamed: tuple[float, ...]
    streamed_all: tuple[float, ...]
    batch_fifth: tuple[float, ...]

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


def recognize_streams(
    X: Floats,
    y: NDArray[Any],
    subset: int = 1000,
    splits: int = 10,
    n_components: int = 36,
    kernels: dict[str, Kernel] | None = None,
    **settings: Any,
) -> Iterator[Splits]:
    """Compare batch and streams for every kernel on the same splits.

    By default streams have batches of 30, as in the paper, and a basis of half of the subset, of
    selected rows.
    """
    streaming = {"max_rows": subset // 2, **settings}
    for name, kernel in (kernels or KERNELS).items():
        batch = KernelPCA(n_components, eigen_solver="dense", n_jobs=1, kernel=kernel)
        stream = SelectedRowsPCA(kernel, n_components, **streaming)
        rows = [_one_split(X, y, subset, seed, batch, stream) for seed in range(splits)]
        rates = zip(*(row[1:] for row in rows), strict=True)
        yield Splits(name, subset, rows[0][0], *(tuple(rate) for rate in rates))


def _one_split(
    X: Floats, y: NDArray[Any], subset: int, seed: int, batch: KernelPCA,
    stream: SelectedRowsPCA,
) -> tuple[int, float, float, float, float]:  # fmt: skip
    """Return the number of training images, and the four error rates."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed)
    few, every = (X[:subset], y[:subset], X_test, y_test), (X, y, X_test, y_test)
    fifth = X[: len(X) // 5], y[: len(X) // 5], X_test, y_test
    return (
        len(X),
        error_rate(batch, *few),
        error_rate(stream, *few),
        error_rate(stream, *every),
        error_rate(batch, *fifth),
    )


def error_rate(
    model: TransformerMixin, X: Floats, y: NDArray[Any], X_test: Floats, y_test: NDArray[Any],
    n_neighbors: int = 10,
) -> float:  # fmt: skip
    """Return the error rate of nearest neighbors among the projections."""
    nearest = KNeighborsClassifier(n_neighbors).fit(model.fit_transform(X), y)
    return float(np.mean(nearest.predict(model.transform(X_test)) != y_test))


def plan(request: Request) -> list[Part]:
    """Plan the entries of table 2, and our streams on several splits."""
    settings, arrays = request.settings, request.inputs.arrays
    order = np.random.default_rng(request.seed).permutation(len(arrays["X"]))
    X, y = arrays["X"][order], arrays["y"][order]
    cropped = "cropped" if "cropped X" in arrays else ""
    return [
        *(
            Part(f"{algorithm}, {name}, {number or 'all'}",
                 partial(_table_2, X, y, algorithm, name, number, settings))
            for name in PRINTED_KERNELS
            for algorithm, number in TABLE_2
            for number in [settings["subset"] * number]
        ),
        *(
            Part(f"splits, {name}", partial(_recognize, X, y, "main", name, settings))
            for name in settings["kernels"]
        ),
        *(
            Part(f"splits, {name}, {cropped}",
                 partial(_recognize, arrays["cropped X"], arrays["cropped y"], cropped, name,
                         settings))
            for name in settings["kernels"][:1] if cropped
        ),
    ]  # fmt: skip


def _table_2(
    X: Floats, y: NDArray[Any], algorithm: str, name: str, number: int,
    settings: Mapping[str, Any],
) -> Findings:  # fmt: skip
    """Measure one entry of table 2 on one random partition, as in the paper."""
    rows, r = settings["printed_rows"] or len(X), settings["printed_components"]
    X, X_test, y, y_test = train_test_split(
        X[:rows], y[:rows], test_size=TEST_SHARE, random_state=0
    )
    kernel, number = KERNELS[name], number or len(X)
    model: TransformerMixin = PaperIncrementalPCA(kernel, r, batch_rows=settings["batch"])
    if algorithm == "KPCA":
        model = KernelPCA(r, kernel=kernel, eigen_solver="dense", n_jobs=1)
    error = error_rate(model, X[:number], y[:number], X_test, y_test)
    rows_used = "all" if number == len(X) else "subset"
    return Findings({
        "table_2": [
            {"algorithm": algorithm, "kernel": name, "images": number, "set": rows_used,
             "error": 100 * error}
        ]
    })  # fmt: skip


def _recognize(
    X: Floats, y: NDArray[Any], images: str, name: str, settings: Mapping[str, Any]
) -> Findings:
    split = next(
        recognize_streams(
            X, y, settings["subset"], settings["splits"], settings["components"],
            {name: KERNELS[name]}, batch_rows=settings["batch"],
        )
    )  # fmt: skip
    rates = {column: getattr(split, column) for column in RATES}
    rows: Rows = [
        {
            "images": images,
            "kernel": name,
            "panel": name if images == "main" else f"{name}, {images}",
            "split": number,
            **{column: 100 * values[number] for column, values in rates.items()},
        }
        for number in range(len(split.batch))
    ]
    return Findings({"errors": rows})


def summary(tables: Tables) -> dict[str, Rows]:
    """Compute differences in table 2; means over our splits, and paired differences in points."""
    return {"printed": _printed_summary(tables["table_2"]), "summary": _means(tables["errors"])}


def _printed_summary(rows: Rows) -> Rows:
    table: Rows = []
    for kernel in PRINTED_KERNELS:
        errors = {
            (row["algorithm"], row["set"]): float(row["error"] or 0)
            for row in rows if row["kernel"] == kernel
        }  # fmt: skip
        if len(errors) == len(TABLE_2):
            batch, streamed = errors["KPCA", "subset"], errors["IKPCA", "subset"]
            table.append(
                {
                    "kernel": kernel,
                    "kpca_subset": batch,
                    "ikpca_subset": streamed,
                    "ikpca_all": errors["IKPCA", "all"],
                    "same_subset": abs(streamed - batch),
                }
            )
    return table


def _means(errors: Rows) -> Rows:
    rows: Rows = []
    for panel in dict.fromkeys(row["panel"] for row in errors):
        chosen = [row for row in errors if row["panel"] == panel]
        rates = {name: np.array([float(row[name] or 0) for row in chosen]) for name in RATES}
        low, high = mean_interval(rates["streamed_all"] - rates["batch"])
        _, high_fifth = mean_interval(rates["streamed_all"] - rates["batch_fifth"])
        rows.append(
            {
                "images": chosen[0]["images"],
                "kernel": chosen[0]["kernel"],
                **{name: float(values.mean()) for name, values in rates.items()},
                "same_subset": abs(float(np.mean(rates["streamed"] - rates["batch"]))),
                "gain_low": low,
                "gain_high": high,
                "fifth_gain_high": high_fifth,
            }
        )
    return rows
