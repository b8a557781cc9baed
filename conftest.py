"""Modules whose examples need Dask are collected only where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("distributed") else ["src/ikpca/dask"]
