"""Günter 2006, figure 3: all of USPS, Gaussian kernel of width 8, ten components, ten clusters."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca import KernelSpectralClustering
from ikpca.metrics import variation_of_information

#: Nats, of exact eigenvectors.
EXACT = {None: 1.69, "njw": 1.74}


@pytest.fixture(scope="module")
def usps(data_folder):
    with np.load(data_folder / "usps.npz") as data:
        return data["X_train"], data["y_train"]


@pytest.mark.parametrize(("solver", "passes"), [("krylov", None), ("kha/et", 10), ("kha-smd", 10)])
@pytest.mark.parametrize("normalize", EXACT)
def test_as_good_as_exact_components_within_ten_passes(usps, normalize, solver, passes):
    X, y = usps
    labels = KernelSpectralClustering(
        10, normalize=normalize, gamma=1 / 128, eigen_solver=solver, max_iter=passes, random_state=0
    ).fit_predict(X)
    assert abs(variation_of_information(labels, y) - EXACT[normalize]) <= 0.05
