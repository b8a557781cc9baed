"""The Kernel Hebbian family (Kim 2003; Günter 2006): rule, exact block sweep, passes."""

from ikpca.hebbian.options import HebbianOptions
from ikpca.hebbian.presets import METHODS
from ikpca.hebbian.rule import hebbian_step, hebbian_step_with_products, meta_step
from ikpca.hebbian.settings import HebbianState, safety_for
from ikpca.hebbian.solve import HebbianProgress, HebbianSolution, iterate, solve
from ikpca.hebbian.start import continued_coefficients
from ikpca.hebbian.store import CoefficientStore, Floats, Indices
from ikpca.hebbian.stream import StreamState, stream_batch

__all__ = [
    "METHODS",
    "CoefficientStore",
    "Floats",
    "HebbianOptions",
    "HebbianProgress",
    "HebbianSolution",
    "HebbianState",
    "Indices",
    "StreamState",
    "continued_coefficients",
    "hebbian_step",
    "hebbian_step_with_products",
    "iterate",
    "meta_step",
    "safety_for",
    "solve",
    "stream_batch",
]
