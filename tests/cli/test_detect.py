"""``detect`` and ``plot``: flags of new rows, plots of scores."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

pytest.importorskip("typer")
pytest.importorskip("rich")

from ikpca import NoveltyDetector
from tests.cli.saying import fails, succeeds
from tests.command_line import ikpca

NAMES = ["pressure", "flow", "heat", "speed"]
SCALES = np.array([1.0, 50.0, 0.1, 8.0])


def table(number, seed, novel=()):
    """Rows near a curve; the heat of novel ones is far from it."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 1, number)
    X = np.column_stack([t, t**2, np.sin(3 * t), 1 - t]) + rng.normal(scale=0.02, size=(number, 4))
    X[list(novel), 2] += 2
    return X * SCALES


def write(name, X, sites=None):
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["pump", *NAMES] + ([] if sites is None else ["site"]))
        for number, row in enumerate(X.tolist()):
            cells = ["" if np.isnan(value) else repr(value) for value in row]
            writer.writerow([f"P{number}", *cells] + ([] if sites is None else [sites[number]]))


def read(name):
    with open(name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def pumps(tmp_path, monkeypatch):
    """normal.csv and new.csv with a text id; rows 3 and 7 of the latter are novel."""
    monkeypatch.chdir(tmp_path)
    normal, new = table(150, 0), table(20, 1, novel=(3, 7))
    write("normal.csv", normal)
    write("new.csv", new)
    return normal, new


DETECT = ("detect", "normal.csv", "new.csv", "--out", "flags.csv")
OPTIONS = ("--id", "pump", "--standardize", "--false-alarm-rate", 0.02)


def test_flags_are_those_of_the_library(pumps):
    normal, new = pumps
    said = succeeds(*DETECT, *OPTIONS, "--random-state", 3, "--json")
    scaler = StandardScaler().fit(normal)
    detector = NoveltyDetector(false_alarm_rate=0.02, random_state=3).fit(scaler.transform(normal))
    Z = scaler.transform(new)
    written = read("flags.csv")
    found = {name: [float(row[name]) for row in written] for name in ("score", "p_value", "flag")}
    np.testing.assert_allclose(found["score"], -detector.score_samples(Z), rtol=1e-6)
    np.testing.assert_allclose(found["p_value"], detector.p_values(Z))
    np.testing.assert_array_equal(found["flag"], detector.predict(Z) == -1)
    assert [row["pump"] for row in written] == [f"P{number}" for number in range(20)]
    largest = np.argsort(-detector.explain(Z), axis=1)[:, :3]
    tops = [[row[f"feature_{at}"] for at in (1, 2, 3)] for row in written]
    for row, top, order in zip(written, tops, largest, strict=True):
        assert top == ([NAMES[at] for at in order] if row["flag"] == "1" else ["", "", ""])
    assert {3, 7} <= set(np.flatnonzero(found["flag"]))
    assert tops[3][0] == tops[7][0] == "heat"
    assert said["flagged"] == sum(found["flag"])
    assert said["limit"] == pytest.approx(-detector.offset_)


def test_only_flagged_rows_are_explained(pumps):
    succeeds(*DETECT, *OPTIONS, "-q")
    for row in read("flags.csv"):
        assert bool(row["feature_1"]) == (row["flag"] == "1")


def test_a_saved_model_flags_the_same_rows(pumps):
    succeeds(*DETECT, *OPTIONS, "--save-model", "d.ikpca", "-q")
    first = read("flags.csv")
    succeeds("detect", "--model", "d.ikpca", "new.csv", "-o", "again.csv", "-q")
    assert read("again.csv") == first


def test_rows_without_ids_have_line_numbers(pumps):
    _, new = pumps
    new[0, 0] = np.nan
    write("new.csv", new)
    said = ikpca(*DETECT, "--drop", "pump", "--standardize", "--missing", "drop")
    assert "1 of 20 rows have empty cells" in said.err
    assert [row["line"] for row in read("flags.csv")] == [str(line) for line in range(3, 22)]


def test_text_is_one_column_of_the_explanation(pumps):
    rng = np.random.default_rng(2)
    normal, new = pumps
    write("normal.csv", normal, rng.choice(["a", "b"], size=150))
    write("new.csv", new, rng.choice(["a", "b"], size=20))
    succeeds(*DETECT, *OPTIONS, "--one-hot", "-q")
    rows = read("flags.csv")
    assert {row[f"feature_{at}"] for row in rows for at in (1, 2, 3)} <= {*NAMES, "site", ""}


@pytest.mark.parametrize("loaded", [False, True], ids=["fitted", "loaded"])
def test_rows_with_text_that_no_normal_row_has_are_novel(loaded, pumps):
    normal, new = pumps
    rng = np.random.default_rng(2)
    sites = rng.choice(["a", "b"], size=20)
    write("normal.csv", normal, rng.choice(["a", "b"], size=150))
    write("new.csv", new, sites)
    succeeds(*DETECT, *OPTIONS, "--one-hot", "--save-model", "d.ikpca", "-q")
    usual = read("flags.csv")
    sites = np.where(np.isin(np.arange(20), (5, 11)), "c", sites)
    write("new.csv", new, sites)
    again = ("detect", "-m", "d.ikpca", "new.csv") if loaded else (*DETECT, *OPTIONS, "--one-hot")
    said = succeeds(*again, "-o", "again.csv", "--json")
    assert said["unknown_text"] == 2
    for number, (before, row) in enumerate(zip(usual, read("again.csv"), strict=True)):
        if number not in (5, 11):
            assert row == before
            continue
        assert (row["score"], row["flag"], row["feature_1"]) == ("inf", "1", "site")
        assert float(row["p_value"]) == pytest.approx(1 / 151)


def test_only_rows_with_unknown_text_can_be_drawn(pumps):
    pytest.importorskip("matplotlib")
    normal, new = pumps
    write("normal.csv", normal, ["a", "b"] * 75)
    write("new.csv", new, ["c"] * 20)
    said = succeeds(*DETECT, *OPTIONS, "--one-hot", "--plot", "page.png", "--json")
    assert said["flagged"] == said["unknown_text"] == 20
    assert said["warnings"] == []


@pytest.mark.parametrize("same", ["file", "copy"])
def test_the_normal_rows_are_scored_by_models_without_them(same, tmp_path, monkeypatch):
    """An outlier among the training rows is reconstructed."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.vstack([0.3 * rng.normal(size=(190, 4)), rng.uniform(-6, 6, size=(10, 4))])
    write("normal.csv", X)
    write("copy.csv", X)
    new = {"file": "./normal.csv", "copy": "copy.csv"}[same]
    succeeds("detect", "normal.csv", new, "-o", "flags.csv", "--id", "pump", "-q")
    written = read("flags.csv")
    detector = NoveltyDetector(random_state=0).fit(X)
    found = {name: np.array([float(row[name]) for row in written]) for name in written[0]
             if name in ("score", "p_value", "flag")}  # fmt: skip
    np.testing.assert_allclose(found["score"], detector.calibration_errors_, rtol=1e-9)
    np.testing.assert_array_equal(found["flag"], found["p_value"] <= 0.05)
    assert found["flag"][190:].sum() >= 8


def test_options_are_passed_to_the_detector(pumps):
    from ikpca import load

    options = ("--calibration", "blocked-cv", "--cv", 4, "-n", 6, "--kernel", "laplacian",
               "--gamma", 0.3, "--random-state", 5, "--n-jobs", 1)  # fmt: skip
    succeeds(*DETECT, *OPTIONS, *options, "--save-model", "d.ikpca", "-q")
    wanted = NoveltyDetector(
        6, kernel="laplacian", gamma=0.3, false_alarm_rate=0.02, calibration="blocked-cv", cv=4,
        random_state=5, n_jobs=1,
    )  # fmt: skip
    assert load("d.ikpca").get_params() == wanted.get_params()


def test_parquet_out(pumps):
    parquet = pytest.importorskip("pyarrow.parquet")
    succeeds("detect", "normal.csv", "new.csv", "-o", "flags.parquet", *OPTIONS, "-q")
    written = parquet.read_table("flags.parquet").to_pydict()
    assert written["flag"][3] == 1
    assert written["feature_1"][3] == "heat"


def test_invalid_options_of_detect(pumps, tmp_path, subtests):
    succeeds(*DETECT, *OPTIONS, "--save-model", "d.ikpca", "-q")
    succeeds("fit", "new.csv", "-o", "m.ikpca", "-n", 2, "--drop", "pump", "-q")
    (tmp_path / "few.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "other.csv").write_text("pump,flow\nP1,2\n")
    cases = {
        "one file": (["detect", "new.csv", "-o", "f.csv"], 2, "normal rows"),
        "two files": (["detect", "normal.csv", "new.csv", "-o", "f.csv", "-m", "d.ikpca"], 2,
                      "--model"),
        "another rate": (["detect", "new.csv", "-o", "f.csv", "-m", "d.ikpca", "-a", 0.1], 2,
                         "--false-alarm-rate has no effect"),
        "a seed": (["detect", "new.csv", "-o", "f.csv", "-m", "d.ikpca", "--random-state", 0], 2,
                   "--random-state has no effect"),
        "other columns": (["detect", "new.csv", "-o", "f.csv", "-m", "d.ikpca", "--drop", "flow"],
                          2, "--id"),
        "rate": ([*DETECT[:-1], "f.csv", *OPTIONS, "-a", 2], 2, "--false-alarm-rate=2"),
        "array": (["detect", "normal.csv", "new.csv", "-o", "f.npy"], 2, "does not hold text"),
        "picture": ([*DETECT[:-1], "f.csv", "--plot", "page.txt"], 2, "page.txt"),
        "few rows": (["detect", "few.csv", "few.csv", "-o", "f.csv"], 1, "folds"),
        "missing column": (["detect", "normal.csv", "other.csv", "-o", "f.csv", *OPTIONS], 1,
                           "no columns 'pressure', 'heat', 'speed'"),
        "text": ([*DETECT[:-1], "f.csv"], 1, "--drop pump"),
        "no detector": (["detect", "new.csv", "-o", "f.csv", "-m", "m.ikpca"], 1,
                        "has no p_values"),
    }  # fmt: skip
    for case, (arguments, code, told) in cases.items():
        with subtests.test(case):
            assert told in fails(*arguments, code=code)
    assert not (tmp_path / "f.csv").exists()


def is_png(path):
    return path.read_bytes().startswith(b"\x89PNG")


def test_the_page_shows_scores_limit_and_contributions(pumps, tmp_path, monkeypatch):
    plotting = pytest.importorskip("ikpca.plotting")
    figures = []
    monkeypatch.setattr("ikpca.cli.detect.save_figure", lambda figure, _: figures.append(figure))
    succeeds(*DETECT, *OPTIONS, "--plot", "page.png", "-q")
    (figure,) = figures
    above, below, *_ = figure.axes
    rows = read("flags.csv")
    drawn = np.vstack([points.get_offsets() for points in above.collections])
    scores = [float(row["score"]) for row in rows]
    np.testing.assert_allclose(drawn[np.argsort(drawn[:, 0]), 1], scores)
    worst = np.argsort(scores)[::-1][:8]
    assert [text.get_text() for text in below.get_yticklabels()] == [f"P{at}" for at in worst]
    assert below.images[0].get_array()[0].argmax() == NAMES.index("heat")
    assert plotting.novelty_page([0.1], np.inf, [[0.1]], names="a", row_names=["1"])


@pytest.fixture
def fitted(pumps):
    sites = ["north", "south", "", "north"] * 5
    write("new.csv", pumps[1], sites)
    succeeds("fit", "normal.csv", "-o", "m.ikpca", "-n", 4, "--id", "pump", "--standardize", "-q")
    return sites


@pytest.mark.parametrize("options", [(), ("--components", 1, 3), ("--color", "flow")])
def test_a_picture_of_scores(options, fitted, tmp_path):
    pytest.importorskip("matplotlib")
    said = succeeds("plot", "m.ikpca", "new.csv", "--out", "scores.png", *options, "--json")
    assert is_png(tmp_path / "scores.png")
    assert said["rows"] == 20
    assert said["warnings"] == []


def test_rows_are_colored_by_a_column_of_text(fitted, monkeypatch):
    pytest.importorskip("matplotlib")
    figures = []
    monkeypatch.setattr("ikpca.cli.apply.save_figure", lambda figure, _: figures.append(figure))
    succeeds("plot", "m.ikpca", "new.csv", "-o", "scores.png", "--color", "site", "-q")
    (figure,) = figures
    scatter, spectrum, table, *_ = figure.axes
    legend = [text.get_text() for text in scatter.get_legend().get_texts()]
    assert sorted(legend) == ["north", "south", "–"]
    succeeds("transform", "m.ikpca", "new.csv", "-o", "p.npy", "-q")
    drawn, *entries = scatter.collections
    color = entries[legend.index("north")].get_facecolors()
    north = np.asarray(drawn.get_offsets())[(drawn.get_facecolors() == color).all(axis=1)]
    wanted = np.load("p.npy")[np.array(fitted) == "north", :2]
    np.testing.assert_allclose(np.sort(north, axis=0), np.sort(wanted, axis=0))
    assert len(spectrum.patches) == 4
    assert [text.get_text() for text in table.get_yticklabels()] == NAMES


def test_invalid_options_of_plot(fitted, tmp_path, subtests):
    pytest.importorskip("matplotlib")
    plot = ["plot", "m.ikpca", "new.csv", "-o", "scores.png"]
    many = ["plot", "m.ikpca", "normal.csv", "-o", "scores.png", "--color", "pump"]
    cases = {
        "file": ([*plot[:3], "-o", "scores.txt"], 2, "scores.txt"),
        "one": ([*plot, "--components", 1], 2, "requires 2 arguments"),
        "too many": ([*plot, "--components", 1, 9], 2, "1 to 4"),
        "color": ([*plot, "--color", "sight"], 1, "did you mean 'site'?"),
        "colors": ([*plot, "--color", "flow,heat"], 2, "one column"),
        "texts": (many, 1, "150 different texts"),
    }
    for case, (arguments, code, told) in cases.items():
        with subtests.test(case):
            assert told in fails(*arguments, code=code)
    assert not (tmp_path / "scores.png").exists()


def test_document_without_a_limit(pumps):
    """A rate that the rows cannot resolve flags nothing."""
    said = ikpca(*DETECT, "--id", "pump", "--standardize", "-a", 1e-6, "--json")
    document = json.loads(said.out)
    assert document["limit"] is None
    assert document["flagged"] == 0
    assert any("no row can be flagged" in warning for warning in document["warnings"])
