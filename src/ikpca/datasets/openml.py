"""Data sets that scikit-learn fetches, brought into the form of our files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.datasets.dataset import Arrays
from ikpca.errors import DataUnavailable

__all__ = ["fetch_mnist", "fetch_olivetti", "fetch_usps"]

#: How often every digit comes in the classic training sets: a split elsewhere has other counts.
_USPS_COUNTS = (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644)
_MNIST_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


def fetch_usps(cache: Path) -> Arrays:
    """USPS from OpenML, whose labels count from 1."""
    rows, labels = _openml(cache, "usps", 41082)
    # The classic files have three decimals, and so has what this library calls USPS.
    pixels = np.round(rows.astype(np.float64), 3).astype(np.float32)
    return _split("usps", pixels, labels - 1, _USPS_COUNTS)


def fetch_mnist(cache: Path) -> Arrays:
    """MNIST from OpenML."""
    rows, labels = _openml(cache, "mnist", 554)
    return _split("mnist", rows.astype(np.uint8), labels, _MNIST_COUNTS)


def fetch_olivetti(cache: Path) -> Arrays:
    """Olivetti faces, in the order of the people."""
    from sklearn.datasets import fetch_olivetti_faces

    def fetched(home: Path) -> Any:
        return fetch_olivetti_faces(data_home=home)

    found = _through_scikit_learn(cache, "olivetti", fetched)
    images = np.asarray(found.images, dtype=np.float32)
    return {"images": images, "subject": np.asarray(found.target, dtype=np.uint8)}


def _openml(cache: Path, name: str, number: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    from sklearn.datasets import fetch_openml

    def fetched(home: Path) -> Any:
        # The slower of its readers, but it needs no pandas, whose version 3 the other stumbles on.
        return fetch_openml(
            data_id=number, data_home=home, as_frame=False, return_X_y=True, parser="liac-arff"
        )

    rows, labels = _through_scikit_learn(cache, name, fetched)
    return np.asarray(rows), np.asarray(labels).astype(np.int64)


def _through_scikit_learn(cache: Path, name: str, fetched: Callable[[Path], Any]) -> Any:
    """In a folder of its own, which is kept for another try where this one fails."""
    home = cache / f"{name}.scikit-learn"
    try:
        found = fetched(home)
    except (OSError, ValueError, LookupError, TypeError) as error:
        # The network, OpenML's own checksum, and what its readers make of an odd answer.
        reason = " ".join(str(error).split())
        raise DataUnavailable(
            f"{name}: scikit-learn could not fetch it ({reason}); try again later."
        ) from error
    shutil.rmtree(home, ignore_errors=True)
    return found


def _split(
    name: str, rows: NDArray[Any], labels: NDArray[np.int64], counts: tuple[int, ...]
) -> Arrays:
    """Training rows first; refused where the labels say that the order is another."""
    first = sum(counts)
    if tuple(np.bincount(labels[:first], minlength=10)) != counts:
        raise DataUnavailable(
            f"{name}: its first {first} rows are not the classic training set; "
            f"get {name}.npz elsewhere and name its folder in IKPCA_DATA."
        )
    digits = labels.astype(np.uint8)
    return {
        "X_train": rows[:first],
        "y_train": digits[:first],
        "X_test": rows[first:],
        "y_test": digits[first:],
    }
