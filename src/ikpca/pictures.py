"""Reader and writer of pictures for the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.model_files import atomic_write

__all__ = ["PictureFormat", "picture_files", "read_picture", "write_picture"]

#: Pillow's names of the picture formats.
PICTURE_SUFFIXES = {
    ".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF",
}  # fmt: skip


@dataclass(frozen=True)
class PictureFormat:
    """Shape and scale of the pictures in the rows of a table.

    Parameters
    ----------
    shape : tuple of int
        (height, width) for grayscale, (height, width, channels) for color.
    white : float
        Value of white: 255 for bytes, 65535 for two bytes, 1 for floating-point pixels.
    scaled : bool, default=False
        True if rows are divided by the value of white.

    Examples
    --------
    >>> from ikpca.pictures import PictureFormat
    >>> PictureFormat((64, 56), 255.0).description
    '64×56 gray'
    """

    shape: tuple[int, ...]
    white: float
    scaled: bool = False

    @property
    def description(self) -> str:
        """Size and kind of the picture, for messages."""
        height, width, *channels = self.shape
        kind = {1: "gray", 2: "gray with alpha", 3: "color", 4: "color with alpha"}
        return f"{height}×{width} {kind.get(channels[0] if channels else 1, 'of many channels')}"

    @property
    def pixels_type(self) -> np.dtype[Any]:
        """Type of the pixels: bytes, two bytes or floating-point numbers."""
        return np.dtype({255.0: "u1", 65535.0: "u2"}.get(self.white, "f4"))

    def pixels(self, row: NDArray[Any]) -> NDArray[Any]:
        """Convert a row to a picture; integer pixels are rounded and clipped."""
        values = np.reshape(row, self.shape) * (self.white if self.scaled else 1.0)
        if self.pixels_type.kind == "f":
            return values.astype(self.pixels_type)
        return np.clip(np.rint(values), 0, self.white).astype(self.pixels_type)


def white_value(dtype: np.dtype[Any]) -> float:
    """Return the value of white for a type of pixels."""
    return {"uint8": 255.0, "uint16": 65535.0}.get(dtype.name, 1.0)


def read_picture(path: str | Path, *, gray: bool = False) -> NDArray[Any]:
    """Read the pixels of a file: (height, width), with a third axis for color or alpha.

    Parameters
    ----------
    path : str or Path
        A .png, .jpg or .tif file.
    gray : bool, default=False
        If True, convert color to grayscale and remove alpha.

    Returns
    -------
    ndarray
        In the type of the file: 8 or 16 bits, or floating point.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.pictures import read_picture, write_picture
    >>> path = Path(tempfile.mkdtemp(), "gray.png")
    >>> write_picture(path, np.zeros((3, 2), dtype=np.uint8))
    >>> read_picture(path).shape
    (3, 2)
    """
    path = Path(path)
    pillow = _pillow(path)
    if not path.is_file():
        rule = "is a folder, not a picture" if path.is_dir() else "no such file"
        raise InvalidInput(f"{path}: {rule}; check the path.")
    try:
        with pillow.open(path) as opened:
            if getattr(opened, "n_frames", 1) > 1:
                raise InvalidInput(
                    f"{path}: has {opened.n_frames} pictures; save each in its own file."
                )
            picture = _to_supported_mode(opened)
    except InvalidInput:
        raise
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        reason = "unknown or damaged" if "identify" in str(error) else str(error).rstrip(".")
        raise InvalidInput(
            f"{path}: is not a readable picture ({reason}); save it again as PNG."
        ) from None
    if gray and picture.mode not in ("L", "F", "I;16"):
        picture = picture.convert("L")
    return np.asarray(picture)


def _to_supported_mode(opened: Any) -> Any:
    """Turn a picture upright and convert it to a mode with numeric pixels."""
    from PIL import Image, ImageOps

    picture = ImageOps.exif_transpose(opened)
    if picture.mode in ("L", "LA", "RGB", "RGBA", "F", "I;16"):
        picture.load()
        return picture
    if picture.mode == "I":
        # Pillow opens some PNG files of two bytes in a mode of four bytes.
        values = np.asarray(picture)
        if values.min() >= 0 and values.max() <= 65535:
            return Image.fromarray(values.astype(np.uint16))
        return picture.convert("F")
    if picture.mode == "P" and "transparency" in picture.info:
        return picture.convert("RGBA")
    modes = {"1": "L", "PA": "RGBA", "I;16B": "I;16", "I;16L": "I;16"}
    return picture.convert(modes.get(picture.mode, "RGB"))


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
    >>> from ikpca.pictures import picture_files, write_picture
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("10.png", "9.png"):
    ...     write_picture(folder / name, np.zeros((2, 2), dtype=np.uint8))
    >>> [path.name for path in picture_files(folder)]
    ['9.png', '10.png']
    """
    files = [
        file
        for file in Path(folder).iterdir()
        if file.suffix.lower() in PICTURE_SUFFIXES and not file.name.startswith(".")
    ]
    if not files:
        raise InvalidInput(f"{folder}: has no PNG, JPEG or TIFF file; pass another folder.")
    return sorted(files, key=_natural_key)


def _natural_key(file: Path) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key that compares digits by their value."""
    parts = re.split(r"(\d+)", file.name.lower())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts], file.name


def write_picture(path: str | Path, pixels: NDArray[Any]) -> None:
    """Write one picture atomically in the format of the file name.

    Parameters
    ----------
    path : str or Path
        A .png, .jpg or .tif file.
    pixels : ndarray of shape (height, width), or with a third axis for color
        Bytes from 0 to 255; gray levels of other types if the format supports them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.pictures import read_picture, write_picture
    >>> path = Path(tempfile.mkdtemp(), "gray.png")
    >>> write_picture(path, np.full((3, 2), 7, dtype=np.uint8))
    >>> int(read_picture(path).max())
    7
    """
    path = Path(path)
    check_picture_target(path, pixels.shape, pixels.dtype)
    picture = _pillow(path).fromarray(np.ascontiguousarray(pixels))
    with atomic_write(path) as file:
        # JPEG of this quality has no visible artifacts.
        picture.save(file, format=PICTURE_SUFFIXES[path.suffix.lower()], quality=95)


def check_picture_target(path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise an error, before the work, if the format does not support the pixels."""
    kind, dtype = PICTURE_SUFFIXES.get(path.suffix.lower()), np.dtype(dtype)
    if kind is None:
        raise InvalidInput(f"{path}: is not the name of a picture; pass a .png, .jpg or .tif file.")
    _pillow(path)
    channels = shape[2] if len(shape) == 3 else 1
    if dtype != np.uint8 and kind == "JPEG":
        rule = f"JPEG supports bytes only, not {dtype}; pass a .tif file"
    elif dtype.kind == "f" and kind != "TIFF":
        rule = f"{kind} does not support floating-point pixels; pass a .tif file, or bytes"
    elif channels in (2, 4) and kind == "JPEG":
        rule = "JPEG does not support an alpha channel; pass a .png file"
    elif len(shape) == 3 and (channels not in (2, 3, 4) or dtype != np.uint8):
        rule = f"pictures cannot have {channels} channels of {dtype}; pass an .npy file"
    else:
        return
    raise InvalidInput(f"{path}: {rule}.")


def to_unit_range(pixels: NDArray[Any]) -> NDArray[np.float64]:
    """Scale pixels of any type to black 0 and white 1."""
    return np.asarray(pixels, dtype=np.float64) / white_value(pixels.dtype)


def _pillow(path: Path) -> Any:
    """Import Pillow, or raise an error with the install command."""
    try:
        from PIL import Image
    except ImportError:
        raise InvalidInput(
            f"{path}: pictures need the package pillow; run: pip install 'ikpca[pictures]'."
        ) from None
    return Image
