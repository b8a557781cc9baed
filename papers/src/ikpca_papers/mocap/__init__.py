"""Recorded motion from ASF/AMC files, and a synthetic walk."""

from ikpca_papers.mocap.acclaim import Motion, read_asf_amc
from ikpca_papers.mocap.walker import synthetic_walker

__all__ = ["Motion", "read_asf_amc", "synthetic_walker"]
