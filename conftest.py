"""Collect modules only where what they import is available."""

import os
from importlib.util import find_spec

collect_ignore = [] if find_spec("distributed") else ["src/ikpca/dask"]
if os.name == "nt":
    # They limit processes by the module resource, which only Unix has.
    collect_ignore += ["tests/faults"]
