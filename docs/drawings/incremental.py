"""Stream with a bounded basis, and error of a fitted model that is compressed to fewer rows."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import subspace_angles

from ikpca import IncrementalKernelPCA, KernelPCA, compress
from ikpca_papers.data import parabola

X = parabola(1000, curvature=1.0)
settings = {"kernel": "rbf", "gamma": 0.5}
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")

held = {"everything kept": None, "80 rows kept": 80}
for (name, size), color in zip(held.items(), ["0.5", "#0072B2"], strict=True):
    stream = IncrementalKernelPCA(5, max_basis_rows=size, random_state=0, **settings)
    kilobytes, angles = [], []
    for start in range(0, len(X), 100):
        stream.partial_fit(X[start : start + 100])
        kilobytes.append(stream.memory_usage_ / 1e3)
        batch = KernelPCA(5, **settings).fit_transform(X[: start + 100])
        seen = stream.transform(X[: start + 100])
        angles.append(np.degrees(subspace_angles(batch, seen).max()))
    rows = np.arange(1, 11) * 100
    left.plot(rows, kilobytes, color=color, label=name)
    middle.semilogy(rows, angles, color=color, label=name)
left.set(xlabel="Rows seen", ylabel="Held by the model, kB", ylim=0)
left.legend(frameon=False)
left.set_title("memory of a stream", loc="left", fontsize=10)
middle.set(xlabel="Rows seen", ylabel="Largest angle to batch, °")
middle.set_title("and its accuracy", loc="left", fontsize=10)

sizes = [10, 20, 40]
exact = KernelPCA(5, **settings).fit(X[:300])
for kind, color in {"samples": "#0072B2", "preimages": "#D55E00"}.items():
    errors = [compress(exact, size, reduction=kind).reduction_error_.max() for size in sizes]
    right.semilogy(sizes, errors, marker="o", color=color, label=kind)
right.set(xlabel="Rows kept by compress", ylabel="Relative error in feature space")
right.set_title("a reduced set of a fitted model", loc="left", fontsize=10)
right.legend(frameon=False)
