"""Resuming an interrupted stream gives the same bits as an uninterrupted stream."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import ikpca
from ikpca import Checkpoint, IncrementalKernelPCA, OnlineKernelPCA
from ikpca.errors import InvalidInput, UnreadableFile, UnwritableFile
from ikpca.estimators import checkpoint as checkpoint_module
from ikpca.kernels import Gaussian
from ikpca.model_files import previous_generation, read_newest
from ikpca.solvers import KHA
from tests.sameness import same

X = load_digits().data[:500] / 16


def dot(x, y):
    return float(x @ y)


STREAMS = {
    "incremental": IncrementalKernelPCA(4, kernel="rbf", gamma="median", max_basis_rows=60),
    "all rows kept": IncrementalKernelPCA(kernel="poly", degree=2, reduction=None),
    "pre-images": IncrementalKernelPCA(
        3, kernel="rbf", gamma=0.05, reduction="preimages", max_basis_rows=30, batch_size=100
    ),
    "forgetting": IncrementalKernelPCA(
        3, kernel="laplacian", forgetting=0.9, batch_size=50, whiten=True
    ),
    "a kernel of one's own": IncrementalKernelPCA(2, kernel=dot, batch_size=125),
    "online": OnlineKernelPCA(4, kernel="rbf", gamma="scale", max_basis_rows=64),
    "passes": OnlineKernelPCA(3, kernel="rbf", gamma=0.05, max_iter=3, max_basis_rows=48),
    "covering": OnlineKernelPCA(
        2, kernel="rbf", eigen_solver=KHA("kha", gain=0.05, init="covering"), forgetting=0.99
    ),
    "number as gain": OnlineKernelPCA(
        3, kernel="rbf", eigen_solver=KHA("kha/t", gain=0.05), max_basis_rows=50,
        reduction="preimages",
    ),
    "kha-smd": OnlineKernelPCA(
        3, kernel="rbf", eigen_solver=KHA("kha-smd", gain=0.05, meta_gain=0.1), max_basis_rows=50
    ),
    "random": OnlineKernelPCA(3, kernel="poly", degree=2, eigen_solver=KHA(init="random")),
}  # fmt: skip


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    """So that a fit of few rows has many parts."""
    monkeypatch.setattr("ikpca.estimators.online_stream._PART", 64)


def model(name, **parameters):
    return clone(STREAMS[name]).set_params(random_state=0, **parameters)


def assert_same_stream(one, other):
    """All fitted attributes, private ones included; the fingerprint of batches is none of them."""
    left, right = (
        {
            name: part
            for name, part in vars(each).items()
            if name not in each.get_params() and name != "_batches"
        }
        for each in (one, other)
    )
    same(left, right)


@contextlib.contextmanager
def stopped_after(steps, error=KeyboardInterrupt, *, in_write=False):
    """Raise an error at the end of the step after so many, or in its write."""
    count = iter([False] * steps + [True])
    streams = ikpca.estimators.IncrementalStream, ikpca.estimators.OnlineStream
    places = [(streams[0], "learn"), (streams[1], "learn_part")]
    if in_write:
        places = [(checkpoint_module, "write_generation")]

    def broken(original):
        def after(*arguments):
            result = None if in_write else original(*arguments)
            if next(count, False):
                raise error
            return original(*arguments) if in_write else result

        return after

    with pytest.MonkeyPatch.context() as patch:
        for where, name in places:
            patch.setattr(where, name, broken(getattr(where, name)))
        yield


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    ("every", "error", "dtype"),
    [
        (1, RuntimeError, np.float64),
        (3, KeyboardInterrupt, np.float32),
        ("1h", KeyboardInterrupt, np.float64),
    ],
)
def test_resume_of_a_fit(name, every, error, dtype, tmp_path):
    rows, checkpoint = X.astype(dtype), Checkpoint(tmp_path / "fit.checkpoint", every)
    whole = model(name).fit(rows)
    broken = model(name, checkpoint=checkpoint)
    with stopped_after(1, error), pytest.raises(error):
        broken.fit(rows)
    if error is KeyboardInterrupt:
        # The last finished step can be used, and is in the checkpoint.
        assert 0 < broken.n_samples_seen_ < len(X)
        with stopped_after(0):
            stored = model(name, checkpoint=checkpoint)
            with pytest.raises(KeyboardInterrupt):
                stored.fit(rows)
        assert_same_stream(stored, broken)
    assert_same_stream(model(name, checkpoint=checkpoint).fit(rows), whole)
    # A finished fit is not repeated.
    with stopped_after(0):
        assert_same_stream(model(name, checkpoint=checkpoint).fit(rows), whole)


@pytest.mark.parametrize("name", ["incremental", "passes"])
@pytest.mark.parametrize("every", [1, "1h"])
def test_interrupt_of_a_write(name, every, tmp_path):
    """The model keeps what it has learned; a step before the last one is written again."""
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every)
    broken = model(name, checkpoint=checkpoint)
    with stopped_after(0, in_write=True), pytest.raises(KeyboardInterrupt):
        broken.fit(X)
    assert broken.n_samples_seen_ > 0
    assert checkpoint.path.exists() == (every == 1)
    assert_same_stream(model(name, checkpoint=checkpoint).fit(X), model(name).fit(X))


@pytest.mark.parametrize("name", STREAMS)
def test_replayed_batches_are_skipped(name, tmp_path):
    path = tmp_path / "stream.checkpoint"
    batches = np.split(X, [100, 101, 220, 300, 420])
    whole = model(name)
    for batch in batches:
        whole.partial_fit(batch)
    for cut in (2, 4):
        broken = model(name, checkpoint=path)
        for batch in batches[:cut]:
            broken.partial_fit(batch)
    again = model(name, checkpoint=Checkpoint(path, every=2)).partial_fit(batches[0])
    assert again.n_samples_seen_ == 300
    for batch in batches[1:]:
        again.partial_fit(batch)
    assert_same_stream(again, whole)


def test_a_preset_and_its_object_share_checkpoints(tmp_path):
    path = tmp_path / "stream.checkpoint"
    model("online", checkpoint=path).partial_fit(X[:200])
    again = model("online", eigen_solver=KHA(), checkpoint=path).load_checkpoint()
    assert again.n_samples_seen_ == 200
    again = model("online", eigen_solver=KHA(), checkpoint=path).partial_fit(X[:200])
    whole = model("online").partial_fit(X[:200]).partial_fit(X[200:])
    assert_same_stream(again.partial_fit(X[200:]), whole)


def test_without_resume_a_stream_starts_again(tmp_path):
    path = tmp_path / "stream.checkpoint"
    model("online", checkpoint=path).partial_fit(X[:200])
    again = model("online", checkpoint=Checkpoint(path, resume=False)).partial_fit(X[200:])
    assert_same_stream(again, model("online").partial_fit(X[200:]))
    assert model("online", checkpoint=path).load_checkpoint().n_samples_seen_ == 300


@pytest.mark.parametrize("name", ["incremental", "online"])
def test_a_source_that_cannot_be_played_again(name, tmp_path):
    path = tmp_path / "stream.checkpoint"
    broken = model(name, checkpoint=path)
    broken.partial_fit(X[:200]).partial_fit(X[200:333])
    again = model(name, checkpoint=path).load_checkpoint()
    assert again.n_samples_seen_ == 333
    assert_same_stream(again, broken)
    whole = model(name).partial_fit(X[:200]).partial_fit(X[200:333]).partial_fit(X[333:])
    assert_same_stream(again.partial_fit(X[again.n_samples_seen_ :]), whole)


def test_column_names_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X).add_prefix("pixel")
    path = tmp_path / "stream.checkpoint"
    model("online", checkpoint=path).partial_fit(table)
    again = model("online", checkpoint=path).load_checkpoint()
    assert list(again.feature_names_in_) == list(table.columns)


@pytest.mark.parametrize("name", ["incremental", "online"])
def test_other_batches_are_refused(name, tmp_path):
    path = tmp_path / "stream.checkpoint"
    model(name, checkpoint=path).partial_fit(X[:100]).partial_fit(X[100:200])
    for first, second in ((100, 201), (99, 200)):
        other = model(name, checkpoint=path).partial_fit(X[:first])
        with pytest.raises(InvalidInput, match="200 rows in 2 batches"):
            other.partial_fit(X[first:second])
    other = model(name, checkpoint=path).partial_fit(X[:100])
    with pytest.raises(InvalidInput, match="differ from the"):
        other.partial_fit(X[100:200] * 1.5)
    assert other.load_checkpoint().partial_fit(X[200:]).n_samples_seen_ == len(X)
    # The batches of the checkpoint are still accepted.
    other = model(name, checkpoint=path).partial_fit(X[:100])
    assert other.partial_fit(X[100:200]).partial_fit(X[200:]).n_samples_seen_ == len(X)


@pytest.mark.parametrize(
    ("name", "change", "rows", "message"),
    [
        ("incremental", {"gamma": 0.5}, X, "gamma was 'median' and is 0.5"),
        ("incremental", {"n_components": 3, "forgetting": 0.5}, X,
         "forgetting was 1.0 and is 0.5; n_components was 4 and is 3"),
        ("incremental", {}, X[::-1], "training data differ"),
        ("online", {"max_basis_rows": 80}, X, "max_basis_rows was 64 and is 80"),
        ("online", {"eigen_solver": KHA(init="random")}, X, "init was 'auto' and is 'random'"),
        ("online", {}, X[1:], "training data differ"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_another_fit_is_refused(name, change, rows, message, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model(name, checkpoint=path).fit(X)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=message):
        model(name, checkpoint=path, **change).fit(rows)
    with pytest.raises(InvalidInput, match="written by fit and is read by partial_fit"):
        model(name, checkpoint=path).partial_fit(X[:10])
    with pytest.raises(InvalidInput, match="written by fit and is read by partial_fit"):
        model(name, checkpoint=path).load_checkpoint()
    assert path.read_bytes() == before


def test_one_kind_of_stream_is_not_the_other(tmp_path):
    path = tmp_path / "stream.checkpoint"
    model("online", checkpoint=path).partial_fit(X)
    with pytest.raises(InvalidInput, match="estimator was OnlineKernelPCA and is Incremental"):
        model("incremental", checkpoint=path).load_checkpoint()
    other = Checkpoint(path, resume=False)
    ikpca.KernelPCA(2, eigen_solver="kha/et", max_iter=1, checkpoint=other).fit(X)
    with pytest.raises(InvalidInput, match="estimator was KernelPCA"):
        model("incremental", checkpoint=path).fit(X)


def test_nothing_to_load(tmp_path):
    with pytest.raises(InvalidInput, match="checkpoint=None"):
        model("online").load_checkpoint()
    with pytest.raises(InvalidInput, match="does not exist"):
        model("online", checkpoint=tmp_path / "nothing").load_checkpoint()


@pytest.mark.parametrize("name", ["incremental", "online"])
def test_the_generation_before_is_taken_where_the_newest_is_damaged(name, tmp_path):
    path = tmp_path / "stream.checkpoint"
    stream = model(name, checkpoint=path)
    stream.partial_fit(X[:100]).partial_fit(X[100:200])
    path.write_bytes(path.read_bytes()[:-3])
    again = model(name, checkpoint=path).load_checkpoint()
    assert again.n_samples_seen_ == 100
    older = previous_generation(path).read_bytes()
    again.partial_fit(X[100:200])
    # A damaged file never takes the place of a sound one.
    assert previous_generation(path).read_bytes() == older
    for file in (path, previous_generation(path)):
        file.write_bytes(b"torn")
    with pytest.raises(UnreadableFile):
        model(name, checkpoint=path).load_checkpoint()


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_a_checkpoint_and_the_model(failing, tmp_path, monkeypatch):
    path = tmp_path / "stream.checkpoint"
    stream = model("incremental", checkpoint=path).partial_fit(X[:100])

    def fail(*arguments):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(UnwritableFile, match="No space left"):
            stream.partial_fit(X[100:200])
    assert stream.n_samples_seen_ == 100
    assert read_newest(path) is not None
    assert model("incremental", checkpoint=path).load_checkpoint().n_samples_seen_ == 100
    # With room again, the batch that was not learned can come again.
    whole = model("incremental").partial_fit(X[:100]).partial_fit(X[100:200])
    assert_same_stream(stream.partial_fit(X[100:200]), whole)


def test_batches_between_checkpoints(tmp_path):
    path = tmp_path / "stream.checkpoint"
    stream = model("incremental", checkpoint=Checkpoint(path, every=3))
    seen = []
    for part in np.split(X[:400], 8):
        stream.partial_fit(part)
        found = path.exists() and model("incremental", checkpoint=path).load_checkpoint()
        seen.append(found.n_samples_seen_ if found else 0)
    assert seen == [0, 0, 150, 150, 150, 300, 300, 300]
    stream.set_params(checkpoint=Checkpoint(path, "1h")).partial_fit(X[400:])
    assert model("incremental", checkpoint=path).load_checkpoint().n_samples_seen_ == 300


def test_times_between_checkpoints(tmp_path):
    path = tmp_path / "stream.checkpoint"
    stream = model("incremental", checkpoint=Checkpoint(path, "1h"))
    stream.partial_fit(X[:100]).partial_fit(X[100:200])
    assert model("incremental", checkpoint=path).load_checkpoint().n_samples_seen_ == 100
    an_hour_ago = path.stat().st_mtime - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))
    stream.partial_fit(X[200:300])
    assert model("incremental", checkpoint=path).load_checkpoint().n_samples_seen_ == 300


SLOW = """
    import sys, time
    from sklearn.datasets import load_digits
    from ikpca import Checkpoint, IncrementalKernelPCA, OnlineKernelPCA
    from ikpca.estimators import online_stream
    from ikpca.kernels import Gaussian

    class Slow(Gaussian):
        def fill(self, X, Y, out):
            print("tile", flush=True)
            time.sleep(0.002)
            super().fill(X, Y, out)

    online_stream._PART = 64
    kind, path = sys.argv[1:]
    rows = load_digits().data[:500] / 16
    stream = {
        "incremental": IncrementalKernelPCA(3, kernel=Slow(0.05), batch_size=10, max_basis_rows=40),
        "online": OnlineKernelPCA(3, kernel=Slow(0.05), max_basis_rows=80, max_iter=2),
    }[kind]
    stream.set_params(random_state=0, checkpoint=Checkpoint(path, "1h"))
    try:
        stream.fit(rows)
    except KeyboardInterrupt:
        print(stream._stream.seen)
        sys.exit(130)
"""


class Slow(Gaussian):
    """Has the name of the kernel above, and so belongs to the same fit."""


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
@pytest.mark.parametrize(("kind", "n_tiles"), [("incremental", 50), ("online", 180)])
def test_control_c(kind, n_tiles, tmp_path):
    path = tmp_path / "fit.checkpoint"
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW), kind, str(path)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(n_tiles):
        child.stdout.readline()
    child.send_signal(signal.SIGINT)
    seen = int(child.communicate(timeout=60)[0].splitlines()[-1])
    assert child.returncode == 130
    stream = {
        "incremental": IncrementalKernelPCA(3, batch_size=10, max_basis_rows=40),
        "online": OnlineKernelPCA(3, max_basis_rows=80, max_iter=2),
    }[kind].set_params(kernel=Slow(0.05), random_state=0)
    whole, broken = clone(stream).fit(X), clone(stream).set_params(checkpoint=path)
    with stopped_after(0), pytest.raises(KeyboardInterrupt):
        broken.fit(X)
    assert broken.n_samples_seen_ == seen > 0
    assert_same_stream(stream.set_params(checkpoint=path).fit(X), whole)


def test_a_fit_keeps_its_parts_as_one_batch():
    """Parts are for checkpoints alone: what comes out is what one batch gives."""
    rows = X[:300]
    parts = OnlineKernelPCA(3, kernel=Gaussian(0.05), random_state=0).fit(rows)
    batch = OnlineKernelPCA(3, kernel=Gaussian(0.05), random_state=0).partial_fit(rows)
    same(np.abs(parts._stream.state.coefficients), np.abs(batch._stream.state.coefficients))
    same(parts.novelty_, batch.novelty_)
    assert parts.drift_ == batch.drift_
