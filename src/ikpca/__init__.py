"""Iterative and incremental kernel PCA."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ikpca.estimators import (
        Checkpoint,
        HebbianPCA,
        IncrementalKernelPCA,
        KernelPCA,
        KernelSpectralClustering,
        NoveltyDetector,
        OnlineKernelPCA,
        compress,
    )
    from ikpca.gram import open_rows
    from ikpca.kernels import vectorized
    from ikpca.model_files import load

__all__ = [
    "Checkpoint",
    "HebbianPCA",
    "IncrementalKernelPCA",
    "KernelPCA",
    "KernelSpectralClustering",
    "NoveltyDetector",
    "OnlineKernelPCA",
    "__version__",
    "compress",
    "load",
    "open_rows",
    "vectorized",
]

__version__ = version("ikpca")

#: Packages of the public names, imported on first use: scikit-learn takes two seconds to import,
#: and the help of the command line does not need it.
_PACKAGES = {
    "Checkpoint": "estimators",
    "HebbianPCA": "estimators",
    "IncrementalKernelPCA": "estimators",
    "KernelPCA": "estimators",
    "KernelSpectralClustering": "estimators",
    "NoveltyDetector": "estimators",
    "OnlineKernelPCA": "estimators",
    "compress": "estimators",
    "load": "model_files",
    "open_rows": "gram",
    "vectorized": "kernels",
}


def __getattr__(name: str) -> Any:
    if name not in _PACKAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"ikpca.{_PACKAGES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
