"""Günter 2006, figure 3: all of USPS, Gaussian kernel of width 8, ten components, ten clusters."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca.applications import KernelSpectralClustering
from ikpca.metrics import variation_of_information

#: Nats, of exact eigenvectors.
EXACT = {None: 1.69, "njw": 1.74}


@pytest.fixture(scope="module")
def usps(data_folder):
    with np.load(data_folder / "usps.npz") as data:
        return data["X_train"], data["y_train"]


@pytest.mark.parametrize(("solver", "passes"), [("krylov", None), ("kha/et", 10), ("kha-smd", 10)])
@pytest.mark.parametrize("normalise", EXACT)
def test_as_good_as_exact_components_within_ten_passes(usps, normalise, solver, passes):
    X, y = usps
    labels = KernelSpectralClustering(
        10, normalise=normalise, gamma=1 / 128, eigen_solver=solver, max_iter=passes, random_state=0
    ).fit_predict(X)
    assert abs(variation_of_information(labels, y) - EXACT[normalise]) <= 0.05
