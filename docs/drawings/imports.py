"""Packages and their imports, computed with grimp from the installed code.

Rows are the layers of pyproject.toml. An arrow that follows from other arrows is left out.
"""

import tomllib
from pathlib import Path

import grimp
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

ROOT = next(folder for folder in Path.cwd().parents if (folder / "pyproject.toml").exists())
settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
contracts = settings["tool"]["importlinter"]["contracts"]
layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
rows = [["ikpca_papers"], *([name.strip() for name in layer.split("|")] for layer in layers)]
#: Horizontal positions that let few arrows cross; others are in the middle.
COLUMNS = {
    "columns": 0.0, "plotting": 2.2, "dask": 1.5, "model_files": 0.0,
    "preimages": 0.95, "subspace": 0.7, "solvers": 2.0, "kernels": 1.0, "metrics": 1.75,
    "gains": 2.5, "errors": 0.5,
}  # fmt: skip


def package_of(module):
    """``ikpca.gram.sources`` → ``gram``; the second distribution is one package."""
    distribution, *rest = module.split(".")
    return distribution if distribution == "ikpca_papers" else next(iter(rest), None)


graph = grimp.build_graph("ikpca", "ikpca_papers")
imports = {
    (package_of(importer), package_of(imported))
    for importer in graph.modules
    for imported in graph.find_modules_directly_imported_by(importer)
}
imports = {pair for pair in imports if None not in pair and pair[0] != pair[1]}


def reachable(start, without):
    """Packages that can be reached from one without a given import."""
    reached, waiting = set(), [start]
    while waiting:
        package = waiting.pop()
        new = {b for a, b in imports - {without} if a == package} - reached
        reached |= new
        waiting.extend(new)
    return reached


arrows = [pair for pair in sorted(imports) if pair[1] not in reachable(pair[0], pair)]
place = {
    name: (COLUMNS.get(name, 1.1), -number) for number, names in enumerate(rows) for name in names
}

figure, axes = plt.subplots(figsize=(7.6, 0.62 * len(rows)), layout="constrained")
for importer, imported in arrows:
    (x0, y0), (x1, y1) = place[importer], place[imported]
    axes.annotate(
        "",
        (x1, y1 + 0.29),
        (x0, y0 - 0.29),
        arrowprops={"arrowstyle": "-|>", "color": "0.5", "lw": 0.9, "shrinkA": 0, "shrinkB": 0},
    )
for name, (x, y) in place.items():
    count = sum(package_of(module) == name for module in graph.modules)
    library = name != "ikpca_papers"
    axes.add_patch(
        FancyBboxPatch(
            (x - 0.3, y - 0.26),
            0.6,
            0.52,
            boxstyle="round,pad=0.02",
            fc="#EAF2F8" if library else "white",
            ec="#0072B2",
            ls="solid" if library else "dashed",
            zorder=3,
        )
    )
    axes.text(x, y + 0.07, name, ha="center", va="center", fontsize=9, weight="bold", zorder=4)
    modules = f"{count} modules" if count > 1 else "1 module"
    axes.text(x, y - 0.16, modules, ha="center", va="center", fontsize=6.5, color="0.4", zorder=4)
axes.set(xlim=(-0.4, 2.9), ylim=(-len(rows) + 0.6, 0.4))
axes.set_axis_off()
