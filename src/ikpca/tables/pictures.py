"""Pictures as rows: PNG, JPEG and TIFF files, and folders of them."""

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
from ikpca.tables.numeric import floats, white_of

#: What Pillow calls the formats.
_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}
PICTURE_SUFFIXES = tuple(_FORMATS)
#: Pixels are numbers in these modes; others are translated into the one that holds them.
_KEPT = {"L", "LA", "RGB", "RGBA", "F", "I;16"}
_TRANSLATED = {"1": "L", "P": "RGB", "PA": "RGBA", "I;16B": "I;16", "I;16L": "I;16"}
#: No artefact that a denoiser would have to remove again.
_JPEG_QUALITY = 95


def read_picture(path: str | Path, *, grey: bool = False) -> NDArray[Any]:
    """Pixels of a file: (height, width) for grey, with a third axis for colour or alpha.

    Parameters
    ----------
    path : str or Path
        A .png, .jpg or .tif file.
    grey : bool, default=False
        Whether to turn colour into brightness, and to leave out alpha.

    Returns
    -------
    ndarray
        Of the file's own type: 8 or 16 bits, or floating point.

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
        what = "is a folder, not a picture" if path.is_dir() else "there is no such file"
        raise InvalidInput(f"{path}: {what}; check the path.")
    try:
        with image_module.open(path) as opened:
            if getattr(opened, "n_frames", 1) > 1:
                raise InvalidInput(
                    f"{path}: holds {opened.n_frames} pictures; save each in a file of its own."
                )
            picture = _in_kept_mode(operations.exif_transpose(opened))
    except (OSError, SyntaxError, ValueError, image_module.DecompressionBombError) as trouble:
        if isinstance(trouble, InvalidInput):
            raise
        reason = "unknown or damaged" if "identify" in str(trouble) else str(trouble).rstrip(".")
        raise InvalidInput(
            f"{path}: is no picture that can be read ({reason}); save it again as PNG."
        ) from None
    if grey and picture.mode not in ("L", "F", "I;16"):
        picture = picture.convert("L")
    return np.asarray(picture)


def read_picture_table(path: Path, *, grey: bool = False) -> Table:
    """One row per picture of a folder, in natural order, all of one size; or of one file."""
    files = picture_files(path) if path.is_dir() else [path]
    first = read_picture(files[0], grey=grey)
    form = PictureFormat(first.shape, white_of(first.dtype))
    rows = np.empty((len(files), first.size), dtype=floats(first[:1]).dtype)
    rows[0] = first.ravel()
    for row, file in zip(rows[1:], files[1:], strict=True):
        picture = read_picture(file, grey=grey)
        found = PictureFormat(picture.shape, white_of(picture.dtype))
        if found != form:
            remedy = "make them alike"
            if found.shape[:2] == form.shape[:2] and not grey:
                remedy = "make them alike, or pass --grey"
            raise InvalidInput(
                f"{file}: is {found.words}, and {files[0].name} is {form.words}; {remedy}."
            )
        row[:] = picture.ravel()
    return Table(rows, form=form, labels=tuple(file.name for file in files))


def picture_files(folder: str | Path) -> list[Path]:
    """The picture files of a folder, 9.png before 10.png.

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
        raise InvalidInput(f"{folder}: holds no PNG, JPEG or TIFF file; name another folder.")
    return sorted(files, key=lambda file: (_natural(file.name), file.name))


def _natural(name: str) -> list[tuple[int, str]]:
    """Runs of digits by their value, everything else as text."""
    parts = re.split(r"(\d+)", name.lower())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def write_picture(path: str | Path, pixels: NDArray[Any]) -> None:
    """Write one picture in the format of the file's name, whole or not at all.

    Parameters
    ----------
    path : str or Path
        A .png, .jpg or .tif file.
    pixels : ndarray of shape (height, width), or with a third axis for colour
        Bytes from 0 to 255; grey levels of other types as far as the format holds them.

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
    """A new folder of pictures, numbered where no names are given; whole or not at all."""
    with atomic_folder(folder) as beside:
        for number, pixels in enumerate(pictures):
            name = f"{number:05d}.png" if names is None else names[number]
            write_picture(beside / name, pixels)


def in_units_of_white(pixels: NDArray[Any]) -> NDArray[np.float64]:
    """Black is 0 and white is 1, whatever the type of the pixels."""
    return np.asarray(pixels, dtype=np.float64) / white_of(pixels.dtype)


def check_picture_target(path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse, before any work, a file that pixels could not be written to in the end."""
    check_pixels(path, shape, dtype)
    check_writable(path)


def check_pixels(path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse, before any work, what a format cannot hold."""
    if path.suffix.lower() not in _FORMATS:
        raise InvalidInput(f"{path}: is no name of a picture; end it in .png, .jpg or .tif.")
    _pillow(path)
    kind = _FORMATS[path.suffix.lower()]
    dtype = np.dtype(dtype)
    if dtype != np.uint8 and kind == "JPEG":
        raise InvalidInput(f"{path}: JPEG holds bytes only, not {dtype}; name a .tif file.")
    if dtype.kind == "f" and kind != "TIFF":
        raise InvalidInput(f"{path}: {kind} holds no fractions; name a .tif file, or pass bytes.")
    if len(shape) == 3 and shape[2] in (2, 4) and kind == "JPEG":
        raise InvalidInput(f"{path}: JPEG has no alpha channel; name a .png file.")
    if len(shape) == 3 and (shape[2] not in (2, 3, 4) or dtype != np.uint8):
        raise InvalidInput(
            f"{path}: {shape[2]} channels of {dtype} are no picture; name an .npy file."
        )


def _in_kept_mode(picture: Any) -> Any:
    if picture.mode in _KEPT:
        picture.load()
        return picture
    if picture.mode == "I":
        # Some PNG files of two bytes are opened as four.
        values = np.asarray(picture)
        if values.min() >= 0 and values.max() <= 65535:
            from PIL import Image

            return Image.fromarray(values.astype(np.uint16))
        return picture.convert("F")
    transparent = picture.mode == "P" and "transparency" in picture.info
    return picture.convert("RGBA" if transparent else _TRANSLATED.get(picture.mode, "RGB"))


def _pillow(path: Path) -> Any:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise InvalidInput(
            f"{path}: pictures need the package pillow; run: pip install 'ikpca[pictures]'."
        ) from None
    return Image, ImageOps
