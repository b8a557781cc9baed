"""Every import between rooms, counted: importing rooms down, imported rooms across."""

import tomllib
from pathlib import Path

import grimp
import matplotlib.pyplot as plt
import numpy as np

ROOT = next(
    folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "pyproject.toml").exists()
)
contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
layers = next(contract for contract in contracts if contract["type"] == "layers")["layers"]
order = [room.strip(" ()") for level in layers for room in level.split("|")]

graph = grimp.build_graph("ikpca")
present = {module.split(".")[1] for module in graph.modules if "." in module}
rooms = [room for room in order if room in present]
counts = np.zeros((len(rooms), len(rooms)), dtype=int)
for importer in graph.modules:
    for imported in graph.find_modules_directly_imported_by(importer):
        pair = [name.split(".")[1] for name in (importer, imported) if "." in name]
        if len(pair) == 2 and pair[0] != pair[1]:
            counts[rooms.index(pair[0]), rooms.index(pair[1])] += 1

figure, axes = plt.subplots(figsize=(8.4, 7.2), layout="constrained")
axes.imshow(np.log1p(counts), cmap="Blues")
for i, j in np.argwhere(counts):
    axes.text(
        j,
        i,
        counts[i, j],
        ha="center",
        va="center",
        fontsize=7,
        color="white" if counts[i, j] > 12 else "0.2",
    )
axes.set_xticks(range(len(rooms)), rooms, rotation=60, ha="right", fontsize=8)
axes.set_yticks(range(len(rooms)), rooms, fontsize=8)
axes.set(xlabel="is imported", ylabel="imports")
axes.axline((-0.5, -0.5), (len(rooms) - 0.5, len(rooms) - 0.5), color="0.8", linewidth=0.8)
