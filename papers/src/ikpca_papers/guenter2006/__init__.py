"""Günter, Schraudolph, Vishwanathan 2006: fast iterative kernel PCA."""
