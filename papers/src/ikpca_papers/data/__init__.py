"""Data sets: registry, downloads, synthetic rows, photographs."""

from ikpca_papers.data.download import cache_folder, data_folder, fetch, fetch_file, is_offline
from ikpca_papers.data.photographs import photograph, photograph_patches, square_photograph
from ikpca_papers.data.registry import DataSet, Entry, Remote, checksum_of, find, registry
from ikpca_papers.data.sources import load, ways, where
from ikpca_papers.data.synthetic import (
    Drift,
    Faces,
    Roll,
    drifting_parabola,
    parabola,
    perforated_swiss_roll,
    synthetic_faces,
)

__all__ = [
    "DataSet",
    "Drift",
    "Entry",
    "Faces",
    "Remote",
    "Roll",
    "cache_folder",
    "checksum_of",
    "data_folder",
    "drifting_parabola",
    "fetch",
    "fetch_file",
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
    "ways",
    "where",
]
