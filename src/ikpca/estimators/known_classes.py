"""The classes that a file may bring to life, by name: nothing else ever comes out of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["KNOWN", "class_finder"]

#: By room, so that reading a file imports no more than it needs.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "estimators": (
        "DriftSignal",
        "HebbianPCA",
        "IncrementalKernelPCA",
        "KernelPCA",
        "OnlineKernelPCA",
        "OnlineStream",
        "RoundProgress",
        "Stream",
        "StreamProgress",
        "Trail",
    ),
    "kernels": ("Cosine", "Gaussian", "Laplacian", "Linear", "Polynomial", "Sigmoid"),
    "gains": ("Constant", "InverseTime", "MetaDescent", "Product", "ReciprocalEigenvalues"),
    "gram": ("Centring", "GramMeans"),
    "hebbian": ("HebbianProgress", "HebbianState", "OnlineState", "Start", "StreamState"),
    "incremental": ("Compression", "LibraryValues", "Report", "Settings", "State"),
    "krylov": ("KrylovProgress", "KrylovState"),
    "loop": ("Outcome", "PassRecord"),
    "preimages": ("Expansion", "FixedPoint", "Gradient", "Mds", "NeighbourMean"),
    "reduced_sets": (
        "AlikeMerged",
        "ChosenSamples",
        "IteratedPreimages",
        "JointPreimages",
        "LeastDropped",
        "Subspace",
    ),
    "spectra": ("Certificate", "Projector"),
}


def class_finder(known: Mapping[str, tuple[str, ...]]) -> Callable[[str], type | None]:
    """A function from names to classes, or to None for a name that is not in the table."""

    def find(name: str) -> type | None:
        room, _, own = name.partition(".")
        if own not in known.get(room, ()):
            return None
        found: type = getattr(import_module(f"ikpca.{room}"), own)
        return found

    return find
