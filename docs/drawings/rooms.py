"""The rooms and who imports whom, read off the installed package and pyproject.toml."""

import tomllib
from pathlib import Path

import grimp
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

ROOT = next(
    folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "pyproject.toml").exists()
)
contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
levels = [
    [room.strip(" ()") for room in level.split("|")]
    for level in next(contract for contract in contracts if contract["type"] == "layers")["layers"]
]

graph = grimp.build_graph("ikpca")
rooms = {module.split(".")[1] for module in graph.modules if module.count(".") >= 1}
levels = [[room for room in level if room in rooms] for level in levels]
levels = [level for level in levels if level]
imports = {}
for importer in graph.modules:
    for imported in graph.find_modules_directly_imported_by(importer):
        if importer.count(".") and imported.count("."):
            pair = importer.split(".")[1], imported.split(".")[1]
            if pair[0] != pair[1]:
                imports[pair] = imports.get(pair, 0) + 1


def reachable(start, without):
    """Rooms that can be reached without the direct import."""
    found, open_rooms = set(), [start]
    while open_rooms:
        room = open_rooms.pop()
        for pair in imports:
            if pair[0] == room and pair != without and pair[1] not in found:
                found.add(pair[1])
                open_rooms.append(pair[1])
    return found


# An arrow that follows from others would only hide them.
arrows = [pair for pair in imports if pair[1] not in reachable(pair[0], pair)]

WIDTH = 13.0
place = {}
for row, level in enumerate(levels):
    for number, room in enumerate(level):
        place[room] = (WIDTH * (number + 1) / (len(level) + 1), -1.25 * row)

figure, axes = plt.subplots(figsize=(9, 0.82 * len(levels)), layout="constrained")
for importer, imported in arrows:
    (x0, y0), (x1, y1) = place[importer], place[imported]
    bend = 0.12 if abs(y0 - y1) > 1.5 else 0.0
    style = {"arrowstyle": "-|>", "color": "0.55", "lw": 0.9}
    style["connectionstyle"] = f"arc3,rad={bend}"
    axes.annotate("", (x1, y1 + 0.33), (x0, y0 - 0.33), arrowprops=style)
for room, (x, y) in place.items():
    files = sum(module.split(".")[1:2] == [room] for module in graph.modules)
    axes.add_patch(
        FancyBboxPatch(
            (x - 1.05, y - 0.3),
            2.1,
            0.6,
            boxstyle="round,pad=0.03",
            fc="#EAF2F8",
            ec="#0072B2",
            zorder=3,
        )
    )
    axes.text(x, y + 0.07, room, ha="center", va="center", fontsize=9, fontweight="bold", zorder=4)
    axes.text(
        x,
        y - 0.17,
        f"{files} file{'s' if files > 1 else ''}",
        ha="center",
        va="center",
        fontsize=6.5,
        color="0.4",
        zorder=4,
    )
axes.set(xlim=(0, WIDTH), ylim=(-1.25 * len(levels) + 0.6, 0.6))
axes.set_axis_off()
