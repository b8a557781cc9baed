"""Tables of rows and the format of pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput


@dataclass(frozen=True)
class PictureFormat:
    """Shape and scale of the pictures in the rows of a table.

    Parameters
    ----------
    shape : tuple of int
        (height, width) for grey, (height, width, channels) for colour.
    white : float
        Value of white: 255 for bytes, 65535 for two bytes, 1 for floating-point pixels.
    scaled : bool, default=False
        True if rows are divided by the value of white.

    Examples
    --------
    >>> from ikpca.tables import PictureFormat
    >>> PictureFormat((64, 56), 255.0).description
    '64×56 grey'
    """

    shape: tuple[int, ...]
    white: float
    scaled: bool = False

    @property
    def description(self) -> str:
        """Size and kind of the picture, for messages."""
        height, width, *channels = self.shape
        kind = {1: "grey", 2: "grey with alpha", 3: "colour", 4: "colour with alpha"}
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


@dataclass(frozen=True, eq=False)
class Table:
    """Table of numbers with optional names and picture format.

    Parameters
    ----------
    rows : array of shape (rows, columns)
        In memory, or a memory map of a large file.
    names : tuple of str, optional
        Names of the columns.
    form : PictureFormat, optional
        Shape and scale of the pictures if rows are pictures.
    labels : tuple of str, optional
        Names of the rows, such as picture files.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.tables import Table
    >>> Table(np.ones((2, 3)), ("a", "b", "c")).rows.shape
    (2, 3)
    """

    rows: NDArray[Any]
    names: tuple[str, ...] | None = None
    form: PictureFormat | None = None
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or not self.rows.size:
            raise InvalidInput(
                f"rows have shape {self.rows.shape}: they must be two-dimensional and not empty; "
                "pass rows and columns."
            )
        if self.names is not None and len(self.names) != self.rows.shape[1]:
            raise InvalidInput(
                f"{len(self.names)} names for {self.rows.shape[1]} columns: pass one per column."
            )

    def scaled(self) -> Self:
        """Return a table with pixels divided by white; other tables are returned unchanged."""
        form = self.form
        if not isinstance(form, PictureFormat) or form.scaled:
            return self
        rows = self.rows if form.white == 1 else self.rows / self.rows.dtype.type(form.white)
        return replace(self, rows=rows, form=replace(form, scaled=True))
