"""Streaming estimators as transformers of river."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import clone

from ikpca.errors import InvalidInput
from ikpca.estimators import OnlineKernelPCA
from ikpca.estimators.base import atomic
from ikpca.kernels import Floats

_Transformer: Any = object
with suppress(ImportError):
    from river.base import MiniBatchTransformer as _Transformer


class RiverKernelPCA(_Transformer):
    """Kernel PCA of feature dictionaries or data frames as a transformer of river.

    Missing features and None count as zero, as elsewhere in river. A new feature is added to the
    model with zeros for earlier rows, whose kernel values do not change. Before the first row is
    learned, all projections are zero.

    Parameters
    ----------
    model : OnlineKernelPCA or IncrementalKernelPCA, optional
        Its parameters are copied, not its fitted attributes. By default an ``OnlineKernelPCA`` of
        two components with a Gaussian kernel. Only ``OnlineKernelPCA`` supports new features.

    Attributes
    ----------
    features : list of str
        Names in the order of their first occurrence.

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
        self._fitted = OnlineKernelPCA(2, kernel="rbf") if model is None else clone(model)

    @property
    def novelty(self) -> float:
        """Squared reconstruction error of the last row before it was learned."""
        return float(self._fitted.novelty_[-1]) if self.features else 0.0

    @property
    def drift_detected(self) -> bool:
        """True if a drift was detected in the last row or data frame."""
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
        (projections,) = self._fitted.transform(_matrix([x], self.features))
        return {number: float(value) for number, value in enumerate(projections)}

    def learn_many(self, X: Any) -> None:
        """Learn from the rows of a data frame, in their order.

        Parameters
        ----------
        X : pandas.DataFrame
        """
        if len(X):
            self._learn(X.to_dict(orient="records"))

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
        found: Floats = np.zeros((len(X), number))
        if self.features and len(X):
            found = self._fitted.transform(_matrix(X.to_dict(orient="records"), self.features))
        return type(X)(found, index=X.index, columns=range(number))

    @atomic
    def _learn(self, records: list[Mapping[Any, Any]]) -> None:
        """Learn rows; new features are kept only if the rows are valid."""
        names = list(dict.fromkeys(chain(self.features, *records)))
        rows = _matrix(records, names)
        extended = copy.copy(self._fitted)
        if self.features and len(names) > len(self.features):
            if not hasattr(extended, "_add_features"):
                raise InvalidInput(
                    f"feature {names[len(self.features)]!r} is new: {type(extended).__name__} does "
                    "not support new features; select the known ones, or use OnlineKernelPCA."
                )
            extended._add_features(len(names))
        self._fitted, self.features = extended.partial_fit(rows), names


def _matrix(records: list[Mapping[Any, Any]], names: list[Any]) -> Floats:
    """Return an array of the named features; others are ignored."""
    rows = np.zeros((len(records), len(names)))
    for row, record in zip(rows, records, strict=True):
        for column, name in enumerate(names):
            value = record.get(name)
            try:
                row[column] = 0.0 if value is None else float(value)
            except (TypeError, ValueError):
                raise InvalidInput(
                    f"feature {name!r} is not a number: kernels need numbers; encode it, for "
                    "example with river.preprocessing.OneHotEncoder."
                ) from None
    return rows
