"""Where tiles are computed and coefficients live."""

from ikpca.engines.features import FeatureStore
from ikpca.engines.local import LocalStore
from ikpca.engines.planning import PlannedSource, plan_source

__all__ = ["FeatureStore", "LocalStore", "PlannedSource", "plan_source"]
