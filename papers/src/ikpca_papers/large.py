"""Rows for benchmarks with up to 60,000 of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from ikpca.kernels import Floats


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
