"""Kim 2003, appendix A: rows that are seen once, still, turning, and from bad starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ikpca.experiments.online import (
    SHAPES,
    Rotation,
    converge,
    starts_of_figures_6_and_7,
    track,
)
from ikpca.experiments.parts import Findings, Part, Request
from ikpca.experiments.selections import Rows

__all__ = ["plan"]


def plan(request: Request) -> list[Part]:
    """Convergence, starts, and one part per shape that turns."""
    settings = request.settings
    return [
        Part("convergence", partial(_converge, settings["sizes"], settings["components"])),
        Part("starts", partial(_starts, settings["start_rows"])),
        *(
            Part(
                f"turning {shape}",
                partial(_track, shape, settings["turning_rows"], settings["period"], request.seed),
            )
            for shape in SHAPES
        ),
    ]


def _converge(sizes: Sequence[int], n_components: int) -> Findings:
    rows: Rows = [
        {"kernel": found.kernel, "rows": found.n, "last": found.n == max(sizes),
         "held": found.held, "least_correlation": min(found.correlations)}
        for found in converge(tuple(sizes), n_components)
    ]  # fmt: skip
    return Findings({"convergence": rows})


def _starts(n_rows: int) -> Findings:
    rows: Rows = [
        {"start": found.start, "held": found.held, "correlation": found.correlations[0]}
        for found in starts_of_figures_6_and_7(n_rows)
    ]
    return Findings({"starts": rows})


def _track(shape: str, n_rows: int, period: float, seed: int) -> Findings:
    warm_up = n_rows // 3
    lags: Rows = []
    curves: Rows = []
    for found in track(Rotation(shape, n_rows, period, seed)):
        lags.append(
            {"shape": shape, "gain": found.name, "largest_angle": found.worst_after(warm_up)}
        )
        points = zip(found.times, found.angles, strict=True)
        curves += [{"shape": shape, "gain": found.name, "rows": int(time), "angle": float(angle)}
                   for time, angle in points]  # fmt: skip
    return Findings({"tracking": lags, "angles": curves})
