"""Data sets: registry, downloads, synthetic rows, photographs."""

from ikpca_papers.data.entries import DataSet, Entry, Remote, checksum_of, find, registry
from ikpca_papers.data.files import cache_folder, data_folder, is_offline
from ikpca_papers.data.photographs import photograph, photograph_patches, square_photograph
from ikpca_papers.data.sources import available_sources, data_path, fetch, load
from ikpca_papers.data.synthetic import (
    Drift,
    Faces,
    Roll,
    drifting_parabola,
    parabola,
    perforated_swiss_roll,
    synthetic_faces,
)
from ikpca_papers.data.walker import synthetic_walker
from ikpca_papers.errors import DataUnavailable

__all__ = [
    "DataSet",
    "DataUnavailable",
    "Drift",
    "Entry",
    "Faces",
    "Remote",
    "Roll",
    "available_sources",
    "cache_folder",
    "checksum_of",
    "data_folder",
    "data_path",
    "drifting_parabola",
    "fetch",
    "find",
    "is_offline",
    "load",
    "parabola",
    "perforated_swiss_roll",
    "photograph",
    "photograph_patches",
    "registry",
    "square_photograph",
    "synthetic_faces",
    "synthetic_walker",
]
