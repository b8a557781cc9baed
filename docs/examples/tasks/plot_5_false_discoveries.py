"""
Novelty detection with few false discoveries
============================================

``NoveltyDetector`` flags a given fraction of the normal rows by mistake. If anomalies are rare,
many of the flagged rows are such false alarms. The Benjamini–Hochberg procedure on its p-values
controls the fraction of false alarms among the flagged rows instead.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import false_discovery_control
from sklearn.datasets import make_moons

from ikpca import NoveltyDetector
from ikpca.plotting import contributions

train, _ = make_moons(1000, noise=0.08, random_state=0)
normal, _ = make_moons(950, noise=0.08, random_state=1)
rng = np.random.default_rng(0)
novel = rng.uniform([-2.5, -2.0], [3.5, 2.5], size=(50, 2))
rows = np.concatenate([normal, novel])
is_novel = np.arange(len(rows)) >= len(normal)

detector = NoveltyDetector(random_state=0).fit(train)
p = detector.p_values(rows)

# %%
# The adjusted p-value of a row is the smallest rate of false discoveries at which it is flagged.

flagged = {
    "5 % false alarms": p <= 0.05,
    "10 % false discoveries": false_discovery_control(p) <= 0.1,
}
for name, flags in flagged.items():
    print(
        f"{name:22s} {flags.sum():3d} flagged, {np.mean(~is_novel[flags]):.0%} of them normal, "
        f"{np.mean(flags[is_novel]):.0%} of the novel rows found"
    )

# %%
# Some novel rows lie within the moons and cannot be detected.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharex=True, sharey=True)
x, y = np.linspace(-2.7, 3.7, 160), np.linspace(-2.2, 2.7, 120)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
height = -detector.decision_function(grid).reshape(120, 160)
for ax, (name, flags) in zip(axes, flagged.items(), strict=True):
    ax.contour(x, y, height, levels=[0], colors="0.6", linestyles="dashed")
    ax.plot(*rows[~flags].T, ".", color="0.7", markersize=3, label="not flagged")
    ax.plot(*rows[flags & is_novel].T, "o", color="#009E73", markersize=4, label="novel")
    ax.plot(*rows[flags & ~is_novel].T, "x", color="#D55E00", markersize=5, label="false alarm")
    ax.set_title(name, loc="left", fontsize=10)
axes[1].legend(loc="lower left", fontsize=8)

# %%
# ``explain`` divides the error of a row among its features; here the row far above the moons.

contributions(detector.explain([[0.5, 2.4]]), ["x", "y"])
