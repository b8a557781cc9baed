"""``import ikpca`` brings in nothing that is not needed yet."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["numba", "matplotlib", "typer", "rich", "dask", "pandas"]


def loaded_after(code):
    """Modules in a fresh interpreter after some code."""
    script = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in finished.stdout.split()}


@pytest.fixture(scope="module")
def loaded():
    return loaded_after("import ikpca")


@pytest.mark.parametrize("name", HEAVY)
def test_import_leaves_out(loaded, name):
    assert name not in loaded


def test_import_brings_what_it_needs(loaded):
    assert {"ikpca", "numpy", "scipy", "sklearn"} <= loaded


def test_the_dense_solver_needs_no_compiler():
    fit = "import ikpca; ikpca.KernelPCA(1).fit([[0.0, 1.0], [1.0, 3.0], [2.0, 1.0]])"
    assert "numba" not in loaded_after(fit)
    iterative = fit.replace("(1)", "(1, eigen_solver='kha/et', max_iter=1)")
    assert "numba" in loaded_after(iterative)
