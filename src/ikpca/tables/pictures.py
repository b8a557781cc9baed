"""Tables of pictures: PNG, JPEG and TIFF files, and folders of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.model_files import atomic_folder, atomic_write, check_writable
from ikpca.tables.base import PictureFormat, Table
from ikpca.tables.numeric import floats, white_value

#: Pillow's names of the formats.
_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}
PICTURE_SUFFIXES = tuple(_FORMATS)
#: Pillow modes with numeric pixels, and conversions of other modes.
_SUPPORTED_MODES = {"L", "LA", "RGB", "RGBA", "F", "I;16"}
_CONVERTED_MODES = {"1": "L", "P": "RGB", "PA": "RGBA", "I;16B": "I;16", "I;16L": "I;16"}
#: High enough to avoid visible artefacts.
_JPEG_QUALITY = 95


def read_picture(path: str | Path, *, grey: bool = False) -> NDArray[Any]:
    """Read the pixels of a file: (height, width), with a third axis for colour or alpha.

    Parameters
    ----------
    path : str or Path
        A .png, .jpg or .tif file.
    grey : bool, default=False
        If True, convert colour to grey and remove alpha.

    Returns
    -------
    ndarray
        In the type of the file: 8 or 16 bits, or floating point.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.tables import read_picture, write_picture
    >>> path = Path(tempfile.mkdtemp(), "grey.png")
    >>> write_picture(path, np.zeros((3, 2), dtype=np.uint8))
    >>> read_picture(path).shape
    (3, 2)
    """
    path = Path(path)
    image_module, operations = _pillow(path)
    if not path.is_file():
        rule = "is a folder, not a picture" if path.is_dir() else "no such file"
        raise InvalidInput(f"{path}: {rule}; check the path.")
    try:
        with image_module.open(path) as opened:
            if getattr(opened, "n_frames", 1) > 1:
                raise InvalidInput(
                    f"{path}: has {opened.n_frames} pictures; save each in its own file."
                )
            picture = _to_supported_mode(operations.exif_transpose(opened))
    except (OSError, SyntaxError, ValueError, image_module.DecompressionBombError) as error:
        if isinstance(error, InvalidInput):
            raise
        reason = "unknown or damaged" if "identify" in str(error) else str(error).rstrip(".")
        raise InvalidInput(
            f"{path}: is not a readable picture ({reason}); save it again as PNG."
        ) from None
    if grey and picture.mode not in ("L", "F", "I;16"):
        picture = picture.convert("L")
    return np.asarray(picture)


def read_picture_table(path: Path, *, grey: bool = False) -> Table:
    """Read one picture, or a folder of pictures of equal size, one per row in natural order."""
    files = picture_files(path) if path.is_dir() else [path]
    first = read_picture(files[0], grey=grey)
    form = PictureFormat(first.shape, white_value(first.dtype))
    rows = np.empty((len(files), first.size), dtype=floats(first[:1]).dtype)
    rows[0] = first.ravel()
    for row, file in zip(rows[1:], files[1:], strict=True):
        picture = read_picture(file, grey=grey)
        found = PictureFormat(picture.shape, white_value(picture.dtype))
        if found != form:
            remedy = "convert them to one format"
            if found.shape[:2] == form.shape[:2] and not grey:
                remedy = "convert them to one format, or pass --grey"
            raise InvalidInput(
                f"{file}: is {found.description}, and {files[0].name} is {form.description}; "
                f"{remedy}."
            )
        row[:] = picture.ravel()
    return Table(rows, form=form, labels=tuple(file.name for file in files))


def picture_files(folder: str | Path) -> list[Path]:
    """List the picture files of a folder in natural order: 9.png before 10.png.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    list of Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.tables import picture_files, write_picture
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("10.png", "9.png"):
    ...     write_picture(folder / name, np.zeros((2, 2), dtype=np.uint8))
    >>> [path.name for path in picture_files(folder)]
    ['9.png', '10.png']
    """
    files = [
        file
        for file in Path(folder).iterdir()
        if file.suffix.lower() in _FORMATS and not file.name.startswith(".")
    ]
    if not files:
        raise InvalidInput(f"{folder}: has no PNG, JPEG or TIFF file; pass another folder.")
    return sorted(files, key=lambda file: (_natural(file.name), file.name))


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares digits by their value."""
    parts = re.split(r"(\d+)", name.lower())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def write_picture(path: str | Path, pixels: NDArray[Any]) -> None:
    """Write one picture atomically in the format of the file name.

    Parameters
    ----------
    path : str or Path
        A .png, .jpg or .tif file.
    pixels : ndarray of shape (height, width), or with a third axis for colour
        Bytes from 0 to 255; grey levels of other types if the format supports them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.tables import read_picture, write_picture
    >>> path = Path(tempfile.mkdtemp(), "grey.png")
    >>> write_picture(path, np.full((3, 2), 7, dtype=np.uint8))
    >>> int(read_picture(path).max())
    7
    """
    path = Path(path)
    check_pixels(path, pixels.shape, pixels.dtype)
    picture = _pillow(path)[0].fromarray(np.ascontiguousarray(pixels))
    with atomic_write(path) as file:
        picture.save(file, format=_FORMATS[path.suffix.lower()], quality=_JPEG_QUALITY)


def write_pictures(
    folder: Path, pictures: Iterable[NDArray[Any]], names: Sequence[str] | None = None
) -> None:
    """Write a new folder of pictures atomically; without names, files are numbered."""
    with atomic_folder(folder) as temporary:
        for number, pixels in enumerate(pictures):
            name = f"{number:05d}.png" if names is None else names[number]
            write_picture(temporary / name, pixels)


def to_unit_range(pixels: NDArray[Any]) -> NDArray[np.float64]:
    """Scale pixels of any type to black 0 and white 1."""
    return np.asarray(pixels, dtype=np.float64) / white_value(pixels.dtype)


def check_picture_target(path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise an error, before the work, if pixels could not be written to the file."""
    check_pixels(path, shape, dtype)
    check_writable(path)


def check_pixels(path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise an error, before the work, if the format does not support the pixels."""
    if path.suffix.lower() not in _FORMATS:
        raise InvalidInput(f"{path}: is not the name of a picture; pass a .png, .jpg or .tif file.")
    _pillow(path)
    kind = _FORMATS[path.suffix.lower()]
    dtype = np.dtype(dtype)
    if dtype != np.uint8 and kind == "JPEG":
        raise InvalidInput(f"{path}: JPEG supports bytes only, not {dtype}; pass a .tif file.")
    if dtype.kind == "f" and kind != "TIFF":
        raise InvalidInput(
            f"{path}: {kind} does not support floating-point pixels; pass a .tif file, or bytes."
        )
    if len(shape) == 3 and shape[2] in (2, 4) and kind == "JPEG":
        raise InvalidInput(f"{path}: JPEG does not support an alpha channel; pass a .png file.")
    if len(shape) == 3 and (shape[2] not in (2, 3, 4) or dtype != np.uint8):
        raise InvalidInput(
            f"{path}: pictures cannot have {shape[2]} channels of {dtype}; pass an .npy file."
        )


def _to_supported_mode(picture: Any) -> Any:
    if picture.mode in _SUPPORTED_MODES:
        picture.load()
        return picture
    if picture.mode == "I":
        # Pillow opens some PNG files of two bytes in a mode of four bytes.
        values = np.asarray(picture)
        if values.min() >= 0 and values.max() <= 65535:
            from PIL import Image

            return Image.fromarray(values.astype(np.uint16))
        return picture.convert("F")
    transparent = picture.mode == "P" and "transparency" in picture.info
    return picture.convert("RGBA" if transparent else _CONVERTED_MODES.get(picture.mode, "RGB"))


def _pillow(path: Path) -> Any:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise InvalidInput(
            f"{path}: pictures need the package pillow; run: pip install 'ikpca[pictures]'."
        ) from None
    return Image, ImageOps
