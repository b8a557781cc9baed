"""Kernel PCA of up to 60,000 rows without the l×l kernel matrix."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ikpca import KernelPCA
from ikpca.kernels import Floats
from ikpca_papers.claims import Rows, Tables
from ikpca_papers.experiment import Findings, Part, Request, blas_threads
from ikpca_papers.memory import PeakMemory
from ikpca_papers.subprocesses import Send, run_in_subprocess
from ikpca_papers.tuning import LABELS

#: Rows of a tile of the independent pass.
_TILE = 2000


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
    """Plan krylov for every number of rows, and the Hebbian methods for the largest."""
    X, settings = np.asarray(request.inputs.arrays["X"]), request.settings
    sizes = settings["rows"]
    runs = [("krylov", rows) for rows in sizes]
    runs += [(method, sizes[-1]) for method in settings["methods"]]
    return [
        Part(f"{method}, {rows} rows", partial(_measure, X, method, rows, settings, request.seed))
        for method, rows in runs
    ]


def summary(tables: Tables) -> Mapping[str, Rows]:
    """Compare the methods at the largest number of rows; krylov's error is the minimum."""
    fits: Any = tables["fits"]
    krylov = [row for row in fits if row["method"] == "krylov"]
    largest = [row for row in fits if row["rows"] == krylov[-1]["rows"]]
    minimum = krylov[-1]["error"]
    methods = [{**row, "excess_error": _excess(row["error"], minimum)} for row in largest]
    return {"growth": krylov, "methods": methods}


def _excess(error: float | None, minimum: float | None) -> float | None:
    """Return E/E_min − 1; None for a fit that diverged."""
    return None if error is None or minimum is None else error / minimum - 1


def _measure(
    X: Floats, method: str, n_rows: int, settings: Mapping[str, Any], seed: int
) -> Findings:
    """Fit in a process of its own, so that the measured memory is that of the fit."""
    with TemporaryDirectory() as folder:
        # The rows are passed in a file, because a large message can block.
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        task = partial(_fit, path, method, n_rows, settings, seed, blas_threads())
        row = run_in_subprocess(method, task, lambda message: None)
    return Findings({"fits": [row]})


def _fit(
    path: Path,
    method: str,
    n_rows: int,
    settings: Mapping[str, Any],
    seed: int,
    threads: int,
    send: Send,
) -> dict[str, Any]:
    rows = _rows(np.load(path), n_rows, seed)
    # Linear in l; 600 MB for 60,000 rows.
    budget = settings["bytes_per_row"] * n_rows
    model = KernelPCA(
        settings["components"], kernel="rbf", gamma=settings["gamma"], eigen_solver=method,
        max_memory=budget, n_jobs=threads, random_state=seed, copy_X=False,
        **settings["options"]["krylov" if method == "krylov" else "kha"],
    )  # fmt: skip
    # Compile first; that is not part of the fit.
    model.fit(rows[: 8 * settings["components"]])
    memory, start = PeakMemory(), time.perf_counter()
    projections = model.fit_transform(rows)
    seconds, peak = time.perf_counter() - start, memory.above_baseline()
    stated = float(model.certificate_.residuals.max())
    # The certificate of krylov is about A, that of the Hebbian solvers about AK'.
    vectors = model.coefficients_.T if method == "krylov" else projections
    true, error = true_errors(model, rows, projections, vectors)
    return {
        "method": LABELS.get(method, method),
        "rows": n_rows,
        "passes": model.n_iter_,
        "seconds": seconds,
        "entries_per_l2": model.history_[-1].entries / n_rows**2,
        "stated_residual": stated,
        "true_residual": true,
        "true_over_stated": true / stated,
        "error": error,
        "matrix_megabytes": 8 * n_rows**2 / 1e6,
        # Not every system reports a peak.
        **(
            {}
            if peak is None
            else {"peak_megabytes": peak / 1e6, "peak_over_budget": peak / budget}
        ),
    }


def true_errors(
    model: KernelPCA, X: Floats, projections: Floats, vectors: Floats
) -> tuple[float, float]:
    """Compute the largest residual and ‖K' − YYᵀ‖ of a Gaussian fit by a pass in double precision.

    The pass uses NumPy alone, and none of the code that fitted the model.

    Parameters
    ----------
    model : KernelPCA
        Fitted to X.
    X : array of shape (l, N)
    projections : array of shape (l, r)
        Y = (AK')ᵀ.
    vectors : array of shape (l, r)
        Eigenvectors v of K', of any length.

    Returns
    -------
    residual : float
        max ‖K'v − λv‖/λ₁ for unit v.
    error : float
        ‖K' − YYᵀ‖ (Günter 2006, eq. 22).
    """
    V, Y = vectors.astype(np.float64), projections.astype(np.float64)
    V /= np.linalg.norm(V, axis=0)
    products, norm_squared = _centered_products(X, model.gamma_, np.hstack([V, Y]))
    KV, KY = np.split(products, 2, axis=1)
    values = model.eigenvalues_.astype(np.float64)
    residuals = np.linalg.norm(KV - V * values, axis=0) / values[0]
    squared = norm_squared - 2 * float(np.sum(Y * KY)) + float(np.sum(np.square(Y.T @ Y)))
    return float(residuals.max()), float(np.sqrt(max(squared, 0.0)))


def _centered_products(X: Floats, gamma: float, V: Floats) -> tuple[Floats, float]:
    """Return K'V and ‖K'‖² of the Gaussian kernel; each pair of tiles is evaluated once."""
    V = np.hstack([V - V.mean(axis=0), np.ones((len(X), 1))])
    products, squares = np.zeros_like(V), 0.0
    tiles = [slice(start, start + _TILE) for start in range(0, len(X), _TILE)]
    for place, one in enumerate(tiles):
        x = X[one].astype(np.float64)
        for other in tiles[place:]:
            y = X[other].astype(np.float64)
            distances = np.sum(x**2, axis=1)[:, None] + np.sum(y**2, axis=1) - 2 * x @ y.T
            K = np.exp(-gamma * np.maximum(distances, 0))
            products[one] += K @ V[other]
            if one != other:
                products[other] += K.T @ V[one]
            squares += float(np.sum(K**2)) * (1 if one == other else 2)
    sums = products[:, -1]
    norm_squared = squares - 2 * float(sums @ sums) / len(X) + float(sums.sum() / len(X)) ** 2
    return products[:, :-1] - products[:, :-1].mean(axis=0), norm_squared


def _rows(X: Floats, n_rows: int, seed: int) -> Floats:
    """Return the first rows, pixels from 0 to 1; too few are repeated with noise."""
    if X.dtype == np.uint8:
        return X[:n_rows].astype(np.float32) / 255
    rng = np.random.default_rng(seed)
    chosen = X[np.arange(n_rows) % len(X)]
    return (chosen + 0.05 * rng.normal(size=chosen.shape)).astype(np.float32)
