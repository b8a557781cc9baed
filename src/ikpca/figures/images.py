"""From a figure to a file's content."""

from __future__ import annotations

import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["png"]


def png(figure: Figure, dpi: int = 200) -> bytes:
    """Render without a display and without pyplot's global state.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    dpi : int, default=200
        Dots per inch.

    Returns
    -------
    bytes
        Of a PNG file.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from ikpca.figures import png
    >>> png(Figure(figsize=(1, 1)), dpi=20)[1:4]
    b'PNG'
    """
    image = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(image, format="png", dpi=dpi)
    return image.getvalue()
