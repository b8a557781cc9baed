"""Motion files by name, and motions as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca_papers.mocap.amc import read_asf_amc, write_asf_amc
from ikpca_papers.mocap.bvh import read_bvh
from ikpca_papers.mocap.skeleton import Motion


def read_motion(path: str | Path, asf: str | Path | None = None) -> Motion:
    """Read a recording in the format of its file name.

    Parameters
    ----------
    path : str or Path
        A .bvh or an .amc file.
    asf : str or Path, optional
        The skeleton of an .amc file. By default the .asf file in the same folder whose name is a
        prefix of its own, such as 07.asf for 07_01.amc, or the only one.

    Returns
    -------
    Motion

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca_papers.mocap import read_motion, synthetic_walker, write_motion
    >>> path = Path(tempfile.mkdtemp(), "walk.amc")
    >>> write_motion(path, synthetic_walker(frames=10))
    >>> read_motion(path).positions.shape[0]
    10
    """
    path = Path(path)
    if path.suffix.lower() == ".bvh":
        return read_bvh(path)
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such file; check the path.")
    return read_asf_amc(asf or _find_skeleton(path), path)


def _find_skeleton(path: Path) -> Path:
    found = sorted(file for file in path.parent.iterdir() if file.suffix.lower() == ".asf")
    named = [file for file in found if path.stem.startswith(file.stem)]
    if named:
        return max(named, key=lambda file: len(file.stem))
    if len(found) == 1:
        return found[0]
    what = "several .asf files" if found else "no .asf file"
    raise InvalidInput(f"{path}: there are {what} in its folder; pass its skeleton as asf.")


def write_motion(path: str | Path, motion: Motion) -> None:
    """Write the frames to an .amc file and the skeleton to the .asf file of the same name.

    Parameters
    ----------
    path : Path
        Ends in .amc.
    motion : Motion

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca_papers.mocap import read_motion, synthetic_walker, write_motion
    >>> path = Path(tempfile.mkdtemp(), "walk.amc")
    >>> write_motion(path, synthetic_walker(frames=10))
    >>> read_motion(path).n_frames
    10
    """
    path = Path(path)
    write_asf_amc(motion, path.with_suffix(".asf"), path)


def motion_arrays(motion: Motion) -> Mapping[str, NDArray[Any]]:
    """Return positions, skeleton and units of a motion as arrays.

    Parameters
    ----------
    motion : Motion
        With known unit of length.

    Returns
    -------
    mapping of str to array
        ``positions`` (frames, joints, 3), ``joint_names``, ``parents``, ``bone_lengths``,
        ``frame_rate`` and ``metres_per_unit``.

    Examples
    --------
    >>> from ikpca_papers.mocap import motion_arrays, synthetic_walker
    >>> arrays = motion_arrays(synthetic_walker(frames=5))
    >>> arrays["positions"].shape, arrays["joint_names"][0].item(), arrays["frame_rate"].item()
    ((5, 27, 3), 'pelvis', 120.0)
    """
    if motion.metres_per_unit is None:
        raise invalid_parameter(
            "motion.metres_per_unit", None, "must be known", "call in_metres first"
        )
    skeleton = motion.skeleton
    return {
        "positions": motion.positions.astype(np.float32),
        "joint_names": np.array(skeleton.names),
        "parents": skeleton.parents.astype(np.int16),
        "bone_lengths": skeleton.bone_lengths.astype(np.float32),
        "frame_rate": np.array(motion.frame_rate, dtype=np.float32),
        "metres_per_unit": np.array(motion.metres_per_unit, dtype=np.float32),
    }


def recorded_walk(folder: Path, subject: str, trial: str) -> Mapping[str, NDArray[Any]]:
    """Read a walk of CMU's database from the files in ``mocap`` below a folder."""
    mocap = folder / "mocap"
    return motion_arrays(
        read_asf_amc(mocap / f"{subject}.asf", mocap / f"{subject}_{trial}.amc", frame_rate=120.0)
    )
