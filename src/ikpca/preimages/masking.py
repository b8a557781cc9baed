"""How well a model knows rows: every feature reconstructed from the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ikpca.kernels import Floats

__all__ = ["masked_error"]

#: Parts that features are drawn into, each hidden in turn.
_PARTS = 8


def masked_error(reconstruct: Callable[[Floats], Floats], X: Floats, means: Floats) -> float:
    """Mean squared error of features that the reconstruction did not see.

    Each eighth of the features in turn is hidden. Its training mean stands in for it, then what a
    first reconstruction puts there; what the second puts there is compared with the truth.

    Noise that is independent between features cannot be foreseen from the others; it adds the same
    to the error of every model, and so the least error belongs to the model that knows most of
    what is beneath the noise (Batson, Royer 2019). Reconstructing a row that was seen whole proves
    nothing: the model that copies it, noise and all, would win.

    Parameters
    ----------
    reconstruct : callable
        Takes and returns rows of shape (n, N).
    X : ndarray of shape (n, N)
    means : ndarray of shape (N,)
        What stands in for hidden features at first.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.preimages import masked_error
    >>> X = np.repeat(np.arange(4.0), 8).reshape(4, 8)
    >>> masked_error(lambda rows: np.repeat(np.median(rows, axis=1), 8).reshape(4, 8), X, X.mean(0))
    0.0
    """
    parts = np.random.default_rng(0).permutation(X.shape[1]) % _PARTS
    total = 0.0
    for part in np.unique(parts):
        hidden = parts == part
        seen = X.copy()
        seen[:, hidden] = means[hidden]
        seen[:, hidden] = reconstruct(seen)[:, hidden]
        error = reconstruct(seen)[:, hidden] - X[:, hidden]
        total += float(np.sum(np.square(error, dtype=np.float64)))
    return total / X.size
