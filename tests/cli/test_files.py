"""Files of rows."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pandas")
pytest.importorskip("openpyxl")

from ikpca.cli.files import read_table, write_table
from ikpca.cli.models import read_training_rows
from ikpca.columns import ColumnEncoder
from ikpca.errors import InvalidInput

ROWS = np.random.default_rng(0).normal(size=(7, 3)) * [1e-9, 1.0, 1e9]


NAMES = ("a", "b", "c")


def read_text(tmp_path, content, name="rows.csv", **encoding):
    (tmp_path / name).write_bytes(content.encode(**encoding))
    return read_table(tmp_path / name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name",
    ["r.npy", "r.npz", "r.npz:some", "r.csv", "r.tsv", "r.csv.gz", "r.parquet", "r.xlsx"],
)
def test_written_rows_are_read_bit_for_bit(name, dtype, tmp_path):
    rows = ROWS.astype(dtype)
    write_table(f"{tmp_path}/{name}", dict(zip(NAMES, rows.T, strict=True)))
    table = read_table(f"{tmp_path}/{name}")
    # Excel stores 16 digits.
    tolerance = 1e-15 if name == "r.xlsx" else 0
    np.testing.assert_allclose(table.rows.astype(dtype), rows, rtol=tolerance)
    assert table.names == (("1", "2", "3") if ".np" in name else NAMES)


@pytest.mark.parametrize(
    ("column", "told"),
    [([1.0, None], "row 2, column 'b': is empty"), ([1.0, np.inf], "row 2, column 'b': is not")],
)
def test_error_in_parquet_names_row_and_column(column, told, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "b": column}), tmp_path / "bad.parquet")
    with pytest.raises(InvalidInput, match=told):
        ColumnEncoder.fit(read_table(tmp_path / "bad.parquet"))


NUMBERS = [[1.5, 2.0], [3.0, 4.25]]
AS_PROGRAMS_WRITE_THEM = {
    "commas": "a,b\n1.5,2\n3,4.25\n",
    "semicolons": "a;b\r\n1.5;2\r\n\r\n3;4.25",
    "decimal commas": "a;b\n1,5;2\n3;4,25\n",
    "decimal commas and tabs": "a\tb\n1,5\t2\n3\t4,25\n",
    "tabs after a mark": "\ufeffa\tb\n1.5\t2\n3\t4.25\n",
    "quotes": '"a","b"\n"1.5","2"\n3,4.25',
    "spaces": "a, b\n 1.5 , 2\n3 , 4.25\n",
    "comments": "# 2020\n# by A, B\n\na,b\n1.5,2\n3,4.25\n",
    "trailing commas": "a,b,\n1.5,2,\n3,4.25,\n",
    "trailing commas of rows": "a,b\n1.5,2,\n3,4.25,\n",
    "cells of a spreadsheet": ",,\na,b,\n1.5,2,\n3,4.25,\n,,\n",
    "index of pandas": ",a,b\n0,1.5,2\n1,3,4.25\n",
    "index of pandas, read by pandas": "Unnamed: 0,a,b\n0,1.5,2\n1,3,4.25\n",
    "row names of R": '"a","b"\n"first",1.5,2\n"second",3,4.25\n',
    "row names of R, spaces": '"a" "b"\n"first" 1.5 2\n"second" 3 4.25\n',
    "aligned columns": "    a     b\n  1.5     2\n    3  4.25\n",
    "vertical bars": "a|b\n1.5|2\n3|4.25\n",
    "separator of Excel": "sep=;\na;b\n1,5;2\n3;4,25\n",
    "old Macintosh": "a,b\r1.5,2\r3,4.25\r",
}


@pytest.mark.parametrize("program", AS_PROGRAMS_WRITE_THEM)
def test_tables_of_common_programs(program, tmp_path):
    table = read_text(tmp_path, AS_PROGRAMS_WRITE_THEM[program])
    assert table.names[-2:] == ("a", "b")
    np.testing.assert_array_equal(table.frame.iloc[:, -2:], NUMBERS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_names_in_any_encoding(encoding, tmp_path):
    table = read_text(tmp_path, "größe;b\n1,5;2\n3;4,25\n", encoding=encoding)
    np.testing.assert_array_equal(table.rows, NUMBERS)
    assert table.names == ("größe", "b")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "xlsx", "parquet"])
@pytest.mark.parametrize("names", [["a", "b"], None], ids=["names", "numbers"])
@pytest.mark.parametrize("index", [None, "id"])
def test_the_index_of_a_data_frame_identifies_rows(index, names, ending, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(NUMBERS, columns=names, index=["x", "y"])
    if names is None and ending == "parquet":
        frame.columns = ["0", "1"]
    path = tmp_path / f"rows.{ending}"
    {"csv": frame.to_csv, "csv.gz": frame.to_csv, "xlsx": frame.to_excel,
     "parquet": frame.to_parquet}[ending](path)  # fmt: skip
    ids = "index" if index else None
    table, encoder = read_training_rows(str(path), ids=ids)
    np.testing.assert_array_equal(table.rows, NUMBERS)
    assert table.names == tuple(names or ["0", "1"])
    assert {name: ids.tolist() for name, ids in table.ids.items()} == {"index": ["x", "y"]}
    assert encoder.ids == ("index",)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("0,1\n1.5,2\n3,4.25\n", ("0", "1")),
        ("2019,2020\n1.5,2\n3,4.25\n", ("2019", "2020")),
        (",0\n1.5,2\n3,4.25\n", ("0",)),
        ("1.5,2\n3,4.25\n", ("1", "2")),
        ("1.5,NA,\n3,4.25,\n", ("1", "2")),
        ("1,5;2\n3;4,25\n", ("1", "2")),
    ],
)
def test_numbers_that_count_columns_are_names(content, names, tmp_path):
    table = read_text(tmp_path, content)
    assert table.names[-len(names) :] == names
    assert len(table.frame) == 2


def test_one_column_may_have_decimal_commas(tmp_path):
    np.testing.assert_array_equal(read_text(tmp_path, "a\n1,5\n3\n").rows, [[1.5], [3.0]])


def test_a_line_may_have_many_columns(tmp_path):
    """The module csv limits the length of a cell, which a line without separators is."""
    names = [f"column_{number}" for number in range(20_000)]
    table = read_text(tmp_path, f"{','.join(names)}\n{','.join('1' * 20_000)}\n")
    assert table.names == tuple(names)


def test_a_first_row_of_whole_numbers_is_a_row(tmp_path):
    table = read_text(tmp_path, "1,2\n3,4\n")
    assert (table.n_columns, len(table.rows)) == (2, 2)


def test_the_first_filled_cell_decides_on_text(tmp_path):
    table = read_text(tmp_path, "a,b,c\n,1,x\nA,,2\n12,3,\n")
    assert table.texts == ["a", "c"]
    cells = table.frame.astype(object).where(table.frame.notna(), None).to_numpy()
    assert cells.tolist() == [[None, 1, "x"], ["A", None, "2"], ["12", 3, None]]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_chunks_are_one_table(kind, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr("ikpca.cli.files._CHUNK_ROWS", 3)
    frame = pandas.DataFrame({"a": np.arange(11) / 7, "b": ["x", "y", "z", "y"] * 2 + ["x"] * 3})
    (frame.to_csv if kind == "csv" else frame.to_parquet)(tmp_path / f"r.{kind}", index=False)
    table = read_table(tmp_path / f"r.{kind}")
    np.testing.assert_array_equal(table.frame["a"], frame["a"])
    assert table.frame["b"].tolist() == frame["b"].tolist()
    assert table.frame.index.tolist() == [*range(2, 13)] if kind == "csv" else [*range(1, 12)]


def test_sheet_is_selected_like_a_member(tmp_path):
    pandas = pytest.importorskip("pandas")
    with pandas.ExcelWriter(tmp_path / "book.xlsx") as book:
        for sheet, value in (("first", 1.0), ("second", 2.0)):
            pandas.DataFrame({"a": [value]}).to_excel(book, sheet_name=sheet, index=False)
    assert read_table(tmp_path / "book.xlsx").rows == 1
    assert read_table(f"{tmp_path}/book.xlsx:second").rows == 2
    with pytest.raises(InvalidInput, match="third"):
        read_table(f"{tmp_path}/book.xlsx:third")


def test_a_file_that_vanishes_is_named(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr(Path, "exists", lambda path: True)
    with pytest.raises(InvalidInput, match=r"gone\.csv: cannot be read \(No such file"):
        read_table(tmp_path / "gone.csv")


def test_a_large_array_is_mapped(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", ROWS)
    assert not isinstance(read_table(tmp_path / "rows.npy").rows, np.memmap)
    monkeypatch.setattr("ikpca.cli.files._MEMORY_MAP_BYTES", 1)
    mapped = read_table(tmp_path / "rows.npy").rows
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, ROWS)


def test_members_of_archives_stay_in_them(tmp_path):
    """Members with paths outside of the archive are read into memory, or rejected."""
    path = tmp_path / "inner" / "rows.npz"
    path.parent.mkdir()
    rows = io.BytesIO()
    np.save(rows, np.ones((3, 2)))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../escaped.npy", rows.getvalue())
    assert read_table(f"{path}:../escaped").rows.shape == (3, 2)
    assert sorted(tmp_path.rglob("*")) == [path.parent, path]


@pytest.mark.parametrize("shape", ["(10000000000, 3)", "(-1, 3)", "(99999999999999999999, 3)"])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_that_claim_more_than_their_file_has(shape, suffix, tmp_path):
    content = io.BytesIO()
    np.save(content, np.ones((4, 3)))
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    forged = content.getvalue()[:10] + head.ljust(117).encode() + b"\n" + bytes(96)
    path = tmp_path / f"rows{suffix}"
    if suffix == ".npy":
        path.write_bytes(forged)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("rows.npy", forged)
    with pytest.raises(InvalidInput, match=r"cannot be read|does not fit"):
        read_table(path)
