"""
Components of windows of a photograph
=====================================

What a kernel component looks like: the difference between the pre-images of two points, up and
down the component from the mean. The wider the Gaussian kernel, the nearer its components come to
those of linear PCA (Kim et al. 2003, figure 4).
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
# The largest angle between the first six components of both, measured on the projections of the
# training rows, falls as the kernel widens.

for gamma in (1e-2, 1e-3, 1e-4, 1e-5):
    model = KernelPCA(6, kernel="rbf", gamma=gamma, random_state=0).fit(X)
    angles = subspace_angles(linear.transform(X)[:, :6], model.transform(X))
    print(f"gamma {gamma:7g}: largest angle {np.degrees(angles.max()):5.1f}°")
