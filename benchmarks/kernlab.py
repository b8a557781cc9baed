"""``kha`` of R's package kernlab, where both are installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ikpca.kernels import Floats

# A tiny eta, or kha stops with an error; its time does not depend on it.
_SCRIPT = """
suppressMessages(library(kernlab))
X <- as.matrix(read.csv("{rows}", header = FALSE))
spent <- system.time(
  fit <- kha(X, kernel = "rbfdot", kpar = list(sigma = {gamma}),
             features = {features}, eta = 1e-6, maxiter = {passes}))
write.table(predict(fit, X), "{found}", sep = ",", row.names = FALSE, col.names = FALSE)
cat(spent[["elapsed"]])
"""


@dataclass(frozen=True)
class KernlabFit:
    """Seconds of the fit alone, peak memory of the whole R process, projections (r, l)."""

    seconds: float
    peak_bytes: int | None
    projections: Floats


@cache
def has_kernlab() -> bool:
    """Whether Rscript finds the package."""
    if shutil.which("Rscript") is None:
        return False
    asked = subprocess.run(
        ["Rscript", "-e", "library(kernlab)"], capture_output=True, text=True, check=False
    )
    return asked.returncode == 0


def kernlab_kha(X: Floats, gamma: float, n_components: int, passes: int) -> KernlabFit:
    """Run it on the rows."""
    with tempfile.TemporaryDirectory() as folder:
        rows, found, script = (Path(folder, name) for name in ("rows.csv", "found.csv", "kha.R"))
        np.savetxt(rows, X, delimiter=",")
        script.write_text(
            _SCRIPT.format(
                rows=rows, found=found, gamma=gamma, features=n_components, passes=passes
            )
        )
        done = subprocess.run(["Rscript", script], capture_output=True, text=True, check=True)
        projections = np.loadtxt(found, delimiter=",", ndmin=2).T
    return KernlabFit(float(done.stdout), _children_peak(), projections)


def _children_peak() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
