"""The river adapter: dictionaries in, dictionaries out, also in river's own pipelines."""

from __future__ import annotations

import builtins
import importlib

import numpy as np
import pandas as pd
import pytest

from ikpca import IncrementalKernelPCA, OnlineKernelPCA
from ikpca.applications import river as adapter
from ikpca.errors import InvalidInput

try:
    import river
except ImportError:
    river = None

needs_river = pytest.mark.skipif(river is None, reason="river is not installed")
NAMES = ["a", "b", "c"]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 0.5, 0.2]


def online(**parameters):
    return OnlineKernelPCA(2, **{"kernel": "rbf", "gamma": 0.5, "random_state": 0} | parameters)


def records(X, names=NAMES):
    return [dict(zip(names, row, strict=True)) for row in X]


def values(projection):
    return np.array(list(projection.values()))


def test_without_river_one_sentence_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **settings):
        if name.split(".")[0] == "river":
            raise ImportError(name)
        return real(name, *arguments, **settings)

    monkeypatch.setattr(builtins, "__import__", without)
    bare = importlib.reload(adapter)
    with pytest.raises(ImportError, match=r"pip install 'ikpca\[river\]'"):
        bare.RiverKernelPCA()
    monkeypatch.undo()
    importlib.reload(adapter)


@needs_river
@pytest.mark.parametrize(
    "model", [online(), IncrementalKernelPCA(2)], ids=["online", "incremental"]
)
def test_one_by_one_is_the_stream(X, model):
    pca = adapter.RiverKernelPCA(model)
    for x in records(X):
        pca.learn_one(x)
    stream = type(model)(**model.get_params())
    for row in X:
        stream.partial_fit(row[None])
    found = np.array([values(pca.transform_one(x)) for x in records(X[:5])])
    assert np.abs(found - stream.transform(X[:5])).max() < 1e-12
    assert pca.novelty == stream.novelty_[-1]


@needs_river
def test_frames_are_the_same_rows(X):
    one, many = (adapter.RiverKernelPCA(online()) for _ in range(2))
    for x in records(X):
        one.learn_one(x)
    frame = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(len(X))])
    many.learn_many(frame[:50])
    many.learn_many(frame[50:])
    found = many.transform_many(frame)
    assert list(found.index) == list(frame.index)
    expected = np.array([values(one.transform_one(x)) for x in records(X)])
    assert np.abs(found.to_numpy() - expected).max() < 1e-10


@needs_river
def test_the_order_of_keys_does_not_matter_and_missing_is_zero(X):
    pca = adapter.RiverKernelPCA(online())
    for x in records(X):
        pca.learn_one(dict(reversed(x.items())))
    x = {"a": 1.0, "b": 0.0, "c": 0.5}
    assert pca.transform_one(x) == pca.transform_one({"c": 0.5, "a": 1.0})
    assert pca.transform_one(x) == pca.transform_one({"c": 0.5, "b": None, "a": 1.0, "new": 3.0})


@needs_river
def test_a_new_feature_was_zero_before(X):
    """Learning from two features, then from three, is learning from three with zeros."""
    late, whole = (adapter.RiverKernelPCA(online()) for _ in range(2))
    for x in records(X[:, :2], NAMES[:2]):
        late.learn_one(x)
        whole.learn_one({**x, "c": 0.0})
    for x in records(X):
        late.learn_one(x)
        whole.learn_one(x)
    x = {"a": 0.3, "b": -0.2, "c": 0.1}
    # The sign with which a component starts is arbitrary.
    one, other = (np.abs(values(pca.transform_one(x))) for pca in (late, whole))
    assert np.abs(one - other).max() < 1e-10
    assert late.features == NAMES


@needs_river
def test_a_bad_row_leaves_everything_as_it_was(X):
    pca = adapter.RiverKernelPCA(online())
    for x in records(X):
        pca.learn_one(x)
    before = pca.transform_one({"a": 1.0})
    with pytest.raises(InvalidInput, match="NaN"):
        pca.learn_one({"a": np.nan, "d": 1.0})
    with pytest.raises(InvalidInput, match="feature 'd'"):
        pca.learn_one({"a": 1.0, "d": "red"})
    assert pca.transform_one({"a": 1.0}) == before
    assert pca.features == NAMES


@needs_river
def test_an_incremental_model_says_that_it_cannot_widen(X):
    pca = adapter.RiverKernelPCA(IncrementalKernelPCA(2))
    pca.learn_many(pd.DataFrame(X, columns=NAMES))
    with pytest.raises(InvalidInput, match="'d' is new"):
        pca.learn_one({"a": 1.0, "d": 1.0})


@needs_river
def test_before_the_first_row_components_are_zero():
    pca = adapter.RiverKernelPCA(online())
    assert pca.transform_one({"a": 1.0}) == {0: 0.0, 1: 0.0}
    assert (pca.novelty, pca.drift_detected) == (0.0, False)


@needs_river
def test_in_a_pipeline_with_a_model_behind_it(X):
    from river import compose, linear_model, optim

    pipeline = compose.Pipeline(
        compose.Select(*NAMES),
        adapter.RiverKernelPCA(online()),
        linear_model.LinearRegression(optim.SGD(0.3)),
    )
    target = np.sin(X[:, 0])
    errors = []
    for _ in range(5):
        for x, y in zip(records(X), target, strict=True):
            errors.append(abs(pipeline.predict_one(x) - y))
            pipeline.learn_one(x, y)
    assert np.mean(errors[-80:]) < 0.3 * np.mean(np.abs(target))
    copy = pipeline.clone()
    assert copy.predict_one(records(X)[0]) == 0


@needs_river
def test_interrupted_rows_are_not_learned(X, monkeypatch):
    known, *others = records(X)
    started = adapter.RiverKernelPCA(online())
    started.learn_many(pd.DataFrame(others))
    learn = OnlineKernelPCA.partial_fit

    def interrupted(self, X):
        learn(self, X)
        raise KeyboardInterrupt

    monkeypatch.setattr(OnlineKernelPCA, "partial_fit", interrupted)
    for pca in (started, adapter.RiverKernelPCA(online())):
        before, names = pca.transform_one(known), list(pca.features)
        for row in (known, known | {"new": 1.0}):
            with pytest.raises(KeyboardInterrupt):
                pca.learn_one(row)
            assert pca.features == names
            assert pca.transform_one(known) == before
