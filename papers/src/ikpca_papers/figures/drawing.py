"""Figures of a finished experiment, as its specification lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ikpca.errors import InvalidInput
from ikpca_papers.claims import Drawing, ExperimentSpec
from ikpca_papers.figures.curves import (
    component_contours,
    growth_lines,
    learning_curves,
    png,
    projection_pairs,
    spectra,
)
from ikpca_papers.figures.motion import walk_figures
from ikpca_papers.figures.pictures import component_images, face_rows, images_with_numbers
from ikpca_papers.runner import Results

_DPI = 110


@dataclass(frozen=True)
class Picture:
    """PNG file with a caption.

    Parameters
    ----------
    name : str
        File name.
    content : bytes
    caption : str

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from ikpca_papers.figures import Picture, png
    >>> Picture("blank.png", png(Figure(figsize=(1, 1)), dpi=20), "A blank figure.").name
    'blank.png'
    """

    name: str
    content: bytes
    caption: str


def _curves(results: Results, spec: ExperimentSpec, **options: Any) -> bytes:
    if spec.curves is None:
        raise InvalidInput(f"{spec.id}.toml: a figure draws curves; add [curves].")
    return png(learning_curves(results, spec.curves, **options), _DPI)


def _as_png(function: Callable[..., Any]) -> Callable[..., bytes]:
    def render(results: Results, spec: ExperimentSpec, **options: Any) -> bytes:
        return png(function(results, **options), _DPI)

    return render


#: By the name that spec files use.
DRAWINGS: dict[str, Callable[..., bytes]] = {
    "curves": _curves,
    "contours": _as_png(component_contours),
    "pictures": _as_png(images_with_numbers),
    "faces": _as_png(face_rows),
    "components": _as_png(component_images),
    "scaling": _as_png(growth_lines),
    "scatter": _as_png(projection_pairs),
    "spectra": _as_png(spectra),
    "sticks": _as_png(walk_figures),
}


def draw(spec: ExperimentSpec, results: Results) -> Iterator[Picture]:
    """Draw every figure of the spec.

    Parameters
    ----------
    spec : ExperimentSpec
        Of an experiment.
    results : Results
        Of that experiment.

    Yields
    ------
    Picture
    """
    for number, drawing in enumerate(spec.drawings, start=1):
        name = f"{spec.id}-{number}-{drawing.draw}.png"
        yield Picture(name, _content(drawing, spec, results), drawing.caption)


def _content(drawing: Drawing, spec: ExperimentSpec, results: Results) -> bytes:
    if drawing.draw not in DRAWINGS:
        names = ", ".join(DRAWINGS)
        raise InvalidInput(f"{spec.id}.toml: nothing draws {drawing.draw!r}; known: {names}.")
    return DRAWINGS[drawing.draw](results, spec, **drawing.options)
