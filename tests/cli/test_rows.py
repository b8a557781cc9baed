"""``fit``, ``transform`` and ``inverse`` on files equal the library on arrays."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from ikpca import KernelPCA, load
from ikpca.cli.files import read_table
from tests.cli.saying import succeeds
from tests.command_line import ikpca


@pytest.fixture
def fitted(files):
    succeeds("fit", "rows.npy", "--out", "m.ikpca", "-n", 3, "--gamma", 0.1, "-q")
    return files


def expected(rows, **parameters):
    settings = {"kernel": "rbf", "gamma": "scale", "random_state": 0, **parameters}
    return KernelPCA(settings.pop("n_components", 16), **settings).fit(rows)


@pytest.mark.filterwarnings("ignore:max_iter=7 passes did not reach")
def test_options_are_passed_to_the_estimator(files, rows):
    said = succeeds(
        "fit", "rows.npy", "--out", "m.ikpca", "-n", 2, "--kernel", "poly", "--degree", 2,
        "--coef0", 0.5, "--gamma", 0.3, "--eigen-solver", "kha/et", "--tol", 1e-3, "--max-iter", 7,
        "--random-state", 5, "--max-memory", "500MB", "--preimage", "neighbors", "--n-jobs", 1,
        "--json",
    )  # fmt: skip
    model = expected(
        rows, n_components=2, kernel="poly", degree=2, coef0=0.5, gamma=0.3, eigen_solver="kha/et",
        tol=1e-3, max_iter=7, random_state=5, max_memory="500MB", preimage="neighbors", n_jobs=1,
    )  # fmt: skip
    saved = load("m.ikpca")
    assert saved.get_params() == model.get_params()
    np.testing.assert_array_equal(saved.eigenvalues_, model.eigenvalues_)
    assert said["eigenvalues"] == model.eigenvalues_.tolist()
    assert said["explained_variance_ratio"] == model.explained_variance_ratio_.tolist()
    assert said["residuals"] == model.history_[-1].residuals.tolist()
    assert said["passes"] == model.n_iter_
    assert said["entries"] == model.history_[-1].entries
    assert said["outcome"] == model.outcome_.name
    assert said["wrote"] == ["m.ikpca"]
    assert (said["rows"], said["columns"]) == rows.shape
    assert said["seconds"] > 0


@pytest.mark.parametrize(("given", "meant"), [("0.9", 0.9), ("none", None), ("5", 5)])
def test_n_components_as_text(given, meant, files, rows):
    succeeds("fit", "rows.npy", "-o", "m.ikpca", "-n", given, "--gamma", "none", "-q")
    model = expected(rows, n_components=meant, gamma=None)
    np.testing.assert_array_equal(load("m.ikpca").eigenvalues_, model.eigenvalues_)


def test_the_table_has_a_line_per_component(files, rows):
    said = succeeds("fit", "rows.npy", "--out", "m.ikpca", "-n", 4)
    lines = [line.split() for line in said.out.splitlines()]
    table = {line[0]: line[1:] for line in lines if line and line[0].isdecimal()}
    model = expected(rows, n_components=4)
    assert [float(table[str(k + 1)][0]) for k in range(4)] == pytest.approx(
        model.eigenvalues_, rel=1e-5
    )
    together = f"{model.explained_variance_ratio_.sum():.2%}"
    assert table["4"][2] == together
    assert "Wrote m.ikpca" in said.out
    assert said.err == ""


@pytest.mark.parametrize("out", ["p.npy", "p.npz", "p.npz:there", "p.csv"])
def test_transform_and_inverse(out, fitted, rows):
    model = expected(rows, n_components=3, gamma=0.1)
    projections = model.transform(rows)
    succeeds("transform", "m.ikpca", "rows.npy", "--out", out, "-q")
    np.testing.assert_array_equal(read_table(out).rows, projections)
    succeeds("inverse", "m.ikpca", out, "--out", "back.csv", "-q")
    np.testing.assert_array_equal(read_table("back.csv").rows, model.inverse_transform(projections))


def test_parquet_transform_and_inverse(fitted, rows):
    pytest.importorskip("pyarrow")
    model = expected(rows, n_components=3, gamma=0.1)
    succeeds("transform", "m.ikpca", "rows.npy", "--out", "p.parquet", "-q")
    table = read_table("p.parquet")
    np.testing.assert_array_equal(table.rows, model.transform(rows))
    assert table.names == ("kernelpca0", "kernelpca1", "kernelpca2")


def test_names_of_columns_are_kept(files, rows):
    succeeds("fit", "rows.csv", "--out", "m.ikpca", "-n", 2, "-q")
    assert load("m.ikpca").feature_names_in_.tolist() == list("abcdef")
    said = succeeds("transform", "m.ikpca", "rows.csv", "--out", "p.csv", "--json")
    assert said["warnings"] == []
    assert read_table("p.csv").names == ("kernelpca0", "kernelpca1")
    succeeds("inverse", "m.ikpca", "p.csv", "--out", "back.csv", "-q")
    assert read_table("back.csv").names == tuple("abcdef")


def test_quiet_prints_nothing_and_json_contains_warnings(files, rows):
    # Six columns have no more than six directions.
    arguments = ["fit", "rows.npy", "-o", "m.ikpca", "-n", 9, "--kernel", "linear", "--force"]
    loud, quiet = ikpca(*arguments), ikpca(*arguments, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    (warning,) = loud.err.splitlines()
    assert warning.startswith("ikpca: warning: ")
    document = json.loads(ikpca(*arguments, "--json").out)
    assert [f"ikpca: warning: {sentence}" for sentence in document["warnings"]] == [warning]
