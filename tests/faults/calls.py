"""Random calls of estimators: a valid result, or an error of ours; nothing else."""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import ikpca
from ikpca import HebbianPCA, IncrementalKernelPCA, KernelPCA, OnlineKernelPCA
from ikpca.errors import DivergenceWarning, InvalidInput, RankWarning

#: Where an error may come from: our own doors, and scikit-learn's checks of arrays.
_DOORS = (str(Path(ikpca.__file__).parent), "sklearn/utils", "sklearn/base", "sklearn\\utils")

numbers = st.sampled_from([0, 1, 2, 3, 7, -1, 0.5, 1e-300, 1e300, np.nan, np.inf, None, "auto"])
positive = st.sampled_from([1e-6, 1e-3, 0.05, 1.0, 30.0])
kernels = st.sampled_from(["linear", "poly", "rbf", "sigmoid", "cosine", "laplacian"])
solvers = st.sampled_from(["auto", "dense", "krylov", "kha", "kha/t", "kha/et", "kha-smd"])


@st.composite
def rows(draw):
    """Few rows of many kinds: sound, constant, duplicate, huge, tiny, with holes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.integers(1, 30)), draw(st.integers(1, 6)))
    X = rng.normal(size=shape)
    kind = draw(st.sampled_from(
        ["sound"] * 6 + ["constant", "duplicate", "huge", "tiny", "hole", "infinite", "shifted"]
    ))  # fmt: skip
    if kind == "constant":
        X[:] = 3.0
    elif kind == "duplicate":
        X[1:] = X[0] if rng.random() < 0.3 else X[rng.integers(len(X), size=len(X) - 1)]
    elif kind in ("huge", "tiny"):
        X *= 10.0 ** (rng.integers(5, 305) if kind == "huge" else -rng.integers(5, 305))
    elif kind in ("hole", "infinite"):
        X.flat[rng.integers(X.size)] = np.nan if kind == "hole" else -np.inf
    elif kind == "shifted":
        X += 1e6
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32, np.int64]))
    with np.errstate(all="ignore"):
        X = X.astype(dtype)
    return np.asfortranarray(X) if draw(st.booleans()) else X


@st.composite
def kernel_pcas(draw):
    """Mostly sound parameters, now and then one that makes no sense."""
    parameters = {
        "n_components": draw(st.sampled_from([1, 2, 3, 5, 40, None, 0.5])),
        "kernel": draw(kernels),
        "gamma": draw(st.one_of(st.none(), positive, st.sampled_from(["scale", "median"]))),
        "degree": draw(st.sampled_from([1, 2, 3, 2.5])),
        "coef0": draw(st.sampled_from([0, 1, -1, 1e6])),
        "eigen_solver": draw(solvers),
        "gain": draw(st.one_of(st.just("auto"), positive)),
        "max_iter": draw(st.sampled_from([None, 1, 3])),
        "init": draw(st.sampled_from(["auto", "random", "sparse", "landmarks", "pivoted"])),
        "rayleigh_ritz": draw(st.booleans()),
        "fit_inverse_transform": draw(st.booleans()),
        "remove_zero_eig": draw(st.booleans()),
        "whiten": draw(st.booleans()),
        "random_state": 0,
    }
    return KernelPCA(**_spoiled(draw, parameters))


@st.composite
def hebbian_pcas(draw):
    """The same for explicit features."""
    parameters = {
        "n_components": draw(st.sampled_from([1, 2, 6, None])),
        "gain": draw(st.one_of(st.just("auto"), positive)),
        "rayleigh_ritz": draw(st.booleans()),
        "max_iter": draw(st.sampled_from([1, 3])),
        "whiten": draw(st.booleans()),
        "random_state": 0,
    }
    return HebbianPCA(**_spoiled(draw, parameters))


@st.composite
def incremental_kernel_pcas(draw):
    """Streams in batches."""
    parameters = {
        "n_components": draw(st.sampled_from([1, 2, 3, None])),
        "kernel": draw(kernels),
        "gamma": draw(st.one_of(st.none(), positive, st.sampled_from(["scale", "median"]))),
        "degree": draw(st.sampled_from([1, 2, 2.5])),
        "compression": draw(st.sampled_from(["auto", "samples", "preimages", None])),
        "library_size": draw(st.sampled_from(["auto", 5, 12])),
        "n_oversamples": draw(st.sampled_from(["auto", 0, 2])),
        "batch_size": draw(st.sampled_from([None, 1, 4])),
        "forgetting": draw(st.sampled_from([1.0, 0.9])),
        "whiten": draw(st.booleans()),
        "random_state": 0,
    }
    return IncrementalKernelPCA(**_spoiled(draw, parameters))


@st.composite
def online_kernel_pcas(draw):
    """Streams of rows."""
    parameters = {
        "n_components": draw(st.sampled_from([1, 2, 3])),
        "kernel": draw(kernels),
        "gamma": draw(st.one_of(st.none(), positive, st.sampled_from(["scale", "median"]))),
        "degree": draw(st.sampled_from([1, 2, 2.5])),
        "gain": draw(st.one_of(st.just("auto"), positive)),
        "forgetting": draw(st.sampled_from([1.0, 0.9])),
        "init": draw(st.sampled_from(["rows", "random", "covering"])),
        "budget": draw(st.sampled_from(["auto", None, 6])),
        "reduction": draw(st.sampled_from(["samples", "drop", "merge", "preimages"])),
        "random_state": 0,
    }
    return OnlineKernelPCA(**_spoiled(draw, parameters))


def _spoiled(draw, parameters):
    if draw(st.integers(0, 4)) == 0:
        parameters[draw(st.sampled_from(sorted(parameters)))] = draw(numbers)
    return parameters


estimators = st.one_of(
    kernel_pcas(), kernel_pcas(), hebbian_pcas(), incremental_kernel_pcas(), online_kernel_pcas()
)


def call(model, X, new, stream):
    """Fit, project, come back; every array that comes out is finite, none that goes in changes."""
    before = [array.tobytes() for array in (X, new)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # From the sum by which scikit-learn looks for infinities.
            warnings.filterwarnings("ignore", "invalid value encountered in reduce")
            for expected in (DivergenceWarning, RankWarning, UserWarning):
                warnings.simplefilter("ignore", expected)
            _use(model, X, new, stream and hasattr(model, "partial_fit"))
    except (InvalidInput, NotFittedError, ValueError, TypeError) as error:
        _check_door(error)
    assert before == [array.tobytes() for array in (X, new)]


def _use(model, X, new, stream):
    for part in (X, new) if stream else (X,):
        (model.partial_fit if stream else model.fit)(part)
    Y = model.transform(new)
    assert np.isfinite(Y).all(), "NaN from transform"
    back = model.inverse_transform(Y)
    assert np.isfinite(back).all(), "NaN from inverse_transform"


def _check_door(error):
    """An error must be raised by a check, not by arithmetic that went wrong."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    raised_here = any(door in last for door in _DOORS)
    clear = isinstance(error, InvalidInput | NotFittedError) or type(error) in (
        ValueError,
        TypeError,
    )
    if not (raised_here and clear):
        raise AssertionError(f"{type(error).__name__} from {last}: {error}") from error
