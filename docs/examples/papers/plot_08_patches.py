"""
Kernel components of image patches
==================================

A component is plotted as the difference between the pre-images of two points in opposite directions
from the mean. The wider the Gaussian kernel, the closer its components are to those of linear PCA
(Kim et al. 2003, figure 4).
"""

import numpy as np
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA

from ikpca import KernelPCA
from ikpca.plotting import components
from ikpca_papers.data import photograph_patches

X = photograph_patches(n=1500)
side = int(np.sqrt(X.shape[1]))
linear = PCA(12).fit(X)
wide = KernelPCA(12, kernel="rbf", gamma=1e-4, random_state=0).fit(X)
figure = components(wide, (side, side))
figure.suptitle("Gaussian kernel, wide", fontsize=10)

# %%

figure = components(linear, (side, side))
figure.suptitle("linear PCA", fontsize=10)

# %%
# The largest angle between the first six components of both, computed from the projections of the
# training rows, decreases with the width of the kernel.

for gamma in (1e-2, 1e-3, 1e-4, 1e-5):
    model = KernelPCA(6, kernel="rbf", gamma=gamma, random_state=0).fit(X)
    angles = subspace_angles(linear.transform(X)[:, :6], model.transform(X))
    print(f"gamma {gamma:7g}: largest angle {np.degrees(angles.max()):5.1f}°")
