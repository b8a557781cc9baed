"""Files of rows: what is read is what was written."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from ikpca.errors import InvalidInput
from ikpca.tables import read_table, write_table

ROWS = np.random.default_rng(0).normal(size=(7, 3)) * [1e-9, 1.0, 1e9]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["rows.npy", "rows.npz", "rows.npz:some", "rows.csv"])
def test_rows_come_back_to_the_last_bit(name, dtype, tmp_path):
    rows = ROWS.astype(dtype)
    write_table(f"{tmp_path}/{name}", rows)
    table = read_table(f"{tmp_path}/{name}")
    np.testing.assert_array_equal(table.rows.astype(dtype), rows)
    assert table.names is None


def test_parquet_comes_back_to_the_last_bit(tmp_path):
    pytest.importorskip("pyarrow")
    write_table(tmp_path / "rows.parquet", ROWS, ["a", "b", "c"])
    table = read_table(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(table.rows, ROWS)
    assert table.names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("column", "told"),
    [([1.0, None], "row 2, column 'b': is empty"), (["x", "y"], "column 'b': contains"),
     ([1.0, np.inf], "row 2, column 'b': is not finite")],
)  # fmt: skip
def test_a_fault_in_parquet_is_told_by_row_and_column(column, told, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "b": column}), tmp_path / "bad.parquet")
    with pytest.raises(InvalidInput, match=told):
        read_table(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a;b\r\n1;2\r\n\r\n3;4",
        "\ufeffa\tb\n1\t2\n3\t4\n",
        '"a","b"\n"1","2"\n3,4',
    ],
    ids=["commas", "semicolons", "tabs", "quotes"],
)
def test_tables_as_programs_write_them(text, tmp_path):
    (tmp_path / "rows.csv").write_bytes(text.encode())
    table = read_table(tmp_path / "rows.csv")
    np.testing.assert_array_equal(table.rows, [[1, 2], [3, 4]])
    assert table.names == ("a", "b")


def test_a_large_array_is_mapped(tmp_path, monkeypatch):
    write_table(tmp_path / "rows.npy", ROWS)
    assert not isinstance(read_table(tmp_path / "rows.npy").rows, np.memmap)
    monkeypatch.setattr("ikpca.tables._MEMORY_MAP_BYTES", 1)
    mapped = read_table(tmp_path / "rows.npy").rows
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, ROWS)


def test_members_of_archives_stay_in_them(tmp_path):
    """A member whose name leads elsewhere is read into memory like any other, or not at all."""
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
    with pytest.raises(InvalidInput, match=r"is not an (array|archive)"):
        read_table(path)
