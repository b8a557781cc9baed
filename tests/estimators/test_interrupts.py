"""Interrupts during calls of compiled code, which raises them as SystemErrors."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca import KernelPCA
from ikpca.solvers import KHA, Dense, kha_pass

X = np.random.default_rng(0).normal(size=(60, 3))


def wrapped(error):
    """Raise an error of a signal handler in the way of compiled code."""
    try:
        try:
            raise error
        except BaseException as cause:
            raise SystemError("inner") from cause
    except SystemError as cause:
        raise SystemError("returned a result with an exception set") from cause


def interrupted_by(error, monkeypatch):
    """Return a model, and its fit, whose third sweep raises the error."""
    calls, compiled = [], kha_pass.plain_sweep

    def third(*arguments):
        calls.append(None)
        return wrapped(error) if len(calls) == 3 else compiled(*arguments)

    monkeypatch.setattr(kha_pass, "plain_sweep", third)
    solver = KHA("kha/et")
    model = KernelPCA(2, kernel="rbf", gamma=0.5, eigen_solver=solver, max_iter=10, random_state=0)
    return model, model.fit


def test_finished_passes_are_kept(monkeypatch):
    model, fit = interrupted_by(KeyboardInterrupt(), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fit(X)
    assert model.n_iter_ == 2
    assert model.transform(X).shape == (60, 2)


def test_solvers_without_passes(monkeypatch):
    monkeypatch.setattr(Dense, "solve", lambda *_: wrapped(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        KernelPCA(2, kernel="rbf", gamma=0.5, eigen_solver="dense").fit(X)


def test_other_system_errors_are_unchanged(monkeypatch):
    _, fit = interrupted_by(ValueError("of the library"), monkeypatch)
    with pytest.raises(SystemError, match="exception set") as raised:
        fit(X)
    assert isinstance(raised.value.__cause__.__cause__, ValueError)
