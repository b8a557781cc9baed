"""Feature-space expansions on fewer rows."""

from ikpca.reduced_sets.subspace import Subspace

__all__ = ["Subspace"]
