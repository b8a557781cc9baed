"""Kim 2003, figure 1: contour lines of three components of a noisy parabola."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ikpca import KernelPCA
from ikpca_papers.claims import Rows
from ikpca_papers.data.synthetic import parabola
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.metrics import surfaces


def plan(request: Request) -> list[Part]:
    """Plan a single part."""
    settings = request.settings
    task = partial(_compare, settings["rows"], settings["passes"], request.seed)
    return [Part("contours", task)]


def _compare(n_rows: int, passes: int, seed: int) -> Findings:
    X = parabola(n_rows, random_state=seed)
    shared: dict[str, Any] = {
        "kernel": "poly",
        "degree": 2,
        "gamma": 1.0,
        "coef0": 0.0,
        "random_state": seed,
    }
    models = {
        "KPCA": KernelPCA(3, eigen_solver="dense", **shared).fit(X),
        "KHA": KernelPCA(3, eigen_solver="kha", max_iter=passes, **shared).fit(X),
    }
    arrays = surfaces(X, models, 3)
    exact, found = (arrays[name].reshape(-1, 3).T for name in models)
    rows: Rows = [
        {"component": number, "correlation": float(np.corrcoef(one, other)[0, 1])}
        for number, (one, other) in enumerate(zip(exact, found, strict=True), start=1)
    ]
    return Findings({"correlations": rows}, arrays)
