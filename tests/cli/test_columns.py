"""Tables with names, text, empty cells and ids: later tables are encoded as in the fit."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

pytest.importorskip("typer")
pytest.importorskip("rich")

from ikpca import KernelPCA, load
from ikpca.cli.files import read_table
from tests.cli.saying import fails, succeeds
from tests.command_line import ikpca

WINE = load_wine()
NAMES = list(WINE.feature_names)
CULTIVARS = np.array(["barolo", "grignolino", "barbera"])[WINE.target]
#: Row and column of the gap.
GAP = (3, 2)


def write_csv(name, header, lines):
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([header, *lines])


def read_csv(name):
    with open(name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def wine(tmp_path, monkeypatch):
    """wine.csv: bottle (text), cultivar (text), thirteen columns of numbers, one gap."""
    monkeypatch.chdir(tmp_path)
    cells = [[repr(float(value)) for value in row] for row in WINE.data]
    cells[GAP[0]][GAP[1]] = ""
    lines = [
        [f"W{number}", label, *row]
        for number, (label, row) in enumerate(zip(CULTIVARS, cells, strict=True))
    ]
    write_csv("wine.csv", ["bottle", "cultivar", *NAMES], lines)
    return lines


def with_median():
    X = WINE.data.copy()
    X[GAP] = np.nan
    X[GAP] = np.nanmedian(X[:, GAP[1]])
    return X


FIT = ("--drop", "cultivar", "--id", "bottle", "--standardize", "--missing", "median")


def fit_wine(*options, out="m.ikpca"):
    return succeeds("fit", "wine.csv", "-o", out, "-n", 3, *options, "-q")


def expected(X, **parameters):
    return KernelPCA(3, kernel="rbf", gamma="scale", random_state=0, **parameters).fit(X)


def projections(name):
    return read_table(name).frame.filter(like="kernelpca").to_numpy()


def test_a_model_encodes_later_tables_as_in_the_fit(wine):
    fit_wine(*FIT)
    scaler = StandardScaler().fit(with_median())
    model = expected(scaler.transform(with_median()))
    np.testing.assert_allclose(load("m.ikpca").eigenvalues_, model.eigenvalues_, rtol=1e-10)
    assert load("m.ikpca").feature_names_in_.tolist() == [f"standardized({n})" for n in NAMES]
    succeeds("transform", "m.ikpca", "wine.csv", "-o", "p.csv", "-q")
    wanted = model.transform(scaler.transform(with_median()))
    np.testing.assert_allclose(abs(projections("p.csv")), abs(wanted), atol=1e-9)
    written = read_csv("p.csv")
    assert [row["bottle"] for row in written] == [line[0] for line in wine]
    # Back in the units of the table, with ids.
    succeeds("inverse", "m.ikpca", "p.csv", "-o", "back.csv", "-q")
    back = read_csv("back.csv")
    assert list(back[0]) == ["bottle", *NAMES]
    assert back[5]["bottle"] == "W5"
    found = np.array([[float(row[name]) for name in NAMES] for row in back])
    wanted = scaler.inverse_transform(model.inverse_transform(wanted))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_later_tables_may_have_more_columns_in_another_order(wine):
    fit_wine(*FIT)
    succeeds("transform", "m.ikpca", "wine.csv", "-o", "p.csv", "-q")
    order = [*reversed(range(2, 15)), 0]
    header = [["bottle", "cultivar", *NAMES][at] for at in order]
    lines = [[*(line[at] for at in order), "a note"] for line in wine]
    write_csv("turned.csv", [*header, "note"], lines)
    succeeds("transform", "m.ikpca", "turned.csv", "-o", "q.csv", "-q")
    np.testing.assert_array_equal(projections("q.csv"), projections("p.csv"))


def test_parquet_is_encoded_like_csv(wine):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X = WINE.data.copy()
    X[GAP] = np.nan
    columns = dict(zip(NAMES, X.T, strict=True))
    columns["ash"] = pyarrow.array(X[:, 2], mask=np.isnan(X[:, 2]))
    columns |= {"bottle": np.arange(178), "cultivar": pyarrow.array(CULTIVARS).dictionary_encode()}
    parquet.write_table(pyarrow.table(columns), "wine.parquet", row_group_size=50)
    options = ("--id", "bottle", "--standardize", "--missing", "median", "--one-hot")
    fit_wine(*options)
    succeeds("fit", "wine.parquet", "-o", "n.ikpca", "-n", 3, *options, "-q")
    succeeds("transform", "m.ikpca", "wine.parquet", "-o", "p.parquet", "-q")
    succeeds("transform", "n.ikpca", "wine.csv", "-o", "q.csv", "-q")
    np.testing.assert_allclose(abs(projections("p.parquet")), abs(projections("q.csv")), atol=1e-9)
    assert parquet.read_table("p.parquet")["bottle"].to_pylist() == list(range(178))


CHOICES = {
    "names": (["--columns", "alcohol,hue"], ["alcohol", "hue"]),
    "pattern": (["--columns", "*phenols"], ["total_phenols", "nonflavanoid_phenols"]),
    "numbers": (["--columns", "4, 3,15"], [*NAMES[:2], "proline"]),
    "without": (["--columns", "alc*,magnesium", "--drop", "alc*"], ["magnesium"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CHOICES)
def test_columns_by_name_pattern_and_number(case, wine):
    options, names = CHOICES[case]
    fit_wine(*options)
    assert load("m.ikpca").feature_names_in_.tolist() == names


def test_a_name_is_taken_literally_first(wine):
    write_csv("wine.csv", ["a,b", "a", "b", "x*", "x1"], np.random.default_rng(0).random((9, 5)))
    fit_wine("--columns", "a,b")
    assert load("m.ikpca").feature_names_in_.tolist() == ["a,b"]
    fit_wine("--columns", "x*", "--force")
    assert load("m.ikpca").feature_names_in_.tolist() == ["x*"]


def test_rows_with_empty_cells_are_dropped_with_their_ids(wine):
    said = ikpca("fit", "wine.csv", "-o", "m.ikpca", *FIT[:-1], "drop")
    assert "1 of 178 rows have empty cells" in said.err
    succeeds("transform", "m.ikpca", "wine.csv", "-o", "p.csv", "-q")
    ids = [row["bottle"] for row in read_csv("p.csv")]
    assert ids == [line[0] for line in wine if "" not in line]


def test_one_hot_columns_are_decoded(wine):
    fit_wine("--drop", "bottle", "--columns", "alcohol,cultivar,hue", "--one-hot", "--standardize")
    model = load("m.ikpca")
    names = ["cultivar=barbera", "cultivar=barolo", "cultivar=grignolino",
             "standardized(alcohol)", "standardized(hue)"]  # fmt: skip
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.X_fit_[:, 1], WINE.target == 0)
    succeeds("transform", "m.ikpca", "wine.csv", "-o", "p.npy", "-q")
    succeeds("inverse", "m.ikpca", "p.npy", "-o", "back.csv", "-q")
    back = read_csv("back.csv")
    agreeing = np.mean([row["cultivar"] for row in back] == CULTIVARS)
    assert agreeing > 0.95
    assert "text as in 'cultivar'" in fails("inverse", "m.ikpca", "p.npy", "-o", "back.npy", code=2)
    write_csv("new.csv", ["hue", "cultivar", "alcohol"], [[1, "barolo", 13], [1, "merlot", 13]])
    assert "new.csv, line 3, column 'cultivar': 'merlot'" in fails(
        "transform", "m.ikpca", "new.csv", "-o", "q.npy"
    )


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_empty_text_is_imputed_by_the_most_frequent_text(wine):
    write_csv("wine.csv", ["x", "c"], [[1, "b"], [2, ""], [4, "a"], [8, "b"]])
    fit_wine("--one-hot", "--missing", "median")
    np.testing.assert_array_equal(load("m.ikpca").X_fit_[:, 2], [1, 1, 0, 1])
    write_csv("new.csv", ["x", "c"], [[1, ""], ["", "a"]])
    succeeds("transform", "m.ikpca", "new.csv", "-o", "p.npy", "-q")
    wanted = load("m.ikpca").transform([[1, 0, 1], [3, 1, 0]])
    np.testing.assert_array_equal(np.load("p.npy"), wanted)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_categories_of_digits_stay_text(wine):
    """A later table whose texts happen to be numbers is read as the fit was."""
    write_csv("wine.csv", ["x", "c"], [[1, "A"], [2, "12"], [4, "A"], [8, "12"]])
    fit_wine("--one-hot")
    write_csv("new.csv", ["x", "c"], [[1, "12"], [2, "12"]])
    succeeds("transform", "m.ikpca", "new.csv", "-o", "p.npy", "-q")
    np.testing.assert_array_equal(
        np.load("p.npy"), load("m.ikpca").transform([[1, 1, 0], [2, 1, 0]])
    )


def test_columns_of_arrays_are_numbered(wine):
    np.save("rows.npy", WINE.data)
    succeeds(
        "fit", "rows.npy", "-o", "m.ikpca", "-n", 3, "--columns", "2,3,4", "--standardize", "-q"
    )
    X = StandardScaler().fit_transform(WINE.data[:, 1:4])
    np.testing.assert_allclose(load("m.ikpca").X_fit_, X, atol=1e-12)
    succeeds("transform", "m.ikpca", "rows.npy", "-o", "p.npy", "-q")
    succeeds("inverse", "m.ikpca", "p.npy", "-o", "back.npy", "-q")
    assert abs(np.load("back.npy") - WINE.data[:, 1:4]).std() < WINE.data[:, 1:4].std()


def test_clusters_with_ids(wine):
    options = ("--drop", "cultivar", "--id", "bottle", "--standardize", "--missing", "drop")
    succeeds("cluster", "wine.csv", "-c", 3, "-o", "l.csv", *options, "-q")
    written = read_csv("l.csv")
    assert list(written[0]) == ["bottle", "cluster"]
    assert [row["bottle"] for row in written] == [line[0] for line in wine if "" not in line]


def test_a_model_of_python_takes_columns_by_name(wine):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(WINE.data, columns=NAMES)[["hue", "alcohol"]]
    model = KernelPCA(2, kernel="rbf").fit(frame)
    model.save("m.ikpca")
    succeeds("transform", "m.ikpca", "wine.csv", "-o", "p.npy", "-q")
    np.testing.assert_array_equal(np.load("p.npy"), model.transform(frame))


def test_a_model_with_its_own_encoding_refuses_a_frame_of_the_table(wine):
    """The values of the table differ from the encoded ones of the fit."""
    pandas = pytest.importorskip("pandas")
    raw = pandas.DataFrame(with_median(), columns=NAMES)
    fit_wine(*FIT)
    model = load("m.ikpca")
    with pytest.raises(ValueError, match=r"feature names should match.*\n.*\n- alcalinity_of_ash"):
        model.transform(raw)
    encoded = model.input_.transform(pandas.read_csv("wine.csv"))
    succeeds("transform", "m.ikpca", "wine.csv", "-o", "p.npy", "-q")
    frame = pandas.DataFrame(encoded, columns=model.feature_names_in_)
    np.testing.assert_array_equal(model.transform(frame), np.load("p.npy"))


def test_encoded_arrays_have_names_as_well(wine):
    """scikit-learn warns of rows without names, which cannot be compared."""
    np.save("rows.npy", WINE.data)
    succeeds("fit", "rows.npy", "-o", "m.ikpca", "-n", 2, "--standardize", "-q")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        load("m.ikpca").transform(WINE.data)


def test_a_model_fitted_again_in_python_has_no_encoding(wine):
    pandas = pytest.importorskip("pandas")
    fit_wine(*FIT)
    raw = pandas.DataFrame(with_median(), columns=NAMES)
    model = load("m.ikpca").fit(raw)
    model.save("again.ikpca")
    transform = ("transform", "again.ikpca", "wine.csv", "-o", "p.npy", "-q")
    assert "model.input_" in fails(*transform)
    del model.input_
    model.save("again.ikpca")
    raw.to_csv("raw.csv", index=False)
    succeeds("transform", "again.ikpca", "raw.csv", "-o", "p.npy", "-q")
    np.testing.assert_allclose(np.load("p.npy"), model.transform(raw), atol=1e-12)


def test_columns_of_different_spread_give_a_hint(wine):
    fit = ["fit", "wine.csv", "-o", "m.ikpca", "-n", 2, "--drop", "bottle,cultivar,ash", "--force"]
    said = succeeds(*fit, "--json")
    (hint,) = said["warnings"]
    assert "'proline'" in hint
    assert "--standardize" in hint
    assert succeeds(*fit, "--standardize", "--json")["warnings"] == []


def test_constant_columns_are_named(wine):
    write_csv("wine.csv", ["a", "b", "c"], [[0.1, n, n * n] for n in range(20)])
    said = ikpca("fit", "wine.csv", "-o", "m.ikpca", "-n", 2, "--standardize")
    assert "column 'a': cannot be standardized" in said.err
    np.testing.assert_allclose(load("m.ikpca").X_fit_[:, 0], 0, atol=1e-12)


MISTAKES = {
    "text": ([], ["text such as 'W0' in columns 'bottle', 'cultivar'",
                  "--drop bottle,cultivar", "--one-hot"]),
    "gap": (["--drop", "bottle,cultivar"], ["wine.csv, line 5, column 'ash'", "is empty",
                                            "--missing drop"]),
    "unknown": (["--columns", "alcohol,color"], ["no column 'color'"]),
    "nearly": (["--drop", "cultivr"], ["'cultivr'", "did you mean 'cultivar'?"]),
    "id": (["--id", "number"], ["no column 'number'"]),
    "nothing left": (["--drop", "*"], ["no columns are left"]),
}  # fmt: skip


def test_invalid_column_options(wine, tmp_path, subtests):
    for case, (options, told) in MISTAKES.items():
        with subtests.test(case):
            sentence = fails("fit", "wine.csv", "-o", "m.ikpca", *options)
            assert all(part in sentence for part in told), sentence
    assert not (tmp_path / "m.ikpca").exists()


def test_tables_that_cannot_be_encoded(wine, subtests):
    cases = {
        "every row": ([["", 1], ["", 2]], ["--missing", "drop"], "--drop a"),
        "no median": ([["", 1], ["", 2]], ["--missing", "median"], "column 'a' is empty"),
        "too many": ([[f"a{n}", n] for n in range(1001)], ["--one-hot"], "1001 different texts"),
        "a word": ([[1, 1], ["x", 2]], ["--one-hot"], "line 3, column 'a': 'x'"),
    }
    for case, (lines, options, told) in cases.items():
        with subtests.test(case):
            write_csv("bad.csv", ["a", "b"], lines)
            assert told in fails("fit", "bad.csv", "-o", "m.ikpca", *options)


def test_ids_need_a_file_that_holds_them(wine):
    fit_wine(*FIT)
    transform = ("transform", "m.ikpca", "wine.csv", "-o", "p.npy")
    assert "--id" in fails(*transform, "--id", "cultivar", code=2)
    # The id of the fit was not asked for here.
    succeeds(*transform, "-q")
    assert read_table("p.npy").rows.shape == (178, 3)
    lines = [[line[1], *line] for line in wine]
    write_csv("ids.csv", ["kernelpca0", "bottle", "cultivar", *NAMES], lines)
    assert "rename the id column" in fails(
        "transform", "m.ikpca", "ids.csv", "-o", "p.csv", "--id", "kernelpca0"
    )


def test_text_in_a_parquet_column_of_numbers(wine):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    fit_wine("--columns", "alcohol,hue")
    parquet.write_table(pyarrow.table({"alcohol": [13.0], "hue": ["red"]}), "new.parquet")
    assert "new.parquet, row 1, column 'hue': 'red'" in fails(
        "transform", "m.ikpca", "new.parquet", "-o", "p.npy"
    )


def test_infinite_cells_of_arrays(wine):
    X = WINE.data.copy()
    X[4, 1] = np.inf
    np.save("rows.npy", X)
    assert "rows.npy, row 5, column 2: is not finite" in fails(
        "fit", "rows.npy", "-o", "m.ikpca", "--standardize"
    )


def test_two_columns_of_one_name(wine):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = [pyarrow.array([1.0, 2.0])] * 2
    parquet.write_table(pyarrow.table(columns, names=["a", "a"]), "two.parquet")
    assert "has two columns 'a'" in fails("fit", "two.parquet", "-o", "m.ikpca")
