"""``inverse_transform``, ``reconstruction_error`` and ``score``."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, ShuffleSplit

import ikpca.subspace
from ikpca import KernelPCA, vectorized
from ikpca.errors import InvalidInput
from ikpca.preimages import MDS, FixedPoint, NeighborMean
from ikpca.solvers.kha import METHODS
from tests.conftest import KERNELS
from tests.pairwise import pairwise

SOLVERS = ["dense", "krylov", *METHODS]
PREIMAGES = ["auto", "fixed-point", "gradient", "mds", "ridge", "neighbors"]
RBF = {"kernel": "rbf", "gamma": 0.05}


@vectorized
def quadratic(X, Y):
    """Kernel without optional protocols."""
    return (X @ Y.T + 1) ** 2


@pytest.fixture
def X(digits):
    return digits[:200]


@pytest.fixture
def new(digits):
    return digits[200:230]


def model(n_components=12, **parameters):
    return KernelPCA(n_components, **RBF | {"random_state": 0} | parameters)


# --- methods -------------------------------------------------------------------------


@pairwise(strength=1, preimage=PREIMAGES, dtype=[np.float64, np.float32])
def test_every_method_is_better_than_the_mean(X, new, preimage, dtype):
    X, new = X.astype(dtype), new.astype(dtype)
    result = model(40, preimage=preimage, alpha=0.1).fit(X).reconstruct(new)
    assert result.shape == new.shape
    assert result.dtype == dtype
    assert np.square(result - new).mean() < 0.4 * np.square(new - X.mean(axis=0)).mean()


@pairwise(strength=1, solver=SOLVERS, kernel=[*KERNELS, quadratic])
def test_default_preimages_of_every_kernel_and_solver(X, new, solver, kernel):
    """Defaults give pre-images for every kernel and solver."""
    fitted = model(6, kernel=kernel, gamma=0.02, eigen_solver=solver, max_iter=3).fit(X)
    result, distances = fitted.inverse_transform(fitted.transform(new), return_distance=True)
    assert np.isfinite(result).all()
    assert np.isfinite(distances).all()
    assert np.square(result - new).mean() < np.square(new - X.mean(axis=0)).mean()


@pytest.mark.parametrize("preimage", PREIMAGES, ids=str)
def test_the_distance_is_that_in_feature_space(X, new, preimage):
    """‖PΦ(x) − Φ(z)‖² = ‖Φ'(z) − PΦ'(z)‖² + ‖PΦ'(z) − PΦ'(x)‖²."""
    fitted = model(preimage=preimage).fit(X)
    y = fitted.transform(new)
    rows, distances = fitted.inverse_transform(y, return_distance=True)
    across = np.square(fitted.transform(rows) - y).sum(axis=1)
    expected = fitted.reconstruction_error(rows) + across
    np.testing.assert_allclose(np.square(distances), expected, atol=1e-10)
    assert np.array_equal(fitted.inverse_transform(y), rows)
    assert np.array_equal(fitted.reconstruct(new), rows)


@pytest.mark.parametrize("preimage", ["fixed-point", "gradient", "mds", "neighbors"])
def test_whitening_is_undone(X, new, preimage):
    plain = model(preimage=preimage).fit(X).reconstruct(new)
    whitened = model(preimage=preimage, whiten=True).fit(X).reconstruct(new)
    np.testing.assert_allclose(whitened, plain, atol=1e-5)


@pytest.mark.filterwarnings("ignore::ikpca.errors.RankWarning")
@pytest.mark.parametrize("whiten", [False, True])
def test_components_without_variance_change_nothing(rows, whiten):
    """Ten components of five dimensions: half of them are zero."""
    few = KernelPCA(5, whiten=whiten).fit(rows).reconstruct(rows)
    many = KernelPCA(10, whiten=whiten).fit(rows).reconstruct(rows)
    np.testing.assert_allclose(many, few, atol=1e-9)


@pytest.mark.filterwarnings("ignore::ikpca.errors.RankWarning")
@pairwise(strength=1, kernel=KERNELS, n_components=[None, 2])
def test_preimages_of_equal_rows_are_the_row(kernel, n_components):
    X = np.full((6, 3), 2.0)
    fitted = KernelPCA(n_components, kernel=kernel, gamma=0.1).fit(X)
    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(X)), X, atol=1e-6)


def test_result_does_not_depend_on_strips_and_threads(X, new, monkeypatch):
    expected = model(n_jobs=1).fit(X).reconstruct(new)
    monkeypatch.setattr(ikpca.subspace, "_STRIP_ENTRIES", 1000)
    for n_jobs in (1, 2):
        actual = model(n_jobs=n_jobs).fit(X).reconstruct(new)
        np.testing.assert_allclose(actual, expected, atol=1e-10)


def test_rows_on_disk(X, new, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    result = model().fit(mapped).reconstruct(new)
    assert type(result) is np.ndarray
    np.testing.assert_allclose(result, model().fit(X).reconstruct(new), atol=1e-8)


def test_clone_pickle_and_set_params(X, new):
    fitted = model(preimage=MDS(7)).fit(X)
    assert clone(fitted).preimage == MDS(7)
    expected = fitted.reconstruct(new)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).reconstruct(new), expected)
    fitted.set_params(preimage=NeighborMean(7))
    assert not np.array_equal(fitted.reconstruct(new), expected)


# --- scikit-learn's inverse ------------------------------------------------------------


def test_ridge_by_either_name_is_that_of_scikit_learn(X, new):
    theirs = ScikitKernelPCA(12, **RBF, fit_inverse_transform=True, alpha=0.3).fit(X)
    expected = theirs.inverse_transform(theirs.transform(new))
    for settings in ({"fit_inverse_transform": True}, {"preimage": "ridge"}):
        ours = model(alpha=0.3, **settings).fit(X)
        np.testing.assert_allclose(ours.reconstruct(new), expected, atol=1e-8)
        back = ours.to_sklearn()
        np.testing.assert_allclose(back.inverse_transform(back.transform(new)), expected, atol=1e-8)


def test_named_method_overrides_the_learned_one(X, new):
    fitted = model(fit_inverse_transform=True, preimage="fixed-point").fit(X)
    assert hasattr(fitted, "dual_coef_")
    assert np.array_equal(
        fitted.reconstruct(new), model(preimage="fixed-point").fit(X).reconstruct(new)
    )


def test_converted_model_has_preimages(X, new):
    theirs = ScikitKernelPCA(12, **RBF).fit(X)
    result = KernelPCA.from_sklearn(theirs).reconstruct(new)
    np.testing.assert_allclose(result, model().fit(X).reconstruct(new), atol=1e-6)


# --- novelty and score -----------------------------------------------------------------


def test_unseen_rows_have_larger_errors(digits):
    from sklearn.datasets import load_digits

    labels = load_digits().target
    ones, sevens = digits[labels == 1], digits[labels == 7]
    fitted = model(20).fit(ones[:120])
    normal, novel = fitted.reconstruction_error(ones[120:]), fitted.reconstruction_error(sevens)
    assert np.median(novel) > np.quantile(normal, 0.95)


def test_reconstruction_error_of_sparse_rows(X, new):
    fitted = model().fit(sparse.csr_array(X))
    np.testing.assert_allclose(
        fitted.reconstruction_error(sparse.csr_array(new)),
        model().fit(X).reconstruction_error(new),
        atol=1e-8,
    )


@pytest.fixture(scope="module")
def noisy(digits):
    rng = np.random.default_rng(0)
    return digits[:900] + 0.3 * rng.normal(size=(900, 64)), digits[:900]


def test_a_search_finds_gamma_inside_its_range_on_noisy_digits(noisy):
    """The score without clean rows is close to that with them."""
    X, clean = noisy
    gammas = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    split = ShuffleSplit(1, test_size=300, random_state=0)
    search = GridSearchCV(
        KernelPCA(16, kernel="rbf"), {"gamma": gammas}, cv=split, refit=False
    ).fit(X)
    chosen = search.best_params_["gamma"]
    assert gammas[0] < chosen < gammas[-1]
    (train, test), *_ = split.split(X)
    fits = [KernelPCA(16, kernel="rbf", gamma=gamma).fit(X[train]) for gamma in gammas]
    true = [np.square(fit.reconstruct(X[test]) - clean[test]).mean() for fit in fits]
    assert true[gammas.index(chosen)] < 1.1 * min(true)
    # What the search could have looked at instead prefers the widest kernel.
    assert np.argmax([fit.explained_variance_score(X[test]) for fit in fits]) == 0
    assert np.argmin([np.square(fit.reconstruct(X[test]) - X[test]).mean() for fit in fits]) == 0


def test_score_against_clean_rows_is_the_plain_error(X):
    noisy = X + 0.1 * np.random.default_rng(5).normal(size=X.shape)
    fitted = KernelPCA(4, kernel="rbf", gamma=0.05, eigen_solver="dense").fit(noisy)
    expected = -np.mean((fitted.reconstruct(noisy) - X) ** 2)
    assert fitted.score(noisy, X) == pytest.approx(expected)
    # Labels that a search passes on are not rows.
    assert fitted.score(noisy, np.arange(len(X))) == pytest.approx(fitted.score(noisy))


def test_score_is_of_features_that_were_hidden(X):
    """Hidden features are predicted from the others, so that all components have no advantage."""
    fitted = KernelPCA().fit(X)
    spread = np.square(X - X.mean(axis=0)).mean()
    assert np.square(fitted.reconstruct(X) - X).mean() < 1e-12
    assert fitted.score(X) == pytest.approx(-spread, rel=1e-6)
    assert fitted.score(sparse.csr_array(X)) == pytest.approx(fitted.score(X))
    assert KernelPCA(5).fit(X).score(X) > fitted.score(X)


# --- refusals --------------------------------------------------------------------------


class Counted:
    """Kernel that counts its tiles."""

    supports_sparse = True
    tiles = 0

    def fill(self, X, Y, out):
        self.tiles += 1
        out[...] = X @ Y.T

    def diagonal(self, X):
        return np.ones(len(X))

    def scratch_bytes(self, n_x, n_y, n_features, itemsize):
        return 0


def test_unsupported_preimage_method_raises_before_the_fit(X):
    kernel = Counted()
    for preimage in ("fixed-point", "gradient", "mds", FixedPoint()):
        with pytest.raises(InvalidInput, match=r"choose one of 'neighbors', 'ridge'\.$"):
            model(kernel=kernel, gamma=None, preimage=preimage).fit(X)
    assert kernel.tiles == 0


def test_the_fixed_point_names_the_alternatives(X):
    with pytest.raises(InvalidInput, match="'gradient', 'mds', 'neighbors', 'ridge'"):
        model(kernel="poly", preimage="fixed-point").fit(X)
    fitted = model(kernel="poly").fit(X)
    with pytest.raises(InvalidInput, match="'gradient', 'mds', 'neighbors', 'ridge'"):
        fitted.set_params(preimage="fixed-point").reconstruct(X)


@pytest.mark.parametrize("method", ["inverse_transform", "reconstruct", "score"])
def test_sparse_rows_have_no_pre_images(X, method):
    fitted = model(4).fit(sparse.csr_array(X))
    argument = np.ones((3, 4)) if method == "inverse_transform" else X
    with pytest.raises(NotFittedError, match=r"fit it on X\.toarray\(\)"):
        getattr(fitted, method)(argument)
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        model(preimage="mds").fit(sparse.csr_array(X))


@pytest.mark.parametrize("method", ["inverse_transform", "reconstruct"])
def test_a_kernel_matrix_has_no_pre_images(X, method):
    fitted = model(3, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(InvalidInput, match=r"^kernel='precomputed'"):
        getattr(fitted, method)(X @ X.T)
    with pytest.raises(InvalidInput, match=r"^kernel='precomputed'"):
        fitted.reconstruction_error(X @ X.T)
    with pytest.raises(InvalidInput, match=r"^preimage='mds'"):
        model(kernel="precomputed", preimage="mds").fit(X @ X.T)
    assert not hasattr(fitted, "score")


def test_rows_in_chunks_have_no_preimages(X, tmp_path):
    zarr = pytest.importorskip("zarr")
    rows = zarr.open_array(str(tmp_path / "rows.zarr"), mode="w", shape=X.shape, dtype=X.dtype)
    rows[:] = X
    fitted = model(3, kernel="linear").fit(rows)
    with pytest.raises(NotFittedError, match=r"fit it on X\[:\]"):
        fitted.reconstruct(X)
    with pytest.raises(InvalidInput, match=r"preimage.*X\[:\]"):
        model(3, preimage="mds").fit(rows)


def test_invalid_projections_are_rejected(X):
    fitted = model(3).fit(X)
    for projections in (np.full((2, 3), np.nan), np.full((2, 3), np.inf), np.ones(3)):
        with pytest.raises(ValueError, match=r"NaN|infinity|2D"):
            fitted.inverse_transform(projections)


def test_refine_learns_the_ridge_regression_again(digits):
    model = KernelPCA(
        3, kernel="rbf", gamma=0.05, eigen_solver="kha/et", max_iter=2, fit_inverse_transform=True,
        random_state=0,
    ).fit(digits[:200])  # fmt: skip
    exact = KernelPCA(3, kernel="rbf", gamma=0.05, fit_inverse_transform=True).fit(digits[:200])
    actual = model.refine().inverse_transform(model.transform(digits[:5]))
    expected = exact.inverse_transform(exact.transform(digits[:5]))
    np.testing.assert_allclose(actual, expected, atol=1e-6)
