"""Chin and Suter 2006, table 2: kernel eigenfaces."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from ikpca import KernelPCA
from ikpca.kernels import Floats, Kernel
from ikpca_papers.as_printed import POLYNOMIAL, RBF, PaperIncrementalPCA, SelectedRowsPCA
from ikpca_papers.claims import Rows, Tables
from ikpca_papers.experiment import Findings, Part, Request

#: Pixels of a reduced face in each direction.
FACE_SIDE = 20
#: 760 of the paper's 5,760 images.
TEST_SHARE = 760 / 5760
KERNELS: dict[str, Kernel] = {"polynomial, degree 2": POLYNOMIAL, "Gaussian, σ = 1": RBF}
#: Rows of table 2, and our reduction beside them.
ALGORITHMS = (
    ("KPCA", "subset"),
    ("IKPCA", "subset"),
    ("IKPCA", "all"),
    ("selected rows", "subset"),
    ("selected rows", "all"),
)


def reduced_faces(pixels: NDArray[Any]) -> Floats:
    """Reduce faces of bytes to rows of 20×20 means, from 0 to 1."""
    images = pixels / 255
    rows, columns = (_averaging_matrix(length, FACE_SIDE) for length in images.shape[1:])
    return (rows @ images @ columns.T).reshape(len(images), -1)


def _averaging_matrix(length: int, short: int) -> Floats:
    """Return the matrix that averages ``length`` pixels over ``short`` equal intervals."""
    edges, pixels = np.linspace(0, length, short + 1), np.arange(length)
    begins, ends = np.maximum.outer(edges[:-1], pixels), np.minimum.outer(edges[1:], pixels + 1)
    return np.clip(ends - begins, 0, None) * short / length


def error_rate(
    model: TransformerMixin, X: Floats, y: NDArray[Any], X_test: Floats, y_test: NDArray[Any],
    n_neighbors: int = 10,
) -> float:  # fmt: skip
    """Return the error rate of nearest neighbors among the projections."""
    nearest = KNeighborsClassifier(n_neighbors).fit(model.fit_transform(X), y)
    return float(np.mean(nearest.predict(model.transform(X_test)) != y_test))


def plan(request: Request) -> list[Part]:
    """Plan every row of table 2 on several random partitions."""
    settings, arrays = request.settings, request.inputs.arrays
    return [
        Part(f"{algorithm}, {kernel}, {images}, split {split}",
             partial(_measure, arrays["X"], arrays["y"], algorithm, kernel, images, split,
                     settings))
        for kernel in KERNELS
        for algorithm, images in ALGORITHMS
        for split in range(request.seed, request.seed + settings["splits"])
    ]  # fmt: skip


def _measure(
    X: Floats, y: NDArray[Any], algorithm: str, kernel: str, images: str, split: int,
    settings: Mapping[str, Any],
) -> Findings:  # fmt: skip
    """Measure one row of table 2 on one random partition."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=split)
    number = settings["subset"] if images == "subset" else len(X)
    model = _model(algorithm, KERNELS[kernel], settings)
    error = 100 * error_rate(model, X[:number], y[:number], X_test, y_test)
    row = {"algorithm": algorithm, "kernel": kernel, "set": images, "images": number}
    return Findings({"table_2": [{**row, "split": split, "error": error}]})


def _model(algorithm: str, kernel: Kernel, settings: Mapping[str, Any]) -> TransformerMixin:
    r, batch = settings["components"], settings["batch"]
    if algorithm == "KPCA":
        return KernelPCA(r, kernel=kernel, eigen_solver="dense", n_jobs=1)
    if algorithm == "IKPCA":
        return PaperIncrementalPCA(kernel, r, batch_rows=batch)
    return SelectedRowsPCA(kernel, r, settings["subset"] // 2, batch)


def summary(tables: Tables) -> dict[str, Rows]:
    """Compute differences of the means over the splits on the same subset, in points."""
    rows: Rows = []
    for kernel in KERNELS:
        means = {
            algorithm: np.mean([
                float(row["error"] or 0) for row in tables["table_2"]
                if (row["kernel"], row["algorithm"], row["set"]) == (kernel, algorithm, "subset")
            ])
            for algorithm in ("KPCA", "IKPCA")
        }  # fmt: skip
        rows.append({"kernel": kernel, "same_subset": float(abs(means["IKPCA"] - means["KPCA"]))})
    return {"differences": rows}
