"""Where tiles are computed and coefficients live."""

from ikpca.engines.features import FeatureStore
from ikpca.engines.local import LocalStore

__all__ = ["FeatureStore", "LocalStore"]
