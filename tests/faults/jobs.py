"""Fits with checkpoints, slow enough to be killed in the middle."""

from __future__ import annotations

import hashlib
import time

import numpy as np
from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.kernels import Gaussian

_PAUSE = 0.002


class Slow(Gaussian):
    """A Gaussian kernel that takes its time over every tile."""

    def finish(self, out):
        time.sleep(_PAUSE)
        super().finish(out)


def _kernel_pca(solver, **parameters):
    def fit(path):
        model = KernelPCA(
            5, kernel=Slow(0.05), eigen_solver=solver, random_state=0, n_jobs=1,
            max_memory="10MB", checkpoint=path, resume=True, **parameters,
        )  # fmt: skip
        model.fit(load_digits().data[:700] / 16)
        return [model.coefficients_, model.eigenvalues_, model._projector.centring.column_means]

    return fit


#: Each takes the path of its checkpoint, goes on from it, and returns the arrays of its result.
JOBS = {
    "kha": _kernel_pca("kha", max_iter=12, gain=0.05),
    "kha/t": _kernel_pca("kha/t", max_iter=12, gain=0.1),
    "kha/et": _kernel_pca("kha/et", max_iter=12),
    "kha-smd": _kernel_pca("kha-smd", max_iter=12),
    "krylov": _kernel_pca("krylov", tol=1e-9),
}


def digest(arrays):
    """Of all bits of a result."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def work(name, path, answers):
    """Do a job in a process of its own."""
    answers.put(digest(JOBS[name](path)))
