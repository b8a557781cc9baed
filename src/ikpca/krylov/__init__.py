"""Batch accuracy: landmarks, then block Krylov, on the tiles of K."""

from ikpca.krylov.solve import (
    KrylovOptions,
    KrylovProgress,
    KrylovSolution,
    KrylovState,
    block_size,
    solve,
)

__all__ = [
    "KrylovOptions",
    "KrylovProgress",
    "KrylovSolution",
    "KrylovState",
    "block_size",
    "solve",
]
