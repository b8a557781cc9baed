"""Motion files by their names: AMC with the ASF file beside it, and BVH."""

from __future__ import annotations

from pathlib import Path

from ikpca.datasets.acclaim import skeleton_text, write_asf_amc
from ikpca.datasets.amc import read_asf_amc
from ikpca.datasets.bvh import read_bvh
from ikpca.datasets.skeleton import Motion
from ikpca.errors import InvalidInput

__all__ = ["MOTION_SUFFIXES", "check_motion_target", "motion_names", "read_motion", "write_motion"]

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
    >>> from ikpca.datasets import read_motion, synthetic_walker, write_motion
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
    >>> from ikpca.datasets import read_motion, synthetic_walker, write_motion
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
