"""A fit under a bar, in this process or on a cluster."""

from __future__ import annotations

from typing import Any

from ikpca.cli.failures import Mistake
from ikpca.cli.waiting import watched

__all__ = ["fitted"]


def fitted(model: Any, rows: Any, dask: str | None, *, shown: bool) -> Any:
    """The model, fitted; ``dask`` is where: an address, "local", or None for this process."""
    if dask is None:
        with watched(model, "Passes", shown=shown):
            return model.fit(rows)
    try:
        from ikpca.dask import as_blocks, connected, twin
    except ImportError:
        raise Mistake("--dask needs the package dask; run: pip install 'ikpca[dask]'.") from None
    distant = twin(model)
    with connected(dask) as client:
        distant.set_params(client=client)
        with watched(distant, "Passes", shown=shown):
            distant.fit(as_blocks(rows))
        return distant.to_local()
