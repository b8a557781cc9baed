"""Experiments of three papers on iterative and incremental kernel PCA."""
