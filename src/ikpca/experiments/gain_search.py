"""The papers' way to choose a gain: a local search over {1, 2, 5}·10^b."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["grid_gain", "search_gain"]

_MANTISSAS = (1, 2, 5)
#: A step must lower the error by a thousandth, or a gain that does nothing is divided for ever.
_PAYS = 0.999


def grid_gain(index: int) -> float:
    """The gains in order: …, 0.5, 1, 2, 5, 10, … with 1 at index 0.

    Examples
    --------
    >>> [grid_gain(index) for index in (-4, -1, 0, 1, 3)]
    [0.05, 0.5, 1.0, 2.0, 10.0]
    """
    power, mantissa = divmod(index, 3)
    return float(f"{_MANTISSAS[mantissa]}e{power}")


def search_gain(error: Callable[[float], float], start: int = 0) -> tuple[float, float]:
    """Walk on the grid from ``start`` while the error falls, up then down.

    A second step is tried where the first fails, so that one unlucky seed does not end the walk.

    Parameters
    ----------
    error : callable
        The error that a gain leads to.
    start : int
        Index on the grid.

    Returns
    -------
    gain, error : float
        The best found.
    """
    known: dict[int, float] = {}

    def at(index: int) -> float:
        if index not in known:
            known[index] = error(grid_gain(index))
        return known[index]

    best = start
    for direction in (1, -1):
        best = _walk(at, best, direction)
    return grid_gain(best), at(best)


def _walk(at: Callable[[int], float], best: int, direction: int) -> int:
    while True:
        goal = _PAYS * at(best)
        better = [best + direction * step for step in (1, 2) if at(best + direction * step) < goal]
        if not better:
            return best
        best = min(better, key=at)
