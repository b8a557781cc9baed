"""Bad input raises an error with value and remedy before any work, or one warning."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.exceptions import NotFittedError

from ikpca import HebbianPCA, KernelPCA, vectorized
from ikpca.errors import InvalidInput, RankWarning
from ikpca.preimages import FixedPoint
from ikpca.solvers import KHA, InverseTime, Krylov
from tests.pairwise import pairwise
from tests.solver_options import with_learning_rule, with_solver

SOLVERS = ["dense", "krylov", "kha", "kha/t", "kha/et", "kha-smd"]
HEBBIAN = SOLVERS[2:]
AN_ARRAY = np.array([1.0, 2.0])


class CountedKernel:
    """Linear kernel of one pair that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, y):
        self.calls += 1
        return float(x @ y)


@pytest.fixture
def kernel():
    return CountedKernel()


@pytest.fixture
def X(rows):
    rows.flags.writeable = False
    return rows


def model(solver="kha/et", n_components=2, **parameters):
    passes = {} if solver == "dense" else {"max_iter": 3}
    solver = parameters.pop("eigen_solver", solver)
    given = {"n_components": n_components, "random_state": 0} | passes | parameters
    return KernelPCA(**with_solver(solver, given))


def with_value(X, value):
    X = X.copy()
    X[3, 1] = value
    return X


# --- the rows ------------------------------------------------------------------------

BAD_ROWS = {
    "NaN": (lambda X: with_value(X, np.nan), "contains NaN"),
    "infinite": (lambda X: with_value(X, np.inf), "contains infinity"),
    "empty": (lambda X: X[:0], r"0 sample\(s\) .* minimum of 2"),
    "no features": (lambda X: X[:, :0], r"0 feature\(s\) .* minimum of 1"),
    "one sample": (lambda X: X[:1], r"1 sample\(s\) .* minimum of 2"),
    "one dimension": (lambda X: X[0], r"Expected 2D array.*[Rr]eshape"),
    "text": (lambda X: [["a", "b"], ["c", "d"]], "could not convert string to float: 'a'"),
    "complex": (lambda X: X * 1j, "Complex data not supported"),
}


@pairwise(strength=1, solver=SOLVERS, case=BAD_ROWS)
def test_bad_rows(X, kernel, solver, case):
    spoil, message = BAD_ROWS[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model(solver, kernel=kernel).fit(spoil(X))
    assert kernel.calls == 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_sparse_rows(X, value):
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model().fit(sparse.csr_array(with_value(X, value)))


@pairwise(strength=1, solver=SOLVERS, kind=[np.asarray, sparse.csr_array])
def test_precomputed_must_be_square(X, solver, kind):
    with pytest.raises(InvalidInput, match=r"\(60, 5\)"):
        model(solver, kernel="precomputed").fit(kind(X))


def test_precomputed_must_be_finite():
    with pytest.raises(ValueError, match="contains NaN"):
        model(kernel="precomputed").fit(np.full((4, 4), np.nan))


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_rows_with_a_kernel_of_one_pair(X, kernel, solver):
    with pytest.raises(InvalidInput, match=r"^kernel=.*X\.toarray\(\)"):
        model(solver, kernel=kernel).fit(sparse.csr_array(X))
    assert kernel.calls == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_kernel_without_finite_values(X, solver):
    """This error differs from that of a kernel without variance."""
    with pytest.raises(ValueError, match=r"(?i)finite|infs or NaNs"):
        model(solver, kernel=vectorized(lambda X, Y: np.full((len(X), len(Y)), np.nan))).fit(X)


# --- new rows ------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["dense", "kha/et"])
@pytest.mark.parametrize("method", ["transform", "explained_variance_score"])
def test_new_rows(X, kernel, solver, method):
    fitted = model(solver, kernel=kernel).fit(X)
    kernel.calls = 0
    for bad, message in [
        (X[:, :3], "X has 3 features, but KernelPCA is expecting 5"),
        (with_value(X, np.nan), "contains NaN"),
        (with_value(X, np.inf), "contains infinity"),
        (X[:0], r"0 sample\(s\)"),
        (X[0], "Expected 2D array"),
    ]:
        with pytest.raises(ValueError, match=message):
            getattr(fitted, method)(bad)
    assert kernel.calls == 0


def test_new_kernel_values_of_another_width(X):
    fitted = model(kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match="X has 7 features, but KernelPCA is expecting 60"):
        fitted.transform(np.ones((3, 7)))


def test_explained_variance_score_needs_more_than_a_kernel_matrix(X):
    fitted = model(kernel="precomputed").fit(X @ X.T)
    with pytest.raises(InvalidInput, match=r"^kernel='precomputed'"):
        fitted.explained_variance_score(X @ X.T)


@pytest.mark.parametrize(
    "method", ["transform", "inverse_transform", "explained_variance_score", "to_sklearn"]
)
def test_unfitted_model_raises_an_error(X, method):
    arguments = [] if method == "to_sklearn" else [X]
    with pytest.raises(NotFittedError):
        getattr(model(), method)(*arguments)


def test_inverse_of_another_width(X):
    fitted = model(kernel="rbf", fit_inverse_transform=True).fit(X)
    with pytest.raises(InvalidInput, match=r"5 columns.* 2 components"):
        fitted.inverse_transform(np.ones((3, 5)))


def test_inverse_of_projections_that_overflow(X):
    model = KernelPCA(2, kernel="rbf").fit(X.astype(np.float32))
    with pytest.raises(InvalidInput, match="float32"):
        model.inverse_transform(np.full((1, 2), 1e125))
    linear = KernelPCA(2, kernel="linear").fit(X)
    far = linear.transform(1e157 * X)
    assert np.isfinite(linear.inverse_transform(far)).all()
    with pytest.raises(InvalidInput, match="not finite"):
        linear.inverse_transform(far, return_distance=True)


def test_score_of_rows_whose_errors_overflow(X):
    with pytest.raises(InvalidInput, match="overflow"):
        KernelPCA(2).fit(X).score(np.full_like(X, 1e200))


def test_inverse_transform_needs_rows(X):
    with pytest.raises(ValueError, match="precomputed"):
        model(kernel="precomputed", fit_inverse_transform=True).fit(X @ X.T)
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        model(fit_inverse_transform=True).fit(sparse.csr_array(X))


# --- constructor arguments -----------------------------------------------------------

#: Parameter, bad values, and what the message offers instead.
BAD_ARGUMENTS = {
    "n_components": ([0, -1, True, "2", [2], 1.0, 1.5, -0.5, np.nan, 10**400], "pass"),
    "kernel": (["gauss", 3, None, AN_ARRAY], "choose one of linear, poly, .*rbf, .*precomputed"),
    "gamma": ([-1, np.nan, np.inf, [1.0], "auto", True], "'scale'"),
    "degree": ([-1, np.nan, np.inf, "3", None], "pass 2 or 3"),
    "coef0": ([np.nan, np.inf, "1", None], "pass 1"),
    "kernel_params": ([[1], "gamma"], "must be a dict or None"),
    "alpha": ([-1, np.nan, None, "1"], r"pass 1\.0"),
    "fit_inverse_transform": (["yes", 1, None], "choose one of True, False"),
    "preimage": (["ols", None, 3, AN_ARRAY, FixedPoint], "'auto', 'fixed-point', 'gradient', "),
    "eigen_solver": (["lobpcg", "KHA", None, 3], "'auto', 'dense', .*'kha', 'kha/t', 'kha/et'"),
    "tol": ([-1, np.nan, "0", None], "pass 0"),
    "max_iter": ([0, -1, 2.5, np.nan, "9"], "pass None"),
    "iterated_power": ([-1, 1.5, "x", AN_ARRAY], "pass 'auto'"),
    "remove_zero_eig": ([None, 2, "no"], "choose one of True, False"),
    "copy_X": (["no", 1, None], "choose one of True, False"),
    "n_jobs": ([0, 1.5, "2"], "pass None"),
    "max_memory": ([0, -1, 1.5, "much", "5 XB", True, [1]], "'500MB' or '2GB'"),
    "warm_start": ([1, None, "no"], "choose one of True, False"),
    "whiten": ([1, None, "no"], "choose one of True, False"),
    "checkpoint": ([3, AN_ARRAY, "/no/such/folder/fit"], "pass a path|create it first"),
    "verbose": ([-1, 1.5, "yes", None], "pass 0 or 1"),
}
BAD_OPTIONS = {
    "gain": ([0, -1, 0.0, -1e-9, np.nan, np.inf, "big", None, True, AN_ARRAY], "pass gain='auto'"),
    "meta_gain": ([-1, np.nan, np.inf, "big", None, AN_ARRAY], "pass meta_gain='auto'"),
    "meta_decay": ([-0.1, 1.1, np.nan, None], r"the paper uses 0\.99"),
    "log_gain_init": ([np.nan, np.inf, None, "0"], "pass 'auto'"),
    "clock": (["tick", None, 1], "choose one of 'pattern', 'pass'"),
    "rayleigh_ritz": ([1, None, "no"], "choose one of True, False"),
    "backoff": ([1, None, "no"], "choose one of True, False"),
}


def test_every_constructor_argument_is_in_the_table():
    assert {*BAD_ARGUMENTS, "random_state"} == {*KernelPCA().get_params()}
    assert {*BAD_OPTIONS, "init", "method"} == {*KHA().get_params()}


@pytest.mark.parametrize("name", BAD_ARGUMENTS | BAD_OPTIONS)
def test_bad_arguments(X, kernel, name, subtests):
    values, message = (BAD_ARGUMENTS | BAD_OPTIONS)[name]
    for value in values:
        bad = model("kha-smd", **{"kernel": kernel, name: value})
        with subtests.test(repr(value)):
            with pytest.raises(InvalidInput, match=message) as refused:
                bad.fit(X)
            assert str(refused.value).startswith(f"{name}={value!r}: ")
    assert kernel.calls == 0


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"eigen_solver": KHA("kha/et", meta_gain=0.1)}, "meta_gain"),
        ({"eigen_solver": KHA("kha/t", log_gain_init=1.0)}, "log_gain_init"),
        ({"eigen_solver": KHA(gain=0.1 * InverseTime(), meta_decay=0.9)}, "meta_decay"),
        ({"eigen_solver": KHA("kha", clock="pass")}, "clock"),
        ({"eigen_solver": KHA("sgd")}, "method"),
        ({"eigen_solver": Krylov(init="random")}, "init"),
        ({"eigen_solver": "dense", "warm_start": True}, "warm_start"),
        ({"eigen_solver": "dense", "checkpoint": "fit.ikpca"}, "checkpoint"),
    ],
)
def test_options_without_effect(X, kernel, parameters, name):
    with pytest.raises(InvalidInput, match=f"^{name}="):
        KernelPCA(2, kernel=kernel, **parameters).fit(X)
    assert kernel.calls == 0


@pairwise(strength=1, solver=HEBBIAN, n_components=[None, 0.9])
def test_hebbian_solvers_need_a_number_of_components(X, kernel, solver, n_components):
    with pytest.raises(InvalidInput, match=rf"^n_components=.*'{solver}'"):
        model(solver, n_components, kernel=kernel).fit(X)
    assert kernel.calls == 0


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "cosine", "precomputed"])
def test_the_median_distance_is_for_kernels_of_a_distance(X, kernel):
    with pytest.raises(InvalidInput, match=rf"^gamma='median'.*kernel='{kernel}'"):
        model(kernel=kernel, gamma="median").fit(X)


@pytest.mark.parametrize("gamma", ["scale", "median"])
def test_equal_rows_leave_no_scale(gamma):
    with pytest.raises(InvalidInput, match=rf"^gamma='{gamma}'"):
        model(kernel="rbf", gamma=gamma).fit(np.ones((10, 3)))


BAD_STARTS = {
    "unknown name": ("dense", "init='dense'.*'pivoted', 'random'"),
    "too many rows": (np.ones((3, 60)), r"shape \(3, 60\)'.* must have shape \(2, 60\)"),
    "too few columns": (np.ones((2, 59)), r"shape \(2, 59\)'.* must have shape \(2, 60\)"),
    "one dimension": (np.ones(60), r"must have shape \(2, 60\)"),
    "nothing": (None, "init"),
    "NaN": (np.full((2, 60), np.nan), "NaN or infinite values; replace them"),
    "infinite": (np.full((2, 60), np.inf), "NaN or infinite values; replace them"),
    "text": ([["a"]], "is not an array of numbers; pass an array"),
}


@pytest.mark.parametrize("case", BAD_STARTS)
def test_bad_starts(X, kernel, case):
    init, message = BAD_STARTS[case]
    with pytest.raises(InvalidInput, match=message):
        model(kernel=kernel, init=init).fit(X)
    assert kernel.calls == 0


@pytest.mark.parametrize("gain", ["auto", 0.01])
@pytest.mark.parametrize("init", [np.zeros((2, 60)), np.ones((2, 60))], ids=["zeros", "constant"])
def test_initial_components_of_length_zero(X, gain, init):
    """Such a component cannot change. Constant rows have length zero after centering."""
    with pytest.raises(InvalidInput, match="init"):
        model(gain=gain, init=init).fit(X)


@pytest.mark.parametrize("random_state", ["x", -1, 1.5])
def test_bad_random_state(X, kernel, random_state):
    with pytest.raises(ValueError, match=r"^random_state="):
        model(kernel=kernel, random_state=random_state).fit(X)
    assert kernel.calls == 0


def test_only_what_scikit_learn_has_converts(X):
    with pytest.raises(InvalidInput, match=r"^whiten=True"):
        model(whiten=True).fit(X).to_sklearn()
    with pytest.raises(InvalidInput, match=r"^kernel='laplacian'"):
        model(kernel="laplacian").fit(X).to_sklearn()
    with pytest.raises(InvalidInput, match=r"^dict "):
        KernelPCA.from_sklearn({})
    with pytest.raises(NotFittedError):
        KernelPCA.from_sklearn(ScikitKernelPCA())


# --- arguments stay as they are ------------------------------------------------------


@pairwise(
    slow=True, solver=SOLVERS, copy_X=[True, False], kind=["rows", "sparse rows", "kernel matrix"]
)
def test_arguments_are_not_modified(rows, solver, copy_X, kind):
    X = {"rows": rows, "sparse rows": sparse.csr_array(rows), "kernel matrix": rows @ rows.T}[kind]
    data = X.data if kind == "sparse rows" else X
    init, params = np.random.default_rng(0).normal(size=(2, 60)), {}
    before, init_before = data.copy(), init.copy()
    fitted = model(
        solver,
        kernel="precomputed" if kind == "kernel matrix" else "rbf",
        kernel_params=params,
        copy_X=copy_X,
        **{"init": init} if solver in HEBBIAN else {},
    )
    fitted.fit(X).transform(X)
    assert np.array_equal(data, before)
    assert np.array_equal(init, init_before)
    assert solver not in HEBBIAN or fitted.eigen_solver.init is init
    assert fitted.kernel_params is params
    assert params == {}


# --- rank ----------------------------------------------------------------------------


@pairwise(strength=1, solver=SOLVERS, dtype=[np.float64, np.float32])
def test_more_components_than_rank(X, solver, dtype):
    """Zero eigenvalues as in scikit-learn, and one warning with both numbers; l = 60, rank 5."""
    X = X.astype(dtype)
    fitted = model(solver, 8, max_iter=None)
    with pytest.warns(RankWarning, match=r"n_components=8 .* rank 5") as said:
        projections = fitted.fit_transform(X)
    assert len(said) == 1
    expected = ScikitKernelPCA(8, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(fitted.eigenvalues_, expected.eigenvalues_, rtol=1e-4)
    assert not fitted.eigenvalues_[5:].any()
    for projected in (projections, fitted.transform(X)):
        assert projected.shape == (60, 8)
        assert not projected[:, 5:].any()


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("solver", ["dense", "kha/et"])
def test_a_warning_points_at_the_line_of_the_caller(X, solver, method):
    with pytest.warns(RankWarning) as said:
        getattr(model(solver, 8), method)(X)
    assert said[0].filename == __file__


@pytest.mark.parametrize("solver", SOLVERS)
def test_more_components_than_samples(X, solver):
    with pytest.warns(RankWarning, match=r"n_components=100 .* rank 5"):
        fitted = model(solver, 100).fit(X)
    assert fitted.eigenvalues_.shape == (60,)


@pytest.mark.parametrize("solver", SOLVERS)
def test_components_without_variance_are_removed_on_request(X, solver):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = model(solver, 8, remove_zero_eig=True).fit(X)
    assert fitted.eigenvalues_.shape == (5,)
    assert fitted.transform(X).shape == (60, 5)


@pairwise(
    slow=True,
    settings=[*((solver, {}) for solver in SOLVERS), ("kha", {"gain": 0.1})],
    kernel_and_value=[("linear", 0.1), ("rbf", 0.1), ("poly", 0.3), ("linear", 0.0)],
    dtype=[np.float64, np.float32],
)
def test_a_kernel_without_variance(settings, kernel_and_value, dtype):
    (solver, options), (kernel, value) = settings, kernel_and_value
    X = np.full((12, 3), value, dtype=dtype)
    fitted = model(solver, kernel=kernel, **options)
    with pytest.warns(RankWarning, match="no variance") as said:
        projections = fitted.fit_transform(X)
    assert len(said) == 1
    assert projections.shape == (12, 2)
    for zeros in (projections, fitted.transform(X), fitted.eigenvalues_, fitted.coefficients_):
        assert not zeros.any()
    assert not fitted.explained_variance_ratio_.any()


# --- HebbianPCA ----------------------------------------------------------------------

BAD_HEBBIAN_ARGUMENTS = {
    "n_components": ([0, -1, 2.5, "2", True], "pass None for all"),
    "gain": ([0, -1, np.nan, np.inf, "big", None, True], "pass gain='auto'"),
    "clock": (["tick", "pass", None], "choose one of 'pattern', 'pass'|leave it out"),
    "rayleigh_ritz": ([1, None], "choose one of True, False"),
    "max_iter": ([0, 1.5, None], "pass 50"),
}


@pytest.mark.parametrize("name", BAD_HEBBIAN_ARGUMENTS)
def test_bad_arguments_of_hebbian_pca(X, name, subtests):
    values, message = BAD_HEBBIAN_ARGUMENTS[name]
    for value, method in product(values, ("fit", "partial_fit")):
        settings = with_solver("kha/et", {"n_components": 2, "max_iter": 3, name: value})
        bad = HebbianPCA(rule=settings.pop("eigen_solver"), **settings)
        with subtests.test(repr(value), method=method):
            with pytest.raises(InvalidInput, match=message) as refused:
                getattr(bad, method)(X)
            assert str(refused.value).startswith(f"{name}={value!r}: ")


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 6}, "n_components=6: X has 5 features; pass at most 5"),
        ({"init": "sparse"}, "init='sparse'.*choose one of .*'random'"),
        ({"init": np.ones((3, 5))}, r"\(3, 5\)'.* must have shape \(2, 5\)"),
        ({"init": np.full((2, 5), np.nan)}, "NaN or infinite values"),
        ({"init": np.zeros((2, 5))}, "stay zero"),
        ({"rule": KHA("kha-smd")}, "needs a kernel; pass 'kha/et'"),
    ],
)
def test_hebbian_pca_rejects_options_for_these_rows(X, parameters, message, method):
    with pytest.raises(InvalidInput, match=message):
        getattr(HebbianPCA(**with_learning_rule({"n_components": 2} | parameters)), method)(X)


@pairwise(
    strength=1,
    case=sorted({*BAD_ROWS} - {"one sample", "empty"}),
    method=["fit", "partial_fit"],
)
def test_bad_rows_of_hebbian_pca(X, case, method):
    spoil, message = BAD_ROWS[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        getattr(HebbianPCA(2), method)(spoil(X))


def test_too_few_rows_for_hebbian_pca(X):
    for n_rows in (0, 1):
        with pytest.raises(ValueError, match=rf"{n_rows} sample\(s\) .* minimum of 2"):
            HebbianPCA(2).fit(X[:n_rows])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        HebbianPCA(2).partial_fit(X[:0])


@pytest.mark.parametrize("method", ["transform", "partial_fit"])
def test_hebbian_pca_with_rows_of_another_width(X, method):
    fitted = HebbianPCA(2, max_iter=2).fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but HebbianPCA is expecting 5"):
        getattr(fitted, method)(X[:, :3])


def test_hebbian_pca_rejects_sparse_rows(X):
    with pytest.raises(TypeError, match=r"toarray"):
        HebbianPCA(2).fit(sparse.csr_array(X))


@pytest.mark.parametrize("method", ["transform", "inverse_transform"])
def test_unfitted_hebbian_pca_raises_an_error(X, method):
    with pytest.raises(NotFittedError):
        getattr(HebbianPCA(2), method)(X)


@pytest.mark.parametrize(
    "solver",
    ["kha/et", KHA("kha", gain=0.1), KHA("kha/t", gain=0.1), KHA(gain=0.1 * InverseTime())],
    ids=repr,
)
@pytest.mark.parametrize("value", [0.1, 1.0])
def test_hebbian_pca_on_equal_rows(solver, value):
    """Zeros up to the rounding of the mean, and one warning."""
    X = np.full((12, 3), value)
    with pytest.warns(RankWarning) as said:
        fitted = HebbianPCA(2, rule=solver, max_iter=3, random_state=0).fit(X)
    assert len(said) == 1
    np.testing.assert_allclose(fitted.transform(X), 0, atol=1e-15)
    np.testing.assert_allclose(fitted.explained_variance_, 0, atol=1e-30)
