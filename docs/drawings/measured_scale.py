"""Error against time, from the kept record of benchmarks/scale.py."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from benchmarks.contestants import ScaleRow
from benchmarks.scale_figures import error_against_time

docs = next(
    folder
    for folder in [Path.cwd(), *Path.cwd().parents]
    if (folder / "benchmarks" / "records").exists()
)
record = json.loads((docs / "benchmarks" / "records" / "scale.json").read_text(encoding="utf-8"))
rows = [ScaleRow(**row) for row in record["table"]]
title = f"{record['data']}, {record['rows']:,} rows, {record['threads']} threads"
plt.figure(error_against_time(rows, title))
