"""Large experiment: independent residuals, and a small run with all methods."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca import KernelPCA
from ikpca_papers import large
from ikpca_papers.claims import Status, evaluate_claim, specs
from ikpca_papers.experiment import Inputs, Request


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(230, 4))


def fitted(rows, solver, **options):
    model = KernelPCA(3, kernel="rbf", gamma=0.2, eigen_solver=solver, random_state=0, **options)
    return model, model.fit_transform(rows)


@pytest.mark.parametrize("tile", [50, 230, 1000])
def test_independent_pass_equals_the_full_matrix(rows, monkeypatch, tile):
    monkeypatch.setattr(large, "_TILE", tile)
    model, Y = fitted(rows, "kha/et", max_iter=3)
    squared = np.sum((rows[:, None] - rows) ** 2, axis=2)
    center = np.eye(len(rows)) - 1 / len(rows)
    K = center @ np.exp(-0.2 * squared) @ center
    V = model.coefficients_.T / np.linalg.norm(model.coefficients_, axis=1)
    values = model.eigenvalues_
    residual = np.linalg.norm(K @ V - V * values, axis=0).max() / values[0]
    true, error = large.true_errors(model, rows, Y, 7 * V)
    assert true == pytest.approx(residual, rel=1e-10)
    assert error == pytest.approx(np.linalg.norm(K - Y @ Y.T), rel=1e-10)


def test_components_that_are_off_have_a_larger_residual_than_stated(rows):
    model, Y = fitted(rows, "dense")
    A = model.coefficients_.T
    exact, minimum = large.true_errors(model, rows, Y, A)
    assert exact < 1e-12
    true, error = large.true_errors(model, rows, 1.01 * Y, np.roll(A, 1, axis=0))
    assert true > 100 * model.certificate_.residuals.max()
    assert error > minimum


def test_a_fit_that_diverged_has_no_excess_error():
    fits = [{"method": name, "rows": 9, "error": error}
            for name, error in (("krylov", 2.0), ("KHA/et", 3.0), ("KHA-SMD", None))]  # fmt: skip
    methods = large.summary({"fits": fits})["methods"]
    assert [row["excess_error"] for row in methods] == [0.0, 0.5, None]


def test_a_small_run_compares_the_methods_with_krylov():
    spec = specs()["large"]
    X = np.random.default_rng(1).uniform(size=(300, 8))
    settings = {**spec.settings_of("quick"), "rows": [200, 400], "components": 3}
    # Tiles need a few megabytes, however few the rows.
    settings["bytes_per_row"] = 100_000
    parts = large.plan(Request(settings, Inputs("random", "generated", {"X": X}, "")))
    names = ["krylov, 200 rows", "krylov, 400 rows", "kha/et, 400 rows", "kha-smd, 400 rows"]
    assert [part.name for part in parts] == names
    fits = [row for part in parts for row in part.task().tables["fits"]]
    tables = {"fits": fits, **large.summary({"fits": fits})}
    assert [row["method"] for row in tables["methods"]] == ["krylov", "KHA/et", "KHA-SMD"]
    assert [row["rows"] for row in tables["growth"]] == [200, 400]
    # Residuals of krylov are near the rounding errors of single precision.
    assert all(row["true_over_stated"] == pytest.approx(1, rel=1e-4) for row in fits[2:])
    claims = {claim.id: claim for claim in spec.claims}
    verdict = evaluate_claim(claims["true-residual"], "quick", tables)
    assert verdict.status is Status.HOLDS
    fits[0]["true_over_stated"] = 1.2
    assert evaluate_claim(claims["true-residual"], "quick", tables).status is Status.FAILS
