"""The code behind every spec file."""

from __future__ import annotations

from ikpca.experiments import (
    faces,
    incremental_toy,
    kernel_eigenfaces,
    large,
    lena_multipatch,
    motion,
    natural_components,
    natural_hyperresolution,
    online_toy,
    streamed_manifolds,
    toy_contours,
    usps_clustering,
    usps_kpca,
)
from ikpca.experiments.parts import Experiment

__all__ = ["EXPERIMENTS"]

#: By id, in the order in which a reader meets them.
EXPERIMENTS = {
    "toy-contours": Experiment(toy_contours.plan),
    "usps-kpca": Experiment(usps_kpca.plan),
    "lena-multipatch": Experiment(lena_multipatch.plan),
    "usps-clustering": Experiment(usps_clustering.plan, usps_clustering.summary),
    "motion": Experiment(motion.plan),
    "face-hyperresolution": Experiment(faces.plan),
    "natural-components": Experiment(natural_components.plan),
    "natural-hyperresolution": Experiment(natural_hyperresolution.plan),
    "online-toy": Experiment(online_toy.plan),
    "incremental-toy": Experiment(incremental_toy.plan, incremental_toy.summary),
    "manifolds": Experiment(streamed_manifolds.plan),
    "kernel-eigenfaces": Experiment(kernel_eigenfaces.plan, kernel_eigenfaces.summary),
    "large": Experiment(large.plan),
}
