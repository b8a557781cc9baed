"""Reader and writer of image files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray
from PIL import Image, ImageOps

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats
from ikpca.model_files import atomic_write

#: Pillow's names of the image formats.
IMAGE_SUFFIXES = {
    ".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF",
}  # fmt: skip


def read_image(path: str | Path, *, gray: bool = False) -> NDArray[np.generic]:
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
    >>> from ikpca_papers.applications import read_image, write_image
    >>> path = Path(tempfile.mkdtemp(), "gray.png")
    >>> write_image(path, np.zeros((3, 2), dtype=np.uint8))
    >>> read_image(path).shape
    (3, 2)
    """
    path = Path(path)
    if not path.is_file():
        rule = "is a folder, not an image" if path.is_dir() else "no such file"
        raise InvalidInput(f"{path}: {rule}; check the path.")
    try:
        with Image.open(path) as file:
            if getattr(file, "n_frames", 1) > 1:
                raise InvalidInput(f"{path}: has several images; save each in its own file.")
            image = _to_supported_mode(file)
    except InvalidInput:
        raise
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = "unknown or damaged" if "identify" in str(error) else str(error).rstrip(".")
        raise InvalidInput(
            f"{path}: is not a readable image ({reason}); save it again as PNG."
        ) from None
    if gray and image.mode not in ("L", "F", "I;16"):
        image = image.convert("L")
    return np.asarray(image)


def _to_supported_mode(file: Image.Image) -> Image.Image:
    """Turn an image upright and convert it to a mode with numeric pixels."""
    image = ImageOps.exif_transpose(file)
    if image.mode in ("L", "LA", "RGB", "RGBA", "F", "I;16"):
        image.load()
        return image
    if image.mode == "I":
        # Pillow opens some PNG files of two bytes in a mode of four bytes.
        values = np.asarray(image)
        if values.min() >= 0 and values.max() <= 65535:
            return Image.fromarray(values.astype(np.uint16))
        return image.convert("F")
    if image.mode == "P" and "transparency" in image.info:
        return image.convert("RGBA")
    modes = {"1": "L", "PA": "RGBA", "I;16B": "I;16", "I;16L": "I;16"}
    return image.convert(modes.get(image.mode, "RGB"))


def image_files(folder: str | Path) -> list[Path]:
    """List the image files of a folder in natural order: 9.png before 10.png.

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
    >>> from ikpca_papers.applications import image_files, write_image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("10.png", "9.png"):
    ...     write_image(folder / name, np.zeros((2, 2), dtype=np.uint8))
    >>> [path.name for path in image_files(folder)]
    ['9.png', '10.png']
    """
    if not Path(folder).is_dir():
        raise InvalidInput(f"{folder}: no such folder; pass a folder of images.")
    files = [
        file
        for file in Path(folder).iterdir()
        if file.suffix.lower() in IMAGE_SUFFIXES and not file.name.startswith(".")
    ]
    if not files:
        raise InvalidInput(f"{folder}: has no PNG, JPEG or TIFF file; pass another folder.")
    return sorted(files, key=_natural_key)


def _natural_key(file: Path) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key that compares digits by their value."""
    parts = re.split(r"(\d+)", file.name.lower())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts], file.name


def write_image(path: str | Path, pixels: NDArray[np.generic]) -> None:
    """Write one image atomically in the format of the file name.

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
    >>> from ikpca_papers.applications import read_image, write_image
    >>> path = Path(tempfile.mkdtemp(), "gray.png")
    >>> write_image(path, np.full((3, 2), 7, dtype=np.uint8))
    >>> int(read_image(path).max())
    7
    """
    path = Path(path)
    check_image_target(path, pixels.shape, pixels.dtype)
    image = Image.fromarray(np.ascontiguousarray(pixels))
    with atomic_write(path) as file:
        # JPEG of this quality has no visible artifacts.
        image.save(file, format=IMAGE_SUFFIXES[path.suffix.lower()], quality=95)


def check_image_target(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Raise an error, before the work, if the format does not support the pixels."""
    kind, dtype = IMAGE_SUFFIXES.get(path.suffix.lower()), np.dtype(dtype)
    channels = shape[2] if len(shape) == 3 else 1
    if kind is None:
        rule = "is not the name of an image; pass a .png, .jpg or .tif file"
    elif dtype != np.uint8 and kind == "JPEG":
        rule = f"JPEG supports bytes only, not {dtype}; pass a .tif file"
    elif dtype.kind == "f" and kind != "TIFF":
        rule = f"{kind} does not support floating-point pixels; pass a .tif file, or bytes"
    elif channels in (2, 4) and kind == "JPEG":
        rule = "JPEG does not support an alpha channel; pass a .png file"
    elif len(shape) == 3 and (channels not in (2, 3, 4) or dtype != np.uint8):
        rule = f"images cannot have {channels} channels of {dtype}; pass gray levels or bytes"
    else:
        return
    raise InvalidInput(f"{path}: {rule}.")


def white_value(dtype: DTypeLike) -> float:
    """Return the value of white for a type of pixels."""
    return {"uint8": 255.0, "uint16": 65535.0}.get(np.dtype(dtype).name, 1.0)


def to_unit_range(pixels: NDArray[np.generic]) -> NDArray[np.float64]:
    """Scale pixels of any type to black 0 and white 1."""
    return np.asarray(pixels, dtype=np.float64) / white_value(pixels.dtype)


def from_unit_range(values: Floats, dtype: DTypeLike) -> NDArray[np.generic]:
    """Convert gray levels from 0 to 1 to pixels of a type; integers are rounded and clipped."""
    values, white, dtype = values * white_value(dtype), white_value(dtype), np.dtype(dtype)
    if dtype.kind == "f":
        return values.astype(dtype)
    return np.clip(np.rint(values), 0, white).astype(dtype)
