"""From starts to pre-images that are never worse than the best basis row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats
from ikpca.preimages.descent import Rest
from ikpca.preimages.expansion import Expansion
from ikpca.preimages.points import Points
from ikpca.preimages.preimage import Preimages

__all__ = ["Descend", "search"]

#: Descends from starts (n, N); the objective it returns is the height.
Descend: TypeAlias = Callable[[Points, Floats], Rest]


def search(
    expansion: Expansion, coordinates: Floats, starts: Floats | None, descend: Descend
) -> Preimages:
    """Descend from the starts, a strip of points at a time.

    Where that ends higher than the nearest basis row, or nowhere, it is repeated from that row,
    which is also where points without a start begin. A point with no way on even from there (such
    as one at right angles to all basis rows) gets the row itself.
    """
    parts = []
    for strip in expansion.strips(len(coordinates)):
        points = Points(expansion, coordinates[strip])
        parts.append(_search(points, None if starts is None else starts[strip], descend))
    return Preimages.joined(parts)


def _search(points: Points, starts: Floats | None, descend: Descend) -> Preimages:
    rows, heights = points.nearest_rows, points.nearest_heights
    found = descend(points, rows if starts is None else starts)
    if starts is not None:
        worse = np.flatnonzero(~(found.objective <= heights))
        if len(worse):
            _replace(found, worse, descend(points.part(worse), rows[worse]))
    stuck = np.flatnonzero(~np.isfinite(found.objective))
    found.rows[stuck], found.objective[stuck] = rows[stuck], heights[stuck]
    distances = points.squared_distances(found.objective)
    return Preimages(found.rows, distances, found.iterations, found.converged)


def _replace(found: Rest, who: NDArray[np.intp], other: Rest) -> None:
    """Take the other results where they are lower; the work of both counts."""
    found.iterations[who] += other.iterations
    lower = ~(found.objective[who] <= other.objective)
    who = who[lower]
    found.rows[who], found.objective[who] = other.rows[lower], other.objective[lower]
    found.converged[who] = other.converged[lower]
