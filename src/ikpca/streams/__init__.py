"""Incremental and online kernel PCA of streams."""

from ikpca.streams.incremental_state import BasisGram, IncrementalState
from ikpca.streams.incremental_update import (
    BatchProducts,
    Compression,
    IncrementalSettings,
    UpdateReport,
    apply_update,
    batch_products,
    join_reports,
    update,
    update_step,
)
from ikpca.streams.online_init import START_NAMES, OnlineStart, learn_stream
from ikpca.streams.online_kha import (
    OnlineSettings,
    OnlineState,
    learn_rows,
    reduce_expansion,
    start_online,
)

__all__ = [
    "START_NAMES",
    "BasisGram",
    "BatchProducts",
    "Compression",
    "IncrementalSettings",
    "IncrementalState",
    "OnlineSettings",
    "OnlineStart",
    "OnlineState",
    "UpdateReport",
    "apply_update",
    "batch_products",
    "join_reports",
    "learn_rows",
    "learn_stream",
    "reduce_expansion",
    "start_online",
    "update",
    "update_step",
]
