"""Which solver, told what, for a ``KernelPCA``."""

from __future__ import annotations

from typing import Any

from ikpca.estimators.components import Components, Watch, dense_components, hebbian_components
from ikpca.estimators.parameters import check_init, is_fraction
from ikpca.gram import ComputedGram, GramSource, StoredGram, Workers
from ikpca.hebbian import METHODS, HebbianOptions

__all__ = ["decompose", "n_passes"]

_HEBBIAN_PASSES = 50
#: A kernel matrix up to this size is computed once and kept; l = 5,792 in double precision.
_STORED_BYTES = 2**28


def n_passes(model: Any) -> int:
    """How many passes the fit may take."""
    if model.eigen_solver not in METHODS:
        return 1
    return _HEBBIAN_PASSES if model.max_iter is None else int(model.max_iter)


def decompose(
    model: Any, source: GramSource, seed: int, workers: Workers, watch: Watch
) -> Components:
    """Run the solver that the model asks for."""
    wanted = model.n_components
    if model.eigen_solver in METHODS:
        number = min(int(wanted), source.n_samples)
        options = _hebbian_options(model, number, source.n_samples)
        if _worth_storing(source):
            source = StoredGram(source, workers)
        components = hebbian_components(source, number, options, seed, workers, watch)
    elif wanted is None or is_fraction(wanted):
        components = dense_components(source, None, workers, share=wanted)
    else:
        components = dense_components(source, min(int(wanted), source.n_samples), workers)
    if model.remove_zero_eig or wanted is None:
        return components.keep(components.eigenvalues > 0)
    return components


def _worth_storing(source: GramSource) -> bool:
    n_bytes = source.n_samples**2 * source.dtype.itemsize
    return isinstance(source, ComputedGram) and n_bytes <= _STORED_BYTES


def _hebbian_options(model: Any, n_components: int, n_samples: int) -> HebbianOptions:
    return HebbianOptions(
        method=model.eigen_solver,
        gain=model.gain,
        meta_gain=model.meta_gain,
        meta_decay=model.meta_decay,
        log_gain_init=model.log_gain_init,
        clock=model.clock,
        init=check_init(model.init, ("random", "sparse"), (n_components, n_samples)),
        rayleigh_ritz=model.rayleigh_ritz,
        block_size=model.block_size,
        max_iter=n_passes(model),
    )
