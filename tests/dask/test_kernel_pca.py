"""KernelPCA on a Dask cluster equals KernelPCA, for any workers and chunks."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da
from sklearn.base import clone

import ikpca
import ikpca.dask
from ikpca.errors import InvalidInput
from ikpca.kernels import Gaussian
from ikpca.solvers import KHA, Nystrom
from tests.dask.clusters import cluster_of
from tests.solver_options import with_solver

pytestmark = pytest.mark.slow

SOLVERS = ["dense", "krylov"]
CHUNKS = (90, 10, 140)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(240, 6)) * [4, 3, 2, 1, 1, 0.5]


@pytest.fixture(scope="module")
def D(X):
    return da.from_array(X, chunks=(CHUNKS, (6,)))


@pytest.fixture(scope="module", params=[1, 2, 3], ids=lambda n: f"{n} workers")
def client(request):
    with cluster_of(request.param) as client:
        yield client


@pytest.fixture(scope="module")
def two():
    with cluster_of(2) as client:
        yield client


def settings(solver, **others):
    passes = {"max_iter": 3} if solver != "dense" else {}
    given = {"n_components": 4, "kernel": "rbf", "gamma": 0.05, "random_state": 0}
    return with_solver(solver, {**given, **passes, **others})


def same(actual, expected, tolerance=1e-10):
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("solver", SOLVERS)
def test_fit_equals_local_fit(client, X, D, solver):
    # At machine precision, rounding errors of the order of summation decide on another pass.
    given = settings(solver, tol=1e-10)
    local = ikpca.KernelPCA(**given)
    projections = local.fit_transform(X)
    model = ikpca.dask.KernelPCA(**given, client=client)
    same(model.fit_transform(D).compute(), projections)
    for name in ("eigenvalues_", "coefficients_", "explained_variance_ratio_"):
        same(getattr(model, name), getattr(local, name))
    same(model.transform(D).compute(), local.transform(X))
    assert model.n_iter_ == local.n_iter_


@pytest.mark.parametrize("selection", ["uniform", "pivoted"])
def test_landmark_model_is_local(two, X, D, selection, tmp_path):
    given = {"n_components": 4, "kernel": "rbf", "gamma": 0.05, "random_state": 0}
    given["eigen_solver"] = Nystrom(40, selection)
    local = ikpca.KernelPCA(**given).fit(X)
    model = ikpca.dask.KernelPCA(**given, client=two)
    same(model.fit_transform(D).compute(), local.transform(X), 1e-8)
    assert np.array_equal(model.landmarks_, local.landmarks_)
    same(model.eigenvalues_, local.eigenvalues_)
    same(model.certificate_.residuals, local.certificate_.residuals, 1e-8)
    same(model.inverse_transform(local.transform(X[:3])), local.inverse_transform(
        local.transform(X[:3])), 1e-5)  # fmt: skip
    model.save(tmp_path / "model")
    same(ikpca.load(tmp_path / "model").transform(X), local.transform(X), 1e-8)
    with pytest.raises(InvalidInput, match="pass all rows"):
        model.refine()
    assert model.refine(D).certificate_.residuals.max() < 1e-12


def test_tolerance_selects_landmarks(two):
    rows = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    given = {"n_components": 2, "kernel": "rbf", "gamma": 0.1, "random_state": 0, "tol": 1e-2}
    local = ikpca.KernelPCA(**given).fit(rows)
    model = ikpca.dask.KernelPCA(**given, client=two).fit(da.from_array(rows, chunks=(300, -1)))
    assert np.array_equal(model.landmarks_, local.landmarks_)
    assert len(model.landmarks_) < 200
    same(model.eigenvalues_, local.eigenvalues_, 1e-5)


@pytest.mark.parametrize("init", ["landmarks", "pivoted"])
def test_start_from_landmarks(two, X, D, init):
    given = settings("krylov", init=init)
    local = ikpca.KernelPCA(**given).fit(X)
    same(ikpca.dask.KernelPCA(**given, client=two).fit(D).coefficients_, local.coefficients_)


@pytest.mark.parametrize("gamma", ["scale", "median", None])
def test_gamma_from_rows(two, X, D, gamma):
    given = settings("dense", gamma=gamma)
    local = ikpca.KernelPCA(**given).fit(X)
    model = ikpca.dask.KernelPCA(**given, client=two).fit(D)
    assert model.gamma_ == pytest.approx(local.gamma_, rel=1e-13)


def test_kernel_object_has_its_own_gamma(two, D):
    given = settings("dense", kernel=Gaussian(0.1), client=two)
    with pytest.raises(InvalidInput, match=r"^gamma=0\.05: .*Gaussian"):
        ikpca.dask.KernelPCA(**given).fit(D)
    assert ikpca.dask.KernelPCA(**given | {"gamma": None}).fit(D).gamma_ == 0.1


def test_single_precision_is_kept(two, X, D):
    model = ikpca.dask.KernelPCA(**settings("krylov"), client=two).fit(D.astype(np.float32))
    assert model.coefficients_.dtype == np.float32
    assert model.transform(D.astype(np.float32)).compute().dtype == np.float32


def test_rows_are_converted_where_single_precision_is_not_sufficient(two, X):
    rows = (X * [1e4, 1, 1, 1, 1, 1]).astype(np.float32) + np.float32(3e3)
    rows[0] *= 1e3
    given = settings("krylov", kernel="linear", gamma=None)
    local = ikpca.KernelPCA(**given).fit(rows)
    model = ikpca.dask.KernelPCA(**given, client=two).fit(da.from_array(rows, chunks=(90, 6)))
    assert model.coefficients_.dtype == local.coefficients_.dtype == np.float64
    same(model.eigenvalues_, local.eigenvalues_)


def test_data_frame_sets_feature_names(two, X):
    pd = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=3)
    model = ikpca.dask.KernelPCA(**settings("dense"), client=two).fit(frame)
    assert list(model.feature_names_in_) == list("abcdef")
    same(model.transform(frame).compute(), ikpca.KernelPCA(**settings("dense")).fit_transform(X))


def test_to_local_and_files(two, X, D, tmp_path):
    model = ikpca.dask.KernelPCA(**settings("krylov", whiten=True), client=two).fit(D)
    local = model.to_local()
    assert type(local) is ikpca.KernelPCA
    assert isinstance(local.X_fit_, np.ndarray)
    assert "client" not in local.get_params()
    same(local.transform(X), model.transform(D).compute())
    model.save(tmp_path / "model")
    same(ikpca.load(tmp_path / "model").transform(X), local.transform(X))


def test_clones_share_the_client_and_pickles_drop_it(two, D):
    model = ikpca.dask.KernelPCA(**settings("krylov"), client=two).fit(D)
    assert clone(model).client is two
    assert clone(model).get_params() == model.get_params()
    assert {*model.get_params()} == {"client", *ikpca.KernelPCA().get_params()}
    copy = pickle.loads(pickle.dumps(model))
    assert copy.client is None
    assert model.client is two
    same(copy.coefficients_, model.coefficients_)


def test_default_is_the_current_client(two, D):
    assert ikpca.dask.KernelPCA().client_ is two


def test_warm_start_equals_local_warm_start(two, X, D):
    model = ikpca.dask.KernelPCA(**settings("krylov", warm_start=True), client=two).fit(D)
    local = ikpca.KernelPCA(**settings("krylov", warm_start=True)).fit(X)
    same(model.fit(D).coefficients_, local.fit(X).coefficients_)


def test_resume_equals_uninterrupted_run(two, tmp_path):
    # More rows than landmarks, so that krylov needs several passes.
    X = np.random.default_rng(0).normal(size=(600, 5))
    D = da.from_array(X, chunks=(250, -1))
    given = settings("krylov", client=two, checkpoint=tmp_path / "checkpoint")
    ikpca.dask.KernelPCA(**given).set_params(max_iter=2).fit(D)
    resumed = ikpca.dask.KernelPCA(**given).fit(D)
    whole = ikpca.dask.KernelPCA(**settings("krylov"), client=two).fit(D)
    assert resumed.n_iter_ == 3
    assert np.array_equal(resumed.coefficients_, whole.coefficients_)


def test_failed_fit_changes_nothing(two, D):
    model = ikpca.dask.KernelPCA(3, client=two)
    # Its first blocks are valid.
    bad = da.concatenate([D, da.full((20, 6), np.nan, chunks=(20, 6))])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(bad)
    assert not hasattr(model, "n_features_in_")
    before = dict(vars(model.fit(D)))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(bad[:, :4])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())


def test_refine_reaches_the_exact_components(two, X, D):
    given = settings("krylov", max_iter=1)
    model = ikpca.dask.KernelPCA(**given, client=two).fit(D).refine()
    exact = ikpca.KernelPCA(**settings("dense")).fit(X)
    same(model.eigenvalues_, exact.eigenvalues_)
    same(model.transform(D).compute(), exact.transform(X), 1e-6)
    assert isinstance(model.X_fit_, da.Array)


def test_inverse_transform_equals_that_of_a_local_model(two, X, D):
    model = ikpca.dask.KernelPCA(**settings("dense"), client=two).fit(D)
    local = ikpca.KernelPCA(**settings("dense")).fit(X)
    result = model.inverse_transform(model.transform(D[:5]))
    same(result, local.inverse_transform(local.transform(X[:5])), 1e-6)


def test_import_of_ikpca_does_not_import_dask():
    code = "import sys, ikpca; ikpca.KernelPCA(2); sys.exit('distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def refused(model, X):
    with pytest.raises(InvalidInput) as caught:
        model.fit(X)
    return str(caught.value)


class TestBadInput:
    """Messages name the problem and a remedy."""

    @pytest.fixture
    def model(self, two):
        return ikpca.dask.KernelPCA(**settings("krylov"), client=two)

    def test_chunks_over_features(self, model, D):
        assert "X.rechunk({1: -1})" in refused(model, D.rechunk((100, 2)))

    def test_unknown_chunk_sizes(self, model, D):
        assert "compute_chunk_sizes()" in refused(model, D[D[:, 0] > 0])

    def test_array_that_is_not_a_dask_array(self, model, X):
        assert "from_array" in refused(model, X)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_bad_number_names_its_block(self, model, X, value):
        bad = X.copy()
        bad[120, 3] = value
        text = refused(model, da.from_array(bad, chunks=(CHUNKS, (6,))))
        assert "block 2 (rows 100 to 239)" in text
        assert "row 120" in text

    def test_a_number_too_large_names_its_block(self, model, X):
        bad = X.copy()
        bad[95, 3] = 1e200
        assert "block 1" in refused(model, da.from_array(bad, chunks=(CHUNKS, (6,))))

    def test_transform_of_rows_of_another_width(self, model, D):
        model.fit(D)
        with pytest.raises(ValueError, match="expecting 6"):
            model.transform(D[:, :4])

    def test_too_little_memory(self, two, D):
        model = ikpca.dask.KernelPCA(**settings("krylov"), client=two, max_memory=50_000)
        assert "start more workers" in refused(model, D)

    def test_client_of_another_type(self, D):
        assert "is not a Dask client" in refused(ikpca.dask.KernelPCA(2, client="tcp://x"), D)

    def test_hebbian_solvers_are_rejected(self, two, D):
        for solver in ("kha/et", KHA("kha-smd")):
            model = ikpca.dask.KernelPCA(2, eigen_solver=solver, client=two)
            assert "'krylov'" in refused(model, D)

    def test_options_that_need_all_rows_in_one_process(self, two, D):
        for given in ({"kernel": "precomputed"}, {"fit_inverse_transform": True}):
            assert refused(ikpca.dask.KernelPCA(2, client=two, **given), D)
