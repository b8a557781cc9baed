"""Model files: arrays and a JSON manifest, versioned, with checksums, without pickle."""

from ikpca.model_files.atomic import atomic_folder, atomic_write, check_writable
from ikpca.model_files.codec import Decoder, Encoder
from ikpca.model_files.container import (
    FORMAT_VERSION,
    Manifest,
    digests_of,
    previous_generation,
    read_container,
    read_newest,
    write_container,
    write_generation,
)
from ikpca.model_files.describe import describe_model_file
from ikpca.model_files.loading import find_class, load

__all__ = [
    "FORMAT_VERSION",
    "Decoder",
    "Encoder",
    "Manifest",
    "atomic_folder",
    "atomic_write",
    "check_writable",
    "describe_model_file",
    "digests_of",
    "find_class",
    "load",
    "previous_generation",
    "read_container",
    "read_newest",
    "write_container",
    "write_generation",
]
