"""Kim 2003, figure 5: photographs shrunk by four and enlarged again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ikpca.experiments.hyperresolution import Contestants, Enlarged, centre, sigma_of
from ikpca.experiments.parts import Findings, Part, Request
from ikpca.experiments.selections import Rows
from ikpca.kernels import Floats

__all__ = ["plan"]

_DRAWN = 2


def plan(request: Request) -> list[Part]:
    """All in one: training takes longer than everything after it."""
    photos = {name: np.asarray(image) for name, image in request.inputs.arrays.items()}
    return [Part("photographs", partial(_enlarge, photos, request.settings, request.seed))]


def _enlarge(photos: dict[str, Floats], settings: Mapping[str, Any], seed: int) -> Findings:
    train = [image for name, image in photos.items() if name.startswith("train/")]
    tests = {name.removeprefix("test/"): image for name, image in photos.items()
             if name.startswith("test/")}  # fmt: skip
    factor = settings["factor"]
    contestants = Contestants.trained(
        train,
        factor,
        n_patches=settings["patches"],
        n_components=settings["components"],
        eigen_solver="krylov",
        random_state=seed,
    )
    rows: Rows = []
    arrays: dict[str, Floats] = {}
    for number, (name, photo) in enumerate(tests.items()):
        sharp = centre(photo, (settings["height"], settings["width"]), factor)
        found = contestants.enlarge(name, sharp)
        rows += [{"image": name, "method": method, "snr": ratio}
                 for method, ratio in found.ratios.items()]  # fmt: skip
        if number < _DRAWN:
            arrays |= _pictures(found)
    widths: Rows = [{"width": "chosen on training images", "sigma": sigma_of(contestants.chosen)}]
    return Findings({"ratios": rows, "widths": widths, "margins": _margins(rows)}, arrays)


def _pictures(found: Enlarged) -> dict[str, Floats]:
    images = {"original": found.sharp, "low resolution": found.low, **found.images}
    return {f"{found.name}/{method}": image for method, image in images.items()}


def _margins(rows: Rows) -> Rows:
    """Per image, by how many decibels overlapping windows beat what they are compared with."""
    by_image: dict[str, dict[str, float]] = {}
    for row in rows:
        by_image.setdefault(str(row["image"]), {})[str(row["method"])] = float(row["snr"] or 0)
    return [
        {"image": image, "against": method, "decibels": ratios["overlapping"] - ratio}
        for image, ratios in by_image.items()
        for method, ratio in ratios.items()
        if method != "overlapping"
    ]
