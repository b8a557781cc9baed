"""Kim 2003, figures 2 and 3: faces of low resolution restored, a face being one vector."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ikpca.experiments.face_hyperresolution import FaceSplit, restore
from ikpca.experiments.parts import Findings, Part, Request
from ikpca.experiments.selections import Rows
from ikpca.kernels import Floats

__all__ = ["plan"]

_DRAWN = 5


def plan(request: Request) -> list[Part]:
    """One part per factor."""
    images, settings = np.asarray(request.inputs.arrays["images"]), request.settings
    return [
        Part(f"factor {factor}", partial(_restore, images, factor, settings, request.seed))
        for factor in settings["factors"]
    ]


def _restore(images: Floats, factor: int, settings: Mapping[str, Any], seed: int) -> Findings:
    split = FaceSplit.drawn(images, settings["tests"], seed)
    if settings["train"]:
        split = split.reduced(settings["train"])
    ranks = tuple(settings["ranks"])
    rows: Rows = []
    arrays = {f"factor {factor}/original": split.test[:_DRAWN]}
    for found in restore(split, factor, ranks, settings["few"]):
        family = "kernel" if found.name.startswith("KernelPCA") else found.name
        rows.append(
            {
                "factor": factor,
                "method": found.name,
                "family": family,
                "components": found.n_components,
                "sigma": found.sigma,
                "mse": found.error,
            }
        )
        if found.n_components in (None, max(ranks)):
            arrays[f"factor {factor}/{found.name}"] = found.images[:_DRAWN]
    return Findings({"errors": rows}, arrays)
