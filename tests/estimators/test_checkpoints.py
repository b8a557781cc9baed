"""Resuming an interrupted fit gives the same bits as an uninterrupted fit."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

import ikpca
from ikpca import Checkpoint, KernelPCA
from ikpca.errors import InvalidInput, UnreadableFile
from ikpca.estimators import checkpoint as checkpoint_module
from ikpca.kernels import Gaussian
from ikpca.solvers import KHA, Krylov, PassRecord
from ikpca.solvers.kha_pass import HebbianPasses
from tests.sameness import same

X = load_digits().data[:400] / 16
PASSES = 6
krylov_module = sys.modules["ikpca.solvers.krylov"]
MODELS = {
    "kha": KernelPCA(eigen_solver=KHA("kha", gain=0.05, rayleigh_ritz=False)),
    "kha/t": KernelPCA(eigen_solver=KHA("kha/t", gain=0.1, clock="pass")),
    "kha/et": KernelPCA(eigen_solver="kha/et"),
    "kha-smd": KernelPCA(eigen_solver="kha-smd"),
    "smd, backing off": KernelPCA(eigen_solver=KHA("kha-smd", gain=50.0, meta_gain=1.0)),
    "krylov": KernelPCA(eigen_solver=Krylov(init="pivoted")),
    "krylov, restarting": KernelPCA(eigen_solver="krylov", max_memory=1_900_000),
}
#: Functions that a pass calls: within it, at its end, and after it.
PLACES = {
    "middle": {KHA: (HebbianPasses, "_limits"), Krylov: (krylov_module.KrylovPasses, "_multiply")},
    "end": {KHA: (HebbianPasses, "_certificate"), Krylov: (krylov_module, "_orthonormal")},
    "progress line": dict.fromkeys((KHA, Krylov), (PassRecord, "line")),
    "write": dict.fromkeys((KHA, Krylov), (checkpoint_module, "write_file")),
}


@pytest.fixture(autouse=True)
def small_basis(monkeypatch):
    """Make little memory restart the basis of krylov in every pass but the first."""
    monkeypatch.setattr(krylov_module, "_BLOCKS", (8, 2))


def model(name="kha/et", **parameters):
    settings = {"n_components": 5, "kernel": "rbf", "gamma": 0.05, "random_state": 0, "verbose": 1}
    return clone(MODELS[name]).set_params(**settings, max_iter=PASSES).set_params(**parameters)


@cache
def whole_fit(name, max_iter=None):
    return model(name, **({} if max_iter is None else {"max_iter": max_iter})).fit(X)


def assert_same_fit(one, other):
    """Compare all fitted attributes except the times of passes."""
    left, right = (
        {key: value for key, value in vars(each).items() if key not in each.get_params()}
        for each in (one, other)
    )
    for fitted in (left, right):
        fitted["history_"] = [
            replace(record, seconds=0, entries=0) for record in fitted["history_"]
        ]
    assert left.keys() == right.keys()
    same(left, {key: right[key] for key in left})


def calls_of(place, name, monkeypatch, after, error):
    """Raise an error in the call of a function after a number of calls."""
    solver = Krylov if name.startswith("krylov") else KHA
    where, function = PLACES[place][solver]
    original, calls = getattr(where, function), [0]

    def counted(*arguments, **keywords):
        calls[0] += 1
        if calls[0] == after + 1:
            raise error
        return original(*arguments, **keywords)

    monkeypatch.setattr(where, function, counted)
    return calls


CASES = [
    (name, place, (1, 3, "1h")[(row + column) % 3], (KeyboardInterrupt, RuntimeError)[row % 2])
    for row, name in enumerate(MODELS)
    for column, place in enumerate(PLACES)
]


@pytest.mark.filterwarnings("ignore::ikpca.errors.DivergenceWarning")
@pytest.mark.parametrize(("name", "place", "every", "error"), CASES)
def test_resume_after_an_interruption(name, place, every, error, tmp_path, monkeypatch):
    whole, path = whole_fit(name), tmp_path / "fit.checkpoint"
    checkpoint = Checkpoint(path, every)
    with monkeypatch.context() as patch:
        total = calls_of(place, name, patch, np.inf, error)
        assert_same_fit(model(name, checkpoint=Checkpoint(tmp_path / "other", every)).fit(X), whole)
    for number, share in enumerate((0.5, 0.2)):
        broken = model(name, checkpoint=checkpoint)
        with monkeypatch.context() as patch:
            calls_of(place, name, patch, int(share * total[0]), error)
            # The first interruption may have left nothing to interrupt.
            with pytest.raises(error) if number == 0 else contextlib.suppress(error):
                broken.fit(X)
        if error is KeyboardInterrupt and getattr(broken, "n_iter_", 0):
            assert_holds_last_pass(broken, name, path, place)
    assert_same_fit(model(name, checkpoint=checkpoint).fit(X), whole)


def assert_holds_last_pass(broken, name, path, place):
    """The model has the components of the last finished pass, and so has the checkpoint."""
    expected = whole_fit(name, broken.n_iter_).coefficients_
    same(broken.coefficients_, expected)
    if place == "write" or (name, place) == ("krylov, restarting", "end"):
        # The interrupt has prevented the write, or the restart has overwritten the basis.
        return
    stored = model(name, checkpoint=path, max_iter=1).fit(X)
    assert stored.n_iter_ == broken.n_iter_
    same(stored.coefficients_, expected)


@pytest.mark.parametrize("place", ["progress line", "write"])
@pytest.mark.parametrize("every", [1, "1h"])
def test_interrupt_after_the_last_pass(place, every, tmp_path, monkeypatch):
    """The outcome is stored with the pass, so that a resumed fit needs no other pass."""
    whole = model("krylov", max_iter=50).fit(X)
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every)
    with monkeypatch.context() as patch:
        total = calls_of(place, "krylov", patch, np.inf, KeyboardInterrupt)
        other = Checkpoint(tmp_path / "other", every)
        model("krylov", max_iter=50, checkpoint=other).fit(X)
    with monkeypatch.context() as patch:
        calls_of(place, "krylov", patch, total[0] - 1, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            model("krylov", max_iter=50, checkpoint=checkpoint).fit(X)
    written = checkpoint.path.stat().st_mtime_ns
    assert_same_fit(model("krylov", max_iter=50, checkpoint=checkpoint).fit(X), whole)
    assert checkpoint.path.stat().st_mtime_ns == written


@pytest.mark.filterwarnings("ignore::ikpca.errors.DivergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_resume_after_max_iter(name, tmp_path):
    rows, path = X.astype(np.float32), tmp_path / "fit.checkpoint"
    for passes in (1, 2, 4):
        model(name, max_iter=passes, checkpoint=path).fit(rows)
    assert_same_fit(model(name, checkpoint=path).fit(rows), model(name).fit(rows))


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
    # Another generator than the one that drew the seed, and one thread instead of two.
    more.update({"n_jobs": 1} if kind == "threads" else {})
    more.update({"random_state": None} if kind == "seed drawn" else {})
    again = model(checkpoint=path, **more).fit(rows)
    assert len(again.history_) == PASSES
    same(again.history_[2].residuals, first.history_[2].residuals)
    if whole is not None:
        assert_same_fit(again, whole)


@pytest.mark.parametrize("name", ["kha/et", "krylov"])
@pytest.mark.parametrize("max_memory", [None, 3_500_000, 40_000_000])
def test_resume_with_other_memory_keeps_the_sizes_of_the_first_run(
    name, max_memory, tmp_path, monkeypatch
):
    # A quarter of the machine is too small for as many blocks of krylov.
    monkeypatch.setattr(sys.modules["ikpca.gram.resources"], "machine_memory", lambda: 7_600_000)
    before = 6_000_000
    path = tmp_path / "fit.checkpoint"
    model(name, max_memory=before, checkpoint=path, max_iter=2).fit(X)
    resumed = model(name, max_memory=max_memory, checkpoint=path).fit(X)
    whole = model(name, max_memory=before).fit(X)
    assert len(resumed.history_) == len(whole.history_)
    np.testing.assert_allclose(resumed.eigenvalues_, whole.eigenvalues_, rtol=1e-10)


@pytest.mark.parametrize("name", ["kha/et", "krylov"])
def test_resume_with_too_little_memory_names_what_is_needed(name, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model(name, max_memory=6_000_000, checkpoint=path, max_iter=2).fit(X)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="max_memory") as error:
        model(name, max_memory=1_000_000, checkpoint=path).fit(X)
    assert path.read_bytes() == before
    needed = max(int(number) for number in re.findall(r"\d+", str(error.value)))
    model(name, max_memory=needed, checkpoint=path).fit(X)


@pytest.mark.parametrize("name", ["kha/et", "krylov"])
def test_resume_of_a_warm_start(name, tmp_path):
    first = model(name, max_iter=1).fit(X).set_params(warm_start=True, max_iter=PASSES)
    whole, path = copy.deepcopy(first).fit(X), tmp_path / "fit.checkpoint"
    copy.deepcopy(first).set_params(max_iter=2, checkpoint=path).fit(X)
    assert_same_fit(copy.deepcopy(first).set_params(checkpoint=path).fit(X), whole)
    with pytest.raises(InvalidInput, match="start was array"):
        whole.set_params(checkpoint=path).fit(X)


@pytest.mark.parametrize(
    ("name", "preset", "solver"),
    [
        ("kha/et", "kha/et", KHA()),
        ("kha/et", "kha-smd", KHA("kha-smd")),
        ("krylov", "krylov", Krylov()),
    ],
)
def test_a_preset_and_its_object_share_checkpoints(name, preset, solver, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model(name, eigen_solver=preset, checkpoint=path, max_iter=2).fit(X)
    resumed = model(name, eigen_solver=solver, checkpoint=Checkpoint(path)).fit(X)
    assert_same_fit(resumed, model(name, eigen_solver=preset).fit(X))
    assert model(name, eigen_solver=preset, checkpoint=path, max_iter=1).fit(X).n_iter_ > 1


def test_resume_without_a_file_and_without_resume(tmp_path):
    path = tmp_path / "fit.checkpoint"
    assert_same_fit(model(checkpoint=path).fit(X), whole_fit("kha/et"))
    other = model(checkpoint=Checkpoint(path, resume=False), gamma=0.5).fit(X)
    assert_same_fit(other, model(gamma=0.5).fit(X))
    assert model(checkpoint=path, gamma=0.5, max_iter=1).fit(X).n_iter_ == PASSES


@pytest.mark.parametrize(
    ("name", "change", "rows", "message"),
    [
        ("kha/et", {"gamma": 0.1}, X, r"gamma was 0\.05 and is 0\.1"),
        ("kha/et", {"n_components": 4}, X, "n_components was 5 and is 4"),
        ("kha/et", {"eigen_solver": "kha"}, X, "method was 'kha/et' and is 'kha'"),
        ("kha/et", {"eigen_solver": "krylov"}, X, "was 'KHA' and is 'Krylov'; init [^;]*$"),
        ("kha/et", {"eigen_solver": KHA(gain=0.1)}, X, r"gain was 'auto' and is 0\.1"),
        ("krylov", {"eigen_solver": Krylov()}, X, "init was 'pivoted' and is 'landmarks'"),
        ("kha/et", {"random_state": 1}, X, "random_state was 0 and is 1"),
        ("kha/et", {}, X[::-1], "training data differ"),
        ("kha/et", {}, X.astype(np.float32), "training data differ"),
        ("kha/et", {"gamma": 0.1}, X[1:], "gamma was .*; the training data differ"),
        ("krylov", {"whiten": True}, X, "whiten was False and is True"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(name, change, rows, message, tmp_path):
    path = tmp_path / "fit.checkpoint"
    fitted = model(name, checkpoint=path, max_iter=2).fit(X)
    before, attributes = path.read_bytes(), dict(vars(fitted))
    fitted.set_params(**change)
    with pytest.raises(InvalidInput, match=message):
        fitted.fit(rows)
    assert path.read_bytes() == before
    same(fitted.transform(X), model(name, max_iter=2).fit(X).transform(X))
    assert fitted.history_ is attributes["history_"]


def test_a_damaged_checkpoint_is_refused_and_kept(tmp_path):
    path = tmp_path / "fit.checkpoint"
    model(checkpoint=path, max_iter=4).fit(X)
    for damage in (b"", b"torn", path.read_bytes()[:-3]):
        path.write_bytes(damage)
        with pytest.raises(UnreadableFile, match=r"fit\.checkpoint cannot be read"):
            model(checkpoint=path).fit(X)
        assert path.read_bytes() == damage
    assert_same_fit(model(checkpoint=Checkpoint(path, resume=False)).fit(X), whole_fit("kha/et"))


def test_models_and_checkpoints_are_distinguished(tmp_path):
    path = tmp_path / "file"
    fitted = model(checkpoint=path).fit(X)
    with pytest.raises(UnreadableFile, match="is a checkpoint"):
        ikpca.load(path)
    fitted.set_params(checkpoint=Checkpoint(str(path), "5min")).save(path)
    assert ikpca.load(path).checkpoint == fitted.checkpoint
    with pytest.raises(UnreadableFile, match="is a model"):
        model(checkpoint=path).fit(X)


@pytest.mark.parametrize(
    ("checkpoint", "message"),
    [
        (3, "must be a path"),
        (Checkpoint(3), "must be a path"),
        ("/no/such/folder/fit", "checkpoint=.*does not exist"),
        (Checkpoint("fit", resume="yes"), "resume='yes'"),
        (Checkpoint("fit", every=0), "every=0"),
        (Checkpoint("fit", every="soon"), "every='soon'"),
    ],
)
def test_invalid_checkpoints(checkpoint, message):
    with pytest.raises(InvalidInput, match=message):
        model(checkpoint=checkpoint).fit(X)


@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_a_fraction_of_the_variance_has_no_checkpoint(solver, tmp_path):
    fraction = model("krylov", n_components=0.9, eigen_solver=solver, checkpoint=tmp_path / "fit")
    with pytest.raises(InvalidInput, match="fraction"):
        fraction.fit(X)
    assert not list(tmp_path.iterdir())


def test_intervals():
    assert Checkpoint("fit", 3)._interval() == (3, 0.0)
    assert Checkpoint("fit", "30s")._interval() == (1, 30.0)
    assert Checkpoint("fit", "1.5 min")._interval() == (1, 90.0)
    assert Checkpoint("fit", "2h")._interval() == (1, 7200.0)


class Slow(Gaussian):
    """Has the name of the kernel below, so that the fingerprints are equal."""


SLOW_FIT = """
    import sys, time
    from sklearn.datasets import load_digits
    from ikpca import Checkpoint, KernelPCA
    from ikpca.kernels import Gaussian

    class Slow(Gaussian):
        def finish(self, out):
            if out.size > 1:
                print("tile", flush=True)
            time.sleep(0.01)
            super().finish(out)

    X = load_digits().data[:400] / 16
    model = KernelPCA(5, kernel=Slow(0.05), random_state=0, max_iter=1000, max_memory=3_200_000,
                      eigen_solver="kha/et", checkpoint=Checkpoint(sys.argv[1], "1h"))
    try:
        model.fit(X)
    except KeyboardInterrupt:
        print(model.n_iter_, model.outcome_.name)
        sys.exit(130)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_control_c(tmp_path):
    path = tmp_path / "fit.checkpoint"
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW_FIT), str(path)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(60):
        child.stdout.readline()
    child.send_signal(signal.SIGINT)
    n_iter, outcome = child.communicate(timeout=60)[0].splitlines()[-1].split()
    assert child.returncode == 130
    assert outcome == "INTERRUPTED"
    settings = {"kernel": Slow(0.05), "gamma": None, "max_memory": 3_200_000}
    resumed = model(checkpoint=path, max_iter=1, **settings).fit(X)
    assert resumed.n_iter_ == int(n_iter) > 0
    assert_same_fit(resumed, model(max_iter=int(n_iter), **settings).fit(X))
