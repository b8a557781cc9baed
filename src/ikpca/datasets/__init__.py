"""Data to run on: readers of recorded motion, its coordinates, and a walk from formulas."""

from ikpca.datasets.amc import read_asf_amc
from ikpca.datasets.bvh import read_bvh
from ikpca.datasets.coordinates import as_rows, body_centred, from_rows, in_metres, with_noise
from ikpca.datasets.skeleton import Motion, Skeleton
from ikpca.datasets.walker import synthetic_walker

__all__ = [
    "Motion",
    "Skeleton",
    "as_rows",
    "body_centred",
    "from_rows",
    "in_metres",
    "read_asf_amc",
    "read_bvh",
    "synthetic_walker",
    "with_noise",
]
