"""Error against time of the methods compared, from the record of benchmarks/scale.py."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

RECORDS = next(
    folder for folder in Path.cwd().parents if (folder / "benchmarks" / "records").exists()
)
record = json.loads((RECORDS / "benchmarks/records/scale.json").read_text(encoding="utf-8"))
# A logarithmic axis cannot show errors that rounding leaves at or below zero.
shown = [row for row in record["table"] if row["excess_error"] > 0]
points = {row["name"]: (row["seconds"], row["excess_error"]) for row in shown}


def is_close(one, other):
    """Return True if the names of two points would overlap."""
    across, along = np.abs(np.log(np.divide(points[one], points[other])))
    return across < np.log(3) and along < np.log(4)


figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
for number, (name, (seconds, error)) in enumerate(points.items()):
    ours = name.startswith("ikpca")
    axes.loglog(seconds, error, "o" if ours else "s", color="#0072B2" if ours else "#D55E00")
    near = [other for other in points if other != name and is_close(name, other)]
    # Left of its point if the name would run over the next one.
    left = any(points[other][0] > seconds for other in near)
    below = any(other in near for other in list(points)[:number])
    axes.annotate(
        name, (seconds, error), (-6 if left else 6, -12 if below else 3),
        textcoords="offset points", ha="right" if left else "left", fontsize=8,
    )  # fmt: skip
axes.margins(x=0.4, y=0.1)
axes.set(xlabel="Seconds", ylabel="Excess error  $E\\,/\\,E_{\\mathrm{min}} - 1$")
axes.grid(color="0.9", linewidth=0.8)
axes.spines[["top", "right"]].set_visible(False)
title = f"{record['data']}, {record['rows']:,} rows, {record['threads']} threads"
axes.set_title(title, loc="left", fontsize=10)
