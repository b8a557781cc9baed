"""Motions as named arrays, as in the files of recorded walks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ikpca.datasets.amc import read_asf_amc
from ikpca.datasets.dataset import Arrays
from ikpca.datasets.skeleton import Motion
from ikpca.errors import refuse

__all__ = ["motion_arrays", "recorded_walk"]


def motion_arrays(motion: Motion) -> Arrays:
    """Positions, skeleton and units of a motion.

    Parameters
    ----------
    motion : Motion
        Of known unit of length.

    Returns
    -------
    mapping of str to array
        ``positions`` (frames, joints, 3), ``joint_names``, ``parents``, ``bone_lengths``,
        ``frame_rate`` and ``metres_per_unit``.

    Examples
    --------
    >>> from ikpca.datasets import motion_arrays, synthetic_walker
    >>> arrays = motion_arrays(synthetic_walker(frames=5))
    >>> arrays["positions"].shape, arrays["joint_names"][0].item(), arrays["frame_rate"].item()
    ((5, 27, 3), 'pelvis', 120.0)
    """
    if motion.metres_per_unit is None:
        raise refuse("motion.metres_per_unit", None, "must be known", "call in_metres first")
    skeleton = motion.skeleton
    return {
        "positions": motion.positions.astype(np.float32),
        "joint_names": np.array(skeleton.names),
        "parents": skeleton.parents.astype(np.int16),
        "bone_lengths": skeleton.bone_lengths.astype(np.float32),
        "frame_rate": np.array(motion.frame_rate, dtype=np.float32),
        "metres_per_unit": np.array(motion.metres_per_unit, dtype=np.float32),
    }


def recorded_walk(folder: Path, subject: str, trial: str) -> Arrays:
    """A walk of CMU's database from the texts in ``mocap`` below a folder."""
    texts = folder / "mocap"
    return motion_arrays(
        read_asf_amc(texts / f"{subject}.asf", texts / f"{subject}_{trial}.amc", frame_rate=120.0)
    )
