"""Incremental and online kernel PCA of streams."""

from ikpca.streams.incremental import (
    BasisGram,
    Compression,
    IncrementalSettings,
    IncrementalState,
    UpdateReport,
    join_reports,
    update,
    update_step,
)
from ikpca.streams.online import (
    START_NAMES,
    OnlineSettings,
    OnlineStart,
    OnlineState,
    learn_rows,
    learn_stream,
    reduce_expansion,
    start_online,
)

__all__ = [
    "START_NAMES",
    "BasisGram",
    "Compression",
    "IncrementalSettings",
    "IncrementalState",
    "OnlineSettings",
    "OnlineStart",
    "OnlineState",
    "UpdateReport",
    "join_reports",
    "learn_rows",
    "learn_stream",
    "reduce_expansion",
    "start_online",
    "update",
    "update_step",
]
