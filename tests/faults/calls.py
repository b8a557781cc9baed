"""Random calls give a valid result or a documented error."""

from __future__ import annotations

import linecache
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import ikpca
from ikpca import IncrementalKernelPCA, OnlineKernelPCA, compress
from ikpca.errors import InvalidInput
from tests.faults import strategies

_OURS = str(Path(ikpca.__file__).parent)
#: scikit-learn's checks of arrays, which its users know.
_CHECKS = ("sklearn/utils", "sklearn/base")
#: What may hold NaN: novelty of a first batch is not known, and records keep what was not asked.
_UNKNOWN = ("novelty_", "history_", "gamma_search_")


def outcome(use, given):
    """Return "valid" or "refused"; fail for other errors and modified arguments."""
    before = [_bytes(value) for value in given]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # From the sum by which scikit-learn looks for infinities.
            warnings.filterwarnings("ignore", "invalid value encountered in reduce")
            # Divergence, rank, convergence: said to users, and no fault.
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("ignore", FutureWarning)
            use()
        ended = "valid"
    except (ValueError, TypeError, NotFittedError) as error:
        _check_door(error)
        ended = "refused"
    assert before == [_bytes(value) for value in given], "an argument was changed"
    return ended


def _check_door(error):
    """An error must be raised by a check, not by arithmetic that went wrong."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    # What NumPy raises from compiled code seems to come from the line that called it.
    raised = linecache.getline(last.filename, last.lineno).strip().startswith("raise ")
    ours = last.filename.startswith(_OURS) and isinstance(error, InvalidInput | NotFittedError)
    checks_input = any(part in last.filename for part in _CHECKS)
    if not (raised and (ours or checks_input)):
        where = f"{last.filename}:{last.lineno}"
        raise AssertionError(f"{type(error).__name__} from {where}: {error}") from error


def _bytes(value):
    if sparse.issparse(value):
        return [value.data.tobytes(), value.indices.tobytes(), value.indptr.tobytes()]
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


def finite(what, *values):
    """Check that all numbers are finite."""
    for value in values:
        array = np.asarray(value)
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), f"NaN or infinity from {what}"


def _finite_attributes(model):
    for name, value in vars(model).items():
        if name.endswith("_") and name not in _UNKNOWN and isinstance(value, np.ndarray | float):
            finite(name, value)


def _transform(model, X, new):
    finite("transform", model.transform(new))


def _inverse(model, X, new):
    finite("inverse_transform", model.inverse_transform(model.transform(new)))


def _distances(model, X, new):
    Y = model.transform(new)
    finite("return_distance", *model.inverse_transform(Y, return_distance=True))


def _far_inverse(model, X, new):
    Y = 1e3 * (1 + model.transform(new))
    finite("inverse_transform of what nobody saw", model.inverse_transform(Y))


def _scores(model, X, new):
    finite("score", model.score(new))


def _errors(model, X, new):
    finite("reconstruction_error", model.reconstruction_error(new))
    finite("explained_variance_score", model.explained_variance_score(new))


def _stream(model, X, new):
    model.partial_fit(new)
    _finite_attributes(model)
    finite("transform after partial_fit", model.transform(X))


def _refit(model, X, new):
    model.fit(new)
    _finite_attributes(model)
    finite("transform after a second fit", model.transform(new))


def _refine(model, X, new):
    model.refine(X)
    _finite_attributes(model)
    finite("transform after refine", model.transform(X))


def _compress(model, X, new):
    small = compress(model, 4 if len(np.shape(new)) and np.shape(new)[0] % 2 else "auto")
    _finite_attributes(small)
    finite("transform of a compressed model", small.transform(new))


def _hand_over(model, X, new):
    for kind in (IncrementalKernelPCA, OnlineKernelPCA):
        going_on = kind.from_batch(model).partial_fit(new)
        finite("transform of a model handed over", going_on.transform(new))


def _save(model, X, new):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        loaded = ikpca.load(path)
    assert (loaded.transform(new) == model.transform(new)).all()


#: By what a model must have for it.
ACTIONS = {
    _transform: "transform",
    _inverse: "inverse_transform",
    _distances: "reconstruct",
    _far_inverse: "inverse_transform",
    _scores: "score",
    _errors: "reconstruction_error",
    _stream: "partial_fit",
    _refit: "fit",
    _refine: "refine",
    _compress: "reconstruct",
    _hand_over: "to_sklearn",
    _save: "save",
}
actions = st.lists(st.sampled_from(list(ACTIONS)), min_size=1, max_size=3)


@st.composite
def estimator_calls(draw):
    """Fit a model, and use it in up to three ways."""
    model, (X, new) = draw(strategies.estimators), draw(strategies.tables())
    chosen, stream = draw(actions), draw(st.booleans()) and hasattr(model, "partial_fit")

    def use():
        if stream:
            model.partial_fit(X)
        else:
            model.fit(X)
        _finite_attributes(model)
        for action in chosen:
            if hasattr(model, ACTIONS[action]):
                action(model, X, new)

    return (model, X, new, [action.__name__ for action in chosen]), use, (X, new)


@st.composite
def precomputed_calls(draw):
    """Draw a valid or invalid kernel matrix."""
    X, new = draw(strategies.rows()), draw(strategies.rows())
    sound = {} if draw(st.booleans()) else {"fit_inverse_transform": False, "preimage": "auto"}
    model = draw(strategies.kernel_pcas()).set_params(kernel="precomputed", **sound)
    with np.errstate(all="ignore"):
        K, values = X @ X.T, new[:, :1] @ X[:, :1].T
    if draw(st.integers(0, 7)) == 7:
        K = K[:, ::-1]

    def use():
        finite("fit_transform", model.fit_transform(K))
        _finite_attributes(model)
        for action in (_transform, _save, _refine, _inverse):
            action(model, K, values)

    return (model, K, values), use, (K, values)


@st.composite
def clustering_calls(draw):
    """Labels of rows."""
    model, (X, _) = draw(strategies.clusterings()), draw(strategies.tables())

    def use():
        labels = model.fit_predict(X)
        assert set(np.unique(labels)) <= set(range(model.n_clusters))
        _finite_attributes(model)

    return (model, X), use, (X,)


random_calls = st.one_of(
    *[estimator_calls()] * 6,
    precomputed_calls(),
    clustering_calls(),
)
