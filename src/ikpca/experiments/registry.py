"""The code behind every spec file."""

from __future__ import annotations

from ikpca.experiments import lena_multipatch, motion, toy_contours, usps_clustering, usps_kpca
from ikpca.experiments.parts import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = {
    "toy-contours": Experiment(toy_contours.plan),
    "usps-kpca": Experiment(usps_kpca.plan),
    "lena-multipatch": Experiment(lena_multipatch.plan),
    "usps-clustering": Experiment(usps_clustering.plan, usps_clustering.summary),
    "motion": Experiment(motion.plan),
}
