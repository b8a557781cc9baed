"""Data to run on: a registry with three ways to each set, readers of motion, rows from formulas."""

from ikpca.datasets.amc import read_asf_amc
from ikpca.datasets.bvh import read_bvh
from ikpca.datasets.coordinates import as_rows, body_centred, from_rows, in_metres, with_noise
from ikpca.datasets.curves import Drift, Roll, drifting_parabola, parabola, perforated_swiss_roll
from ikpca.datasets.dataset import DataSet, checksum_of
from ikpca.datasets.downloads import fetch_file
from ikpca.datasets.entry import Entry, Remote
from ikpca.datasets.faces import Faces, synthetic_faces
from ikpca.datasets.fetching import fetch
from ikpca.datasets.folders import cache_folder, data_folder, is_offline
from ikpca.datasets.photographs import photograph, photograph_patches, square_photograph
from ikpca.datasets.recorded import motion_arrays
from ikpca.datasets.skeleton import Motion, Skeleton
from ikpca.datasets.sources import load, ways, where
from ikpca.datasets.table import find, registry
from ikpca.datasets.walker import synthetic_walker

__all__ = [
    "DataSet",
    "Drift",
    "Entry",
    "Faces",
    "Motion",
    "Remote",
    "Roll",
    "Skeleton",
    "as_rows",
    "body_centred",
    "cache_folder",
    "checksum_of",
    "data_folder",
    "drifting_parabola",
    "fetch",
    "fetch_file",
    "find",
    "from_rows",
    "in_metres",
    "is_offline",
    "load",
    "motion_arrays",
    "parabola",
    "perforated_swiss_roll",
    "photograph",
    "photograph_patches",
    "read_asf_amc",
    "read_bvh",
    "registry",
    "square_photograph",
    "synthetic_faces",
    "synthetic_walker",
    "ways",
    "where",
    "with_noise",
]
