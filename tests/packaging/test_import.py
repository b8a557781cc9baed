"""``import ikpca`` imports no package that is not needed yet."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"numba", "matplotlib", "typer", "rich", "dask", "pandas"}


def loaded_after(code):
    """Return the packages that a new interpreter has imported after some code."""
    script = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in finished.stdout.split()}


def test_import_loads_few_packages():
    """Except those of scikit-learn, which imports rich and pandas if they are installed."""
    added = loaded_after("import ikpca") - loaded_after("import sklearn.decomposition")
    assert "ikpca" in added
    assert not added & HEAVY
    assert len(added) < 20


def test_numba_is_loaded_in_the_first_pass():
    fit = "import ikpca; ikpca.KernelPCA(1).fit([[0.0, 1.0], [1.0, 3.0], [2.0, 1.0]])"
    assert "numba" not in loaded_after(fit)
    iterative = fit.replace("(1)", "(1, eigen_solver='kha/et', max_iter=1)")
    assert "numba" in loaded_after(iterative)
