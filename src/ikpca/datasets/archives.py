"""Files of named arrays: read with suspicion, written whole or not at all."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.datasets.array_headers import check_npz_member
from ikpca.datasets.dataset import Arrays
from ikpca.errors import DataUnavailable

__all__ = ["check_shapes", "read_archive", "write_archive"]


def read_archive(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file that ``shapes`` names; pickled objects are refused.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.npz")
    >>> write_archive(path, {"X": np.ones((4, 2)), "other": np.zeros(3)})
    >>> read_archive(path, {"X": (4, 2)})["X"].shape
    (4, 2)
    """
    try:
        # numpy would take anything else for a bare array or for a pickle.
        if path.is_file() and not zipfile.is_zipfile(path):
            raise zipfile.BadZipFile("it is not a zip file, or cut short")
        with np.load(path, allow_pickle=False) as archive:
            _check_names(path, archive.files, shapes)
            for name in shapes:
                check_npz_member(path, name)
            arrays = {name: archive[name] for name in shapes}
    except DataUnavailable:
        raise
    except FileNotFoundError as error:
        raise DataUnavailable(f"{path}: there is no such file; check the folder.") from error
    except PermissionError as error:
        raise DataUnavailable(f"{path}: may not be read; ask for permission.") from error
    except Exception as error:
        # Parsers of headers and of compressed data complain of damage in a dozen ways.
        reason = " ".join(str(error).split())
        if "allow_pickle" in reason:
            raise DataUnavailable(
                f"{path}: holds pickled objects, which can run code and are not read; "
                "save plain arrays with numpy.savez."
            ) from error
        raise DataUnavailable(
            f"{path}: is damaged or no .npz file ({reason}); delete it and get it again."
        ) from error
    check_shapes(str(path), arrays, shapes)
    return arrays


def _check_names(path: Path, names: list[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
    missing = [name for name in shapes if name not in names]
    if missing:
        raise DataUnavailable(
            f"{path}: lacks the array {missing[0]!r} (it has {', '.join(names) or 'none'}); "
            "get the file again."
        )


def check_shapes(where: str, arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays that are not what the registry says."""
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise DataUnavailable(
                f"{where}: its array {name!r} has shape {arrays[name].shape} instead of {shape}; "
                "get the classic version of the data set."
            )


def write_archive(path: Path, arrays: Arrays) -> None:
    """Write beside ``path`` and rename: no reader ever finds half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
