"""Model files: arrays beside a JSON manifest, versioned, checksummed, never pickle."""

from ikpca.storage.decoding import Decoder
from ikpca.storage.encoding import Encoder
from ikpca.storage.files import read, write
from ikpca.storage.generations import previous, read_newest, write_generation
from ikpca.storage.manifest import FORMAT_VERSION, Manifest, digests_of

__all__ = [
    "FORMAT_VERSION",
    "Decoder",
    "Encoder",
    "Manifest",
    "digests_of",
    "previous",
    "read",
    "read_newest",
    "write",
    "write_generation",
]
