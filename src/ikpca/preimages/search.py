"""From starts to pre-images that are never worse than the best basis row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ikpca.kernels import Floats, RadialKernel
from ikpca.preimages.descent import Rest
from ikpca.preimages.expansion import Expansion
from ikpca.preimages.preimage import Preimages

__all__ = ["Search", "constant_part", "search"]

#: Descends from starts (n, N), given the weights (n, m) of the points on the basis; the objective
#: is ‖P − Φ(z)‖² less what no z changes.
Search: TypeAlias = Callable[[Floats, Floats], Rest]


def search(
    expansion: Expansion, coordinates: Floats, starts: Floats | None, descend: Search
) -> Preimages:
    """Descend from the starts, a strip of points at a time.

    Where that ends higher than the nearest basis row, or nowhere, it is repeated from that row,
    which is also where points without a start begin. A point with no way on even from there (such
    as one at right angles to all basis rows) gets the row itself.
    """
    parts = []
    for strip in expansion.strips(len(coordinates)):
        own = None if starts is None else starts[strip]
        parts.append(_search_strip(expansion, coordinates[strip], own, descend))
    return Preimages.joined(parts)


def constant_part(expansion: Expansion) -> float:
    """k(z, z) where it is the same for all z.

    It stays out of the objective: beside it, small inner products would drown in rounding.
    """
    return 1.0 if isinstance(expansion.kernel, RadialKernel) else 0.0


def _search_strip(
    expansion: Expansion, coordinates: Floats, starts: Floats | None, descend: Search
) -> Preimages:
    nearest = expansion.nearest_rows(coordinates, 1)[:, 0]
    rows, weights = expansion.basis[nearest], expansion.weights(coordinates)
    products = np.einsum("iq,qi->i", coordinates, expansion.products[:, nearest])
    level = expansion.diagonal[nearest] - constant_part(expansion) - 2 * products
    found = descend(weights, rows if starts is None else starts)
    if starts is not None:
        worse = np.flatnonzero(~(found.objective <= level))
        if len(worse):
            _replace(found, worse, descend(weights[worse], rows[worse]))
    stuck = np.flatnonzero(~np.isfinite(found.objective))
    found.rows[stuck], found.objective[stuck] = rows[stuck], level[stuck]
    distances = expansion.squared_lengths(coordinates) + found.objective + constant_part(expansion)
    return Preimages(found.rows, np.maximum(distances, 0), found.iterations, found.converged)


def _replace(found: Rest, who: np.ndarray, other: Rest) -> None:
    """Take the other results where they are lower; the work of both counts."""
    found.iterations[who] += other.iterations
    lower = ~(found.objective[who] <= other.objective)
    who = who[lower]
    found.rows[who], found.objective[who] = other.rows[lower], other.objective[lower]
    found.converged[who] = other.converged[lower]
