"""Drawing, and nothing else; the only room that knows the plotting library.

For fitted models: ``scree``, ``projections``, ``components``, ``convergence``. The rest draws what
experiments have found.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ikpca.figures.animation import motion_gif
    from ikpca.figures.demo_curves import demo_convergence
    from ikpca.figures.drawing import Picture, draw
    from ikpca.figures.fitted_curves import convergence, scree
    from ikpca.figures.fitted_points import components, projections
    from ikpca.figures.images import png
    from ikpca.figures.motion import stick_figures
    from ikpca.figures.pictures import picture_grid
    from ikpca.figures.tracked_angles import tracking

__all__ = [
    "Picture",
    "components",
    "convergence",
    "demo_convergence",
    "draw",
    "motion_gif",
    "picture_grid",
    "png",
    "projections",
    "scree",
    "stick_figures",
    "tracking",
]

#: Names by file. They are fetched when they are first asked for, so that what is missing can be
#: told in a sentence. No file may have the name of a function.
_FILES = {
    "Picture": "drawing",
    "components": "fitted_points",
    "convergence": "fitted_curves",
    "demo_convergence": "demo_curves",
    "draw": "drawing",
    "motion_gif": "animation",
    "picture_grid": "pictures",
    "png": "images",
    "projections": "fitted_points",
    "scree": "fitted_curves",
    "stick_figures": "motion",
    "tracking": "tracked_angles",
}
#: Of the extra ``plot``, by the names under which they are imported.
_NEEDED = {"matplotlib": "matplotlib", "PIL": "pillow"}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"ikpca.figures.{_FILES[name]}"), name)
    except ModuleNotFoundError as missing:
        package = _NEEDED.get((missing.name or "").partition(".")[0])
        if package is None:
            raise
        raise ImportError(
            f"ikpca.figures.{name} needs {package}; run: pip install 'ikpca[plot]'."
        ) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
