"""From a figure to a file's content."""

from __future__ import annotations

import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["png"]


def png(figure: Figure, dpi: int = 200) -> bytes:
    """Render without a display and without pyplot's global state.

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
