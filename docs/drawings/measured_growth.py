"""Growth of time and memory with the rows, from the record of benchmarks/growth.py."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

RECORDS = next(
    folder for folder in Path.cwd().parents if (folder / "benchmarks" / "records").exists()
)
record = json.loads((RECORDS / "benchmarks/records/growth.json").read_text(encoding="utf-8"))
sizes = np.array([row["rows"] for row in record["table"]])
panels = {
    "Seconds per pass over K": [row["seconds_per_pass"] for row in record["table"]],
    "Peak memory above the data, MB": [row["peak_bytes"] / 1e6 for row in record["table"]],
}

figure, both = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for axes, (label, values) in zip(both, panels.items(), strict=True):
    slope, offset = np.polyfit(np.log(sizes), np.log(values), 1)
    axes.loglog(sizes, np.exp(offset) * sizes**slope, color="0.4", linestyle="dashed", linewidth=1)
    axes.loglog(sizes, values, "o", color="#0072B2")
    for size, value in zip(sizes, values, strict=True):
        axes.annotate(
            f"{value:.3g}", (size, value), (-3, 6), textcoords="offset points", ha="right",
            fontsize=8,
        )  # fmt: skip
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
    axes.set_yticks([])
    axes.minorticks_off()
    axes.margins(x=0.12, y=0.15)
    axes.set(xlabel="Rows $l$", ylabel=label)
    axes.text(0.05, 0.9, f"exponent {slope:.2f}", weight="bold", transform=axes.transAxes)
    axes.spines[["top", "right"]].set_visible(False)
title = f"{record['data']}, within {record['budget']}, {record['threads']} threads"
both[0].set_title(title, loc="left", fontsize=10)
