"""Block Krylov equals the dense reference, within any budget, for any start."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import KernelCenterer

from ikpca import KernelPCA
from ikpca.errors import RankWarning
from ikpca.solvers import KHA, Krylov

R = 6


def angle(actual, exact):
    return subspace_angles(actual.eigenvectors_, exact.eigenvectors_)[0]


@pytest.fixture(params=["linear", "poly", "rbf", "cosine", "laplacian"])
def settings(request):
    return {"kernel": request.param, "gamma": 0.1}


def test_krylov_is_dense(digits, settings):
    X = digits[:600]
    exact = KernelPCA(R, eigen_solver="dense", **settings).fit(X)
    actual = KernelPCA(R, eigen_solver="krylov", random_state=0, **settings).fit(X)
    assert angle(actual, exact) < 1e-8
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(actual.transform(X[:50]), exact.transform(X[:50]), atol=1e-8)
    assert actual.outcome_.name in ("CONVERGED", "STALLED")


def test_a_small_budget_changes_the_tiles_and_not_the_components(digits):
    settings = {"kernel": "rbf", "gamma": 0.1, "eigen_solver": "krylov", "random_state": 0}
    plenty = KernelPCA(R, **settings).fit(digits)
    tight = KernelPCA(R, max_memory="4MB", copy_X=False, **settings).fit(digits)
    assert angle(tight, plenty) < 1e-7
    # Kept tiles are evaluated once, others in every pass.
    assert plenty.history_[-1].entries < 2 * len(digits) ** 2
    assert tight.history_[-1].entries > 2 * len(digits) ** 2


@pytest.mark.parametrize(
    ("n_components", "max_memory", "more_than"), [(20, "6MB", 12), (60, "22MB", 5)]
)
def test_a_restarted_basis_keeps_all_components(digits, n_components, max_memory, more_than):
    """Late and narrow blocks have few columns; a restart needs as many vectors as before."""
    settings = {"kernel": "rbf", "gamma": 0.02, "random_state": 0, "copy_X": False}
    X = digits[:1200]
    exact = KernelPCA(n_components, eigen_solver="dense", **settings).fit(X)
    actual = KernelPCA(n_components, eigen_solver="krylov", max_memory=max_memory, **settings).fit(
        X
    )
    assert actual.n_iter_ > more_than
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-12)
    assert actual.certificate_.residuals.max() < 1e-13


def scattered_rows(seed, n_rows=2100):
    """Draw clusters, and a few rows far from them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5)) + 2 * rng.integers(3, size=(n_rows, 1))
    X[: n_rows // 100] *= 4
    return X


def centered_gram(X, kernel, gamma):
    K = pairwise_kernels(X, metric=kernel, gamma=gamma)
    return KernelCenterer().fit_transform(K)


def true_residual(K, projections, eigenvalues):
    """Return the largest ‖K'v − λv‖/λ₁ for v along the projections."""
    V = projections / np.linalg.norm(projections, axis=0)
    return np.linalg.norm(K @ V - V * eigenvalues, axis=0).max() / eigenvalues[0]


def test_one_pass_reaches_a_loose_tolerance():
    X = scattered_rows(0, 3000)
    model = KernelPCA(R, kernel="rbf", gamma=0.05, eigen_solver="krylov", tol=1e-3, random_state=0)
    projections = model.fit_transform(X)
    assert model.n_iter_ == 1
    assert model.outcome_.name == "CONVERGED"
    true = true_residual(centered_gram(X, "rbf", 0.05), projections, model.eigenvalues_)
    assert true <= model.certificate_.residual_bounds.max() <= 1e-3
    # Half of K, the landmarks, and the sample.
    assert 0.5 < model.history_[-1].entries / len(X) ** 2 < 0.7


@pytest.mark.slow
def test_sampled_residuals_along_projections_are_bounded():
    """The true residual exceeds the bound in at most 3 % of 200 runs."""
    misses, ratios = [], []
    kernels = [("rbf", 0.02), ("rbf", 0.1), ("rbf", 0.5), ("laplacian", 0.05), ("laplacian", 0.3)]
    for (kernel, gamma), seed in product(kernels, range(14)):
        X = scattered_rows(seed)
        K = centered_gram(X, kernel, gamma)
        for tol in (3e-2, 1e-2, 3e-3, 1e-3, 3e-4):
            model = KernelPCA(
                R, kernel=kernel, gamma=gamma, eigen_solver="krylov", tol=tol, random_state=seed
            )
            projections, certificate = model.fit_transform(X), model.certificate_
            bound = certificate.residual_bounds.max()
            # Of measured residuals the bounds differ by the rounding of kernel values alone.
            if bound > certificate.residuals.max() + 1e-6:
                true = true_residual(K, projections, model.eigenvalues_)
                misses.append(true > bound)
                ratios.append(bound / true)
    assert len(misses) >= 200
    assert np.mean(misses) <= 0.03
    assert 1.01 < np.median(ratios) < 1.5


def test_errors_of_rounding_are_part_of_the_tolerance(digits):
    X = np.tile(digits, (1, 13))[:, :784].astype(np.float32)
    settings = {"kernel": "rbf", "gamma": 0.01, "eigen_solver": "krylov", "random_state": 0}
    first = KernelPCA(R, tol=5e-3, **settings).fit(X)
    measured, stated = first.history_[-1].residuals.max(), first.certificate_.residual_bounds.max()
    assert measured < stated
    between = KernelPCA(R, tol=(measured + stated) / 2, **settings).fit(X)
    assert between.certificate_.residual_bounds.max() <= between.tol
    assert between.n_iter_ == first.n_iter_ + 1


def test_rounded_kernel_values_change_neither_the_budget_nor_the_certificate(digits):
    """With 784 features and this tolerance they are kept in 16 bits."""
    X = np.tile(digits, (1, 13))[:, :784].astype(np.float32)
    settings = {"kernel": "rbf", "gamma": 0.01, "eigen_solver": "krylov", "random_state": 0}
    exact = KernelPCA(R, **settings).fit(X.astype(np.float64))
    plenty = KernelPCA(R, tol=1e-3, **settings).fit(X)
    tight = KernelPCA(R, tol=1e-3, max_memory="24MB", copy_X=False, **settings).fit(X)
    assert plenty.history_[-1].entries < len(X) ** 2 < tight.history_[-1].entries
    assert plenty.certificate_.residual_bounds.max() > plenty.history_[-1].residuals.max()
    for actual in (plenty, tight):
        errors = np.abs(actual.eigenvalues_ - exact.eigenvalues_)
        assert (errors <= actual.certificate_.eigenvalue_bounds).all()
        assert 0 < errors.max() < 1e-3 * exact.eigenvalues_[0]


def test_values_that_are_cheaper_to_compute_are_not_kept(digits):
    loose, precise = (
        KernelPCA(R, kernel="rbf", gamma=0.1, eigen_solver="krylov", tol=tol, random_state=0)
        .fit(digits)
        .history_
        for tol in (1e-3, 1e-10)
    )
    assert len(loose) > 1
    assert loose[-1].entries > 1.5 * loose[0].entries
    assert precise[-1].entries == precise[0].entries


def test_a_basis_of_the_whole_range_ends_the_fit():
    """Five features: the first block spans all that the linear kernel has."""
    X = np.random.default_rng(0).normal(size=(400, 5))
    fitted = KernelPCA(3, eigen_solver="krylov", random_state=0).fit(X)
    assert fitted.outcome_.name == "STALLED"
    assert fitted.n_iter_ == 1
    # One component more than the rank.
    with pytest.warns(RankWarning, match="n_components"):
        padded = KernelPCA(6, eigen_solver="krylov", random_state=0).fit(X)
    np.testing.assert_allclose(padded.eigenvalues_[:3], fitted.eigenvalues_, rtol=1e-12)
    assert padded.eigenvalues_[5] == 0
    assert not padded.eigenvectors_[:, 5].any()
    assert not padded.transform(X)[:, 5].any()


@pytest.mark.parametrize("solver", ["krylov", "kha/et"])
@pytest.mark.parametrize("max_memory", [None, "16MB"])
def test_threads_change_no_bit(digits, solver, max_memory):
    fits = [
        KernelPCA(
            R, kernel="rbf", eigen_solver=solver, max_iter=3, n_jobs=n_jobs, random_state=0,
            max_memory=max_memory, copy_X=False,
        ).fit(digits)
        for n_jobs in (1, 2, 3)
    ]  # fmt: skip
    assert np.array_equal(fits[0].coefficients_, fits[1].coefficients_)
    assert np.array_equal(fits[0].coefficients_, fits[2].coefficients_)


def test_narrow_blocks_find_all_eigenvectors_of_a_multiple_eigenvalue():
    """A block of a pass has 18 columns, and K' times it is in its span."""
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 50)))[0]
    settings = {"n_components": 40, "kernel": "precomputed", "random_state": 0}
    actual = KernelPCA(eigen_solver="krylov", **settings).fit(U @ U.T)
    exact = KernelPCA(eigen_solver="dense", **settings).fit(U @ U.T)
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-12)
    assert actual.certificate_.orthonormality_defect < 1e-12


def test_an_asymmetric_matrix_uses_all_of_its_tiles():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(300, 20))
    K = Y @ Y.T
    # What centring removes: K' stays symmetric, K does not.
    K = K + rng.normal(size=300)
    exact = KernelPCA(3, kernel="precomputed", eigen_solver="dense").fit(K)
    actual = KernelPCA(3, kernel="precomputed", eigen_solver="krylov").fit(K)
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-10)
    assert angle(actual, exact) < 1e-7


def test_an_indefinite_kernel_gives_its_largest_eigenvalues(digits):
    X = digits[:500]
    settings = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}
    exact = KernelPCA(3, eigen_solver="dense", **settings).fit(X)
    actual = KernelPCA(3, eigen_solver="krylov", **settings).fit(X)
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
    # Ritz values in feature space would be twice as large as the eigenvalues after two passes.
    early = KernelPCA(3, eigen_solver="krylov", max_iter=2, random_state=0, **settings).fit(X)
    np.testing.assert_allclose(early.eigenvalues_, exact.eigenvalues_, rtol=0.1)


def test_one_negative_eigenvalue_is_enough_to_be_indefinite():
    """Ritz values never exceed the eigenvalues; those in feature space would."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(np.hstack([np.ones((300, 1)), rng.normal(size=(300, 299))]))[0][:, 1:]
    eigenvalues = np.append(10 * 0.9 ** np.arange(298), -9)
    K = (directions * eigenvalues) @ directions.T
    early = KernelPCA(3, kernel="precomputed", eigen_solver="krylov", max_iter=2, random_state=0)
    assert (early.fit(K).eigenvalues_ <= eigenvalues[:3] * (1 + 1e-12)).all()


def test_float32_stays_float32_and_reaches_its_precision(digits):
    X = digits.astype(np.float32)
    actual = KernelPCA(R, kernel="rbf", gamma=0.1, eigen_solver="krylov").fit(X)
    exact = KernelPCA(R, kernel="rbf", gamma=0.1, eigen_solver="dense").fit(digits)
    assert actual.coefficients_.dtype == np.float32
    assert angle(actual, exact) < 2e-3
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-5)


@pytest.mark.parametrize("solver", ["kha", "kha/t", "kha/et", "kha-smd", "krylov", "dense"])
def test_refine_takes_any_model_to_machine_precision(digits, solver):
    X = digits[:500]
    settings = {"kernel": "rbf", "gamma": 0.1, "random_state": 0}
    exact = KernelPCA(R, eigen_solver="dense", **settings).fit(X)
    rough = KernelPCA(R, eigen_solver=solver, max_iter=2, **settings).fit(X)
    assert angle(rough.refine(), exact) < 1e-8


def test_a_warm_start_saves_passes(digits):
    settings = {"kernel": "rbf", "gamma": 0.1, "eigen_solver": "krylov", "tol": 1e-6}
    cold = KernelPCA(8, random_state=0, **settings).fit(digits)
    warm = KernelPCA(8, random_state=0, warm_start=True, **settings).fit(digits)
    first = warm.n_iter_
    assert first == cold.n_iter_
    warm.fit(digits)
    assert warm.n_iter_ < first


@pytest.mark.parametrize("solver", ["krylov", "kha/et"])
def test_a_warm_start_takes_more_rows_and_components(digits, solver):
    """After a pass, a warm start has a smaller error than a random start."""
    X = digits[:900]
    settings = {"kernel": "rbf", "gamma": 0.1, "eigen_solver": solver, "random_state": 0}
    exact = KernelPCA(6, kernel="rbf", gamma=0.1, eigen_solver="dense").fit_transform(X)
    warm = KernelPCA(4, warm_start=True, **settings).fit(digits[:600])
    actual = warm.set_params(n_components=6, max_iter=1).fit_transform(X)
    assert actual.shape == (900, 6)
    angle = subspace_angles(actual, exact[:, :4])[0]
    assert angle < 0.1
    if solver == "kha/et":
        settings["eigen_solver"] = KHA("kha/et", init="random")
        cold = KernelPCA(6, max_iter=1, **settings).fit_transform(X)
        assert subspace_angles(cold, exact[:, :4])[0] > 1.5 * angle


@pytest.mark.parametrize("solver", ["krylov", "kha/et", "dense"])
def test_certificate_bounds_the_errors(digits, solver):
    """Every bound contains an exact eigenvalue; the estimate is of the size of the truth."""
    X = digits[:800]
    settings = {"kernel": "rbf", "gamma": 0.1}
    exact = KernelPCA(40, eigen_solver="dense", **settings).fit(X)
    actual = KernelPCA(R, eigen_solver=solver, max_iter=2, random_state=0, **settings).fit(X)
    certificate = actual.certificate_
    distances = np.abs(actual.eigenvalues_[:, None] - exact.eigenvalues_).min(axis=1)
    rounding = 1e-12 * exact.eigenvalues_[0]
    assert (distances <= certificate.eigenvalue_bounds + rounding).all()
    assert certificate.orthonormality_defect < 1e-10
    np.testing.assert_allclose(certificate.residuals, actual.history_[-1].residuals, rtol=1e-6)


@pytest.mark.parametrize("solver", ["krylov", "kha/et", "kha-smd", "dense"])
def test_every_pass_carries_its_certificate(digits, solver, capsys):
    """The last record equals the certificate, and ``verbose`` prints it."""
    result = KernelPCA(
        R, kernel="rbf", gamma=0.1, eigen_solver=solver, max_iter=3, random_state=0, verbose=1
    ).fit(digits[:800])
    last, certificate = result.history_[-1], result.certificate_
    bounds = certificate.residuals * result.eigenvalues_[0]
    np.testing.assert_allclose(last.eigenvalue_bounds, bounds, rtol=1e-6)
    assert last.excess_error == pytest.approx(certificate.excess_error, rel=1e-3, abs=1e-12)
    assert last.orthonormality_defect == pytest.approx(certificate.orthonormality_defect, abs=1e-12)
    printed = capsys.readouterr().err
    assert f"excess error about {last.excess_error:.1e}" in printed


def exact_problem(X):
    """The centered kernel matrix and its R leading eigenvalues, by a dense solver."""
    from ikpca.gram import ComputedGram, PrecomputedGram, center_gram, full_matrix
    from ikpca.kernels import Gaussian
    from ikpca.solvers import solve_dense

    K = full_matrix(ComputedGram(Gaussian(0.1), X))
    gram, _ = center_gram(PrecomputedGram(K, symmetric=True))
    return gram, solve_dense(K, R).eigenvalues


def excess_error(gram, projections, eigenvalues):
    """E/E_min − 1 (Günter 2006, eq. 22), with the whole matrix."""
    K = gram.rows(np.arange(gram.n_samples))
    minimum = np.sqrt(np.sum(K**2) - np.sum(eigenvalues**2))
    return np.linalg.norm(K - projections.T @ projections) / minimum - 1


def test_a_defect_of_orthonormality_counts(digits):
    """Components of a wrong length have a large error, which the certificate contains."""
    from ikpca.solvers.rayleigh_ritz import certify

    gram, eigenvalues = exact_problem(digits[:400])
    exact = KernelPCA(R, kernel="rbf", gamma=0.1, eigen_solver="dense")
    projections = 1.01 * exact.fit_transform(digits[:400]).T
    true = excess_error(gram, projections, eigenvalues)
    component_gram = 1.01**2 * np.eye(R)
    stated = certify(exact.eigenvalues_, np.zeros(R), component_gram, gram.squared_norm_estimate)
    assert stated.excess_error == pytest.approx(true, rel=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_share_of_the_variance_takes_as_many_components_as_dense(digits, share):
    """0.3 needs one round, 0.6 a second from where the first ended, 0.9 ends in dense."""
    settings = {"kernel": "rbf", "gamma": 0.3, "random_state": 0}
    exact = KernelPCA(share, eigen_solver="dense", **settings).fit(digits[:600])
    actual = KernelPCA(share, eigen_solver="krylov", **settings).fit(digits[:600])
    assert len(actual.eigenvalues_) == len(exact.eigenvalues_)
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    assert [record.number for record in actual.history_] == list(range(1, actual.n_iter_ + 1))
    entries = [record.entries for record in actual.history_]
    assert entries == sorted(entries)
    numbers = sorted({len(record.eigenvalues) for record in actual.history_})
    assert numbers == {0.3: [32], 0.6: [32, 64], 0.9: [32, 64, 128, 600]}[share]
    if share == 0.6:
        assert entries[-1] < 2.01 * entries[0]


def test_records_have_the_time_and_the_change_of_every_pass(digits):
    start = time.perf_counter()
    model = KernelPCA(R, kernel="rbf", gamma=0.1, eigen_solver="krylov", random_state=0)
    records = model.fit(digits[:600]).history_
    assert 0 < sum(record.seconds for record in records) <= time.perf_counter() - start
    assert records[0].change == np.inf
    # The squared distance of R unit vectors of either sign to others is at most 2R.
    assert 2 * R >= records[1].change > records[-1].change
    assert min(record.change for record in records) >= 0
    assert records[-1].change < 1e-12


def test_a_search_for_a_fraction_may_take_more_passes_than_max_iter(digits):
    """``max_iter`` is the limit for each number of components."""
    model = KernelPCA(0.6, kernel="rbf", gamma=0.3, eigen_solver="krylov", max_iter=2)
    assert model.set_params(random_state=0).fit(digits[:600]).n_iter_ > 2


@pytest.mark.parametrize("solver", [Krylov, KHA])
def test_pivoted_landmarks_find_components_of_few_rows(digits, solver):
    """Six of a thousand rows differ from the others, and are rarely among uniform landmarks."""
    rng = np.random.default_rng(0)
    X = np.vstack([digits[:1000], 6 * rng.normal(size=(6, 64))])
    settings = {"kernel": "poly", "degree": 2, "gamma": 1.0, "random_state": 0}
    exact = KernelPCA(R, eigen_solver="dense", **settings).fit(X)
    held = {
        kind: KernelPCA(R, eigen_solver=solver(init=kind), max_iter=1, **settings)
        .fit(X)
        .eigenvalues_.sum()
        for kind in ("landmarks", "pivoted")
    }
    missing = {kind: exact.eigenvalues_.sum() - value for kind, value in held.items()}
    assert missing["pivoted"] < 0.1 * missing["landmarks"]


def test_the_estimated_excess_error_bounds_the_true_one(digits):
    gram, eigenvalues = exact_problem(digits[:800])
    for passes in (1, 2, 3):
        actual = KernelPCA(
            R, kernel="rbf", gamma=0.1, eigen_solver="krylov", max_iter=passes, random_state=0
        )
        projections = actual.fit_transform(digits[:800]).T
        true = excess_error(gram, projections, eigenvalues)
        estimate = actual.certificate_.excess_error
        assert 0 < true < estimate < 1e4 * true


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("n_components", [3, 14])
def test_kernels_of_low_numerical_rank(n_components, warm):
    """Near-null directions must not creep into components that are exact already."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 1500)
    X = np.column_stack([x, x * x + rng.normal(0, 0.2, len(x))])
    parameters = {"kernel": "rbf", "gamma": 0.5, "random_state": 0}
    exact = KernelPCA(n_components, eigen_solver="dense", **parameters).fit(X)
    actual = KernelPCA(n_components, eigen_solver="krylov", warm_start=warm, **parameters).fit(X)
    if warm:
        actual.fit(X)
    assert actual.n_iter_ <= 8
    assert actual.certificate_.residuals.max() < 1e-13
    np.testing.assert_allclose(actual.eigenvalues_, exact.eigenvalues_, rtol=1e-11)
    overlaps = np.abs(np.sum(actual.eigenvectors_ * exact.eigenvectors_, axis=0))
    np.testing.assert_allclose(overlaps, 1, atol=1e-9)
