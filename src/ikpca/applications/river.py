"""Streaming estimators as transformers of river.

Install it with ``pip install 'ikpca[river]'``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import clone

from ikpca.errors import InvalidInput
from ikpca.estimators import OnlineKernelPCA
from ikpca.kernels import Floats

_Transformer: Any = object
with suppress(ImportError):
    from river.base import MiniBatchTransformer as _Transformer


class RiverKernelPCA(_Transformer):
    """Kernel components of feature dictionaries, one at a time or a frame at a time.

    A feature that is missing or None counts as zero, as elsewhere in river. One that comes up for
    the first time widens the model: it was zero before, and with that no kernel value of earlier
    rows changes. Before the first row is learned every component is zero.

    Parameters
    ----------
    model : OnlineKernelPCA or IncrementalKernelPCA, optional
        Its parameters are taken, not what it has learned. By default an ``OnlineKernelPCA`` of two
        components with a Gaussian kernel. Only an ``OnlineKernelPCA`` takes new features later.

    Attributes
    ----------
    features : list of str
        Names in the order in which they came.

    Examples
    --------
    >>> from ikpca import OnlineKernelPCA  # doctest: +SKIP
    >>> from ikpca.applications.river import RiverKernelPCA
    >>> pca = RiverKernelPCA(OnlineKernelPCA(2, kernel="rbf", gamma=1.0))  # doctest: +SKIP
    >>> pca.learn_one({"a": 1.0, "b": 2.0})  # doctest: +SKIP
    >>> pca.transform_one({"a": 1.0})  # doctest: +SKIP
    {0: ..., 1: ...}
    """

    def __init__(self, model: Any = None) -> None:
        if _Transformer is object:
            raise ImportError(
                "RiverKernelPCA needs the package river; run: pip install 'ikpca[river]'."
            )
        self.model = model
        self.features: list[Any] = []
        self._fitted = _unfitted(model)

    @property
    def novelty(self) -> float:
        """Of the last row learned: what the components left of it before."""
        return float(self._fitted.novelty_[-1]) if self.features else 0.0

    @property
    def drift_detected(self) -> bool:
        """Whether the last row, or the last frame, brought a drift to light."""
        return bool(self.features) and bool(self._fitted.drift_detected_)

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn from one dictionary of features.

        Parameters
        ----------
        x : dict of name to number
        """
        self._learn([x])

    def transform_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Project one dictionary on the components, numbered from 0.

        Parameters
        ----------
        x : dict of name to number

        Returns
        -------
        dict of int to float
        """
        if not self.features:
            return dict.fromkeys(range(int(self._fitted.n_components)), 0.0)
        (projections,) = self._fitted.transform(self._rows([x]))
        return {number: float(value) for number, value in enumerate(projections)}

    def learn_many(self, X: Any) -> None:
        """Learn from the rows of a data frame, in their order.

        Parameters
        ----------
        X : pandas.DataFrame
        """
        if len(X):
            self._learn(_records(X))

    def transform_many(self, X: Any) -> Any:
        """Project the rows of a data frame.

        Parameters
        ----------
        X : pandas.DataFrame

        Returns
        -------
        pandas.DataFrame
            With the same index; columns are numbered from 0.
        """
        number = int(self._fitted.n_components)
        found = np.zeros((len(X), number))
        if self.features and len(X):
            found = self._fitted.transform(self._rows(_records(X)))
        return type(X)(found, index=X.index, columns=range(number))

    def _learn(self, records: list[Mapping[Any, Any]]) -> None:
        """Names that are new are kept only if the rows are good."""
        known = dict.fromkeys(self.features)
        names = [*known, *(name for name in _names(records) if name not in known)]
        rows = _matrix(records, names)
        widened = self._fitted
        if self.features and len(names) > len(self.features):
            if not hasattr(widened, "_widened"):
                raise InvalidInput(
                    f"feature {names[len(self.features)]!r} is new: {type(widened).__name__} keeps "
                    "the features of its first row; select them, or use OnlineKernelPCA."
                )
            widened = copy.copy(widened)._widened(len(names))
        self._fitted, self.features = widened.partial_fit(rows), names

    def _rows(self, records: list[Mapping[Any, Any]]) -> Floats:
        """Features that were never learned are left out: all that is known of them is zero."""
        return _matrix(records, self.features)


def _unfitted(model: Any) -> Any:
    return OnlineKernelPCA(2, kernel="rbf") if model is None else clone(model)


def _records(X: Any) -> list[Mapping[Any, Any]]:
    return X.to_dict(orient="records")


def _names(records: Iterable[Mapping[Any, Any]]) -> Iterable[Any]:
    return dict.fromkeys(name for record in records for name in record)


def _matrix(records: list[Mapping[Any, Any]], names: list[Any]) -> Floats:
    try:
        return np.array([[_number(record.get(name)) for name in names] for record in records])
    except (TypeError, ValueError):
        bad = [name for record in records for name in names if not _is_number(record.get(name))]
        raise InvalidInput(
            f"feature {bad[0]!r} is no number: kernels take numbers; encode it first, for example "
            "with river.preprocessing.OneHotEncoder."
        ) from None


def _number(value: Any) -> float:
    return 0.0 if value is None else float(value)


def _is_number(value: Any) -> bool:
    try:
        _number(value)
    except (TypeError, ValueError):
        return False
    return True
