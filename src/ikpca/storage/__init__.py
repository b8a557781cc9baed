"""Model files: arrays beside a JSON manifest, versioned, checksummed, never pickle."""

from ikpca.storage.decoding import Decoder
from ikpca.storage.encoding import Encoder
from ikpca.storage.files import read, write
from ikpca.storage.generations import previous, read_newest, write_generation
from ikpca.storage.manifest import FORMAT_VERSION, Manifest, digests_of
from ikpca.storage.outline import outline
from ikpca.storage.whole import check_place, written_folder, written_whole

__all__ = [
    "FORMAT_VERSION",
    "Decoder",
    "Encoder",
    "Manifest",
    "check_place",
    "digests_of",
    "outline",
    "previous",
    "read",
    "read_newest",
    "write",
    "write_generation",
    "written_folder",
    "written_whole",
]
