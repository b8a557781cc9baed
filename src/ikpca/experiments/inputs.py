"""What experiments run on: arrays with a name, an origin and a checksum."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.experiments.eigenfaces import faces
from ikpca.experiments.face_hyperresolution import large_faces, small_digits
from ikpca.experiments.hyperresolution import photographs

__all__ = ["EMBEDDED", "LOCAL", "Inputs", "load_inputs"]

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Inputs:
    """A data set in memory.

    Parameters
    ----------
    name : str
    origin : str
        "embedded", or "local folder".
    arrays : dict of arrays
    checksum : str
        SHA-256 of names, types, shapes and values.
    """

    name: str
    origin: str
    arrays: Arrays
    checksum: str

    @classmethod
    def of(cls, name: str, origin: str, arrays: Arrays) -> Inputs:
        """Take the checksum."""
        total = hashlib.sha256()
        for key, array in sorted(arrays.items()):
            total.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
            total.update(np.ascontiguousarray(array).tobytes())
        return cls(name, origin, arrays, total.hexdigest())


def load_inputs(name: str, folder: Path | None = None) -> Inputs:
    """Load a data set by name; real ones from ``folder``, or from the one IKPCA_DATA names."""
    if name in EMBEDDED:
        return Inputs.of(name, "embedded", EMBEDDED[name]())
    if name not in LOCAL:
        known = ", ".join([*EMBEDDED, *LOCAL])
        raise InvalidInput(f"there is no data set {name!r}; choose from {known}.")
    named = os.environ.get("IKPCA_DATA")
    place = folder or (Path(named) if named else None)
    if place is None:
        raise InvalidInput(
            f"data set {name!r} does not come with the package; name its folder with --data or in "
            "IKPCA_DATA."
        )
    try:
        return Inputs.of(name, "local folder", LOCAL[name](place))
    except OSError as error:
        missing = Path(error.filename).name if error.filename else name
        raise InvalidInput(f"there is no {missing} in {place}; name the folder of the data with "
                           "--data or in IKPCA_DATA.") from error  # fmt: skip


def _nothing() -> Arrays:
    """For experiments that generate their rows from settings and seed."""
    return {}


def _digits() -> Arrays:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return {"X": pixels / 16, "y": labels}


def _usps(folder: Path) -> Arrays:
    with np.load(folder / "usps.npz") as data:
        return {"X": data["X_train"].astype(np.float64), "y": data["y_train"]}


def _flower() -> Arrays:
    from sklearn.datasets import load_sample_image

    # ITU-R 601 brightness; the middle of the picture.
    grey = load_sample_image("flower.jpg") @ np.array([0.299, 0.587, 0.114]) / 255
    return {"image": grey[85:341, 192:448]}


def _lena(folder: Path) -> Arrays:
    with np.load(folder / "test_images_512.npz") as data:
        image = data["lena"] / 255
    return {"image": image.reshape(256, 2, 256, 2).mean(axis=(1, 3))}


def _photographs(folder: Path | None = None) -> Arrays:
    parts = zip(("train", "test"), photographs(folder), strict=True)
    return {f"{part}/{name}": image for part, images in parts for name, image in images.items()}


def _yale_b_20(folder: Path) -> Arrays:
    X, y = faces(folder)
    return {"X": X, "y": y}


def _mnist(folder: Path) -> Arrays:
    with np.load(folder / "mnist.npz") as data:
        return {"X": data["X_train"]}


def _videos(folder: Path) -> Arrays:
    """The teapot and Frey's faces in the order of their frames, pixels from 0 to 1."""
    found = {}
    for name, white in (("teapot_100", 1), ("frey_faces", 255)):
        with np.load(folder / f"{name}.npz") as data:
            images = data["images"].astype(np.float64)
        found[name] = images.reshape(len(images), -1) / white
    return found


def _walker() -> Arrays:
    from ikpca.datasets import body_centred, synthetic_walker

    return _motion(body_centred(synthetic_walker()))


def _cmu_walk(folder: Path) -> Arrays:
    from ikpca.datasets import body_centred, in_metres, read_asf_amc

    files = (folder / "mocap" / name for name in ("35.asf", "35_01.amc"))
    return _motion(body_centred(in_metres(read_asf_amc(*files))))


def _motion(motion: Any) -> Arrays:
    return {
        "positions": motion.positions,
        "parents": motion.skeleton.parents,
        "frame_rate": np.array(motion.frame_rate),
    }


#: Nothing to download.
EMBEDDED: dict[str, Callable[[], Arrays]] = {
    "generated": _nothing,
    "digits": _digits,
    "flower": _flower,
    "photographs": _photographs,
    "digit-faces": lambda: {"images": small_digits()},
    "walker": _walker,
}
#: From a folder of research data.
LOCAL: dict[str, Callable[[Path], Arrays]] = {
    "usps": _usps,
    "lena": _lena,
    "bsds": _photographs,
    "yale-b-60": lambda folder: {"images": large_faces(folder)},
    "yale-b-20": _yale_b_20,
    "cmu-walk": _cmu_walk,
    "mnist": _mnist,
    "videos": _videos,
}
