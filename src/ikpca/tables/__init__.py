"""Readers and writers of tables and pictures for the command line."""

from ikpca.tables.base import PictureFormat, Table
from ikpca.tables.formats import check_target, read_table, write_table
from ikpca.tables.numeric import check_npz_member
from ikpca.tables.pictures import picture_files, read_picture, write_picture

__all__ = [
    "PictureFormat",
    "Table",
    "check_npz_member",
    "check_target",
    "picture_files",
    "read_picture",
    "read_table",
    "write_picture",
    "write_table",
]
