"""How a run ended, as a value with advice."""

from __future__ import annotations

from enum import Enum

__all__ = ["Outcome"]


class Outcome(Enum):
    """How a fit ended; the value is a sentence for the reader.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> KernelPCA(2, kernel="rbf", eigen_solver="dense").fit(X).outcome_.value
    'solved directly'
    """

    CONVERGED = "the residual is within tol"
    PRECISE = "the residual has reached the rounding of the arithmetic"
    SETTLED = "the solution changed by no more than change_tol in the last pass"
    PASS_LIMIT = "max_iter passes are done; more passes or another solver come closer"
    STOPPED = "an observer asked to stop"
    INTERRUPTED = "interrupted; the last finished pass is kept"
    DIVERGED = "no gain small enough was found; pass gain='auto' or check the scale of the kernel"
    EXACT = "solved directly"
