"""Model files: arrays and a JSON manifest, versioned, with checksums, without pickle."""

from ikpca.model_files.codec import Decoder, Encoder, load
from ikpca.model_files.container import (
    FORMAT_VERSION,
    atomic_write,
    check_writable,
    digests_of,
    read_container,
    write_container,
)

__all__ = [
    "FORMAT_VERSION", "Decoder", "Encoder", "atomic_write", "check_writable", "digests_of", "load",
    "read_container", "write_container",
]  # fmt: skip
