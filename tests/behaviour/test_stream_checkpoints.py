"""A stream that was cut short and gone on with ends at the same bits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import ikpca
from ikpca import IncrementalKernelPCA, OnlineKernelPCA, gains
from ikpca.errors import InvalidInput, UnreadableFile, UnwritableFile
from ikpca.kernels import Gaussian
from ikpca.model_files import previous_generation, read_newest
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
    "covering": OnlineKernelPCA(2, kernel="rbf", init="covering", gain=0.05, forgetting=0.99),
    "meta-descent": OnlineKernelPCA(
        3, kernel="rbf", max_basis_rows=50, reduction="samples",
        gain=gains.meta_descent(0.05 * gains.inverse_time(100), rate=0.1, memory=0.9),
    ),
    "points drawn": OnlineKernelPCA(3, kernel="poly", degree=2, init="random"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    """So that a fit of few rows has many parts."""
    monkeypatch.setattr("ikpca.estimators.online_stream._PART", 64)


def model(name, **parameters):
    return clone(STREAMS[name]).set_params(random_state=0, **parameters)


def assert_same_stream(one, other):
    """All that was learned, private state included; paths are no part of it."""
    left, right = (
        {name: part for name, part in vars(each).items() if name not in each.get_params()}
        for each in (one, other)
    )
    left.pop("_trail", None)
    right.pop("_trail", None)
    same(left, right)


@contextlib.contextmanager
def stopped_after(steps):
    """An interrupt in the middle of the so many-th step after the first."""
    count = iter(range(steps))
    learned = {
        (IncrementalKernelPCA, "learn"): ikpca.estimators.IncrementalStream.learn,
        (OnlineKernelPCA, "learn_part"): ikpca.estimators.OnlineStream.learn_part,
    }

    def broken(original):
        def after(self, *arguments):
            grown = original(self, *arguments)
            if next(count, None) is None:
                raise KeyboardInterrupt
            return grown

        return after

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ikpca.estimators.IncrementalStream,
            "learn",
            broken(learned[IncrementalKernelPCA, "learn"]),
        )
        patch.setattr(
            ikpca.estimators.OnlineStream,
            "learn_part",
            broken(learned[OnlineKernelPCA, "learn_part"]),
        )
        yield


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", STREAMS)
def test_an_interrupted_fit_goes_on_to_the_same_bits(name, dtype, tmp_path):
    rows, path = X.astype(dtype), tmp_path / "fit.checkpoint"
    whole = model(name).fit(rows)
    broken = model(name, checkpoint=path, checkpoint_every=100)
    with stopped_after(1), pytest.raises(KeyboardInterrupt):
        broken.fit(rows)
    # What the last finished step left can be used at once.
    assert 0 < broken.n_samples_seen_ < len(X)
    assert np.isfinite(broken.transform(rows)).all()
    with stopped_after(0), pytest.raises(KeyboardInterrupt):
        model(name, checkpoint=path, resume=True).fit(rows)
    assert_same_stream(model(name, checkpoint=path, resume=True).fit(rows), whole)
    # And a fit that is done is not done again.
    with stopped_after(0):
        assert_same_stream(model(name, checkpoint=path, resume=True).fit(rows), whole)


@pytest.mark.parametrize("name", STREAMS)
def test_batches_that_come_again_are_passed_over(name, tmp_path):
    path = tmp_path / "stream.checkpoint"
    batches = np.split(X, [100, 101, 220, 300, 420])
    whole = model(name)
    for batch in batches:
        whole.partial_fit(batch)
    for cut in (2, 4):
        broken = model(name, checkpoint=path, checkpoint_every=1, resume=True)
        for batch in batches[:cut]:
            broken.partial_fit(batch)
    again = model(name, checkpoint=path, checkpoint_every=2, resume=True).partial_fit(batches[0])
    assert again.n_samples_seen_ == 300
    for batch in batches[1:]:
        again.partial_fit(batch)
    assert_same_stream(again, whole)


@pytest.mark.parametrize("name", ["incremental", "online"])
def test_a_source_that_cannot_be_played_again(name, tmp_path):
    path = tmp_path / "stream.checkpoint"
    broken = model(name, checkpoint=path, checkpoint_every=1)
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
    model(name, checkpoint=path, checkpoint_every=1).partial_fit(X[:100]).partial_fit(X[100:200])
    for first, second in ((100, 201), (99, 200)):
        other = model(name, checkpoint=path, resume=True).partial_fit(X[:first])
        with pytest.raises(InvalidInput, match="200 rows in 2 batches"):
            other.partial_fit(X[first:second])
    other = model(name, checkpoint=path, resume=True).partial_fit(X[:100])
    with pytest.raises(InvalidInput, match="differ from the"):
        other.partial_fit(X[100:200] * 1.5)
    # The right ones are still welcome.
    assert other.partial_fit(X[100:200]).partial_fit(X[200:]).n_samples_seen_ == len(X)


@pytest.mark.parametrize(
    ("name", "change", "rows", "message"),
    [
        ("incremental", {"gamma": 0.5}, X, "gamma was 'median' and is 0.5"),
        ("incremental", {"n_components": 3, "forgetting": 0.5}, X,
         "forgetting was 1.0 and is 0.5; n_components was 4 and is 3"),
        ("incremental", {}, X[::-1], "training data differ"),
        ("online", {"max_basis_rows": 80}, X, "max_basis_rows was 64 and is 80"),
        ("online", {}, X[1:], "training data differ"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_another_fit_is_refused(name, change, rows, message, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model(name, checkpoint=path).fit(X)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=message):
        model(name, checkpoint=path, resume=True, **change).fit(rows)
    with pytest.raises(InvalidInput, match="written by fit and is read by partial_fit"):
        model(name, checkpoint=path, resume=True).partial_fit(X[:10])
    with pytest.raises(InvalidInput, match="written by fit and is read by partial_fit"):
        model(name, checkpoint=path).load_checkpoint()
    assert path.read_bytes() == before


def test_one_kind_of_stream_is_not_the_other(tmp_path):
    path = tmp_path / "stream.checkpoint"
    model("online", checkpoint=path).partial_fit(X)
    with pytest.raises(InvalidInput, match="estimator was OnlineKernelPCA and is Incremental"):
        model("incremental", checkpoint=path).load_checkpoint()
    ikpca.KernelPCA(2, eigen_solver="kha/et", max_iter=1, checkpoint=path).fit(X)
    with pytest.raises(InvalidInput, match="estimator was KernelPCA"):
        model("incremental", checkpoint=path, resume=True).fit(X)


def test_nothing_to_load(tmp_path):
    with pytest.raises(InvalidInput, match="checkpoint=None"):
        model("online").load_checkpoint()
    with pytest.raises(InvalidInput, match="does not exist"):
        model("online", checkpoint=tmp_path / "nothing").load_checkpoint()
    with pytest.raises(InvalidInput, match="resume=True"):
        model("online", resume=True).fit(X)


@pytest.mark.parametrize("name", ["incremental", "online"])
def test_the_generation_before_is_taken_where_the_newest_is_damaged(name, tmp_path):
    path = tmp_path / "stream.checkpoint"
    stream = model(name, checkpoint=path, checkpoint_every=1)
    stream.partial_fit(X[:100]).partial_fit(X[100:200])
    path.write_bytes(path.read_bytes()[:-3])
    again = model(name, checkpoint=path, checkpoint_every=1).load_checkpoint()
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
    stream = model("incremental", checkpoint=path, checkpoint_every=1).partial_fit(X[:100])

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
    stream = model("incremental", checkpoint=path, checkpoint_every=3)
    seen = []
    for part in np.split(X[:400], 8):
        stream.partial_fit(part)
        found = path.exists() and model("incremental", checkpoint=path).load_checkpoint()
        seen.append(found.n_samples_seen_ if found else 0)
    assert seen == [0, 0, 150, 150, 150, 300, 300, 300]
    stream.set_params(checkpoint_every="1h").partial_fit(X[400:])
    assert model("incremental", checkpoint=path).load_checkpoint().n_samples_seen_ == 300


SLOW = """
    import sys, time
    import numpy as np
    from sklearn.datasets import load_digits
    from ikpca import IncrementalKernelPCA, OnlineKernelPCA
    from ikpca.estimators import online_stream
    from ikpca.kernels import Gaussian

    class Slow(Gaussian):
        def fill(self, X, Y, out):
            time.sleep(0.002)
            super().fill(X, Y, out)

    online_stream._PART = 64
    kind, path, resume = sys.argv[1:]
    rows = load_digits().data[:300] / 16
    stream = {
        "incremental": IncrementalKernelPCA(3, kernel=Slow(0.05), batch_size=10, max_basis_rows=40),
        "online": OnlineKernelPCA(3, kernel=Slow(0.05), max_basis_rows=80, max_iter=2),
    }[kind]
    stream.set_params(random_state=0, checkpoint_every=1, checkpoint=path, resume=bool(resume))
    try:
        stream.fit(rows)
    except KeyboardInterrupt:
        sys.exit(130)
    print(stream.transform(rows).tobytes().hex()[:2000])
"""


def slow_fit(kind, path, resume=""):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW), kind, str(path), resume],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
@pytest.mark.parametrize(
    ("kind", "numbers"),
    [("incremental", ["SIGTERM", "SIGKILL"]), ("online", ["SIGINT", "SIGKILL"])],
)
def test_killed_from_outside(kind, numbers, tmp_path):
    path = tmp_path / "killed"
    whole = slow_fit(kind, tmp_path / "whole")
    written = b""
    for number in numbers:
        killed = slow_fit(kind, path, "resume")
        while killed.poll() is None and not (
            previous_generation(path).exists() and path.read_bytes() != written
        ):
            threading.Event().wait(0.005)
        killed.send_signal(getattr(signal, number))
        assert killed.communicate(timeout=60)[0] == ""
        assert killed.returncode == (-signal.SIGKILL if number == "SIGKILL" else 130)
        written = path.read_bytes()
    told = slow_fit(kind, path, "resume").communicate(timeout=60)[0]
    assert told == whole.communicate(timeout=60)[0]
    assert len(told) > 1000


def test_a_fit_keeps_its_parts_as_one_batch():
    """Parts are for checkpoints alone: what comes out is what one batch gives."""
    rows = X[:300]
    parts = OnlineKernelPCA(3, kernel=Gaussian(0.05), random_state=0).fit(rows)
    batch = OnlineKernelPCA(3, kernel=Gaussian(0.05), random_state=0).partial_fit(rows)
    same(np.abs(parts._stream.state.coefficients), np.abs(batch._stream.state.coefficients))
    same(parts.novelty_, batch.novelty_)
    assert parts.drift_ == batch.drift_
