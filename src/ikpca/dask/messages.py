"""Messages between the client and the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeAlias

import numpy as np

from ikpca.kernels import Floats, Indices

#: Asks for rows of another shard, given its number and which of its rows; the answer waits.
FetchRows: TypeAlias = Callable[[int, slice], Callable[[], Floats]]


@dataclass(frozen=True, eq=False)
class Block:
    """A block of patterns as a shard sees it.

    Parameters
    ----------
    visitors : ndarray of shape (patterns that are not here, n_features)
        Their rows, in order; those of the others are here already.
    offsets : ndarray of shape (m,)
        Row means of K less the grand mean.
    own : ndarray of int
        Which of the m patterns are columns of the shard.
    columns : ndarray of int
        Which columns those are.
    """

    visitors: Floats
    offsets: Floats
    own: Indices
    columns: Indices


def other_blocks(own: Indices, number: int) -> Indices:
    """Which of so many patterns are not among some."""
    return np.delete(np.arange(number), own)


@dataclass(frozen=True, eq=False)
class Transform:
    """R ← TR, then R[:, P] += C.

    Parameters
    ----------
    T, C : ndarray
    block : Block or None
        Of the patterns P; None where it is the block that was projected last, or C is empty.
    """

    T: Floats
    C: Floats
    block: Block | None = None


@dataclass(frozen=True)
class PairTask:
    """Rows of another shard come to some columns of this one."""

    shard: int
    rows: slice
    columns: slice


@dataclass(frozen=True)
class MemoryUse:
    """Bytes that a shard holds, or held at most, of every kind.

    Parameters
    ----------
    rows : int
        Its own rows of X.
    operands : int
        Those rows as the kernel's products want them.
    visitors : int
        Rows of other shards, at a time.
    strips : int
        Kernel values of blocks of patterns, and of landmarks, with its own columns.
    columns : int
        R, RK' and their marks.
    vectors : int
        Narrow matrices over all samples, in a product.
    tiles : int
        Kernel values of a product, at a time.
    """

    rows: int
    operands: int
    visitors: int
    strips: int
    columns: int
    vectors: int
    tiles: int

    @property
    def total(self) -> int:
        """All of them together."""
        return sum(vars(self).values())


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
