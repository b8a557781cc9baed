"""``save``: a fitted model as one file that anybody can load without running code."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ikpca.loop import Outcome
from ikpca.storage import Encoder, Manifest, digests_of, write

__all__ = ["SaveMixin", "save_model"]

_OUTCOME = "outcome_"


class SaveMixin:
    """Adds ``save`` to an estimator; :func:`ikpca.load` reads what it writes."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: arrays in safetensors, the rest as JSON.

        The file appears whole or not at all, holds checksums of everything, and executes nothing
        when it is loaded, unlike a pickle.

        Parameters
        ----------
        path : str or path
            Overwritten where it exists.

        See Also
        --------
        ikpca.load : Reads it.
        """
        check_is_fitted(self)
        save_model(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, joblib and skops, the last of which has no way with members of an Enum."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        if isinstance(state.get(_OUTCOME), Outcome):
            return {**state, _OUTCOME: state[_OUTCOME].name}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get(_OUTCOME), str):
            state = {**state, _OUTCOME: Outcome[state[_OUTCOME]]}
        super().__setstate__(state)  # type: ignore[misc]


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model with all its parameters and attributes."""
    encoder = Encoder()
    content = encoder.encode(model, type(model).__name__)
    manifest = Manifest("model", content, digests_of(encoder.arrays), version("ikpca"))
    write(path, manifest, encoder.arrays)
