"""Solver objects equal their presets and follow scikit-learn's conventions for parameters."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from ikpca import HebbianPCA, KernelPCA, KernelSpectralClustering, OnlineKernelPCA
from ikpca.errors import InvalidInput
from ikpca.gram import read_budget
from ikpca.kernels import Gaussian
from ikpca.solvers import (
    KHA,
    Adaptive,
    Dense,
    Krylov,
    Nystrom,
    Outcome,
    Plan,
    Problem,
    RunSettings,
    Solver,
)
from ikpca.solvers.adaptive import choose_solver
from ikpca.solvers.kha import METHODS

PRESETS = {
    "dense": Dense(),
    "krylov": Krylov(),
    "arpack": Krylov(),
    "nystrom": Nystrom(),
    **{method: KHA(method) for method in METHODS},
}
#: One other value of every option that takes effect with "kha-smd".
OPTIONS = {
    "gain": 0.1, "meta_gain": 0.2, "meta_decay": 0.9, "log_gain_init": 1.0, "clock": "pass",
    "init": "random", "rayleigh_ritz": False,
}  # fmt: skip


@pytest.fixture
def X(digits):
    return digits[:300]


def fitted(X, eigen_solver, **parameters):
    settings = {"kernel": "rbf", "gamma": 0.05, "max_iter": 4, "random_state": 0} | parameters
    return KernelPCA(3, eigen_solver=eigen_solver, **settings).fit(X)


@pytest.mark.parametrize("name", PRESETS)
def test_preset_equals_its_object(X, name):
    preset, by_object = fitted(X, name), fitted(X, PRESETS[name])
    np.testing.assert_array_equal(preset.eigenvalues_, by_object.eigenvalues_)
    np.testing.assert_array_equal(preset.transform(X), by_object.transform(X))
    assert preset.outcome_ is by_object.outcome_


@pytest.mark.parametrize(
    "model",
    [HebbianPCA(2), OnlineKernelPCA(2, kernel="rbf"), KernelSpectralClustering(2)],
    ids=lambda model: type(model).__name__,
)
def test_other_estimators_take_the_same_objects(X, model):
    parameter = "rule" if "rule" in model.get_params() else "eigen_solver"
    results = [
        clone(model).set_params(**{parameter: solver}, random_state=0).fit(X)
        for solver in ("kha/et", KHA("kha/et"))
    ]
    name = next(n for n in ("components_", "coefficients_", "embedding_") if hasattr(results[0], n))
    assert np.array_equal(*(getattr(result, name) for result in results))


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_has_an_effect(X, name):
    plain, changed = fitted(X, KHA("kha-smd")), fitted(X, KHA("kha-smd", **{name: OPTIONS[name]}))
    assert not np.array_equal(plain.coefficients_, changed.coefficients_)


def test_every_option_is_tested():
    # Back-off has an effect where gains diverge (test_divergence).
    assert {*OPTIONS, "backoff", "method"} == {*KHA().get_params()}


@pytest.mark.parametrize(
    "solver",
    [Dense(), Krylov("pivoted"), Nystrom(50, "pivoted"), Adaptive(), KHA("kha-smd", gain=0.1)],
    ids=repr,
)
def test_parameters_follow_the_conventions(solver):
    twin = clone(solver)
    assert twin is not solver
    assert type(twin) is type(solver)
    assert twin.get_params() == solver.get_params()
    assert eval(repr(solver)).get_params() == solver.get_params()
    nested = clone(KernelPCA(eigen_solver=solver))
    assert nested.eigen_solver is not solver
    assert nested.eigen_solver.get_params() == solver.get_params()


def test_options_are_set_and_searched_through_the_estimator(X):
    model = KernelPCA(2, eigen_solver=KHA("kha/et")).set_params(eigen_solver__gain=0.3)
    assert model.eigen_solver.gain == 0.3
    assert model.get_params()["eigen_solver__method"] == "kha/et"
    grid = {"eigen_solver__gain": [1e-6, 0.3], "eigen_solver__init": ["random"]}
    pca = KernelPCA(2, kernel="rbf", gamma=0.05, eigen_solver=KHA("kha/et"), max_iter=3,
                    random_state=0)  # fmt: skip
    search = GridSearchCV(pca, grid, cv=2).fit(X)
    assert search.best_params_["eigen_solver__gain"] == 0.3, "the other does not learn"
    assert pca.eigen_solver.gain == "auto"


def test_fit_does_not_modify_the_solver(X):
    solver = KHA("kha/et")
    before = solver.get_params()
    fitted(X, solver, warm_start=True).fit(X)
    assert solver.get_params() == before
    assert set(vars(solver)) == set(before)


def test_the_constructor_is_short():
    assert len(inspect.signature(KernelPCA).parameters) <= 22


@pytest.mark.parametrize(
    ("asked", "n_components", "n_samples", "kind"),
    [
        ("auto", 3, 500, Dense),
        ("auto", 3, 5000, Krylov),
        ("auto", 0.9, 3000, Dense),
        ("auto", 0.9, 5000, Krylov),
        ("auto", None, 5000, Dense),
        ("arpack", None, 5000, Dense),
        ("krylov", 3, 500, Krylov),
        ("krylov", 30, 184, Dense),
        (Krylov(), 30, 185, Krylov),
        ("kha", 3, 50, KHA),
        ("nystrom", 3, 5000, Nystrom),
    ],
)
def test_auto_is_resolved_in_one_place(asked, n_components, n_samples, kind):
    assert type(choose_solver(asked, n_components, n_samples)) is kind
    # Only auto goes by the tolerance, and only where there are many rows.
    many = asked == "auto" and kind is Krylov
    assert type(choose_solver(asked, n_components, n_samples, 1e-3)) is (Adaptive if many else kind)


@pytest.mark.parametrize("solver", [Dense(), Krylov(), KHA()], ids=repr)
def test_planned_memory_grows_with_rows_and_components(solver):
    def needs(n_rows, n_components):
        problem = Problem(Gaussian(1.0), np.empty((n_rows, 2)), read_budget(None))
        return solver.plan(problem, n_components).n_bytes

    assert needs(2000, 4) < needs(8000, 4) <= needs(8000, 40)


class OneVector(Solver):
    """Custom solver: power iterations for one component."""

    default_max_iter = 200
    name = "power"

    def check(self, n_components):
        if n_components != 1:
            raise InvalidInput("n_components: must be 1; pass 1.")

    def solve(self, problem, n_components, settings):
        from ikpca.gram import center_gram
        from ikpca.solvers import EigenSolution

        with problem.open(Plan(3 * problem.row_bytes)) as (source, workers):
            gram, _ = center_gram(source, None, workers)
            v = np.random.default_rng(problem.seed).normal(size=(problem.n_samples, 1))
            for _ in range(settings.max_iter):
                v = gram.multiply(v / np.linalg.norm(v))
            value = np.linalg.norm(v)
            A = v.T / value**1.5
            return EigenSolution.from_components(A, A * value, np.array([value]), gram)


def test_custom_solver(X):
    found = KernelPCA(1, kernel="rbf", gamma=0.05, eigen_solver=OneVector(), random_state=0).fit(X)
    exact = KernelPCA(1, kernel="rbf", gamma=0.05, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(found.transform(X), exact.transform(X), atol=1e-6)
    with pytest.raises(InvalidInput, match="must be 1"):
        KernelPCA(2, eigen_solver=OneVector()).fit(X)


@pytest.mark.parametrize("solver", [Krylov(), KHA("kha/et"), Dense(), Nystrom()], ids=repr)
def test_callback_receives_every_pass_and_can_stop(X, solver):
    seen = []

    def callback(record, solution):
        assert solution().eigenvalues.shape == (3,)
        seen.append(record.number)
        return Outcome.STOPPED if record.number == 2 else None

    problem = Problem(Gaussian(0.05), X, read_budget(None))
    found = solver.solve(problem, 3, RunSettings(5, callback=callback))
    direct = isinstance(solver, Dense | Nystrom)
    assert seen == [record.number for record in found.records] == ([1] if direct else [1, 2])
    if not direct:
        assert found.outcome is Outcome.STOPPED
