"""Chin and Suter 2006, figures 3 and 4: Swiss roll, teapot and Frey faces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.kernels import Floats
from ikpca_papers.chin2006.parabola import frey_faces, teapot
from ikpca_papers.claims import Rows
from ikpca_papers.data.synthetic import perforated_swiss_roll
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.metrics import (
    align_signs,
    captured_variance,
    correlations,
    feature_angles,
    overlaps,
    separated,
)

ROLL: dict[str, Any] = {"kernel": "rbf", "gamma": 0.5}
#: Number of batch eigenvalues in the figure.
_SPECTRUM = 60
#: Settings of the stream, for the table.
VARIANTS: dict[str, dict[str, Any]] = {
    "chosen samples": {},
    "pre-images": {"reduction": "preimages"},
    "all rows kept": {"reduction": None},
    "no oversampling": {"n_oversamples": 0},
}
VIDEO: dict[str, Any] = {"kernel": "poly", "degree": 2}
#: Basis rows: half of the teapots, a quarter of the faces.
_LIBRARIES = {"Teapot": 50, "Frey faces": 500}


@dataclass(frozen=True, eq=False)
class Manifold:
    """Comparison of batch and streamed components on one data set.

    Parameters
    ----------
    name : str
    place : ndarray of shape (l,)
        Position of a row on the manifold, for colors.
    batch, streamed : ndarray of shape (l, r)
        Projections; the streamed ones have the signs of batch.
    eigenvalues, streamed_eigenvalues : ndarray
        Of the centered kernel matrix; batch has more of them than components.
    inner : ndarray of shape (r, r)
        ⟨u_i, v_j⟩.
    library_rows : int
    """

    name: str
    place: Floats
    batch: Floats
    streamed: Floats
    eigenvalues: Floats
    streamed_eigenvalues: Floats
    inner: Floats
    library_rows: int

    @property
    def correlations(self) -> Floats:
        """Absolute correlations of streamed and batch components."""
        return correlations(self.batch, self.streamed)

    @property
    def separated(self) -> NDArray[np.intp]:
        """Indices of components that are separated from their neighbors."""
        found = separated(self.eigenvalues, len(self.place))
        return found[found < self.inner.shape[1]]

    def angles(self, leading: int) -> Floats:
        """Return the angles between the leading components in degrees, largest first."""
        return feature_angles(self.inner[:leading, :leading])

    def row(self, leading: Sequence[int]) -> dict[str, Any]:
        """Return a table row: the largest angle for each number of leading components."""
        return {
            "data": self.name,
            "rows": len(self.place),
            "library": self.library_rows,
            "components": self.inner.shape[1],
            **{f"angle_{number}": float(self.angles(number)[0]) for number in leading},
            "angle_all": float(self.angles(self.inner.shape[1])[0]),
            "captured": captured_variance(self.streamed) / captured_variance(self.batch),
        }


def compare(
    name: str, X: Floats, place: Floats, n_components: int, batch_size: int = 30, **settings: Any
) -> Manifold:
    """Fit batch and stream on the same rows, the stream in the given order.

    ``settings`` are those of the stream; batch uses the kernel of them.
    """
    kernel = {key: settings[key] for key in ("kernel", "gamma", "degree") if key in settings}
    batch = KernelPCA(_SPECTRUM, eigen_solver="dense", n_jobs=1, **kernel).fit(X)
    streamed = IncrementalKernelPCA(n_components, batch_size=batch_size, **settings).fit(X)
    Y, mine = batch.transform(X), streamed.transform(X)
    return Manifold(
        name,
        place,
        Y[:, :n_components],
        align_signs(mine, Y[:, :n_components]),
        batch.eigenvalues_,
        streamed.eigenvalues_,
        overlaps(batch, mine)[:n_components],
        len(streamed.basis_),
    )


def roll(n_components: int = 10, max_basis_rows: int = 200, **settings: Any) -> Manifold:
    """Compare on the perforated Swiss roll: 800 rows in random order, a quarter as basis."""
    X, along, _ = perforated_swiss_roll()
    settings = {**ROLL, **settings, "max_basis_rows": max_basis_rows}
    return compare("Swiss roll", X, along, n_components, **settings)


def real_manifolds(folder: Path, n_components: int = 10, **settings: Any) -> list[Manifold]:
    """Compare on teapot and faces in the order of their videos: streams that drift."""
    videos = {"Teapot": teapot(folder), "Frey faces": frey_faces(folder)}
    return [
        compare(name, X, np.linspace(0, 1, len(X)), n_components,
                **{**VIDEO, "max_basis_rows": _LIBRARIES[name], **settings})
        for name, X in videos.items()
    ]  # fmt: skip


def plan(request: Request) -> list[Part]:
    """Plan the Swiss roll, and every video."""
    settings = request.settings
    r = settings["components"]
    shape = (settings["rows"], settings["library"], r, request.seed)
    videos = request.inputs.arrays.items()
    return [
        Part("Swiss roll", partial(_roll, *shape)),
        *(Part(name, partial(_video, name, np.asarray(rows), r)) for name, rows in videos),
    ]


def _roll(n_rows: int, library: int, n_components: int, seed: int) -> Findings:
    X, along, _ = perforated_swiss_roll(n_rows, random_state=seed)
    return _findings(compare("Swiss roll", X, along, n_components, max_basis_rows=library, **ROLL))


def _video(name: str, X: Floats, n_components: int) -> Findings:
    time = np.linspace(0, 1, len(X))
    library = min(_LIBRARIES[name], len(X))
    return _findings(compare(name, X, time, n_components, max_basis_rows=library, **VIDEO))


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
