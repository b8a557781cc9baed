"""Kernel PCA on a Dask cluster, with the same result as on one machine."""

try:
    from ikpca.dask.cluster import LOW_OVERHEAD_CONFIG, connect, open_rows
    from ikpca.dask.kernel_pca import KernelPCA
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("dask", "distributed"):
        raise
    raise ImportError(
        "ikpca.dask needs dask and distributed; run: pip install 'ikpca[dask]'."
    ) from None

__all__ = ["LOW_OVERHEAD_CONFIG", "KernelPCA", "connect", "open_rows"]
