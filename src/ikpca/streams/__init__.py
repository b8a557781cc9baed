"""Incremental and online kernel PCA of streams."""

from ikpca.streams.incremental import PreimageState
from ikpca.streams.moments import MomentState, from_components, merge
from ikpca.streams.online import OnlineState, random_points
from ikpca.streams.sample import Sample
from ikpca.streams.span import Span

__all__ = [
    "MomentState",
    "OnlineState",
    "PreimageState",
    "Sample",
    "Span",
    "from_components",
    "merge",
    "random_points",
]
