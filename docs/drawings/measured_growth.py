"""Growth with the rows, from the kept record of benchmarks/growth.py."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from benchmarks.growth_measures import GrowthRow
from benchmarks.scale_figures import growth_plot

docs = next(
    folder
    for folder in [Path.cwd(), *Path.cwd().parents]
    if (folder / "benchmarks" / "records").exists()
)
record = json.loads((docs / "benchmarks" / "records" / "growth.json").read_text(encoding="utf-8"))
rows = [GrowthRow(**row) for row in record["table"]]
title = f"{record['data']}, within {record['budget']}, {record['threads']} threads"
plt.figure(growth_plot(rows, title))
