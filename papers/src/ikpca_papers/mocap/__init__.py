"""Motion-capture files, skeletons and a synthetic walk."""

from ikpca_papers.mocap.amc import read_asf_amc, write_asf_amc
from ikpca_papers.mocap.bvh import read_bvh
from ikpca_papers.mocap.files import motion_arrays, read_motion, write_motion
from ikpca_papers.mocap.skeleton import (
    Motion,
    Skeleton,
    as_rows,
    body_centered,
    from_rows,
    in_metres,
    with_noise,
)
from ikpca_papers.mocap.walker import synthetic_walker

__all__ = [
    "Motion",
    "Skeleton",
    "as_rows",
    "body_centered",
    "from_rows",
    "in_metres",
    "motion_arrays",
    "read_asf_amc",
    "read_bvh",
    "read_motion",
    "synthetic_walker",
    "with_noise",
    "write_asf_amc",
    "write_motion",
]
