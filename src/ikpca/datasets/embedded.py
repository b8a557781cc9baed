"""Data that come with the installed packages or from formulas, as named arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ikpca.datasets.curves import drifting_parabola, parabola, perforated_swiss_roll
from ikpca.datasets.dataset import Arrays
from ikpca.datasets.faces import synthetic_faces
from ikpca.datasets.photographs import (
    PHOTOGRAPHS,
    photograph,
    photograph_patches,
    square_photograph,
)
from ikpca.datasets.recorded import motion_arrays
from ikpca.datasets.walker import synthetic_walker

__all__ = ["MAKERS"]


def _digits() -> Arrays:
    from sklearn.datasets import load_digits

    found = load_digits()
    # Powers of two: the division is exact, so the checksum is the same everywhere.
    return {"X": found.data / 16, "y": found.target.astype(np.uint8)}


#: By name in the registry.
MAKERS: dict[str, Callable[[], Arrays]] = {
    "digits": _digits,
    "photographs": lambda: {name: photograph(name) for name in PHOTOGRAPHS},
    "flower_256": lambda: {"image": square_photograph("flower", 256)},
    "china_patches": lambda: {"X": photograph_patches("china", 40_000)},
    "parabola": lambda: {"X": parabola()},
    "drifting_parabola": lambda: drifting_parabola()._asdict(),
    "perforated_swiss_roll": lambda: perforated_swiss_roll()._asdict(),
    "walker": lambda: motion_arrays(synthetic_walker()),
    "synthetic_faces": lambda: synthetic_faces()._asdict(),
}
