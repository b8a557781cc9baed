"""
Incremental kernel PCA of a Swiss roll
======================================

Chin and Suter (2006) update kernel PCA with every batch of new rows and then reduce the number of
basis rows, so that neither time per batch nor memory grows with the stream. This example uses their
data, a Swiss roll with a hole, in batches of 100 rows with a basis of 200 rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.plotting import projections
from ikpca_papers.data import perforated_swiss_roll

X, along, across = perforated_swiss_roll(800)
order = np.random.default_rng(0).permutation(800)

stream = IncrementalKernelPCA(6, kernel="rbf", gamma=0.5, max_basis_rows=200)
for batch in np.array_split(order, 8):
    stream.partial_fit(X[batch])
batch = KernelPCA(6, kernel="rbf", gamma=0.5).fit(X)
print(
    f"{stream.n_samples_seen_} rows seen, {len(stream.basis_)} kept, "
    f"{stream.memory_usage_ / 1e3:.0f} kB"
)

# %%
# Projections of batch and stream, with equal signs; the color is the position along the roll.

exact, streamed = batch.transform(X), stream.transform(X)
streamed *= np.sign(np.sum(exact * streamed, axis=0))
figure, panels = plt.subplots(2, 2, figsize=(8, 6), layout="constrained")
for column, pair in enumerate([(0, 1), (2, 3)]):
    projections(exact, along, pair=pair, ax=panels[0, column]).set_title("batch", fontsize=10)
    projections(streamed, along, pair=pair, ax=panels[1, column]).set_title("streamed", fontsize=10)

# %%

correlations = [np.corrcoef(exact[:, i], streamed[:, i])[0, 1] for i in range(6)]
print("correlation of each component:", np.round(correlations, 4))
