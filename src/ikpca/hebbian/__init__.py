"""The Kernel Hebbian family (Kim 2003; Günter 2006): rule, exact block sweep, passes."""

from ikpca.hebbian.presets import METHODS
from ikpca.hebbian.rule import hebbian_step, meta_step
from ikpca.hebbian.options import HebbianOptions
from ikpca.hebbian.solve import HebbianSolution, iterate, solve
from ikpca.hebbian.store import CoefficientStore, Floats, Indices

__all__ = [
    "METHODS",
    "CoefficientStore",
    "Floats",
    "HebbianOptions",
    "HebbianSolution",
    "Indices",
    "hebbian_step",
    "iterate",
    "meta_step",
    "solve",
]
