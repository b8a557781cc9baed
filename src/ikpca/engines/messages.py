"""What is said to shards: blocks of patterns, transforms, visits; and what they say of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ikpca.hebbian import Floats, Indices

__all__ = ["Block", "FetchRows", "Held", "Transform", "Visit", "others"]

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


def others(own: Indices, number: int) -> Indices:
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
class Visit:
    """Rows of another shard come to some columns of this one."""

    shard: int
    rows: slice
    columns: slice


@dataclass(frozen=True)
class Held:
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
