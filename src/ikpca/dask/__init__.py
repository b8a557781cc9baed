"""The Dask twins of the estimators: the same fit, on a cluster."""

try:
    from ikpca.dask.clients import QUIET, connected
    from ikpca.dask.files import open_rows
    from ikpca.dask.incremental_kernel_pca import IncrementalKernelPCA
    from ikpca.dask.kernel_pca import KernelPCA
    from ikpca.dask.twins import as_blocks, twin
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("dask", "distributed"):
        raise
    raise ImportError(
        "ikpca.dask needs dask and distributed; run: pip install 'ikpca[dask]'."
    ) from None

__all__ = [
    "QUIET", "IncrementalKernelPCA", "KernelPCA", "as_blocks", "connected", "open_rows", "twin",
]  # fmt: skip
