"""Iterative and incremental kernel PCA."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ikpca.estimators import (
        HebbianPCA,
        IncrementalKernelPCA,
        KernelPCA,
        OnlineKernelPCA,
        compress,
    )
    from ikpca.gram import open_rows
    from ikpca.kernels import vectorised
    from ikpca.loading import load

__all__ = [
    "HebbianPCA",
    "IncrementalKernelPCA",
    "KernelPCA",
    "OnlineKernelPCA",
    "__version__",
    "compress",
    "load",
    "open_rows",
    "vectorised",
]

__version__ = version("ikpca")

#: Public names by the room they live in. They are fetched when they are first asked for:
#: scikit-learn takes two seconds to load, and the command line's help needs none of it.
_ROOMS = {
    "HebbianPCA": "estimators",
    "IncrementalKernelPCA": "estimators",
    "KernelPCA": "estimators",
    "OnlineKernelPCA": "estimators",
    "compress": "estimators",
    "load": "loading",
    "open_rows": "gram",
    "vectorised": "kernels",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"ikpca.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
