"""Chin and Suter 2006, figures 1 and 2 and table 1: a stream in linear time, and what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from ikpca.estimators import IncrementalKernelPCA, KernelPCA
from ikpca.experiments import ablation
from ikpca.experiments.durations import durations
from ikpca.experiments.growth import exponent
from ikpca.experiments.manifold_rows import PARABOLA_GAMMA, rising_parabola
from ikpca.experiments.parts import Findings, Part, Request
from ikpca.experiments.plane import surfaces
from ikpca.experiments.reduced_sets import compare_schemes
from ikpca.experiments.selections import Rows, Tables
from ikpca.experiments.stream_growth import stream_costs

__all__ = ["plan", "summary"]

_SETTINGS: dict[str, Any] = {"n_components": 3, "kernel": "rbf", "gamma": PARABOLA_GAMMA}
_WHOLE = "incremental, whole stream"


def plan(request: Request) -> list[Part]:
    """Table 1, then longer streams, then what the update is made of."""
    settings = request.settings
    variants = [*ablation.JOINT, *(ablation.PAPER if settings["paper_schemes"] else [])]
    return [
        Part("table 1", partial(_durations, settings["rows"], settings["repeats"])),
        Part("streams", partial(_streams, settings["stream_rows"])),
        Part("contours", partial(_contours, settings["contour_rows"])),
        Part("ablation", partial(_ablation, variants, settings["ablation_rows"])),
        *([Part("schemes", _schemes)] if settings["paper_schemes"] else []),
    ]


def _durations(sizes: Sequence[int], repeats: int) -> Findings:
    rows: Rows = [
        {"method": found.method, "rows": size, "seconds": seconds}
        for found in durations(sizes, repeats=repeats)
        for size, seconds in zip(found.rows, found.seconds, strict=True)
    ]
    return Findings({"durations": rows})


def _streams(sizes: Sequence[int]) -> Findings:
    rows: Rows = [
        {
            "rows": cost.rows,
            "seconds": cost.seconds,
            "held_bytes": cost.held_bytes[-1],
            "least_correlation": min(cost.correlations),
        }
        for cost in stream_costs(rising_parabola, sizes, _SETTINGS)
    ]
    return Findings({"streams": rows})


def _contours(n_rows: int) -> Findings:
    X = rising_parabola(n_rows)
    models = {
        "batch": KernelPCA(eigen_solver="dense", **_SETTINGS).fit(X),
        "incremental": IncrementalKernelPCA(**_SETTINGS).fit(X),
    }
    return Findings({}, surfaces(X, models, 3))


def _ablation(variants: Sequence[ablation.Variant], n_rows: int) -> Findings:
    rows: Rows = [
        {
            "library": course.library,
            "left_out": course.left_out,
            "rows": course.rows[-1],
            "angle": course.angles[-1],
            "error": course.errors[-1],
            "defect": course.defects[-1],
        }
        for course in ablation.courses(variants, n_rows)
    ]
    return Findings({"ablation": rows})


def _schemes() -> Findings:
    return Findings({"schemes": [asdict(row) for row in compare_schemes(sizes=(2, 8))]})


def summary(tables: Tables) -> dict[str, Rows]:
    """With which power of the rows every method's time grows."""
    series: dict[str, list[tuple[int, float]]] = {}
    named = [{**row, "method": _WHOLE} for row in tables["streams"]]
    for row in [*tables["durations"], *named]:
        point = (int(row["rows"] or 0), float(row["seconds"] or 0))
        series.setdefault(str(row["method"]), []).append(point)
    return {
        "exponents": [
            {"method": name, "exponent": exponent([x for x, _ in points], [y for _, y in points])}
            for name, points in series.items()
        ]
    }
