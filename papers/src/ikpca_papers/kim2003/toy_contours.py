"""Kim 2003, figure 1: contour lines of three components of a noisy parabola."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ikpca import KernelPCA
from ikpca.kernels import Floats, Polynomial
from ikpca_papers.claims import Rows
from ikpca_papers.data.synthetic import parabola
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.kim2003.gains import kha_model, tune_gain
from ikpca_papers.metrics import surfaces

_KERNEL: dict[str, Any] = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0}


def plan(request: Request) -> list[Part]:
    """Plan a single part."""
    settings = request.settings
    task = partial(_compare, settings["rows"], settings["passes"], request.seed)
    return [Part("contours", task)]


def _compare(n_rows: int, passes: int, seed: int) -> Findings:
    X = parabola(n_rows, random_state=seed)
    gain, gains = tune_gain(Polynomial(2, 1.0, 0.0), X, 3, passes, seed)
    rows, arrays = compare_contours(X, passes, gain, seed)
    return Findings({"correlations": rows, "gains": gains}, arrays)


def compare_contours(
    X: Floats, passes: int, gain: float, seed: int
) -> tuple[Rows, dict[str, Floats]]:
    """Correlate the contours of KHA, as printed, with those of an eigendecomposition."""
    models = {
        "KPCA": KernelPCA(3, eigen_solver="dense", **_KERNEL).fit(X),
        "KHA": kha_model(3, len(X), passes, gain, seed, **_KERNEL).fit(X),
    }
    arrays = surfaces(X, models, 3)
    exact, actual = (arrays[name].reshape(-1, 3).T for name in models)
    rows: Rows = [
        {"component": number, "correlation": float(np.corrcoef(one, other)[0, 1])}
        for number, (one, other) in enumerate(zip(exact, actual, strict=True), start=1)
    ]
    return rows, arrays
