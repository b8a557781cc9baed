"""The classes that a file may bring to life, by name: nothing else ever comes out of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["KNOWN", "class_finder"]

#: By room, so that reading a file imports no more than it needs.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "estimators": ("KernelPCA", "HebbianPCA"),
    "kernels": ("Cosine", "Gaussian", "Laplacian", "Linear", "Polynomial", "Sigmoid"),
    "gains": ("Constant", "InverseTime", "MetaDescent", "Product", "ReciprocalEigenvalues"),
    "gram": ("Centring", "GramMeans"),
    "hebbian": ("HebbianProgress", "HebbianState", "StreamState"),
    "krylov": ("KrylovProgress", "KrylovState"),
    "loop": ("Outcome", "PassRecord"),
    "preimages": ("Expansion", "FixedPoint", "Gradient", "Mds", "NeighbourMean"),
    "reduced_sets": ("Subspace",),
    "spectra": ("Certificate", "Projector"),
}


def class_finder(known: Mapping[str, tuple[str, ...]]) -> Callable[[str], type | None]:
    """A function from names to classes, or to None for a name that is not in the table."""
    rooms = {name: room for room, names in known.items() for name in names}

    def find(name: str) -> type | None:
        room = rooms.get(name)
        return None if room is None else getattr(import_module(f"ikpca.{room}"), name)

    return find
