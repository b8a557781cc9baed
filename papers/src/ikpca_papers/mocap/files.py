"""Motion files by their names: AMC with the ASF file beside it, and BVH."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca_papers.data.registry import Arrays
from ikpca_papers.mocap.acclaim_frames import read_asf_amc, skeleton_text, write_asf_amc
from ikpca_papers.mocap.bvh import read_bvh
from ikpca_papers.mocap.skeleton import Motion

MOTION_SUFFIXES = (".amc", ".bvh")


def read_motion(path: str | Path, asf: str | Path | None = None) -> Motion:
    """Read a recording.

    Parameters
    ----------
    path : str or Path
        A .bvh or an .amc file.
    asf : str or Path, optional
        The skeleton of an .amc file. By default the .asf file beside it whose name begins its own,
        as CMU's 07.asf does for 07_01.amc, or the only one that there is.

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
    return read_asf_amc(asf or _skeleton_beside(path), path)


def _skeleton_beside(path: Path) -> Path:
    found = sorted(file for file in path.parent.iterdir() if file.suffix.lower() == ".asf")
    akin = [file for file in found if path.stem.startswith(file.stem)]
    if akin:
        return max(akin, key=lambda file: len(file.stem))
    if len(found) == 1:
        return found[0]
    what = "several .asf files" if found else "no .asf file"
    raise InvalidInput(f"{path}: there are {what} beside it; name its skeleton with --asf.")


def write_motion(path: str | Path, motion: Motion) -> None:
    """Write the frames to an .amc file and the skeleton to the .asf file beside it.

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


def check_motion_target(path: Path, motion: Motion) -> None:
    """Refuse to write over another skeleton, which nobody named."""
    asf = path.with_suffix(".asf")
    if asf.exists() and asf.read_bytes() != skeleton_text(motion):
        raise InvalidInput(
            f"{path}: its skeleton would replace {asf.name}, which is another one; choose another "
            "name."
        )


def motion_names(motion: Motion) -> tuple[str, ...]:
    """Of the columns that :func:`as_rows` makes."""
    return tuple(f"{joint}_{axis}" for joint in motion.skeleton.names for axis in "xyz")


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


def recorded_walk(folder: Path, subject: str, trial: str) -> Arrays:
    """A walk of CMU's database from the texts in ``mocap`` below a folder."""
    texts = folder / "mocap"
    return motion_arrays(
        read_asf_amc(texts / f"{subject}.asf", texts / f"{subject}_{trial}.amc", frame_rate=120.0)
    )
