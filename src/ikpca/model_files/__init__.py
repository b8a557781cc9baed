"""Model files: arrays and a JSON manifest, versioned, with checksums, without pickle."""

from ikpca.model_files.codec import Decoder, Encoder, describe_model_file, load
from ikpca.model_files.container import (
    FORMAT_VERSION,
    Manifest,
    atomic_folder,
    atomic_write,
    check_writable,
    digests_of,
    previous_generation,
    read_container,
    read_newest,
    write_container,
    write_generation,
)

__all__ = [
    "FORMAT_VERSION", "Decoder", "Encoder", "Manifest", "atomic_folder", "atomic_write",
    "check_writable", "describe_model_file", "digests_of", "load", "previous_generation",
    "read_container", "read_newest", "write_container", "write_generation",
]  # fmt: skip
