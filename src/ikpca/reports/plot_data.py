"""Curves for the interactive plots, as JSON that may stand inside a page."""

from __future__ import annotations

import json
from typing import Any

from ikpca.experiments.results_folder import Results
from ikpca.experiments.specification import Curves
from ikpca.figures.averages import averaged, axis_words, panels

__all__ = ["embedded_json", "plot_data"]


def plot_data(results: Results, curves: Curves) -> dict[str, Any]:
    """Panels of series; the means over repetitions, in passes and in seconds."""
    parts = panels(results.tables[curves.table], curves.panel)
    found = []
    for name, rows in parts.items():
        values = averaged(rows, curves.x, curves.y, curves.series)
        times = averaged(rows, curves.x, curves.seconds, curves.series) if curves.seconds else {}
        series = [
            {
                "name": method,
                "passes": [place for place, _ in points],
                "seconds": [seconds for _, seconds in times.get(method, [])],
                "values": [value for _, value in points],
            }
            for method, points in values.items()
        ]
        found.append({"name": name, "series": series})
    words = {"label": curves.label, "axis": axis_words(curves.x), "unit": curves.x}
    return {**words, "panels": found}


def embedded_json(value: Any) -> str:
    r"""JSON that cannot end the script element around it.

    Examples
    --------
    >>> print(embedded_json({"name": "</script>"}))
    {"name": "\u003c/script>"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")
