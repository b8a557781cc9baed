"""scikit-learn's estimator checks, for every estimator; other configurations are slow tests."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ikpca import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    NoveltyDetector,
    OnlineKernelPCA,
)
from ikpca.solvers import KHA, Nystrom

pytestmark = pytest.mark.filterwarnings("ignore::ikpca.errors.RankWarning")

ESTIMATORS = [
    KernelPCA(),
    HebbianPCA(2, max_iter=5),
    IncrementalKernelPCA(2, kernel="rbf", max_basis_rows=20),
    NoveltyDetector(random_state=0),
    OnlineKernelPCA(),
    KernelSpectralClustering(2),
]
CONFIGURATIONS = [
    KernelPCA(2, kernel="rbf", fit_inverse_transform=True),
    KernelPCA(2, kernel="rbf", preimage="mds"),
    KernelPCA(2, kernel="laplacian", gamma="median"),
    KernelPCA(2, kernel="precomputed"),
    KernelPCA(2, kernel="rbf", eigen_solver="nystrom"),
    KernelPCA(2, eigen_solver=Nystrom(5), whiten=True),
    *[KernelPCA(2, eigen_solver=solver, max_iter=5) for solver in ("kha", "kha/t", "kha/et")],
    KernelPCA(2, kernel="rbf", eigen_solver="kha-smd", max_iter=5, whiten=True),
    IncrementalKernelPCA(),
    IncrementalKernelPCA(2, kernel="rbf", basis="preimages", max_basis_rows=12),
    IncrementalKernelPCA(2, kernel="poly", gamma="scale", forgetting=0.9, whiten=True),
    OnlineKernelPCA(
        2,
        kernel="rbf",
        rule=KHA("kha", gain=0.05, init="random"),
        forgetting=0.99,
    ),
    NoveltyDetector(2, calibration="blocked-cv", cv=3, eigen_solver="krylov"),
    KernelSpectralClustering(2, normalize=None, eigen_solver="kha/et", max_iter=5),
    HebbianPCA(1, rule=KHA("kha", gain=1e-4, rayleigh_ritz=False), max_iter=5),
]


def expected_failures(estimator):
    if not isinstance(estimator, NoveltyDetector):
        return {}
    return {"check_outliers_fit_predict": "training rows are scored by models without them"}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=expected_failures)
def test_configuration(estimator, check):
    check(estimator)
