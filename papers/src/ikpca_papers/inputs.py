"""Inputs of the experiments: data sets in the form that each experiment needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ikpca.errors import InvalidInput
from ikpca_papers.chin2006.eigenfaces import reduced_faces
from ikpca_papers.data.entries import find
from ikpca_papers.data.sources import load
from ikpca_papers.experiment import Arrays, Inputs, digest
from ikpca_papers.kim2003.faces import enlarged_faces
from ikpca_papers.kim2003.natural_super_resolution import split_alternating, split_halves


@dataclass(frozen=True)
class View:
    """Names of data sets in the registry, and the function that converts their arrays."""

    names: tuple[str, ...]
    make: Callable[..., Arrays]


def load_inputs(name: str, folder: Path | None = None) -> Inputs:
    """Load the inputs of an experiment; ``folder`` is for data that are not embedded."""
    if name not in VIEWS:
        raise InvalidInput(f"there is no data {name!r}; choose from {', '.join(VIEWS)}.")
    view = VIEWS[name]
    sets = [load(one, folder) for one in view.names]
    origin = ", ".join(dict.fromkeys(one.origin for one in sets)) or "generated"
    checksum = sets[0].checksum if len(sets) == 1 else digest([one.checksum for one in sets])
    return Inputs(name, origin, view.make(*(one.arrays for one in sets)), checksum)


def is_embedded(name: str) -> bool:
    """Return True if a view needs no further files."""
    return all(find(one).way == "embedded" for one in VIEWS[name].names)


def _empty() -> Arrays:
    """Return no arrays, for experiments that generate their rows from settings and seed."""
    return {}


def _identity(data: Arrays) -> Arrays:
    return data


def _usps(data: Arrays) -> Arrays:
    """Return digits with pixels from 0 to 1; those of the file are from -1 to 1."""
    return {"X": (data["X_train"].astype(np.float64) + 1) / 2, "y": data["y_train"]}


def _lena(data: Arrays) -> Arrays:
    """Reduce to 256×256 by averaging four pixels."""
    return {"image": data["lena"].reshape(256, 2, 256, 2).mean(axis=(1, 3)) / 255}


def _photographs(data: Arrays) -> Arrays:
    return _split(split_halves(data))


def _bsds(data: Arrays) -> Arrays:
    return _split(split_alternating(data["images"], data["ids"]))


def _split(parts: tuple[Arrays, Arrays]) -> Arrays:
    named = zip(("train", "test"), parts, strict=True)
    return {f"{part}/{name}": image for part, images in named for name, image in images.items()}


def _large_faces(data: Arrays) -> Arrays:
    return {"images": enlarged_faces(data["images"]), "persons": data["subject"]}


def _small_faces(data: Arrays) -> Arrays:
    return {"X": reduced_faces(data["images"]), "y": data["subject"]}


def _walk(data: Arrays) -> Arrays:
    """Return positions relative to the root, in meters."""
    positions = data["positions"].astype(np.float64) * float(data["metres_per_unit"])
    return {
        "positions": positions - positions[:, :1],
        "parents": data["parents"].astype(np.intp),
        "frame_rate": data["frame_rate"],
    }


def _videos(teapot: Arrays, frey: Arrays) -> Arrays:
    """Return frames in order, pixels from 0 to 1."""
    images = {"Teapot": teapot["images"].astype(np.float64), "Frey faces": frey["images"] / 255}
    return {name: frames.reshape(len(frames), -1) for name, frames in images.items()}


#: By the name that spec files use.
VIEWS: dict[str, View] = {
    "generated": View((), _empty),
    "digits": View(("digits",), _identity),
    "usps": View(("usps",), _usps),
    "flower": View(("flower_256",), _identity),
    "lena": View(("test_images_512",), _lena),
    "photographs": View(("photographs",), _photographs),
    "bsds": View(("bsds_grey",), _bsds),
    "synthetic-faces": View(("synthetic_faces",), _large_faces),
    "yale-b-60": View(("yaleb_cropped_64x56",), _large_faces),
    "yale-b-20": View(("yaleb_cropped_64x56",), _small_faces),
    "walker": View(("walker",), _walk),
    "cmu-walk": View(("cmu_walk_35_01",), _walk),
    "videos": View(("teapot_100", "frey_faces"), _videos),
}
