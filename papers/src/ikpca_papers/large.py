"""Kernel PCA of up to 60,000 rows without the l×l kernel matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ikpca import KernelPCA
from ikpca.kernels import Floats
from ikpca_papers.experiment import Findings, Part, Request, blas_threads
from ikpca_papers.memory import PeakMemory
from ikpca_papers.subprocesses import Send, run_in_subprocess


def large_rows(folder: Path | str | None) -> tuple[str, float, Callable[[int], Floats]]:
    """Return a name, γ of the Gaussian kernel, and a function from a number of rows to the rows.

    Parameters
    ----------
    folder : path or None
        Folder of mnist.npz; without it, scikit-learn's digits are repeated with noise.
    """
    if folder is not None and (Path(folder) / "mnist.npz").exists():
        return "MNIST", 1 / 72, partial(_mnist, Path(folder))
    return "digits with noise", 1 / 8, _noisy_digits


def usps_rows(folder: Path | str | None) -> Floats:
    """Load all 7,291 training rows in double precision."""
    if folder is None:
        raise FileNotFoundError("usps.npz: name its folder in IKPCA_DATA or with --data")
    with np.load(Path(folder) / "usps.npz") as data:
        return np.asarray(data["X_train"], dtype=np.float64)


def _mnist(folder: Path, n_rows: int) -> Floats:
    with np.load(folder / "mnist.npz") as data:
        return np.asarray(data["X_train"][:n_rows], dtype=np.float32) / 255


def _noisy_digits(n_rows: int) -> Floats:
    from sklearn.datasets import load_digits

    digits = load_digits().data / 16
    rng = np.random.default_rng(0)
    chosen = digits[np.arange(n_rows) % len(digits)]
    noisy: Floats = (chosen + 0.05 * rng.normal(size=chosen.shape)).astype(np.float32)
    return noisy


def plan(request: Request) -> list[Part]:
    """Plan one part per number of rows, the largest last."""
    X, settings = np.asarray(request.inputs.arrays["X"]), request.settings
    return [
        Part(f"{rows} rows", partial(_measure, X, rows, settings, request.seed))
        for rows in settings["rows"]
    ]


def _measure(X: Floats, n_rows: int, settings: Mapping[str, Any], seed: int) -> Findings:
    """Fit in a process of its own, so that the measured memory is that of the fit."""
    with TemporaryDirectory() as folder:
        # The rows are passed in a file, because a large message can block.
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        task = partial(_fit, path, n_rows, settings, seed, blas_threads())
        row = run_in_subprocess("krylov", task, lambda message: None)
    return Findings({"fits": [row]})


def _fit(
    path: Path, n_rows: int, settings: Mapping[str, Any], seed: int, threads: int, send: Send
) -> dict[str, Any]:
    rows = _rows(np.load(path), n_rows, seed)
    model = KernelPCA(
        settings["components"], kernel="rbf", gamma=settings["gamma"], eigen_solver="krylov",
        tol=settings["tol"], max_memory=settings["max_memory"], n_jobs=threads,
        random_state=seed, copy_X=False,
    )  # fmt: skip
    # Compile first; that is not part of the fit.
    model.fit(rows[: 8 * settings["components"]])
    memory = PeakMemory()
    model.fit(rows)
    peak, matrix = memory.above_baseline(), 8 * n_rows**2
    return {
        "rows": n_rows,
        "passes": model.n_iter_,
        "seconds": sum(record.seconds for record in model.history_),
        "largest_residual": float(model.certificate_.residuals.max()),
        "peak_megabytes": None if peak is None else peak / 1e6,
        "matrix_megabytes": matrix / 1e6,
        "peak_share": None if peak is None else peak / matrix,
    }


def _rows(X: Floats, n_rows: int, seed: int) -> Floats:
    """Return the first rows, pixels from 0 to 1; too few are repeated with noise."""
    if X.dtype == np.uint8:
        return X[:n_rows].astype(np.float32) / 255
    rng = np.random.default_rng(seed)
    chosen = X[np.arange(n_rows) % len(X)]
    return (chosen + 0.05 * rng.normal(size=chosen.shape)).astype(np.float32)
