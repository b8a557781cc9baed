"""Exceptions whose messages are written for users."""

from __future__ import annotations


class DataUnavailable(RuntimeError):
    """A data set is absent, damaged or out of reach; the message names a remedy.

    Examples
    --------
    >>> from ikpca_papers.data import load
    >>> load("mnist", folder="no/such/folder", source="local")
    Traceback (most recent call last):
        ...
    ikpca_papers.errors.DataUnavailable: no/such/folder: is not a folder; name the one that has ...
    """


class SubprocessFailed(RuntimeError):
    """A task that ran in a process of its own gave no result."""
