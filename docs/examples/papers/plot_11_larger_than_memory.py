"""
Data on disk with a memory budget
=================================

:func:`ikpca.open_rows` opens a file without reading it, and the fit reads it in tiles.
``max_memory`` limits the memory that the fit uses in addition to the rows. The kernel matrix of
these rows would take eighteen times as much.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ikpca import KernelPCA, open_rows

rng = np.random.default_rng(0)
digits = load_digits().data / 16
rows = digits[rng.integers(len(digits), size=6000)] + rng.normal(scale=0.1, size=(6000, 64))

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "rows.npy")
np.save(path, rows.astype(np.float32))

X = open_rows(path)
model = KernelPCA(
    10, kernel="rbf", gamma=0.02, eigen_solver="krylov", tol=1e-5, max_memory="8MB", random_state=0
)
model.fit(X)
print("kernel matrix:", 4 * len(X) ** 2 // 10**6, "MB; budget: 8 MB")
print(model.certificate_)
print(model.outcome_.value)

# %%
# Every record has the number of kernel values computed so far, which is more reproducible than a
# time. The dotted line is ``tol``. Data in single precision do not reach it, and the fit stops when
# it detects this; use double precision, and twice the memory, for a higher accuracy.

entries = [record.entries / len(X) ** 2 for record in model.history_]
residuals = [record.residuals.max() for record in model.history_]
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.semilogy(entries, residuals, marker="o")
axes.axhline(1e-5, color="0.6", linestyle="dotted")
axes.set(xlabel="Entries of K evaluated, in units of $l^2$", ylabel="Largest residual")
folder.cleanup()
