"""Error against time and memory of the methods compared, from the records of frontier.py."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

RECORDS = next(
    folder for folder in Path.cwd().parents if (folder / "benchmarks" / "records").exists()
)
#: Families: the beginning of the names, color and marker. Points of a family are joined.
FAMILIES = {
    "ikpca, tol": ("#0072B2", "o"),
    "Nystroem": ("#D55E00", "s"),
    "RBFSampler": ("#CC79A7", "^"),
    "scikit-learn arpack": ("#009E73", "D"),
    "scikit-learn randomized": ("#E69F00", "v"),
}
COLUMNS = {"seconds": "Seconds of the first fit", "peak_bytes": "Peak memory above the data, MB"}


def points(table, family, column):
    """Return values and errors of a family, without runs at a set budget."""
    rows = [row for row in table if row["name"].startswith(family) and "MB" not in row["name"]]
    errors = [row[error] for row in rows]
    values = [row[column] / (1e6 if column == "peak_bytes" else 1) for row in rows]
    # A logarithmic axis cannot show errors that rounding leaves at or below zero.
    return [(value, max(error, 1e-12)) for value, error in zip(values, errors, strict=True)]


names = ["frontier_pictures", "frontier_table", "frontier_million"]
figure, places = plt.subplots(3, 2, figsize=(8, 9.6), layout="constrained")
for axes_of, name in zip(places, names, strict=True):
    record = json.loads((RECORDS / f"benchmarks/records/{name}.json").read_text(encoding="utf-8"))
    table = record["table"]
    error = "excess_error" if table[0]["excess_error"] is not None else "residual"
    for axes, (column, label) in zip(axes_of, COLUMNS.items(), strict=True):
        for family, (color, marker) in FAMILIES.items():
            pairs = points(table, family, column)
            if pairs:
                x, y = np.transpose(sorted(pairs))
                axes.loglog(x, y, marker=marker, color=color, label=family.split(",")[0])
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(color="0.9", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    axes_of[0].set_ylabel(
        "Excess error" if error == "excess_error" else "Largest relative residual"
    )
    axes_of[0].set_title(f"{record['data']}, {record['rows']:,} rows", loc="left", fontsize=10)
lines, labels = places[0][0].get_legend_handles_labels()
figure.legend(lines, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
