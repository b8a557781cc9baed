"""What travels between this process and the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

__all__ = ["Traffic", "array_bytes"]


@dataclass
class Traffic:
    """Counts of a fit on a cluster, all workers together.

    Parameters
    ----------
    messages : int
        Calls to workers; each has one answer.
    bytes_out, bytes_in : int
        Arrays that went to workers and came back.
    bytes_between : int
        Arrays that went from worker to worker.
    blocks : int
        Blocks of patterns that Hebbian passes projected.
    block_messages, block_bytes : int
        Calls for those blocks, and arrays in them, both ways.
    rebuilt : int
        Shards that were built again after their worker was lost.
    """

    messages: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    bytes_between: int = 0
    blocks: int = 0
    block_messages: int = 0
    block_bytes: int = 0
    rebuilt: int = 0

    def add_call(self, arguments: Any, answer: Any) -> None:
        """Count one call and its answer."""
        self.messages += 1
        self.bytes_out += array_bytes(arguments)
        self.bytes_in += array_bytes(answer)

    def add_block(self, before: Traffic) -> None:
        """Count a block, given what there was before it."""
        self.blocks += 1
        self.block_messages += self.messages - before.messages
        self.block_bytes += self.bytes_out - before.bytes_out + self.bytes_in - before.bytes_in


def array_bytes(content: Any) -> int:
    """Bytes of all arrays in lists, tuples and records; what else is there is small."""
    if isinstance(content, np.ndarray):
        return int(content.nbytes)
    if is_dataclass(content):
        return sum(map(array_bytes, vars(content).values()))
    if isinstance(content, Iterable) and not isinstance(content, str | bytes):
        return sum(map(array_bytes, content))
    return 0
