"""NoveltyDetector: identities of scores, thresholds and p-values, streams, bad input."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, TimeSeriesSplit

import ikpca
from ikpca import KernelPCA, NoveltyDetector
from ikpca.errors import InvalidInput
from ikpca.solvers import Krylov, Nystrom, Outcome

PARAMETERS = {"kernel": "rbf", "gamma": "scale"}


def ring(rng, n_rows, radius=1.0):
    angles = rng.uniform(0, 2 * np.pi, n_rows)
    circle = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    return circle + rng.normal(0, 0.05, circle.shape)


@pytest.fixture(scope="module")
def rows():
    return ring(np.random.default_rng(0), 300)


@pytest.fixture(scope="module")
def detector(rows):
    return NoveltyDetector(random_state=0).fit(rows)


def blocked_fits(X, n_components, gamma, **parameters):
    """Fits without contiguous folds, with the errors of the folds."""
    errors, models = np.empty(len(X)), []
    for train, test in KFold(4).split(X):
        model = KernelPCA(n_components, kernel="rbf", gamma=gamma, **parameters).fit(X[train])
        errors[test] = model.reconstruction_error(X[test])
        models.append(model)
    return errors, models


@pytest.mark.parametrize("n_components", [0.99, 0.5, 7])
def test_errors_are_those_of_explicit_fits(rows, n_components):
    detector = NoveltyDetector(n_components, calibration="blocked-cv", cv=4).fit(rows)
    errors, models = blocked_fits(rows, n_components, detector.model_.gamma_)
    np.testing.assert_allclose(detector.calibration_errors_, errors, atol=1e-9)
    new = np.random.default_rng(1).normal(size=(50, 2))
    expected = np.mean([model.reconstruction_error(new) for model in models], axis=0)
    np.testing.assert_allclose(-detector.score_samples(new), expected, atol=1e-9)


def test_iterative_solvers_find_the_same_errors(rows):
    settings = {"n_components": 6, "calibration": "blocked-cv", "tol": 0, "random_state": 0}
    dense = NoveltyDetector(eigen_solver="dense", **settings).fit(rows)
    krylov = NoveltyDetector(eigen_solver="krylov", **settings).fit(rows)
    np.testing.assert_allclose(dense.calibration_errors_, krylov.calibration_errors_, atol=1e-8)
    np.testing.assert_allclose(dense.score_samples(rows), krylov.score_samples(rows), atol=1e-8)


@pytest.mark.parametrize("calibration", ["cv", "blocked-cv"])
def test_all_rows_as_landmarks_give_the_dense_errors(rows, calibration):
    settings = {"calibration": calibration, "random_state": 0}
    dense = NoveltyDetector(eigen_solver="dense", **settings).fit(rows)
    landmarks = NoveltyDetector(eigen_solver=Nystrom(len(rows)), **settings).fit(rows)
    new = np.random.default_rng(1).normal(size=(50, 2))
    np.testing.assert_allclose(landmarks.calibration_errors_, dense.calibration_errors_, atol=1e-10)
    np.testing.assert_allclose(landmarks.score_samples(new), dense.score_samples(new), atol=1e-10)
    refit = clone(landmarks.model_).fit(rows)
    np.testing.assert_allclose(
        landmarks.model_.reconstruction_error(new), refit.reconstruction_error(new), atol=1e-10
    )


def test_many_rows_use_landmarks(tmp_path):
    """Landmarks span the images of a linear kernel: the errors are those of PCA."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4500, 6)) * np.arange(1, 7)
    new = rng.normal(size=(100, 6))
    settings = {"n_components": 0.8, "kernel": "linear", "random_state": 0}
    detector = NoveltyDetector(calibration="blocked-cv", **settings).fit(X)
    errors, expected = np.empty(len(X)), np.zeros(len(new))

    def squared_errors(model, rows):
        return np.square(rows - model.inverse_transform(model.transform(rows))).sum(axis=1)

    for train, test in KFold(5).split(X):
        pca = PCA(0.8).fit(X[train])
        errors[test] = squared_errors(pca, X[test])
        expected += squared_errors(pca, new) / 5
    np.testing.assert_allclose(detector.calibration_errors_, errors, atol=1e-9)
    np.testing.assert_allclose(-detector.score_samples(new), expected, atol=1e-9)
    assert len(detector.model_.landmarks_) == 6
    np.testing.assert_allclose(detector.explain(new).sum(axis=1), expected, atol=1e-9)
    detector.save(tmp_path / "detector.ikpca")
    loaded = ikpca.load(tmp_path / "detector.ikpca")
    np.testing.assert_array_equal(loaded.score_samples(new), detector.score_samples(new))
    loaded.partial_fit(new)
    np.save(tmp_path / "rows.npy", X)
    detector = NoveltyDetector(**settings).fit(X)
    for other in (ikpca.open_rows(tmp_path / "rows.npy"), sparse.csr_array(X)):
        again = NoveltyDetector(**settings).fit(other)
        np.testing.assert_allclose(again.calibration_errors_, detector.calibration_errors_)


@pytest.mark.parametrize("calibration", ["cv", "blocked-cv"])
def test_landmarks_do_not_change_false_alarms(calibration):
    """The fold of a row has no landmarks in the model that scores it."""
    rates, settings = [], {"eigen_solver": Nystrom(150), "calibration": calibration}
    for seed in range(12):
        X = np.random.default_rng(seed).normal(size=(2600, 8)).astype(np.float32)
        fitted = NoveltyDetector(random_state=seed, **settings).fit(X[:600])
        assert len(fitted.calibration_errors_) == 600
        rates.append(np.mean(fitted.predict(X[600:]) == -1))
    assert 0.043 < np.mean(rates) < 0.057


def test_model_of_all_rows_is_a_kernel_pca(rows, detector):
    model = KernelPCA(0.99, **PARAMETERS).fit(rows)
    np.testing.assert_allclose(
        detector.model_.reconstruction_error(rows), model.reconstruction_error(rows), atol=1e-10
    )


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.05, 1 / 301])
def test_flags_threshold_and_p_values_agree(rows, rate):
    detector = NoveltyDetector(false_alarm_rate=rate, random_state=0).fit(rows)
    new = np.random.default_rng(2).normal(size=(400, 2))
    flags = detector.predict(new)
    p = detector.p_values(new)
    np.testing.assert_array_equal(flags == -1, p <= rate)
    np.testing.assert_array_equal(flags == -1, detector.decision_function(new) < 0)
    # The limit is itself an error: exactly ⌊301·rate⌋ − 1 errors exceed it.
    n_above = np.sum(detector.calibration_errors_ > -detector.offset_)
    assert n_above == int(301 * rate + 1e-9) - 1


def test_p_values_count_errors(detector):
    new = np.array([[1.0, 0.0], [0.0, 0.0], [5.0, 5.0]])
    errors = -detector.score_samples(new)
    expected = [(1 + np.sum(detector.calibration_errors_ >= error)) / 301 for error in errors]
    np.testing.assert_array_equal(detector.p_values(new), expected)
    assert detector.p_values(new)[2] == 1 / 301


def test_p_values_of_normal_rows_are_uniform():
    values = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        fitted = NoveltyDetector(random_state=0).fit(rng.normal(size=(150, 3)))
        values.append(fitted.p_values(rng.normal(size=(150, 3))))
    ordered = np.sort(np.concatenate(values))
    ranks = np.arange(1, len(ordered) + 1) / len(ordered)
    assert np.abs(ordered - ranks).max() < 0.05


def test_training_errors_would_flag_more():
    X = np.random.default_rng(3).normal(size=(1000, 8))
    detector = NoveltyDetector(random_state=0).fit(X[:300])
    assert 0.02 < np.mean(detector.predict(X[300:]) == -1) < 0.1
    training, new = (detector.model_.reconstruction_error(part) for part in (X[:300], X[300:]))
    assert np.mean(new > np.quantile(training, 0.95)) > 0.3


@pytest.mark.parametrize("solver", ["dense", Nystrom(300)])
def test_fit_predict_finds_anomalies_among_the_training_rows(solver):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(950, 5)), rng.uniform(-6, 6, size=(50, 5))])
    detector = NoveltyDetector(eigen_solver=solver, random_state=0)
    flags = detector.fit_predict(X)
    assert np.sum(flags[950:] == -1) >= 45
    # As many as the false alarm rate allows, less the error that is the limit.
    assert np.sum(flags == -1) == 49
    np.testing.assert_array_equal(flags == -1, detector.calibration_errors_ > -detector.offset_)


def test_fit_predict_flags_nothing_without_a_limit(rows):
    with pytest.warns(UserWarning, match="no row can be flagged"):
        assert (NoveltyDetector(false_alarm_rate=1e-3).fit_predict(rows) == 1).all()


def test_contributions_sum_to_the_error_and_name_the_feature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:, 3] = X[:, 2] + rng.normal(0, 0.1, 300)
    detector = NoveltyDetector(0.9, random_state=0).fit(X)
    broken = X[:20].copy()
    broken[:, 1] += 6
    contributions = detector.explain(broken)
    np.testing.assert_allclose(contributions.sum(axis=1), -detector.score_samples(broken))
    assert (contributions >= 0).all()
    assert np.mean(contributions.argmax(axis=1) == 1) > 0.9


def test_save_and_load(tmp_path, rows, detector):
    detector.save(tmp_path / "detector.ikpca")
    loaded = ikpca.load(tmp_path / "detector.ikpca")
    new = np.random.default_rng(4).normal(size=(100, 2))
    np.testing.assert_array_equal(loaded.score_samples(new), detector.score_samples(new))
    np.testing.assert_array_equal(loaded.p_values(new), detector.p_values(new))
    assert loaded.offset_ == detector.offset_
    stream = pickle.loads(pickle.dumps(detector)).partial_fit(new[:60])
    stream.save(tmp_path / "stream.ikpca")
    again = ikpca.load(tmp_path / "stream.ikpca").partial_fit(new[60:])
    stream.partial_fit(new[60:])
    np.testing.assert_array_equal(again.score_samples(new), stream.score_samples(new))
    assert again.offset_ == stream.offset_


def test_sparse_rows_have_the_scores_of_dense_rows(rows):
    kept = np.where(rows > 0, rows, 0)
    dense = NoveltyDetector(random_state=0).fit(kept)
    csr = NoveltyDetector(random_state=0).fit(sparse.csr_array(kept))
    np.testing.assert_allclose(
        csr.score_samples(sparse.csr_array(kept)), dense.score_samples(kept), atol=1e-9
    )
    with pytest.raises(NotFittedError, match="sparse"):
        csr.explain(kept)
    with pytest.raises(InvalidInput, match="sparse"):
        csr.partial_fit(kept)


def test_new_value_of_a_constant_column_is_novel(rows):
    wider = np.column_stack([rows, np.full(len(rows), 3.0)])
    detector = NoveltyDetector(random_state=0).fit(wider)
    new = np.column_stack([ring(np.random.default_rng(5), 500), np.full(500, 3.0)])
    assert np.mean(detector.predict(new) == -1) < 0.12
    new[:, 2] = 13.0
    assert (detector.predict(new) == -1).all()


def test_first_batch_of_a_stream_is_fitted(rows, detector):
    stream = NoveltyDetector(random_state=0).partial_fit(rows)
    assert stream.offset_ == detector.offset_


def test_stream_follows_a_slow_drift():
    rng = np.random.default_rng(0)
    X = ring(rng, 2100)
    X[300:] += np.linspace(0, 0.5, 1800)[:, None]
    settings = {"false_alarm_rate": 0.02, "random_state": 0, "forgetting": 0.999}
    static = NoveltyDetector(**settings).fit(X[:300])
    stream = clone(static).fit(X[:300])
    flags = []
    for start in range(300, 2100, 50):
        flags.append(stream.predict(X[start : start + 50]) == -1)
        stream.partial_fit(X[start : start + 50])
    assert np.mean(static.predict(X[300:]) == -1) > 0.28
    assert np.mean(np.concatenate(flags)) < 0.05


def test_stream_detects_anomalies_while_the_variance_grows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2100, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(2100, 6))
    X[300:] *= np.linspace(1, 2.5, 1800)[:, None]
    novel = (rng.random(2100) < 0.05) & (np.arange(2100) >= 300)
    X[novel] += 5 * rng.choice([-1, 1], (novel.sum(), 6))
    stream = NoveltyDetector(false_alarm_rate=0.02, forgetting=0.999, random_state=0).fit(X[:300])
    flags = [np.zeros(300, dtype=bool)]
    for start in range(300, 2100, 50):
        batch = X[start : start + 50]
        flags.append(stream.predict(batch) == -1)
        np.testing.assert_array_equal(flags[-1], stream.p_values(batch) <= 0.02)
        stream.partial_fit(batch)
    flagged = np.concatenate(flags)
    # With errors close to their maximum, anomalies once counted as normal rows.
    assert flagged[novel].mean() > 0.95
    assert flagged[300:][~novel[300:]].mean() < 0.05


def test_stream_does_not_learn_anomalies(rows):
    rng = np.random.default_rng(1)
    stream = NoveltyDetector(random_state=0).fit(rows)
    for _ in range(10):
        batch = ring(rng, 50)
        batch[::10] = rng.normal(0, 0.02, (5, 2))
        stream.partial_fit(batch)
        assert not stream.drift_detected_
    assert stream.predict([[0.0, 0.0]]) == -1


@pytest.mark.parametrize("size", [7, 40])
def test_stream_learns_consecutive_alarms(rows, size):
    jump = ring(np.random.default_rng(1), 120, radius=2.0)
    stream = NoveltyDetector(random_state=0, drift_after=15).fit(rows)
    detected = []
    for start in range(0, 120, size):
        stream.partial_fit(jump[start : start + size])
        detected.append(stream.drift_detected_)
    # The fifteenth row is the first that can say so.
    assert detected.index(True) == 14 // size
    # The flagged rows were learned, and those of the old ring are still known.
    assert np.mean(stream.predict(ring(np.random.default_rng(2), 200, radius=2.0)) == 1) > 0.8
    assert np.mean(stream.predict(rows) == 1) > 0.8


def test_stream_calibrates_with_recent_errors(rows):
    stream = NoveltyDetector(random_state=0).fit(rows)
    before = stream.calibration_errors_
    batch = ring(np.random.default_rng(1), 60)
    stream.partial_fit(batch)
    assert len(stream.calibration_errors_) == 360
    np.testing.assert_array_equal(stream.calibration_errors_[:300], before)
    for _ in range(4):
        stream.partial_fit(batch)
    assert len(stream.calibration_errors_) == 500


INVALID_PARAMETERS = [
    ({"false_alarm_rate": 0.0}, "false_alarm_rate=0.0"),
    ({"false_alarm_rate": 0.6}, "false_alarm_rate=0.6"),
    ({"calibration": "loo"}, "calibration='loo'"),
    ({"cv": 1}, "cv=1"),
    ({"cv": 2.5}, "cv=2.5"),
    ({"kernel": "precomputed"}, "k\\(x, x\\)"),
    ({"kernel": "gauss"}, "kernel='gauss'"),
    ({"n_components": 1.5}, "n_components=1.5"),
    ({"forgetting": 0.0}, "forgetting=0.0"),
    ({"max_basis_rows": -1}, "max_basis_rows=-1"),
    ({"drift_after": 0}, "drift_after=0"),
    ({"eigen_solver": Nystrom(1)}, "n_landmarks=1: all landmarks lie in one fold"),
    ({"eigen_solver": "nystrom", "max_memory": 10_000}, "max_memory=10000"),
    ({"n_jobs": 0}, "n_jobs=0"),
    ({"random_state": "a"}, "random_state='a'"),
]


def test_invalid_parameters_are_rejected(rows, subtests):
    for parameters, message in INVALID_PARAMETERS:
        with subtests.test(repr(parameters)), pytest.raises(InvalidInput, match=message):
            NoveltyDetector(**parameters).fit(rows)


def test_invalid_rows_are_rejected(rows, detector):
    with pytest.raises(InvalidInput, match="cv=5 folds need at least 5 rows"):
        NoveltyDetector().fit(rows[:4])
    with pytest.raises(InvalidInput, match="cv=2 folds need at least 4 rows"):
        NoveltyDetector(cv=2).fit(rows[:3])
    with pytest.raises(InvalidInput, match="all rows are equal"):
        NoveltyDetector().fit(np.ones((20, 2)))
    with pytest.raises(ValueError, match="3 features"):
        detector.predict(np.ones((1, 3)))
    with pytest.raises(NotFittedError):
        NoveltyDetector().predict(rows)
    with pytest.warns(UserWarning, match="no row can be flagged"):
        few = NoveltyDetector(false_alarm_rate=0.01).fit(rows[:50])
    assert (few.predict([[100.0, 100.0]]) == 1).all()


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_rows_that_overflow_are_novel(rows, kernel):
    detector = NoveltyDetector(kernel=kernel, random_state=0).fit(rows)
    far = np.array([[1e200, -1e200], [1e200, 0.0]])
    assert (detector.predict(far) == -1).all()
    np.testing.assert_array_equal(detector.p_values(far), 1 / 301)
    with pytest.raises(InvalidInput, match="overflow"):
        detector.partial_fit(far)


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    detector = NoveltyDetector(random_state=0).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        detector.predict(frame.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="feature names"):
        detector.partial_fit(frame.assign(c=1.0))


@pytest.mark.parametrize("solver", ["dense", "krylov", Nystrom(300)])
def test_a_splitter_is_the_number_of_its_folds(rows, solver):
    settings = {"n_components": 6, "eigen_solver": solver, "tol": 0, "random_state": 0}
    blocked = NoveltyDetector(calibration="blocked-cv", cv=4, **settings).fit(rows)
    for cv in (KFold(4), PredefinedSplit(np.arange(300) // 75)):
        detector = NoveltyDetector(cv=cv, **settings).fit(rows)
        np.testing.assert_array_equal(detector.calibration_errors_, blocked.calibration_errors_)
        np.testing.assert_array_equal(detector.score_samples(rows), blocked.score_samples(rows))


def test_groups_that_a_splitter_leaves_out_are_new_to_the_models():
    """Repeated rows have no error if a copy is in the training rows."""
    X = np.repeat(np.random.default_rng(0).normal(size=(60, 5)), 5, axis=0)
    settings = {"n_components": 50, "random_state": 0}
    copies = NoveltyDetector(**settings).fit(X)
    groups = NoveltyDetector(cv=PredefinedSplit(np.arange(300) // 50), **settings).fit(X)
    assert np.median(groups.calibration_errors_) > 2 * np.median(copies.calibration_errors_)


def test_splitters_that_do_not_test_every_row_once_are_refused(rows, subtests):
    one_row = PredefinedSplit(np.r_[np.zeros(299, int), 1])
    for cv in (ShuffleSplit(4, random_state=0), TimeSeriesSplit(4), one_row):
        with (
            subtests.test(repr(cv)),
            pytest.raises(InvalidInput, match="each of the 300 rows once"),
        ):
            NoveltyDetector(cv=cv).fit(rows)


def test_a_splitter_beside_a_calibration_is_refused(rows):
    with pytest.raises(InvalidInput, match="calibration='blocked-cv': has no effect"):
        NoveltyDetector(calibration="blocked-cv", cv=KFold(4)).fit(rows)


def test_folds_and_model_have_the_same_solver():
    """A tolerance alone would make the automatic choice for all rows another one."""
    X = np.random.default_rng(0).normal(size=(2000, 2))
    detector = NoveltyDetector(2, gamma=0.1, tol=1e-2, random_state=0).fit(X)
    assert len(detector.model_.X_fit_) == len(detector.calibration_errors_) == 2000
    new = np.random.default_rng(1).normal(size=(1000, 2))
    assert 0.02 < np.mean(detector.predict(new) == -1) < 0.08


def test_an_interrupt_of_a_fold_ends_the_fit(rows, monkeypatch):
    """A solver returns the components of its last pass, which are not those of a fold."""
    solve, solutions = Krylov.solve, []

    def interrupted_in_the_first_fold(*arguments):
        solutions.append(solve(*arguments))
        outcome = Outcome.INTERRUPTED if len(solutions) == 2 else solutions[-1].outcome
        return replace(solutions[-1], outcome=outcome)

    monkeypatch.setattr(Krylov, "solve", interrupted_in_the_first_fold)
    detector = NoveltyDetector(6, eigen_solver="krylov", random_state=0)
    with pytest.raises(KeyboardInterrupt):
        detector.fit(rows)
    assert not hasattr(detector, "model_")
    assert len(solutions) == 2
