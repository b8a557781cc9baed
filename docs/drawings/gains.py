"""Gains of KHA, KHA/t and KHA/et over time, and the errors of all four methods on digits."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.solvers import KHA

n_rows, eigenvalues = 1000, np.array([40.0, 20.0, 10.0, 5.0])
times = np.arange(0, 10 * n_rows, 50.0)
methods = {name: KHA(name.lower(), gain=0.05).gain_for(1.0) for name in ("KHA", "KHA/t", "KHA/et")}
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
for (name, gain), color in zip(methods.items(), ["#0072B2", "#CC79A7", "#009E73"], strict=True):
    values = np.broadcast_to(gain.gains(times, n_rows, eigenvalues), (len(times), 4))
    for component in range(4 if name == "KHA/et" else 1):
        left.semilogy(
            times / n_rows, values[:, component], color=color, label=None if component else name
        )
left.set(xlabel="Passes over the data", ylabel="Gain of each component")
left.set_title("KHA/et: a gain for every component", loc="left", fontsize=10)
left.legend(frameon=False)

X = load_digits().data[:600] / 16
settings = {"kernel": "rbf", "gamma": 1 / 8, "max_iter": 20, "random_state": 0}
solvers = {
    "KHA": KHA("kha", gain=0.02, init="random"),
    "KHA/t": KHA("kha/t", gain=0.2, clock="pass", init="random"),
    "KHA/et": KHA("kha/et", gain=0.05, clock="pass", init="random"),
    "KHA-SMD": KHA("kha-smd", gain=0.05, clock="pass", init="random"),
}
colors = ["#0072B2", "#CC79A7", "#009E73", "#D55E00"]
for (name, solver), color in zip(solvers.items(), colors, strict=True):
    model = KernelPCA(8, eigen_solver=solver, **settings).fit(X)
    errors = [record.excess_error for record in model.history_]
    right.semilogy(range(1, 21), errors, color=color, label=name)
right.set(xlabel="Passes over the data", ylabel="Excess error, estimated", xticks=range(0, 21, 5))
right.set_title("Digits, 8 components; gains tuned on these rows", loc="left", fontsize=10)
right.legend(frameon=False)
