"""Block form and pattern-by-pattern rule: equal results at different cost."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from ikpca.solvers import hebbian_step

X = load_digits().data[:300] / 16
K = rbf_kernel(X, gamma=1 / 8)
K = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
rng = np.random.default_rng(0)
A = rng.normal(size=(6, 300)) / np.sqrt(6 * 300)
P = rng.permutation(300)[:32]
h = 0.05

# Pattern by pattern: every step touches all l columns of A.
one_by_one = A
for p in P:
    one_by_one = hebbian_step(one_by_one, K[p], p, h)

# As a block: T and C are found from the m×m piece K'[P, P] alone, then applied once.
Y, T, C = A @ K[:, P], np.eye(6), np.zeros((6, 32))
for step in range(32):
    y = T @ Y[:, step] + C @ K[P, P[step]]
    shrink = np.eye(6) - h * np.tril(np.outer(y, y))
    T, C = shrink @ T, shrink @ C
    C[:, step] += h * y
block = T @ A
block[:, P] += C
difference = np.abs(block - one_by_one).max()

figure, panels = plt.subplots(
    1, 4, figsize=(9.5, 2.6), layout="constrained", width_ratios=[6, 300 / 22, 32 / 5, 300 / 22]
)
for axes, (title, matrix) in zip(
    panels,
    {
        "T − I, r×r": T - np.eye(6),
        "A, r×l": A,
        "C, r×m": C,
        "TA + C at the columns P": block,
    }.items(),
    strict=True,
):
    largest = np.abs(matrix).max()
    axes.imshow(
        matrix, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="none"
    )
    axes.set_title(title, fontsize=9, loc="left")
    axes.set(xticks=[], yticks=[])
panels[3].set_xlabel(f"largest difference from 32 single steps: {difference:.0e}", fontsize=8)
