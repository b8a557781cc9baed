"""Tables in files, by the ends of their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ikpca.datasets.array_files import read_npy, read_npz, write_npy, write_npz
from ikpca.datasets.coordinates import as_rows, body_centred, from_rows
from ikpca.datasets.csv_files import read_csv, write_csv
from ikpca.datasets.motion_files import (
    MOTION_SUFFIXES,
    check_motion_target,
    motion_names,
    read_motion,
    write_motion,
)
from ikpca.datasets.parquet_files import check_parquet, read_parquet, write_parquet
from ikpca.datasets.pictures import (
    PICTURE_SUFFIXES,
    check_pixels,
    read_picture_table,
    write_picture,
    write_pictures,
)
from ikpca.datasets.row_table import PictureForm, Table
from ikpca.datasets.skeleton import Motion
from ikpca.errors import InvalidInput
from ikpca.storage import check_place

__all__ = ["check_target", "read_table", "split_member", "write_table", "written_files"]

_PLAIN = {".npy": read_npy, ".csv": read_csv, ".tsv": read_csv, ".parquet": read_parquet}
_READ = (*_PLAIN, ".npz", *PICTURE_SUFFIXES, *MOTION_SUFFIXES)
_WRITTEN = (".npy", ".npz", ".csv", ".parquet", *PICTURE_SUFFIXES, ".amc")


def read_table(source: str | Path, *, grey: bool = False, asf: Path | None = None) -> Table:
    """Read rows from a file or from a folder of pictures.

    Parameters
    ----------
    source : str or Path
        .npy; .npz, with ``:member`` after it where it has several; .csv, .tsv, .parquet; .png,
        .jpg, .tif or a folder of them, one row per picture; .amc and .bvh, one body-centred row of
        joint positions per frame.
    grey : bool, default=False
        Whether to turn pictures in colour into grey ones.
    asf : Path, optional
        The skeleton of an .amc file, where it is not beside it.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.datasets import read_table
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "two.npz", a=np.ones((4, 2)), b=np.ones((5, 3)))
    >>> read_table(f"{folder}/two.npz:b").rows.shape
    (5, 3)
    """
    path, member = split_member(source)
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such file or folder; check the path.")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in PICTURE_SUFFIXES:
        return read_picture_table(path, grey=grey)
    if suffix == ".npz":
        return read_npz(path, member)
    if suffix in MOTION_SUFFIXES:
        motion = body_centred(read_motion(path, asf))
        return Table(as_rows(motion), motion_names(motion), motion)
    if suffix not in _PLAIN:
        raise InvalidInput(f"{path}: {_unknown(suffix)}; pass {_listed(_READ)}, or a folder.")
    return _PLAIN[suffix](path)


def write_table(
    target: str | Path,
    rows: NDArray[Any],
    names: Sequence[str] | None = None,
    form: PictureForm | Motion | None = None,
    labels: Sequence[str] | None = None,
) -> None:
    """Write rows in the format of the file's name, whole or not at all.

    Parameters
    ----------
    target : str or Path
        As for :func:`read_table`; a path without an ending is a new folder of pictures.
    rows : array of shape (rows, columns)
    names : sequence of str, optional
        Of the columns.
    form : PictureForm or Motion, optional
        What rows are; needed for pictures and for motion.
    labels : sequence of str, optional
        Names of picture files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.datasets import read_table, write_table
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
        case ".amc" if isinstance(form, Motion):
            write_motion(path, from_rows(form, rows))
        case "" if isinstance(form, PictureForm):
            write_pictures(path, map(form.pixels, rows), labels)
        case _ if isinstance(form, PictureForm):
            write_picture(path, form.pixels(rows[0]))


def check_target(
    target: str | Path, form: PictureForm | Motion | None = None, n_rows: int | None = None
) -> None:
    """Refuse, before any work, a file that could not be written in the end.

    Parameters
    ----------
    target : str or Path
        As for :func:`write_table`.
    form : PictureForm or Motion, optional
        What rows are.
    n_rows : int, optional
        How many there will be, where it is known: a picture file holds one.

    Raises
    ------
    InvalidInput
        Where the ending is unknown, or rows of this form cannot go there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca.datasets import check_target
    >>> check_target(Path(tempfile.mkdtemp(), "projections.csv"))
    """
    path, _ = split_member(target)
    suffix = path.suffix.lower()
    if suffix and suffix not in _WRITTEN:
        raise InvalidInput(
            f"{path}: {_unknown(suffix)}; name {_listed(_WRITTEN)}, or a folder of pictures."
        )
    if suffix in ("", *PICTURE_SUFFIXES):
        _check_pictures(path, form, n_rows)
    if suffix == ".amc":
        if not isinstance(form, Motion):
            raise InvalidInput(f"{path}: rows are no motion; name a .npy or .csv file.")
        check_motion_target(path, form)
    if suffix == ".parquet":
        check_parquet(path)
    check_place(path)


def written_files(target: str | Path) -> list[Path]:
    """What :func:`write_table` writes for a target; a skeleton has a file of its own.

    Parameters
    ----------
    target : str or Path

    Returns
    -------
    list of Path

    Examples
    --------
    >>> from ikpca.datasets import written_files
    >>> [path.name for path in written_files("rows.csv")]
    ['rows.csv']
    """
    path, _ = split_member(target)
    return [path, path.with_suffix(".asf")] if path.suffix.lower() == ".amc" else [path]


def _check_pictures(path: Path, form: PictureForm | Motion | None, n_rows: int | None) -> None:
    if not isinstance(form, PictureForm):
        raise InvalidInput(f"{path}: rows are no pictures; name a .npy or .csv file.")
    if path.suffix and n_rows is not None and n_rows > 1:
        raise InvalidInput(
            f"{path}: there are {n_rows} pictures; name a folder, without an ending like .png."
        )
    dtype = form.pixels_type
    check_pixels(path if path.suffix else path / "0.png", form.shape, dtype)
    if not path.suffix and path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidInput(f"{path} is there already, and not empty: name a new folder.")


def split_member(source: str | Path) -> tuple[Path, str | None]:
    """``rows.npz:member`` as path and member."""
    text = str(source)
    head, separator, member = text.rpartition(":")
    if separator and head.lower().endswith(".npz"):
        return Path(head), member
    return Path(text), None


def _unknown(suffix: str) -> str:
    return f"files that end in {suffix!r} are unknown" if suffix else "the name has no ending"


def _listed(suffixes: Sequence[str]) -> str:
    return f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
