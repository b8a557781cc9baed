"""Kernel PCA of a stream: the update with new samples, mean shift included (Chin 2006)."""

from ikpca.incremental.compression import Compression
from ikpca.incremental.meeting import Meeting, meet
from ikpca.incremental.state import State
from ikpca.incremental.stream import Report, Settings, joined, step
from ikpca.incremental.update import absorb, update
from ikpca.incremental.values import LibraryValues

__all__ = [
    "Compression",
    "LibraryValues",
    "Meeting",
    "Report",
    "Settings",
    "State",
    "absorb",
    "joined",
    "meet",
    "step",
    "update",
]
