"""The dense reference."""

from ikpca.dense.reference import DenseSolution, decompose

__all__ = ["DenseSolution", "decompose"]
