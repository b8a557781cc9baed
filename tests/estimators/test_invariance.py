"""Results do not depend on offset, scale, precision, order of columns, storage or budgets.

Every estimator and solver is compared with itself on the same values in another form.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ikpca import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    NoveltyDetector,
    OnlineKernelPCA,
    open_rows,
)
from ikpca.solvers import Nystrom
from ikpca.solvers.kha import METHODS
from tests.exact_kernel import ExactKernel
from tests.pairwise import pairwise

PARAMETERS = {
    "linear": {},
    "rbf": {"gamma": 0.03},
    "laplacian": {"gamma": 0.05},
    "cosine": {},
    "poly": {"gamma": 0.05, "degree": 2, "coef0": 1},
    "sigmoid": {"gamma": 0.002, "coef0": 0},
}
SHIFT_INVARIANT = ["rbf", "laplacian", "linear"]
#: Solvers of KernelPCA by name. "auto" is dense below 1,500 rows, also with a tolerance.
SOLVERS = {
    "dense": {"eigen_solver": "dense"},
    "krylov": {"eigen_solver": "krylov"},
    "nystrom": {"eigen_solver": Nystrom(80)},
    "auto": {"tol": 1e-3},
    **{method: {"eigen_solver": method, "max_iter": 20} for method in METHODS},
}
STREAMS = ["IncrementalKernelPCA", "OnlineKernelPCA"]
DETECTORS = ["NoveltyDetector", "NoveltyDetector, landmarks"]
ESTIMATORS = [*SOLVERS, "HebbianPCA", *STREAMS, *DETECTORS, "KernelSpectralClustering"]
OFFSETS = [("float64", 1e3), ("float64", 1e6), ("float32", 1e3)]
#: Tolerances relative to the largest value, for float64 and float32 rows.
TOLERANCE = {"float64": 1e-6, "float32": 1e-4}

#: Largest difference that reported errors can explain.
LARGEST_ERROR = 0.05


def applies(name, kernel):
    """Return True if the estimator supports the kernel."""
    if name == "HebbianPCA":
        return kernel == "linear"
    # An indefinite kernel: others refuse it, or warn.
    return kernel != "sigmoid" or name in ("dense", "krylov")


def estimator(name, kernel, **parameters):
    shared = {"kernel": kernel, **PARAMETERS[kernel], "random_state": 0, **parameters}
    if name in SOLVERS:
        return KernelPCA(4, **SOLVERS[name], **shared)
    if name == "HebbianPCA":
        parameters = {key: value for key, value in parameters.items() if key != "gamma"}
        return HebbianPCA(4, max_iter=100, random_state=0, **parameters)
    if name == "IncrementalKernelPCA":
        return IncrementalKernelPCA(4, max_basis_rows=None, **shared)
    if name == "OnlineKernelPCA":
        return OnlineKernelPCA(4, **shared)
    if name == "KernelSpectralClustering":
        normalize = "njw" if kernel in ("rbf", "laplacian") else None
        return KernelSpectralClustering(2, n_components=2, normalize=normalize, **shared)
    # The detector has no other parameters of the kernel.
    chosen = {key: shared[key] for key in shared if key not in ("degree", "coef0")}
    solver = Nystrom(80) if name.endswith("landmarks") else "dense"
    return NoveltyDetector(0.9, eigen_solver=solver, **chosen)


@cache
def rows(name="", dtype="float64"):
    """Training rows and new rows: two clusters, columns of unequal spread.

    They are multiples of 2⁻¹⁰, so that sums with the offsets below are exact.
    """
    n_rows = 1700 if name == "auto" else 240
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows + 40, 5)) * [2.0, 1.5, 1.0, 0.6, 0.4]
    X[::2, 0] += 8
    X = (np.round(X * 1024) / 1024).astype(dtype)
    return X[:n_rows], X[n_rows:]


def results(model, X, new):
    """Fit, and return eigenvalues, projections up to their signs, and scores, as far as any."""
    model.fit(X)
    if isinstance(model, NoveltyDetector):
        return {"scores": model.score_samples(new), "offset": np.array([model.offset_])}
    if isinstance(model, KernelSpectralClustering):
        together = model.labels_[:, None] == model.labels_
        return {"eigenvalues": model.eigenvalues_, "labels": together.astype(float)}
    values = model.explained_variance_ if isinstance(model, HebbianPCA) else model.eigenvalues_
    projections = np.abs(model.transform(new)[:, :3])
    errors = reported_errors(model, values, X)
    return {"eigenvalues": values[:3], "projections": projections, "errors": errors}


def reported_errors(model, values, X):
    """Return bounds of the errors of eigenvalues and projections of Hebbian fits.

    The angle between a component and the exact one is at most the residual divided by the gap.
    """
    if isinstance(model, HebbianPCA):
        W = model.components_.astype(np.float64)
        defects = W @ np.cov(np.asarray(X, dtype=np.float64).T) - values[:, None] * W
        residual = np.linalg.norm(defects, axis=1).max() / values[0]
    elif isinstance(model, KernelPCA) and model.eigen_solver in METHODS:
        residual = model.certificate_.residual_bounds.max()
    else:
        return {}
    return {
        "eigenvalues": residual,
        "projections": 2 * residual * values[0] / -np.diff(values).max(),
    }


@cache
def reference(name, kernel, gamma=None):
    """Return the results for float64 rows without an offset."""
    parameters = {} if gamma is None else {"gamma": gamma}
    return results(estimator(name, kernel, **parameters), *rows(name))


def tolerance_of(name, dtype="float64"):
    """Return the tolerance; with one of its own, "auto" uses single precision for all rows."""
    return TOLERANCE["float32" if name == "auto" else dtype]


def check_same(actual, expected, tolerance):
    """Compare results, relative to the largest value, apart from the errors that are reported."""
    reported = [one.get("errors", {}) for one in (actual, expected)]
    for key in expected.keys() - {"errors"}:
        value = expected[key]
        error = (
            np.abs(np.asarray(actual[key], dtype=np.float64) - value).max() / np.abs(value).max()
        )
        allowed = min(tolerance + sum(errors.get(key, 0.0) for errors in reported), LARGEST_ERROR)
        assert error <= allowed, f"{key}: relative error {error:.1e}, allowed {allowed:.1e}"


@pairwise(
    strength=3,
    slow=True,
    name=ESTIMATORS,
    kernel=SHIFT_INVARIANT,
    offset=OFFSETS,
    where=applies,
)
def test_results_do_not_depend_on_an_offset(name, kernel, offset):
    dtype, amount = offset
    X, new = (part + np.dtype(dtype).type(amount) for part in rows(name, dtype))
    result = results(estimator(name, kernel), X, new)
    check_same(result, reference(name, kernel), tolerance_of(name, dtype))


@pairwise(
    slow=True,
    name=ESTIMATORS,
    kernel=["rbf", "poly", "cosine", "linear", "sigmoid"],
    scale=[("float64", -27), ("float64", 27), ("float32", -13), ("float32", 13)],
    where=applies,
)
def test_results_do_not_depend_on_a_common_scale(name, kernel, scale):
    """With gamma="scale" kernel values do not change; those of the linear kernel are squared."""
    dtype, exponent = scale
    X, new = (np.ldexp(part, exponent) for part in rows(name, dtype))
    assert X.dtype == dtype
    result = results(estimator(name, kernel, gamma="scale"), X, new)
    if kernel == "linear":
        for key in result.keys() - {"labels", "errors"}:
            power = 1 if key == "projections" else 2
            result[key] = np.ldexp(np.float64(result[key]), -exponent * power)
    check_same(result, reference(name, kernel, "scale"), tolerance_of(name, dtype))


@pytest.mark.slow
@pairwise(name=ESTIMATORS, kernel=PARAMETERS, where=applies)
def test_float32_rows_give_the_results_of_float64_rows(name, kernel):
    result = results(estimator(name, kernel), *rows(name, "float32"))
    check_same(result, reference(name, kernel), TOLERANCE["float32"])


@pytest.mark.slow
@pairwise(name=ESTIMATORS, kernel=PARAMETERS, where=applies)
def test_results_do_not_depend_on_the_order_of_columns(name, kernel):
    order = [3, 0, 4, 2, 1]
    X, new = (part[:, order] for part in rows(name))
    result = results(estimator(name, kernel), X, new)
    check_same(result, reference(name, kernel), tolerance_of(name))


def dense_form(X, folder):
    return X


def csr_form(X, folder):
    return sparse.csr_array(X)


def fortran_form(X, folder):
    return np.asfortranarray(X)


def memory_map_form(X, folder):
    np.save(folder / "rows.npy", X)
    return open_rows(folder / "rows.npy")


def parquet_form(X, folder):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({str(i): column for i, column in enumerate(X.T)})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=100)
    return open_rows(folder / "rows.parquet")


FORMS = [dense_form, csr_form, fortran_form, memory_map_form, parquet_form]
NOT_SPARSE = ("HebbianPCA", *STREAMS)
IN_MEMORY = ("HebbianPCA", "OnlineKernelPCA", "KernelSpectralClustering")


def form_applies(name, form):
    if form is csr_form:
        return name not in NOT_SPARSE
    return form is not parquet_form or name not in IN_MEMORY


@pairwise(
    slow=True,
    name=ESTIMATORS,
    form=FORMS,
    values=[("float64", 0), ("float32", 0), ("float32", 1000)],
    where=form_applies,
)
def test_results_do_not_depend_on_the_storage(name, form, values, tmp_path):
    """Training rows and new rows in a form; kernels do not depend on offsets."""
    dtype, offset = values
    kernel = "linear" if name == "HebbianPCA" else "rbf"
    X, new = (part + np.dtype(dtype).type(offset) for part in rows(name, dtype))
    stored = []
    for folder, part in (("training", X), ("new", new)):
        (tmp_path / folder).mkdir()
        stored.append(form(part, tmp_path / folder))
    result = results(estimator(name, kernel), *stored)
    check_same(result, reference(name, kernel), tolerance_of(name, dtype))


@pairwise(
    slow=True,
    name=["dense", "NoveltyDetector", *STREAMS, "KernelSpectralClustering"],
    kernel=["rbf", "laplacian"],
    gamma=["scale", "median"],
    form=FORMS,
    offset=OFFSETS,
    where=form_applies,
)
def test_gamma_does_not_depend_on_storage_and_offset(name, kernel, gamma, form, offset, tmp_path):
    dtype, amount = offset
    X = rows(name, dtype)[0]
    expected = estimator(name, kernel, gamma=gamma).fit(X.astype(np.float64))
    model = estimator(name, kernel, gamma=gamma)
    model.fit(form(X + np.dtype(dtype).type(amount), tmp_path))
    if isinstance(model, NoveltyDetector):
        model, expected = model.model_, expected.model_
    assert model.gamma_ == pytest.approx(expected.gamma_, rel=1e-6)


@pairwise(
    slow=True,
    name=[*SOLVERS, *DETECTORS, "KernelSpectralClustering"],
    kernel=["rbf", "linear", "poly"],
    settings=[{"n_jobs": 1}, {"n_jobs": 2}, {"max_memory": "small"}],
)
def test_results_do_not_depend_on_threads_and_memory(name, kernel, settings):
    """Within the bounds that are reported, and to rounding where none are."""
    X = rows("auto")[0] if name == "auto" else rows("auto")[0][:700]
    if "max_memory" in settings:
        dense = {"dense": "9MB", "KernelSpectralClustering": "9MB", "NoveltyDetector": "45MB"}
        settings = {"max_memory": dense.get(name, "5MB")}
    plain, other = estimator(name, kernel), estimator(name, kernel, **settings)
    actual, expected = results(other, X, X[:40]), results(plain, X, X[:40])
    if isinstance(plain, KernelPCA):
        bounds = plain.certificate_.eigenvalue_bounds + other.certificate_.eigenvalue_bounds
        allowed = bounds[:3] + 1e-9 * plain.eigenvalues_[0]
        assert (np.abs(actual["eigenvalues"] - expected["eigenvalues"]) <= allowed).all()
    check_same(actual, expected, tolerance_of(name))


@pairwise(
    slow=True,
    name=STREAMS,
    kernel=["rbf", "linear", "laplacian", "cosine", "poly"],
    size=[1, 7, 64, 100],
    dtype=TOLERANCE,
)
def test_results_do_not_depend_on_batch_sizes(name, kernel, size, dtype):
    """The exact mode of IncrementalKernelPCA; OnlineKernelPCA depends on the order of rows only."""
    X, new = rows(name, dtype)
    X = X[:100]
    whole, model = estimator(name, kernel).partial_fit(X), estimator(name, kernel)
    for first in range(0, len(X), size):
        model.partial_fit(X[first : first + size])
    for key in ("eigenvalues_", "explained_variance_ratio_"):
        actual, expected = getattr(model, key)[:3], getattr(whole, key)[:3]
        check_same({key: actual}, {key: expected}, TOLERANCE[dtype])
    actual, expected = (np.abs(fitted.transform(new)[:, :3]) for fitted in (model, whole))
    check_same({"projections": actual}, {"projections": expected}, TOLERANCE[dtype])


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT)
@pytest.mark.parametrize("dtype", TOLERANCE)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n_features=st.integers(1, 6),
    offset=st.sampled_from([1e4, 0.0, -3.0, 100.0]),
    scale=st.integers(-12, 12),
    spread=st.sampled_from([1.0, 10.0, 1e3]),
)
def test_eigenvalues_of_any_rows_are_exact_within_bounds(
    seed, n_features, kernel, dtype, offset, scale, spread
):
    """Offsets, scales and columns of unequal spread, against the float64 kernel matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n_features)) * np.geomspace(1, spread, n_features) + offset
    X = np.ldexp(X, scale).astype(dtype)
    gamma = 1 / (n_features * X.var(dtype=np.float64))
    if kernel == "laplacian":
        gamma = np.sqrt(gamma)
    exact = ExactKernel(X, kernel, gamma=gamma)
    number = min(2, int(np.count_nonzero(exact.all_eigenvalues > 1e-3 * exact.eigenvalues(1)[0])))
    for solver in ("dense", "krylov"):
        model = KernelPCA(number, kernel=kernel, gamma=gamma, eigen_solver=solver, random_state=0)
        errors = np.abs(model.fit(X).eigenvalues_ - exact.eigenvalues(number))
        assert (errors <= TOLERANCE[dtype] * exact.eigenvalues(1)[0]).all()
        assert (errors <= model.certificate_.eigenvalue_bounds + exact.rounding).all()


@pytest.mark.slow
@pairwise(
    kernel=["rbf", "linear"],
    solver=["krylov", "nystrom"],
    offset=[("float64", 1e6), ("float32", 1e3)],
)
def test_offset_on_a_cluster(kernel, solver, offset):
    da = pytest.importorskip("dask.array")
    from ikpca.dask import KernelPCA as DaskKernelPCA
    from tests.dask.clusters import cluster_of

    dtype, amount = offset
    X, new = (part + np.dtype(dtype).type(amount) for part in rows(solver, dtype))
    with cluster_of(2) as client:
        model = DaskKernelPCA(
            4, kernel=kernel, random_state=0, client=client, **SOLVERS[solver], **PARAMETERS[kernel]
        ).fit(da.from_array(X, chunks=(80, -1)))
        projections = np.abs(model.transform(da.from_array(new, chunks=(40, -1))).compute())
    result = {"eigenvalues": model.eigenvalues_[:3], "projections": projections[:, :3]}
    check_same(result, reference(solver, kernel), TOLERANCE[dtype])
