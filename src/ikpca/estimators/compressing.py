"""How a stream is to be learned from, from what a user said of components and library."""

from __future__ import annotations

from typing import Any

from ikpca.errors import refuse
from ikpca.estimators.parameters import is_auto
from ikpca.incremental import Compression, Settings
from ikpca.kernels import Kernel
from ikpca.reduced_sets import choose_reduction

__all__ = ["chosen_settings"]

#: Rows of a library: per vector that it carries, and at least.
_ROWS_PER_VECTOR, _LEAST_ROWS = 20, 200
#: Share of the library that comes between two reductions, at least.
_ROOM = 1 / 8
#: Components beyond those asked for, at least; with fewer, truncation costs over 0.1 % of variance.
_LEAST_OVERSAMPLES = 8


def chosen_settings(model: Any, kernel: Kernel, seed: int) -> Settings:
    """Settings of the stream, or an error where they do not go together."""
    number = None if model.n_components is None else int(model.n_components)
    compression, oversamples = None, 0
    if number is not None:
        oversamples = _oversamples(model, number)
    name = _name(model)
    if name is not None:
        if number is None:
            raise refuse("n_components", None, f"compression={model.compression!r} needs a number",
                         "pass an integer, or compression=None to keep all rows")  # fmt: skip
        compression = _compression(model, name, kernel, number + oversamples + 1, seed)
    return Settings(number, oversamples, float(model.forgetting), compression)


def _name(model: Any) -> str | None:
    """What a library is reduced to; None: it is not."""
    if not is_auto(model.compression):
        return model.compression
    return None if model.n_components is None else "samples"


def _oversamples(model: Any, number: int) -> int:
    if not is_auto(model.n_oversamples):
        return int(model.n_oversamples)
    wanted = max(number // 2, _LEAST_OVERSAMPLES)
    if is_auto(model.library_size) or _name(model) is None:
        return wanted
    # A small library carries fewer of them.
    return max(0, min(wanted, int(model.library_size) // 4 - number - 1))


def _compression(model: Any, name: str, kernel: Kernel, n_vectors: int, seed: int) -> Compression:
    limit = _library_size(model, n_vectors)
    if limit < n_vectors:
        raise refuse("library_size", limit, f"components and mean are {n_vectors} vectors, which "
                     "need as many rows", f"pass {n_vectors} or more, or fewer n_components "
                     "and n_oversamples")  # fmt: skip
    reduction = choose_reduction(
        name,
        kernel,
        per_vector=model.preimages_per_component,
        tol=float(model.compression_tol),
        seed=seed,
    )
    return Compression(reduction, limit, max(1, int(_ROOM * limit)))


def _library_size(model: Any, n_vectors: int) -> int:
    if not is_auto(model.library_size):
        return int(model.library_size)
    if not is_auto(model.preimages_per_component):
        return int(model.preimages_per_component) * n_vectors
    return max(_ROWS_PER_VECTOR * n_vectors, _LEAST_ROWS)
