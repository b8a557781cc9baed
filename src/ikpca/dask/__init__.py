"""Estimators that fit on a Dask cluster, with the same result as on one machine."""

try:
    from ikpca.dask.client import QUIET, connect
    from ikpca.dask.estimators import IncrementalKernelPCA, KernelPCA, as_blocks, to_dask
    from ikpca.dask.rows import open_rows
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("dask", "distributed"):
        raise
    raise ImportError(
        "ikpca.dask needs dask and distributed; run: pip install 'ikpca[dask]'."
    ) from None

__all__ = [
    "QUIET", "IncrementalKernelPCA", "KernelPCA", "as_blocks", "connect", "open_rows", "to_dask",
]  # fmt: skip
