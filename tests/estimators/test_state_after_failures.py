"""After an error or an interrupt, at any line, every estimator is as before or fully updated."""

from __future__ import annotations

import copy
import sys
import time
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

import ikpca
from ikpca import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    NoveltyDetector,
    OnlineKernelPCA,
)
from ikpca.errors import InvalidInput
from ikpca.gram import resources
from ikpca.solvers import Nystrom, Outcome
from tests.sameness import same

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SOURCES = str(Path(ikpca.__file__).parent)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
OTHER = 1 + 2 * RNG.normal(size=(60, 3))
NORMAL = RNG.normal(size=(130, 3))
SEED = {"random_state": 0}
RBF = {"kernel": "rbf", "gamma": "scale", **SEED}
HEBBIAN = "kha/et"
KERNEL_PCAS = {
    "dense": KernelPCA(3, **RBF, eigen_solver="dense", fit_inverse_transform=True),
    "krylov": KernelPCA(3, **RBF, eigen_solver="krylov", whiten=True),
    "nystrom": KernelPCA(3, **RBF, eigen_solver=Nystrom(20)),
    "kha": KernelPCA(3, **RBF, eigen_solver=HEBBIAN, max_iter=4),
}
HEBBIAN_PCA = HebbianPCA(2, max_iter=4, **SEED)
INCREMENTAL = IncrementalKernelPCA(3, **RBF, max_basis_rows=30)
ONLINE = OnlineKernelPCA(3, kernel="rbf", gamma=0.3, **SEED)
DETECTOR = NoveltyDetector(cv=3, **SEED)
LANDMARKS = NoveltyDetector(cv=3, **SEED, eigen_solver=Nystrom(30))
CLUSTERING = KernelSpectralClustering(2, n_init=1, **SEED)
ESTIMATORS = {
    **KERNEL_PCAS,
    "hebbian": HEBBIAN_PCA,
    "incremental": INCREMENTAL,
    "online": ONLINE,
    "detector": DETECTOR,
    "detector, landmarks": LANDMARKS,
    "clustering": CLUSTERING,
}
STREAMS = {
    "hebbian": HEBBIAN_PCA,
    "incremental": INCREMENTAL,
    "online": ONLINE,
    "detector": DETECTOR,
}

#: Estimator, calls before, and the call that fails.
CHANGES = {
    **{f"{name}: fit": (model, [], ("fit", X)) for name, model in ESTIMATORS.items()},
    **{
        f"{name}: second fit": (model, [("fit", X)], ("fit", OTHER))
        for name, model in ESTIMATORS.items()
    },
    **{f"{name}: first batch": (model, [], ("partial_fit", X)) for name, model in STREAMS.items()},
    **{
        f"{name}: next batch": (model, [("partial_fit", X)] * 2, ("partial_fit", NORMAL))
        for name, model in STREAMS.items()
    },
    "detector: batch after fit": (DETECTOR, [("fit", X)], ("partial_fit", NORMAL)),
    "fit_transform": (KERNEL_PCAS["krylov"], [("fit", OTHER)], ("fit_transform", X)),
    # One pass is enough, so that no interrupt comes after a finished one.
    "refine": (KERNEL_PCAS["krylov"], [("fit", X)], ("refine", X)),
}


@pytest.fixture(autouse=True)
def _one_thread():
    """Execute lines in the same order every time."""
    with threadpool_limits(1):
        yield


@contextmanager
def raising(error=None, line=None):
    """Raise an error before the given line of ikpca that is executed; yields the lines so far.

    The end of a ``with`` statement is a line, too, but interrupts cannot come between it and the
    release of a lock: functions with locks are left out.
    """
    seen = []

    def trace(frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(SOURCES) or Path(name) == Path(resources.__file__):
            return None
        if event == "line":
            if len(seen) == line:
                raise error
            seen.append(None)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)


def call(model, method, argument):
    return getattr(model, method)(argument)


def prepared(model, calls):
    model = copy.deepcopy(model)
    for each in calls:
        call(model, *each)
    return model


def equal(one, other, *ignored):
    """Return True if all attributes are equal, bit for bit and in the same order."""
    found = ({k: v for k, v in vars(each).items() if k not in ignored} for each in (one, other))
    try:
        same(*found)
    except AssertionError:
        return False
    return True


def keeps_finished_steps(interrupted, before, rows):
    """Return True if an interrupted fit is equal to one of as many passes, or batches."""
    if hasattr(interrupted, "history_"):
        shorter = copy.deepcopy(before).set_params(max_iter=interrupted.n_iter_).fit(rows)
        assert interrupted.outcome_ is Outcome.INTERRUPTED
        return equal(interrupted, shorter, "outcome_", "max_iter")
    if isinstance(before, HebbianPCA):
        shorter = copy.deepcopy(before).set_params(max_iter=interrupted.n_iter_).fit(rows)
        return equal(interrupted, shorter, "max_iter")
    shorter = clone(before).fit(rows[: interrupted.n_samples_seen_])
    # The signs depend on the last row.
    projections = (np.abs(model.transform(rows)) for model in (interrupted, shorter))
    return np.array_equal(*projections)


@pytest.mark.parametrize("name", CHANGES)
def test_any_line_may_fail(name, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    model, calls, change = CHANGES[name]
    before = prepared(model, calls)
    after, counted = copy.deepcopy(before), copy.deepcopy(before)
    call(after, *change)
    with raising() as lines:
        call(counted, *change)
    anywhere = np.random.default_rng(0).integers(len(lines), size=6)
    # Attributes are set near the end.
    for number, line in enumerate([*anywhere, *(len(lines) - np.array([1, 5, 15, 30, 60, 120]))]):
        error = (KeyboardInterrupt, RuntimeError)[number % 2]
        broken = copy.deepcopy(before)
        with raising(error, line), pytest.raises(error):
            call(broken, *change)
        if not (equal(broken, before) or equal(broken, after)):
            assert error is KeyboardInterrupt
            assert keeps_finished_steps(broken, before, change[1])


@pytest.mark.parametrize(
    ("name", "method"),
    [*product(ESTIMATORS, ["fit"]), *product(STREAMS, ["partial_fit"])],
)
def test_refused_rows_change_nothing(name, method):
    model = ESTIMATORS[name]
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    refused = [1e200 * X, np.where(X > 2, np.nan, X), X[:0], named.iloc[:1] * np.nan]
    for rows in refused:
        first = copy.deepcopy(model)
        with pytest.raises(ValueError):  # noqa: PT011
            call(first, method, rows)
        assert equal(first, model)
        with pytest.raises(NotFittedError):
            check_is_fitted(first)
    fitted = call(copy.deepcopy(model), method, named)
    before = copy.deepcopy(fitted)
    for rows in [*refused, X[0]]:
        with pytest.raises(ValueError):  # noqa: PT011
            call(fitted, method, rows)
        assert equal(fitted, before)


def test_errors_in_the_middle_of_a_batch_change_nothing():
    """The first rows are learned, then rows that are taken for a drift overflow the kernel."""
    detector = NoveltyDetector(5, kernel="poly", gamma=1.0, random_state=0).fit(X)
    anomalies = 4 + RNG.normal(size=(30, 3))
    for _ in range(2):
        before, flags = copy.deepcopy(detector), detector.predict(anomalies)
        with pytest.raises(InvalidInput, match="not finite"):
            detector.partial_fit(np.vstack([NORMAL[:50], np.full((30, 3), 1e60)]))
        assert equal(detector, before)
        np.testing.assert_array_equal(detector.predict(anomalies), flags)
        detector.partial_fit(NORMAL)
