"""The way to and from scikit-learn, which is imported when somebody takes it."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

__all__ = ["ConversionMixin"]


class ConversionMixin:
    """An estimator with a counterpart in scikit-learn."""

    @classmethod
    def from_sklearn(cls, fitted: Any) -> Self:
        """Take over a fitted :class:`sklearn.decomposition.KernelPCA`.

        Parameters
        ----------
        fitted : sklearn.decomposition.KernelPCA

        Returns
        -------
        KernelPCA
            Fitted, with the same ``transform``.
        """
        from ikpca.estimators.conversion import from_sklearn

        return from_sklearn(cls, fitted)

    def to_sklearn(self) -> Any:
        """Return a fitted :class:`sklearn.decomposition.KernelPCA` with the same ``transform``.

        Returns
        -------
        sklearn.decomposition.KernelPCA
        """
        from ikpca.estimators.conversion import to_sklearn

        check_is_fitted(self)
        return to_sklearn(self)
