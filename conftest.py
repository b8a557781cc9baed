"""Configuration of all tests: slow folders, threads of xdist workers."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

# The examples of these modules need Dask.
collect_ignore = [] if find_spec("distributed") else ["src/ikpca/dask"]
if os.name == "nt":
    # They limit processes by the module resource, which only Unix has.
    collect_ignore += ["tests/faults"]

#: Folders of slow tests, which `make test` leaves out and `make test-all` runs. Other slow tests
#: are marked where they are written.
SLOW = ("papers/", "src/ikpca/dask/")


def pytest_configure(config: pytest.Config) -> None:
    """Give every worker of xdist one BLAS thread; workers start after this."""
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow folders."""
    root = Path(__file__).parent
    for item in items:
        if item.path.relative_to(root).as_posix().startswith(SLOW):
            item.add_marker("slow")
