"""Model files: arrays beside a JSON manifest, versioned, checksummed, never pickle."""

from ikpca.storage.decoding import Decoder
from ikpca.storage.encoding import Encoder
from ikpca.storage.files import read, write
from ikpca.storage.manifest import FORMAT_VERSION, Manifest
from ikpca.storage.outline import outline
from ikpca.storage.whole import check_place, written_folder, written_whole

__all__ = [
    "FORMAT_VERSION",
    "Decoder",
    "Encoder",
    "Manifest",
    "check_place",
    "outline",
    "read",
    "write",
    "written_folder",
    "written_whole",
]
