"""Batch accuracy: landmarks, then block Krylov, on the tiles of K."""

from ikpca.krylov.solve import KrylovOptions, KrylovSolution, block_size, solve

__all__ = ["KrylovOptions", "KrylovSolution", "block_size", "solve"]
