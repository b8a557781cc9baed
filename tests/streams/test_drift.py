"""Drift detection: false alarms and delays."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from ikpca import IncrementalKernelPCA, OnlineKernelPCA
from ikpca.errors import InvalidInput
from ikpca.estimators import DriftSignal

ERRORS = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "normal": lambda rng, n: 5 + rng.normal(size=n),
    "heavy tails": lambda rng, n: np.abs(rng.standard_t(3, size=n)),
    "rounding": lambda rng, n: 1e-16 * rng.uniform(size=n),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_a_stationary_stream_hardly_ever_signals(kind):
    """Twenty streams of 5,000 errors: at most one false alarm in all."""
    alarms = 0
    for seed in range(20):
        errors = ERRORS[kind](np.random.default_rng(seed), 5000)
        signal = DriftSignal()
        for begin in range(0, 5000, 1000):
            signal, level = signal.update(errors[begin : begin + 1000])
            alarms += level >= 1
    assert alarms <= 1


@pytest.mark.parametrize("kind", ["exponential", "normal", "heavy tails"])
@pytest.mark.parametrize(("deviations", "within"), [(1, 150), (3, 25), (30, 15)])
def test_change_is_detected_within_a_delay(kind, deviations, within):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        usual = ERRORS[kind](rng, 1000)
        signal = DriftSignal().update(usual)[0]
        shifted = ERRORS[kind](rng, within) + deviations * usual.std()
        assert signal.update(shifted)[1] >= 1


def test_drift_test_is_independent_of_batches_and_restarts():
    rng = np.random.default_rng(0)
    errors = np.concatenate([rng.exponential(size=500), 10 + rng.exponential(size=500)])
    whole, level = DriftSignal().update(errors)
    signal, levels = DriftSignal(), []
    for error in errors:
        signal, found = signal.update([error])
        levels.append(found)
    assert signal == whole
    assert level == max(levels) >= 1
    # One signal: the new errors are the usual ones now.
    assert sum(found >= 1 for found in levels) == 1
    assert signal.seen < 500


def test_errors_that_fall_never_signal():
    errors = np.exp(-np.arange(2000) / 300) * np.random.default_rng(0).exponential(size=2000)
    assert DriftSignal().update(errors)[1] < 1


def test_one_outlier_does_not_signal_a_drift():
    errors = np.random.default_rng(0).exponential(size=1000)
    errors[700] = 1e9
    assert DriftSignal().update(errors)[1] < 1


def test_a_larger_threshold_or_delta_signals_later():
    errors = np.random.default_rng(0).exponential(size=1000)
    usual, _ = DriftSignal().update(errors[:500])
    changed = 10 * errors[500:600]
    assert usual.update(changed)[1] >= 1
    assert usual.update(changed, threshold=1e6)[1] < 1
    assert usual.update(changed, delta=3.0)[1] < 1


@pytest.mark.parametrize("parameters", [{"drift_threshold": 0}, {"drift_delta": -1}])
@pytest.mark.parametrize("kind", [OnlineKernelPCA, IncrementalKernelPCA])
def test_drift_parameters_are_checked(kind, parameters):
    (name,) = parameters
    with pytest.raises(InvalidInput, match=name):
        kind(2, **parameters).fit(np.eye(9))


@pytest.mark.parametrize(
    "model",
    [OnlineKernelPCA(2, kernel="rbf", gamma=0.5, random_state=0),
     IncrementalKernelPCA(2, kernel="rbf", gamma=0.5, max_basis_rows=60)],
    ids=["online", "incremental"],
)  # fmt: skip
def test_streams_signal_an_abrupt_change(model):
    quiet = clone(model).set_params(drift_threshold=1e6)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 1500)
    usual = np.column_stack([x, rng.normal(-(x**2), 0.2)])
    alarms = [model.partial_fit(usual[i : i + 50]).drift_detected_ for i in range(0, 1500, 50)]
    assert sum(alarms) == 0
    changed = rng.normal(size=(50, 2)) * 0.3 + [1.5, 1.5]
    found = [model.partial_fit(changed[i : i + 5]).drift_detected_ for i in range(0, 50, 5)]
    assert any(found[:5])
    assert not quiet.partial_fit(usual).partial_fit(changed).drift_detected_
