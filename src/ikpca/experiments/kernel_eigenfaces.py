"""Chin and Suter 2006, table 2: recognition from all images against a subset."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.experiments.face_streams import KERNELS, mean_interval, recognise_streams
from ikpca.experiments.parts import Findings, Part, Request
from ikpca.experiments.selections import Rows, Tables
from ikpca.kernels import Floats

__all__ = ["plan", "summary"]


def plan(request: Request) -> list[Part]:
    """One part per kernel; all see the same splits."""
    settings, arrays = request.settings, request.inputs.arrays
    number = settings["rows"] or len(arrays["X"])
    order = np.random.default_rng(request.seed).permutation(len(arrays["X"]))[:number]
    X, y = arrays["X"][order], arrays["y"][order]
    return [Part(name, partial(_recognise, X, y, name, settings)) for name in settings["kernels"]]


def _recognise(X: Floats, y: NDArray[Any], name: str, settings: Mapping[str, Any]) -> Findings:
    found = next(
        recognise_streams(
            X, y, settings["subset"], settings["splits"], settings["components"],
            {name: KERNELS[name]}, batch_size=settings["batch"],
        )
    )  # fmt: skip
    rates = zip(found.batch, found.streamed, found.streamed_all, strict=True)
    rows: Rows = [
        {
            "kernel": name,
            "split": number,
            "batch": 100 * batch,
            "streamed": 100 * streamed,
            "streamed_all": 100 * streamed_all,
        }
        for number, (batch, streamed, streamed_all) in enumerate(rates)
    ]
    return Findings({"errors": rows})


def summary(tables: Tables) -> dict[str, Rows]:
    """Means over the splits in per cent, and paired differences in points."""
    rows: Rows = []
    for kernel in dict.fromkeys(row["kernel"] for row in tables["errors"]):
        chosen = [row for row in tables["errors"] if row["kernel"] == kernel]
        columns = ("batch", "streamed", "streamed_all")
        rates = {name: np.array([float(row[name] or 0) for row in chosen]) for name in columns}
        low, high = mean_interval(rates["streamed_all"] - rates["batch"])
        rows.append(
            {
                "kernel": kernel,
                **{name: float(values.mean()) for name, values in rates.items()},
                "same_subset": abs(float(np.mean(rates["streamed"] - rates["batch"]))),
                "gain_low": low,
                "gain_high": high,
            }
        )
    return {"summary": rows}
