"""Data to run on: files of rows, pictures and recorded motion, and a walk from formulas."""

from ikpca.datasets.acclaim import write_asf_amc
from ikpca.datasets.amc import read_asf_amc
from ikpca.datasets.bvh import read_bvh
from ikpca.datasets.coordinates import as_rows, body_centred, from_rows, in_metres, with_noise
from ikpca.datasets.motion_files import read_motion, write_motion
from ikpca.datasets.pictures import picture_files, read_picture, write_picture
from ikpca.datasets.row_table import PictureForm, Table
from ikpca.datasets.skeleton import Motion, Skeleton
from ikpca.datasets.tables import check_target, read_table, write_table, written_files
from ikpca.datasets.walker import synthetic_walker

__all__ = [
    "Motion",
    "PictureForm",
    "Skeleton",
    "Table",
    "as_rows",
    "body_centred",
    "check_target",
    "from_rows",
    "in_metres",
    "picture_files",
    "read_asf_amc",
    "read_bvh",
    "read_motion",
    "read_picture",
    "read_table",
    "synthetic_walker",
    "with_noise",
    "write_asf_amc",
    "write_motion",
    "write_picture",
    "write_table",
    "written_files",
]
