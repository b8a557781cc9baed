"""An interrupt is one, also where compiled code was just being called."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca import KernelPCA
from ikpca.solvers import kha_sweep

X = np.random.default_rng(0).normal(size=(60, 3))


def wrapped(error):
    """As compiled code hands on what a signal's handler raised."""
    try:
        try:
            raise error
        except BaseException as cause:
            raise SystemError("inner") from cause
    except SystemError as cause:
        raise SystemError("returned a result with an exception set") from cause


def interrupted_by(error, monkeypatch):
    """A fit whose third sweep meets the error."""
    calls, compiled = [], kha_sweep.plain_sweep

    def third(*arguments):
        calls.append(None)
        return wrapped(error) if len(calls) == 3 else compiled(*arguments)

    monkeypatch.setattr(kha_sweep, "plain_sweep", third)
    settings = {"kernel": "rbf", "gamma": 0.5, "eigen_solver": "kha/et", "random_state": 0}
    model = KernelPCA(2, max_iter=10, block_size=60, **settings)
    return model, model.fit


def test_what_was_finished_is_kept(monkeypatch):
    model, fit = interrupted_by(KeyboardInterrupt(), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fit(X)
    assert model.n_iter_ == 2
    assert model.transform(X).shape == (60, 2)


def test_before_the_first_pass_too(monkeypatch):
    monkeypatch.setattr(
        "ikpca.estimators.decomposition._dense", lambda *_: wrapped(KeyboardInterrupt())
    )
    with pytest.raises(KeyboardInterrupt):
        KernelPCA(2, kernel="rbf", gamma=0.5, eigen_solver="dense").fit(X)


def test_other_system_errors_stay_what_they_are(monkeypatch):
    _, fit = interrupted_by(ValueError("of the library"), monkeypatch)
    with pytest.raises(SystemError, match="exception set") as raised:
        fit(X)
    assert isinstance(raised.value.__cause__.__cause__, ValueError)
