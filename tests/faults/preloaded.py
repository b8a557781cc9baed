"""Imports of the server of child processes."""

from __future__ import annotations

import numpy as np
import safetensors.numpy  # noqa: F401

import ikpca.cli.files
import ikpca.model_files
import ikpca.solvers.kha_pass
import ikpca.streams.online_sweep  # noqa: F401
from ikpca import HebbianPCA, KernelPCA, OnlineKernelPCA
from tests.faults import calls, files, jobs, texts  # noqa: F401

# Compiled code is read from its cache, or made, before the first child needs it.
_rows = np.random.default_rng(0).normal(size=(20, 3))
for _model in (
    *(KernelPCA(2, eigen_solver=name, max_iter=1) for name in ("kha", "kha-smd")),
    HebbianPCA(2, max_iter=1),
    OnlineKernelPCA(2, kernel="rbf", random_state=0),
):
    _model.fit(_rows)
