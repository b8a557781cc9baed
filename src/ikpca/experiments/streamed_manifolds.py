"""Chin and Suter 2006, figures 3 and 4: projections of batch and stream side by side."""

from __future__ import annotations

from functools import partial

import numpy as np

from ikpca.experiments.manifold_rows import swiss_roll
from ikpca.experiments.manifolds import ROLL, VIDEO, Manifold, compare
from ikpca.experiments.parts import Findings, Part, Request
from ikpca.experiments.selections import Rows
from ikpca.kernels import Floats

__all__ = ["plan"]

#: Half of the few teapots, a quarter of the faces.
_LIBRARIES = {"Teapot": 50, "Frey faces": 500}


def plan(request: Request) -> list[Part]:
    """The Swiss roll, and every video there is."""
    settings = request.settings
    r = settings["components"]
    shape = (settings["rows"], settings["library"], r, request.seed)
    videos = request.inputs.arrays.items()
    return [
        Part("Swiss roll", partial(_roll, *shape)),
        *(Part(name, partial(_video, name, np.asarray(rows), r)) for name, rows in videos),
    ]


def _roll(n_rows: int, library: int, n_components: int, seed: int) -> Findings:
    X, along = swiss_roll(n_rows, seed)
    return _findings(compare("Swiss roll", X, along, n_components, library_size=library, **ROLL))


def _video(name: str, X: Floats, n_components: int) -> Findings:
    time = np.linspace(0, 1, len(X))
    library = min(_LIBRARIES[name], len(X))
    return _findings(compare(name, X, time, n_components, library_size=library, **VIDEO))


def _findings(found: Manifold) -> Findings:
    apart = set(found.separated.tolist())
    rows: Rows = [
        {
            "data": found.name,
            "component": number + 1,
            "separated": number in apart,
            "correlation": float(correlation),
            "angle": float(found.angles(number + 1)[0]),
            "eigenvalue": float(found.eigenvalues[number]),
            "streamed_eigenvalue": float(found.streamed_eigenvalues[number]),
        }
        for number, correlation in enumerate(found.correlations)
    ]
    arrays = {"place": found.place, "batch": found.batch, "streamed": found.streamed}
    return Findings({"correlations": rows}, arrays)
