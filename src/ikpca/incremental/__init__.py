"""Kernel PCA of a stream: the update with new samples, mean shift included (Chin 2006)."""

from ikpca.incremental.meeting import Meeting, meet
from ikpca.incremental.state import State
from ikpca.incremental.update import absorb, update

__all__ = ["Meeting", "State", "absorb", "meet", "update"]
