"""The Kernel Hebbian family (Kim 2003; Günter 2006): rule, exact block sweep, passes."""

from ikpca.hebbian.online import (
    OnlineSettings,
    OnlineState,
    learn_rows,
    shrunk,
    start_online,
)
from ikpca.hebbian.online_start import START_NAMES, Start, learn_stream
from ikpca.hebbian.options import HebbianOptions
from ikpca.hebbian.presets import METHODS
from ikpca.hebbian.rule import hebbian_step, hebbian_step_with_products, meta_step, online_step
from ikpca.hebbian.settings import safety_for
from ikpca.hebbian.solve import HebbianSolution, iterate, solve
from ikpca.hebbian.start import continued_coefficients
from ikpca.hebbian.store import CoefficientStore, Floats, Indices
from ikpca.hebbian.stream import StreamState, stream_batch

__all__ = [
    "METHODS",
    "START_NAMES",
    "CoefficientStore",
    "Floats",
    "HebbianOptions",
    "HebbianSolution",
    "Indices",
    "OnlineSettings",
    "OnlineState",
    "Start",
    "StreamState",
    "continued_coefficients",
    "hebbian_step",
    "hebbian_step_with_products",
    "iterate",
    "learn_rows",
    "learn_stream",
    "meta_step",
    "online_step",
    "safety_for",
    "shrunk",
    "solve",
    "start_online",
    "stream_batch",
]
