"""What a fit is a fit of: parameters and rows, in words that can be compared and shown."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from ikpca.gram import tiles

__all__ = ["differences", "fingerprint", "rows_digest"]

#: What changes how a fit runs or how long, but not where it gets in a given number of passes.
_RUNNING = {
    "checkpoint", "checkpoint_every", "resume", "verbose", "n_jobs", "max_iter", "n_passes",
    "copy_X", "client",
}  # fmt: skip
#: In place of a digest, where rows come as they come.
_STREAM = "a stream"


def fingerprint(model: Any, X: Any, **others: Any) -> dict[str, str]:
    """Parameters, rows and ``others`` of a fit, each as a short text; X is None for a stream."""
    parameters = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _RUNNING and not _is_drawn(name, value)
    }
    texts = {name: _text(value) for name, value in {**parameters, **others}.items()}
    return {
        "estimator": type(model).__name__,
        **texts,
        "rows": _STREAM if X is None else rows_digest(X),
    }


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Every entry that is not the same, in words."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [_difference(name, before.get(name), now.get(name)) for name in names]


def _difference(name: str, before: str | None, now: str | None) -> str:
    if name != "rows":
        return f"{name} was {before} and is {now}"
    if _STREAM in (before, now):
        before, now = ("partial_fit" if one == _STREAM else "fit" for one in (before, now))
        return f"it was written by {before} and is read by {now}"
    return "the rows are others"


def rows_digest(X: Any) -> str:
    """SHA-256 over type, shape and values, a tile of rows at a time."""
    sha = hashlib.sha256(f"{X.dtype.str}{X.shape}".encode())
    for strip in tiles(X.shape[0]):
        part = X[strip]
        arrays = (part.data, part.indices, part.indptr) if sparse.issparse(part) else (part,)
        for array in arrays:
            sha.update(np.ascontiguousarray(array).reshape(-1).view("u1").data)
    return sha.hexdigest()


def _is_drawn(name: str, value: Any) -> bool:
    """Whether a seed comes from elsewhere: it is then in the checkpoint itself."""
    return name == "random_state" and not isinstance(value, int | np.integer)


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)
