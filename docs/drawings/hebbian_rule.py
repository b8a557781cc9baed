"""Sanger's rule on a cloud of points: two weight vectors converge to the principal directions."""

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(3)
turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
X = rng.normal(size=(600, 2)) * [2.0, 0.7] @ turn.T
X -= X.mean(axis=0)
truth = np.linalg.eigh(X.T @ X)[1][:, ::-1].T

W = np.array([[-0.2, 0.9], [0.7, 0.6]])
path, angles = [W.copy()], []
for t, x in enumerate(X[rng.permutation(600)]):
    y = W @ x
    gain = 0.04 * 200 / (t + 200)
    W = W + gain * (np.outer(y, x) - np.tril(np.outer(y, y)) @ W)
    path.append(W.copy())
    cosines = np.abs(np.sum(W * truth, axis=1)) / np.linalg.norm(W, axis=1)
    angles.append(np.degrees(np.arccos(np.clip(cosines, 0, 1))))
path = np.array(path)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.7), layout="constrained")
left.plot(*X.T, ".", color="0.8", markersize=3)
for number, color in enumerate(["#0072B2", "#D55E00"]):
    left.plot(*path[:, number].T, color=color, linewidth=1)
    left.annotate(
        "", path[-1, number], (0, 0), arrowprops={"arrowstyle": "->", "color": color, "lw": 2}
    )
    left.axline((0, 0), truth[number], color=color, linestyle="dotted", linewidth=1)
    right.plot(np.array(angles)[:, number], color=color, label=f"component {number + 1}")
left.set_aspect("equal")
left.set(xlim=(-4, 4), ylim=(-3, 3), xticks=[], yticks=[])
left.set_title("convergence to the principal directions", loc="left", fontsize=10)
right.set(xlabel="Patterns seen", ylabel="Angle to the true direction, °", ylim=(0, None))
right.legend(frameon=False)
