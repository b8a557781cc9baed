"""Incremental and online kernel PCA of streams."""

from ikpca.streams.incremental import (
    BatchUpdate,
    Compression,
    IncrementalSettings,
    IncrementalState,
    PreimageState,
    reorthonormalize_if_needed,
    update_step,
)
from ikpca.streams.moments import MomentState, Sample, from_components, merge
from ikpca.streams.online import (
    START_NAMES,
    OnlineSettings,
    OnlineStart,
    OnlineState,
    learn_rows,
    learn_stream,
    start_online,
)
from ikpca.streams.span import Span

__all__ = [
    "START_NAMES",
    "BatchUpdate",
    "Compression",
    "IncrementalSettings",
    "IncrementalState",
    "MomentState",
    "OnlineSettings",
    "OnlineStart",
    "OnlineState",
    "PreimageState",
    "Sample",
    "Span",
    "from_components",
    "learn_rows",
    "learn_stream",
    "merge",
    "reorthonormalize_if_needed",
    "start_online",
    "update_step",
]
