"""Distance between clusterings, and signal-to-noise ratio."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ikpca.errors import InvalidInput


def variation_of_information(first: ArrayLike, second: ArrayLike) -> float:
    """Return H(X|Y) + H(Y|X) of two clusterings of the same samples, in nats (Meilă 2005).

    It is a metric on partitions: zero if and only if both are equal up to the names of clusters.

    Parameters
    ----------
    first, second : array-like of shape (n_samples,)
        Labels of the samples, numbers or strings.

    Returns
    -------
    float

    See Also
    --------
    sklearn.metrics.v_measure_score : Score from 0 to 1 based on the same entropies.

    Examples
    --------
    >>> from ikpca.metrics import variation_of_information
    >>> variation_of_information([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    >>> round(variation_of_information([0, 0, 1, 1], [0, 1, 0, 1]), 4)
    1.3863
    """
    X, Y = _encode_labels("first", first), _encode_labels("second", second)
    if len(X) != len(Y):
        raise InvalidInput(
            f"first has {len(X)} labels and second {len(Y)}: both must label the same samples; "
            "pass one label per sample in each."
        )
    pairs, counts = np.unique(np.stack([X, Y]), axis=1, return_counts=True)
    # Ratios of counts, so that equal clusters contribute exactly zero.
    ratios = (
        np.bincount(labels)[names] / counts for labels, names in zip((X, Y), pairs, strict=True)
    )
    return float(sum(counts @ np.log(ratio) for ratio in ratios) / len(X))


def signal_to_noise_ratio(clean: ArrayLike, estimate: ArrayLike) -> float:
    """Return 10 log10(Σ(x − x̄)² / Σ(x − z)²) in decibels, of a clean signal x and an estimate z.

    The ratio is infinite if both are equal. Integers are not rescaled.

    Parameters
    ----------
    clean, estimate : array-like of the same shape
        x and z.

    Returns
    -------
    float

    Examples
    --------
    >>> from ikpca.metrics import signal_to_noise_ratio
    >>> round(signal_to_noise_ratio([-1.0, 1.0], [-0.9, 1.1]), 9)
    20.0
    """
    x, z = np.asarray(clean, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    if x.shape != z.shape or x.size == 0:
        raise InvalidInput(
            f"clean has shape {x.shape} and estimate {z.shape}: shapes must be equal and not "
            "empty; pass two images of the same size."
        )
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        raise InvalidInput("clean or estimate contains NaN or infinite values: replace them.")
    power = float(np.sum(np.square(x - x.mean())))
    if power == 0:
        raise InvalidInput("clean is constant: the ratio is undefined; pass a signal that varies.")
    noise = float(np.sum(np.square(x - z)))
    return float("inf") if noise == 0 else float(10 * np.log10(power / noise))


def _encode_labels(name: str, labels: ArrayLike) -> NDArray[np.intp]:
    """Encode labels as integers from zero."""
    array = np.asarray(labels)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(
            f"{name} has shape {array.shape}: labels must be a non-empty vector; pass one label "
            "per sample."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InvalidInput(f"{name} contains NaN, which is not a label; label every sample.")
    return np.unique(array, return_inverse=True)[1]
