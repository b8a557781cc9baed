"""Reading and writing of tables in the format of the file name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.model_files import check_writable
from ikpca.tables.base import PictureFormat, Table
from ikpca.tables.numeric import (
    check_parquet,
    read_csv,
    read_npy,
    read_npz,
    read_parquet,
    write_csv,
    write_npy,
    write_npz,
    write_parquet,
)
from ikpca.tables.pictures import (
    PICTURE_SUFFIXES,
    check_pixels,
    read_picture_table,
    write_picture,
    write_pictures,
)

_READERS = {".npy": read_npy, ".csv": read_csv, ".tsv": read_csv, ".parquet": read_parquet}
_READABLE = (*_READERS, ".npz", *PICTURE_SUFFIXES)
_WRITABLE = (".npy", ".npz", ".csv", ".parquet", *PICTURE_SUFFIXES)


def read_table(source: str | Path, *, grey: bool = False) -> Table:
    """Read rows from a file or from a folder of pictures.

    Parameters
    ----------
    source : str or Path
        .npy; .npz, followed by ``:member`` if it has several; .csv, .tsv, .parquet; .png, .jpg,
        .tif or a folder of them, one row per picture.
    grey : bool, default=False
        If True, convert colour pictures to grey.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.tables import read_table
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "two.npz", a=np.ones((4, 2)), b=np.ones((5, 3)))
    >>> read_table(f"{folder}/two.npz:b").rows.shape
    (5, 3)
    """
    path, member = split_member(source)
    if not path.exists():
        raise InvalidInput(f"{path}: no such file or folder; check the path.")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in PICTURE_SUFFIXES:
        return read_picture_table(path, grey=grey)
    if suffix == ".npz":
        return read_npz(path, member)
    if suffix not in _READERS:
        raise InvalidInput(f"{path}: {_unknown(suffix)}; pass {_listed(_READABLE)}, or a folder.")
    return _READERS[suffix](path)


def write_table(
    target: str | Path,
    rows: NDArray[Any],
    names: Sequence[str] | None = None,
    form: PictureFormat | None = None,
    labels: Sequence[str] | None = None,
) -> None:
    """Write rows atomically in the format of the file name.

    Parameters
    ----------
    target : str or Path
        As for :func:`read_table`; a path without suffix is a new folder of pictures.
    rows : array of shape (rows, columns)
    names : sequence of str, optional
        Names of the columns.
    form : PictureFormat, optional
        Shape and scale of the pictures; required for pictures.
    labels : sequence of str, optional
        Names of picture files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.tables import read_table, write_table
    >>> path = Path(tempfile.mkdtemp(), "rows.csv")
    >>> write_table(path, np.array([[1.0, 2.0]]), names=["a", "b"])
    >>> read_table(path).rows
    array([[1., 2.]])
    """
    check_target(target, form, len(rows))
    path, member = split_member(target)
    match path.suffix.lower():
        case ".npy":
            write_npy(path, rows)
        case ".npz":
            write_npz(path, rows, member)
        case ".csv":
            write_csv(path, rows, names)
        case ".parquet":
            write_parquet(path, rows, names)
        case "" if isinstance(form, PictureFormat):
            write_pictures(path, map(form.pixels, rows), labels)
        case _ if isinstance(form, PictureFormat):
            write_picture(path, form.pixels(rows[0]))


def check_target(
    target: str | Path, form: PictureFormat | None = None, n_rows: int | None = None
) -> None:
    """Raise an error, before the work, if rows could not be written to the target.

    Parameters
    ----------
    target : str or Path
        As for :func:`write_table`.
    form : PictureFormat, optional
        Shape and scale of the pictures.
    n_rows : int, optional
        Number of rows, if known; a picture file holds one.

    Raises
    ------
    InvalidInput
        If the suffix is unknown or does not support these rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca.tables import check_target
    >>> check_target(Path(tempfile.mkdtemp(), "projections.csv"))
    """
    path, _ = split_member(target)
    suffix = path.suffix.lower()
    if suffix and suffix not in _WRITABLE:
        raise InvalidInput(
            f"{path}: {_unknown(suffix)}; pass {_listed(_WRITABLE)}, or a folder of pictures."
        )
    if suffix in ("", *PICTURE_SUFFIXES):
        _check_pictures(path, form, n_rows)
    if suffix == ".parquet":
        check_parquet(path)
    check_writable(path)


def _check_pictures(path: Path, form: PictureFormat | None, n_rows: int | None) -> None:
    if not isinstance(form, PictureFormat):
        raise InvalidInput(f"{path}: rows are not pictures; pass a .npy or .csv file.")
    if path.suffix and n_rows is not None and n_rows > 1:
        raise InvalidInput(
            f"{path}: a file holds one picture, not {n_rows}; pass a folder, without a suffix."
        )
    dtype = form.pixels_type
    check_pixels(path if path.suffix else path / "0.png", form.shape, dtype)
    if not path.suffix and path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidInput(f"{path} exists and is not empty: pass a new folder.")


def split_member(source: str | Path) -> tuple[Path, str | None]:
    """Split ``rows.npz:member`` into path and member."""
    text = str(source)
    head, separator, member = text.rpartition(":")
    if separator and head.lower().endswith(".npz"):
        return Path(head), member
    return Path(text), None


def _unknown(suffix: str) -> str:
    return f"the suffix {suffix!r} is unknown" if suffix else "the name has no suffix"


def _listed(suffixes: Sequence[str]) -> str:
    return f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
