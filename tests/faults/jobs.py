"""Fits for tests with killed processes."""

from __future__ import annotations

import hashlib
import time
from functools import cache

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits

from ikpca import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    OnlineKernelPCA,
)
from ikpca.kernels import Gaussian
from ikpca.solvers import KHA, Krylov

_PAUSE = 0.002


class Slow(Gaussian):
    """Gaussian kernel with slow tiles."""

    def finish(self, out):
        time.sleep(_PAUSE)
        super().finish(out)


@cache
def _rows():
    return load_digits().data[:700] / 16


def _kernel_pca(solver, kind=np.asarray, **parameters):
    """Fit of a solver to rows of one type."""

    def fit(path, n_jobs=1):
        settings = {"n_components": 5, "kernel": Slow(0.05), "max_memory": "10MB", **parameters}
        model = KernelPCA(eigen_solver=solver, random_state=0, n_jobs=n_jobs, **settings)
        return _arrays(model.set_params(checkpoint=path).fit(kind(_rows())))

    return fit


def _other(model_class, rows=700, **parameters):
    """Fit of another estimator, without checkpoints."""

    def fit(_path, n_jobs=1):
        model = model_class(**{"random_state": 0, "n_jobs": n_jobs, **parameters})
        return _arrays(model.fit(_rows()[:rows]))

    return fit


def _batches(model_class, size, **parameters):
    """Stream in given batches."""

    def fit(_path, n_jobs=1):
        model = model_class(random_state=0, n_jobs=n_jobs, **parameters)
        for start in range(0, len(_rows()), size):
            model.partial_fit(_rows()[start : start + size])
        return _arrays(model)

    return fit


def _clustering(_path, n_jobs=1):
    model = KernelSpectralClustering(
        5, kernel=Slow(0.05), eigen_solver="kha/et", max_iter=12, n_init=1, random_state=0,
        n_jobs=n_jobs, max_memory="10MB",
    )  # fmt: skip
    return _arrays(model.fit(_rows()))


def _arrays(model):
    """Return the public arrays, and the records of passes without times."""
    found = [value for name, value in sorted(vars(model).items())
             if name.endswith("_") and isinstance(value, np.ndarray)]  # fmt: skip
    for record in getattr(model, "history_", []):
        found += [np.asarray(record.eigenvalues), np.asarray(record.residuals)]
    return found


def _single(X):
    return X.astype(np.float32)


def _matrix(X):
    K = X @ X.T
    return (K + 1) ** 2 / 1e3


#: Fits that can be killed: each resumes from its checkpoint and returns the arrays of its result.
JOBS = {
    "kha": _kernel_pca(KHA("kha", gain=0.05), max_iter=12),
    "kha/t": _kernel_pca(KHA("kha/t", gain=0.1), max_iter=12),
    "kha/et": _kernel_pca("kha/et", max_iter=12),
    "kha-smd": _kernel_pca("kha-smd", max_iter=12),
    "kha-smd, single": _kernel_pca("kha-smd", _single, max_iter=12),
    "kha/et, matrix": _kernel_pca("kha/et", _matrix, kernel="precomputed", max_iter=40),
    "krylov": _kernel_pca("krylov", tol=1e-9),
    "krylov, pivoted": _kernel_pca(Krylov("pivoted"), tol=1e-9),
    "krylov, sparse": _kernel_pca("krylov", sparse.csr_array, kernel="rbf", gamma=0.05, tol=1e-9),
}
#: Fits without checkpoints.
OTHERS = {
    "krylov, fraction": _kernel_pca("krylov", tol=1e-6, n_components=0.9),
    "hebbian": _other(HebbianPCA, n_components=5, max_iter=30),
    "clustering": _clustering,
    "incremental": _other(IncrementalKernelPCA, n_components=5, kernel=Slow(0.05)),
    "incremental, pre-images": _other(
        IncrementalKernelPCA, 300, n_components=3, kernel="rbf", gamma=0.05,
        basis="preimages", max_basis_rows=40,
    ),
    "incremental, batches": _batches(
        IncrementalKernelPCA, 35, n_components=5, kernel=Slow(0.05), max_basis_rows=80,
    ),
    "online, batches": _batches(
        OnlineKernelPCA, 35, n_components=5, kernel="rbf", gamma=0.05,
    ),
    "online": _other(
        OnlineKernelPCA, n_components=5, kernel="rbf", gamma=0.05
    ),
    "online, random": _other(
        OnlineKernelPCA, n_components=3, kernel="laplacian", gamma=0.05,
        rule=KHA(init="random"),
    ),
}  # fmt: skip


def digest(arrays):
    """Return the checksum of a result."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()
