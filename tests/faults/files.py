"""Damaged model files and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

import ikpca
from ikpca import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    NoveltyDetector,
    OnlineKernelPCA,
    compress,
)
from ikpca.solvers.adaptive import make_solver
from tests.faults.mutations import damaged, forged
from tests.sameness import same

#: How many of the files have a changed manifest with the right checksum.
_FORGED = 0.3
_ROWS = np.random.default_rng(0).normal(size=(12, 3))


@dataclass(frozen=True)
class StoredCase:
    """File, its content, and the function that reads it."""

    name: str
    path: Path
    load: Any
    content: bytes
    holds: Any

    @classmethod
    def of(cls, name, path, load):
        return cls(name, path, load, path.read_bytes(), load(path))

    def damage(self, rng):
        """Damaged copy, and the check of what can be read from it."""
        target = self.path.with_name("damaged")
        if rng.random() < _FORGED:
            target.write_bytes(forged(self.path, rng))
            return target, use_forged
        target.write_bytes(damaged(self.content, rng))
        return target, self._is_the_same

    def _is_the_same(self, result):
        same(result, self.holds)
        return "loaded, and the same"


def use_forged(result):
    """Numbers in a file may be arbitrary, but a loaded object must be usable."""
    try:
        for method in ("transform", "predict"):
            if hasattr(result, method):
                getattr(result, method)(_ROWS)
    except NotFittedError:
        return "loaded from a forged manifest, not fitted"
    except ValueError:
        # Ours, or scikit-learn's for another number of columns.
        return "loaded from a forged manifest, refuses the rows"
    return "loaded from a forged manifest"


def model_cases(folder):
    """Return small models of all classes."""
    return [
        StoredCase.of("model", _saved(model, folder, number), ikpca.load)
        for number, model in enumerate(_models())
    ]


def _models():
    X = _ROWS
    rbf = KernelPCA(2, kernel="rbf", gamma=0.5).fit(X)
    return [
        rbf,
        KernelPCA(2, kernel="poly", eigen_solver="kha-smd", random_state=0, max_iter=2).fit(X),
        KernelPCA(2, kernel="cosine").fit(sparse.csr_array(X)),
        HebbianPCA(2, random_state=np.random.RandomState(0), max_iter=2).fit(X),
        IncrementalKernelPCA(2, kernel="rbf", max_basis_rows=8).fit(X),
        OnlineKernelPCA(2, kernel="laplacian", random_state=0).fit(X),
        compress(rbf, 5),
        NoveltyDetector(2, false_alarm_rate=0.2, random_state=0).fit(X),
        NoveltyDetector(2, false_alarm_rate=0.2, random_state=0).fit(X).partial_fit(X[:4] + 1),
        KernelSpectralClustering(2, random_state=0).fit(X),
    ]


def _saved(model, folder, number):
    path = Path(folder, f"{number}.model")
    model.save(path)
    return path


def checkpoint_cases(folder):
    """Return a checkpoint of every solver."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    cases = []
    for number, model in enumerate(_checkpointed()):
        path = Path(folder, f"{number}.checkpoint")
        model.set_params(checkpoint=path).fit(X)
        cases.append(StoredCase.of("checkpoint", path, partial(load_checkpoint, model, X)))
    return cases


def _checkpointed():
    return [
        KernelPCA(2, kernel="rbf", eigen_solver="kha-smd", random_state=0, max_iter=2),
        KernelPCA(2, kernel="rbf", eigen_solver="krylov", random_state=0, max_iter=2),
    ]


def load_checkpoint(model, X, path):
    """Read a checkpoint as a resumed fit does."""
    model.set_params(checkpoint=path)
    file = model._open_checkpoint(make_solver(model.eigen_solver), X, None)
    return file.seed, file.saved


def stored_cases(folder):
    """Models and checkpoints."""
    return model_cases(folder) + checkpoint_cases(folder)
