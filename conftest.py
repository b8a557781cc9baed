"""Which files of the package can be imported, and their examples run, here."""

from importlib.util import find_spec

_NEEDS_DASK = ["cluster", "doors", "peers", "dask_gram", "dask_store", "dask_engine"]

collect_ignore = []
if find_spec("distributed") is None:
    collect_ignore = ["src/ikpca/dask", *(f"src/ikpca/engines/{name}.py" for name in _NEEDS_DASK)]
