"""A fit that was cut short and gone on with ends at the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import ikpca
from ikpca import HebbianPCA, KernelPCA
from ikpca.errors import InvalidInput, UnreadableFile
from ikpca.estimators.checkpoint import Checkpoint, parse_interval
from ikpca.kernels import Gaussian
from ikpca.model_files import previous_generation
from ikpca.solvers import Outcome, base
from ikpca.solvers.kha_pass import HebbianPass
from tests.sameness import same

X = load_digits().data[:400] / 16
PASSES = 6
#: The module, whose room has a function of the same name.
krylov_solve = sys.modules["ikpca.solvers.krylov"]
SOLVERS = {
    "kha": {"eigen_solver": "kha", "gain": 0.05, "rayleigh_ritz": False},
    "kha/t": {"eigen_solver": "kha/t", "gain": 0.1, "clock": "pass"},
    "kha/et": {"eigen_solver": "kha/et"},
    "kha-smd": {"eigen_solver": "kha-smd"},
    "smd, backing off": {"eigen_solver": "kha-smd", "gain": 50.0, "meta_gain": 1.0},
    "krylov": {"eigen_solver": "krylov"},
    "krylov, restarting": {"eigen_solver": "krylov", "max_memory": 5_000_000, "block_size": 16},
    "pivoted": {"eigen_solver": "krylov", "init": "pivoted"},
}
STATE = ("coefficients_", "eigenvalues_", "eigenvectors_", "explained_variance_ratio_", "_scale")


def model(solver="kha/et", **parameters):
    settings = {"kernel": "rbf", "gamma": 0.05, "random_state": 0, "max_iter": PASSES}
    return KernelPCA(5, **{**settings, **SOLVERS[solver], **parameters})


def assert_same_fit(one, other):
    for name in STATE:
        same(getattr(one, name), getattr(other, name))
    same(one._subspace.known_products, other._subspace.known_products)
    same(one._subspace.known_gram, other._subspace.known_gram)
    assert one.outcome_ is other.outcome_
    assert len(one.history_) == len(other.history_)
    for left, right in zip(one.history_, other.history_, strict=True):
        same(left.residuals, right.residuals)
        same(left.gains, right.gains)
        assert (left.number, left.change, left.note) == (right.number, right.change, right.note)


@pytest.mark.filterwarnings("ignore::ikpca.errors.DivergenceWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", SOLVERS)
def test_resume_equals_going_on(solver, dtype, tmp_path):
    rows, path = X.astype(dtype), tmp_path / "fit.checkpoint"
    whole = model(solver).fit(rows)
    for passes in (1, 2, 4):
        model(solver, max_iter=passes, checkpoint=path).fit(rows)
    assert_same_fit(model(solver, checkpoint=path, resume=True).fit(rows), whole)


@pytest.mark.parametrize("kind", ["sparse", "precomputed", "memory map", "threads", "seed drawn"])
def test_resume_for_every_kind_of_rows(kind, tmp_path):
    rows, more = X, {}
    if kind == "sparse":
        rows = sparse.csr_array(X)
    elif kind == "precomputed":
        rows, more = (X @ X.T + 1) ** 2, {"kernel": "precomputed"}
    elif kind == "memory map":
        np.save(tmp_path / "rows.npy", X)
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    elif kind == "threads":
        more = {"n_jobs": 2}
    else:
        more = {"random_state": np.random.RandomState(7)}
    path = tmp_path / "fit.checkpoint"
    first = model(checkpoint=path, max_iter=3, **more).fit(rows)
    whole = None if kind == "seed drawn" else model(**more).fit(rows)
    # Another generator than the one that drew the seed, and one thread in place of two.
    more.update({"n_jobs": 1} if kind == "threads" else {})
    more.update({"random_state": None} if kind == "seed drawn" else {})
    again = model(checkpoint=path, resume=True, **more).fit(rows)
    assert len(again.history_) == PASSES
    same(again.history_[2].residuals, first.history_[2].residuals)
    if whole is not None:
        assert_same_fit(again, whole)


def interrupting(calls):
    """A Gaussian kernel that presses Ctrl-C at its so many-th tile."""
    count = iter(range(calls))

    class Interrupting(Gaussian):
        def finish(self, out):
            if next(count, None) is None:
                raise KeyboardInterrupt
            super().finish(out)

    return Interrupting(0.05)


def test_interrupts_leave_the_last_finished_pass(tmp_path):
    path = tmp_path / "fit.checkpoint"
    whole = model(kernel=Gaussian(0.05), max_memory=3_200_000).fit(X)
    counted = [0]

    class Counting(Gaussian):
        def finish(self, out):
            counted[0] += 1
            super().finish(out)

    model(kernel=Counting(0.05), max_memory=3_200_000).fit(X)
    rng = np.random.default_rng(0)
    seen = set()
    for calls in rng.integers(1, counted[0], 6):
        for file in tmp_path.iterdir():
            file.unlink()
        broken = model(
            kernel=interrupting(int(calls)), max_memory=3_200_000, checkpoint=path,
            checkpoint_every=100,
        )  # fmt: skip
        with pytest.raises(KeyboardInterrupt):
            broken.fit(X)
        done = len(getattr(broken, "history_", ()))
        seen.add(done)
        assert path.exists() == (done > 0)
        # Another class of kernel is another fit, by its name; the numbers are the same.
        again = KernelPCA(5).set_params(**broken.get_params())
        again.set_params(kernel=interrupting(10**9), resume=True).fit(X)
        assert_same_fit(again, whole)
    assert len(seen) > 1


def sent(method, calls):
    """The method, which gets a signal from outside the so many-th time it is called."""
    count = iter(range(calls))

    def interrupted(*arguments, **keywords):
        if next(count, None) is None:
            os.kill(os.getpid(), signal.SIGINT)
        return method(*arguments, **keywords)

    return interrupted


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
@pytest.mark.parametrize(
    ("solver", "where", "name"),
    [
        ("kha/et", HebbianPass, "_record"),
        ("kha-smd", HebbianPass, "_finish"),
        ("krylov, restarting", krylov_solve, "_change"),
        ("krylov, restarting", krylov_solve, "_orthonormal"),
        ("kha/et", Checkpoint, "record"),
        ("krylov", Checkpoint, "write"),
        ("kha/et", base.StopAtResidual, "on_step_end"),
    ],
)
def test_signals_wait_until_nothing_is_half_done(solver, where, name, tmp_path, monkeypatch):
    """A pass counts with all that belongs to it, or not at all."""
    path, whole = tmp_path / "fit.checkpoint", model(solver).fit(X)
    with monkeypatch.context() as patch:
        patch.setattr(where, name, sent(getattr(where, name), 3))
        # Where nothing was written on the way, all depends on what is written at the end.
        every = 1 if name == "write" else 100
        broken = model(solver, checkpoint=path, checkpoint_every=every)
        with pytest.raises(KeyboardInterrupt):
            broken.fit(X)
    assert 0 < len(broken.history_) < PASSES
    assert_same_fit(model(solver, checkpoint=path, resume=True).fit(X), whole)


@pytest.mark.parametrize("solver", ["kha/et", "krylov, restarting"])
def test_an_observer_that_interrupts_leaves_a_finished_pass(solver, tmp_path, monkeypatch):
    path, whole = tmp_path / "fit.checkpoint", model(solver).fit(X)
    count, see = iter(range(2)), base.StopAtResidual.on_step_end

    def interrupted(self, state, report):
        if next(count, None) is None:
            raise KeyboardInterrupt
        return see(self, state, report)

    with monkeypatch.context() as patch:
        patch.setattr(base.StopAtResidual, "on_step_end", interrupted)
        broken = model(solver, checkpoint=path, checkpoint_every=100)
        with pytest.raises(KeyboardInterrupt):
            broken.fit(X)
    assert len(broken.history_) == 3
    assert_same_fit(model(solver, checkpoint=path, resume=True).fit(X), whole)


def test_an_ending_is_written_with_the_pass_that_brings_it(tmp_path, monkeypatch):
    """Or a kill between the last pass and the end would cost one more pass."""
    path = tmp_path / "fit.checkpoint"
    whole = model("krylov", max_iter=50, tol=1e-8).fit(X)
    monkeypatch.setattr(Checkpoint, "finish", lambda self: None)
    model("krylov", max_iter=50, tol=1e-8, checkpoint=path, checkpoint_every=10).fit(X)
    again = model("krylov", max_iter=50, tol=1e-8, checkpoint=path, resume=True).fit(X)
    assert_same_fit(again, whole)


@pytest.mark.parametrize("tol", [0, 1e-4])
def test_a_share_of_the_variance_goes_on(tol, tmp_path):
    """Rounds of more and more components, cut short in each of them and between two."""

    def share(**parameters):
        settings = {"max_iter": 50, "tol": tol, "max_memory": 5_200_000}
        return model("krylov", **settings | parameters).set_params(n_components=0.97)

    path, counted = tmp_path / "fit.checkpoint", [0]

    class Counting(Gaussian):
        def finish(self, out):
            counted[0] += 1
            super().finish(out)

    whole = share(kernel=Counting(0.05)).fit(X)
    assert len(whole.eigenvalues_) > 32
    done = set()
    for calls in np.linspace(1, counted[0] - 1, 6).astype(int):
        for file in tmp_path.iterdir():
            file.unlink()
        broken = share(kernel=interrupting(int(calls)), checkpoint=path)
        with pytest.raises(KeyboardInterrupt):
            broken.fit(X)
        again = share(kernel=interrupting(10**9), checkpoint=path, resume=True).fit(X)
        assert_same_fit(again, whole)
        done.add(len(getattr(broken, "history_", ())))
    assert len(done) > 2


def test_a_finished_fit_is_not_begun_again(tmp_path):
    path = tmp_path / "fit.checkpoint"
    done = model("krylov", max_iter=50, checkpoint=path).fit(X)
    assert done.outcome_ in (Outcome.CONVERGED, Outcome.PRECISE)
    before = path.stat().st_mtime_ns
    again = model("krylov", max_iter=50, checkpoint=path, resume=True).fit(X)
    assert_same_fit(again, done)
    assert path.stat().st_mtime_ns == before


def test_resume_without_a_file_begins(tmp_path):
    path = tmp_path / "fit.checkpoint"
    assert_same_fit(model(checkpoint=path, resume=True).fit(X), model().fit(X))
    assert path.exists()


def test_without_resume_an_old_checkpoint_is_left_behind(tmp_path):
    path = tmp_path / "fit.checkpoint"
    model(checkpoint=path, gamma=0.5).fit(X)
    assert_same_fit(model(checkpoint=path).fit(X), model().fit(X))
    assert_same_fit(model(checkpoint=path, resume=True).fit(X), model().fit(X))


@pytest.mark.parametrize(
    ("change", "rows", "message"),
    [
        ({"gamma": 0.1}, X, r"gamma was 0\.05 and is 0\.1"),
        ({"n_components": 4}, X, "n_components was 5 and is 4"),
        ({"eigen_solver": "kha"}, X, "eigen_solver was 'kha/et' and is 'kha'"),
        ({"random_state": 1}, X, "random_state was 0 and is 1"),
        ({}, X[::-1], "training data differ"),
        ({}, X.astype(np.float32), "training data differ"),
        ({"gamma": 0.1}, X[1:], "gamma was .*; the training data differ"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(change, rows, message, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model(checkpoint=path, max_iter=2).fit(X)
    before = path.read_bytes()
    other = model(checkpoint=path, resume=True).set_params(**change)
    with pytest.raises(InvalidInput, match=message):
        other.fit(rows)
    assert path.read_bytes() == before


def test_the_generation_before_is_taken_where_the_newest_is_damaged(tmp_path):
    path = tmp_path / "fit.checkpoint"
    model(checkpoint=path, max_iter=4).fit(X)
    for damage in (b"", b"torn", path.read_bytes()[:-3]):
        path.write_bytes(damage)
        assert_same_fit(model(checkpoint=path, resume=True).fit(X), model().fit(X))
    for file in (path, previous_generation(path)):
        file.write_bytes(b"torn")
    with pytest.raises(UnreadableFile):
        model(checkpoint=path, resume=True).fit(X)


def test_a_model_is_no_checkpoint_and_the_other_way_round(tmp_path):
    path = tmp_path / "file"
    fitted = model(checkpoint=path).fit(X)
    with pytest.raises(UnreadableFile, match="is a checkpoint"):
        ikpca.load(path)
    fitted.save(path)
    with pytest.raises(UnreadableFile, match="is a model"):
        model(checkpoint=path, resume=True).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"resume": True}, "resume=True"),
        ({"resume": "yes"}, "resume='yes'"),
        ({"checkpoint": 3}, "must be a path"),
        ({"checkpoint": "/no/such/folder/fit"}, "checkpoint=.*does not exist"),
        ({"checkpoint": "fit", "checkpoint_every": 0}, "checkpoint_every=0"),
        ({"checkpoint": "fit", "checkpoint_every": "soon"}, "checkpoint_every='soon'"),
    ],
)
def test_wrong_settings(parameters, message):
    with pytest.raises(InvalidInput, match=message):
        model().set_params(**parameters).fit(X)


def test_intervals():
    assert parse_interval(3) == (3, 0.0)
    assert parse_interval("30s") == (1, 30.0)
    assert parse_interval("1.5 min") == (1, 90.0)
    assert parse_interval("2h") == (1, 7200.0)


def test_the_callers_signals_come_back(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    model(checkpoint=tmp_path / "fit").fit(X)
    assert signal.getsignal(signal.SIGTERM) is before
    # And a fit in another thread has nothing to do with signals.
    thread = threading.Thread(target=model(checkpoint=tmp_path / "fit").fit, args=(X,))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before


class Slow(Gaussian):
    """Of the same name as the one below, and so of the same fit."""


SLOW_FIT = """
    import sys, time
    from sklearn.datasets import load_digits
    from ikpca import KernelPCA
    from ikpca.kernels import Gaussian

    class Slow(Gaussian):
        def finish(self, out):
            time.sleep(0.01)
            super().finish(out)

    X = load_digits().data[:400] / 16
    model = KernelPCA(5, kernel=Slow(0.05), random_state=0, max_iter=1000, max_memory=3_200_000,
                      eigen_solver="kha/et", checkpoint=sys.argv[1])
    try:
        model.fit(X)
    except KeyboardInterrupt:
        print(len(model.history_), model.outcome_.name)
        sys.exit(130)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL"])
def test_killed_from_outside(number, tmp_path):
    path = tmp_path / "fit.checkpoint"
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW_FIT), str(path)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(6000):
        if previous_generation(path).exists():
            break
        threading.Event().wait(0.01)
    child.send_signal(getattr(signal, number))
    told = child.communicate(timeout=60)[0]
    if number == "SIGTERM":
        assert child.returncode == 130
        assert told.split()[1] == "INTERRUPTED"
    parameters = {"kernel": Slow(0.05), "random_state": 0, "max_memory": 3_200_000}
    whole = KernelPCA(5, eigen_solver="kha/et", max_iter=1, **parameters)
    resumed = KernelPCA(
        5, eigen_solver="kha/et", checkpoint=path, resume=True, max_iter=1, **parameters
    ).fit(X)
    assert_same_fit(resumed, whole.set_params(max_iter=len(resumed.history_)).fit(X))


def test_explicit_features_go_on_too(tmp_path):
    path = tmp_path / "fit.checkpoint"

    def gha(**parameters):
        return HebbianPCA(4, random_state=0, **{"max_iter": PASSES, **parameters}).fit(X)

    whole = gha()
    gha(max_iter=2, checkpoint=path)
    again = gha(checkpoint=path, resume=True)
    for name in ("components_", "mean_", "explained_variance_"):
        same(getattr(again, name), getattr(whole, name))
    same(again._stream, whole._stream)
    assert again.outcome_ is whole.outcome_
    assert len(again.history_) == PASSES
    with pytest.raises(InvalidInput, match="whiten was False and is True"):
        gha(checkpoint=path, resume=True, whiten=True)
