"""Chin, Suter 2006: incremental kernel PCA."""
