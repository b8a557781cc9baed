"""The code behind every spec file."""

from __future__ import annotations

from ikpca.experiments import usps_kpca
from ikpca.experiments.parts import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = {
    "usps-kpca": Experiment(usps_kpca.plan),
}
