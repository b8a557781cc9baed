"""Chin and Suter 2006, figures 3 and 4: Swiss roll, teapot and Frey faces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca import KernelPCA
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel
from ikpca_papers.as_printed import (
    POLYNOMIAL,
    PREIMAGES_PER_VECTOR,
    RBF,
    PaperIncrementalPCA,
    SelectedRowsPCA,
)
from ikpca_papers.chin2006.parabola import frey_faces, teapot
from ikpca_papers.claims import Cell, Rows
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

#: Number of batch eigenvalues in the figure.
_SPECTRUM = 60
#: Basis rows of our reduction: half of the teapots, a quarter of the faces.
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
        separate = separated(self.eigenvalues, len(self.place))
        return separate[separate < self.inner.shape[1]]

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
    name: str, X: Floats, place: Floats, n_components: int, kernel: Kernel,
    stream: PaperIncrementalPCA,
) -> Manifold:  # fmt: skip
    """Fit batch and stream on the same rows, the stream in the given order."""
    batch = KernelPCA(_SPECTRUM, eigen_solver="dense", n_jobs=1, kernel=kernel).fit(X)
    streamed = stream.fit(X)
    Y, mine = batch.transform(X), streamed.transform(X)[:, :n_components]
    return Manifold(
        name,
        place,
        Y[:, :n_components],
        align_signs(mine, Y[:, :n_components]),
        batch.eigenvalues_,
        streamed.eigenvalues_[:n_components],
        overlaps(batch, mine)[:n_components],
        len(streamed.basis_),
    )


def roll(n_components: int = 10, **settings: Any) -> Manifold:
    """Compare on the perforated Swiss roll: 800 rows in random order, a quarter as basis."""
    X, along, _ = perforated_swiss_roll()
    stream = SelectedRowsPCA(RBF, n_components, **{"max_rows": 200} | settings)
    return compare("Swiss roll", X, along, n_components, RBF, stream)


def real_manifolds(folder: Path, n_components: int = 10, **settings: Any) -> list[Manifold]:
    """Compare on teapot and faces in the order of their videos: streams that drift."""
    videos = {"Teapot": teapot(folder), "Frey faces": frey_faces(folder)}
    return [
        compare(name, X, np.linspace(0, 1, len(X)), n_components, POLYNOMIAL,
                SelectedRowsPCA(POLYNOMIAL, n_components,
                                **{"max_rows": _LIBRARIES[name]} | settings))
        for name, X in videos.items()
    ]  # fmt: skip


def plan(request: Request) -> list[Part]:
    """Plan the Swiss roll and every video, with the paper's scheme and ours."""
    settings = request.settings
    X, along, _ = perforated_swiss_roll(settings["rows"], random_state=request.seed)
    sets: list[tuple[str, Kernel, Floats, Floats, int]] = [
        ("Swiss roll", RBF, X, along, settings["library"])
    ]
    for name, frames in request.inputs.arrays.items():
        rows = np.asarray(frames)
        library = min(_LIBRARIES[name], len(rows))
        sets.append((name, POLYNOMIAL, rows, np.linspace(0, 1, len(rows)), library))
    r, kept, n = settings["components"], settings["kept_components"], PREIMAGES_PER_VECTOR
    return [
        *(Part(name, partial(_paper, name, kernel, rows, place, r, kept, n))
          for name, kernel, rows, place, _ in sets),
        *(Part(f"{name}, n = {more}", partial(_paper, name, kernel, rows, place, r, kept, more))
          for name, kernel, rows, place, _ in sets
          for more in settings["other_n"].get(name, [])),
        *(Part(f"{name}, selected rows", partial(_ours, name, kernel, rows, place, r, library))
          for name, kernel, rows, place, library in sets),
    ]  # fmt: skip


def _paper(
    name: str, kernel: Kernel, X: Floats, place: Floats, r: int, kept: int, n: int
) -> Findings:
    stream = PaperIncrementalPCA(kernel, kept, n)
    comparison = compare(name, X, place, r, kernel, stream)
    shared: dict[str, Cell] = {"n": n, "library": comparison.library_rows}
    tables: dict[str, Rows] = {"correlations": [{**shared, **row} for row in _rows(comparison)]}
    if n != PREIMAGES_PER_VECTOR:
        return Findings(tables)
    arrays = {"place": comparison.place, "batch": comparison.batch, "streamed": comparison.streamed}
    return Findings({**tables, "spectra": [_spectrum(name, kernel, X)]}, arrays)


def _ours(name: str, kernel: Kernel, X: Floats, place: Floats, r: int, library: int) -> Findings:
    stream = SelectedRowsPCA(kernel, r, library)
    return Findings({"selected_rows": _rows(compare(name, X, place, r, kernel, stream))})


def _spectrum(name: str, kernel: Kernel, X: Floats) -> dict[str, Cell]:
    """Count the components with 99 % of the variance (figure 3d)."""
    K = cross_gram(kernel, X, X)
    means = K.mean(axis=0)
    values = np.linalg.eigvalsh(K - means - means[:, None] + means.mean())[::-1]
    shares = np.cumsum(values) / values.sum()
    return {
        "data": name,
        "rows": len(X),
        "first_ten": float(shares[9]),
        "for_99_percent": int(np.searchsorted(shares, 0.99)) + 1,
    }


def _rows(manifold: Manifold) -> Rows:
    apart = set(manifold.separated.tolist())
    return [
        {
            "data": manifold.name,
            "component": number + 1,
            "separated": number in apart,
            "correlation": float(correlation),
            "angle": float(manifold.angles(number + 1)[0]),
            "eigenvalue": float(manifold.eigenvalues[number]),
            "streamed_eigenvalue": float(manifold.streamed_eigenvalues[number]),
        }
        for number, correlation in enumerate(manifold.correlations)
    ]
