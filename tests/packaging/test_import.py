"""``import ikpca`` brings in nothing that is not needed yet."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"numba", "matplotlib", "typer", "rich", "dask", "pandas"}


def loaded_after(code):
    """Packages in a fresh interpreter after some code."""
    script = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in finished.stdout.split()}


def test_import_adds_little():
    """On top of scikit-learn, which loads rich and pandas where it finds them."""
    added = loaded_after("import ikpca") - loaded_after("import sklearn.decomposition")
    assert "ikpca" in added
    assert not added & HEAVY
    assert len(added) < 20


def test_the_compiler_is_loaded_with_the_first_pass():
    fit = "import ikpca; ikpca.KernelPCA(1).fit([[0.0, 1.0], [1.0, 3.0], [2.0, 1.0]])"
    assert "numba" not in loaded_after(fit)
    iterative = fit.replace("(1)", "(1, eigen_solver='kha/et', max_iter=1)")
    assert "numba" in loaded_after(iterative)
