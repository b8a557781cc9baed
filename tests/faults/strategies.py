"""Strategies of hypothesis: rows, kernels, parameters, models."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from ikpca import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    OnlineKernelPCA,
    vectorized,
)
from ikpca.solvers import KHA, Dense, InverseTime, Krylov, ReciprocalEigenvalues

seeds = st.integers(0, 2**32 - 1)
numbers = st.sampled_from([0, 1, 2, 3, 7, -1, 0.5, 1e-300, 1e300, np.nan, np.inf, None, "auto",
                           "no such name", True, (1, 2), {}, np.float32(2), 10**30])  # fmt: skip
positive = st.sampled_from([1e-6, 1e-3, 0.05, 1.0, 30.0])
gammas = st.sampled_from([None, 1e-3, 0.05, 0.05, 1.0, 1.0, 30.0, "scale", "scale", "median"])
named_kernels = st.sampled_from(["linear", "poly", "rbf", "sigmoid", "cosine", "laplacian"])
gains = st.one_of(
    st.just("auto"),
    positive,
    st.sampled_from([0.1 * InverseTime(), 0.5 * InverseTime(30) * ReciprocalEigenvalues()]),
)
methods = ("kha", "kha/t", "kha/et", "kha-smd")
solver_names = ("auto", "dense", "krylov", "arpack", "randomized", *methods)


@st.composite
def khas(draw, methods=methods, inits=("auto",), **options):
    """Draw solver objects, some with an option without effect."""
    method = draw(st.sampled_from(methods))
    parameters = {
        "gain": draw(gains),
        "init": draw(st.sampled_from(inits)),
        "rayleigh_ritz": draw(st.booleans()),
        **{name: draw(values) for name, values in options.items()},
    }
    return KHA(method, **_spoiled(draw, parameters))


preimages = st.sampled_from(["auto"] * 6 + ["fixed-point", "gradient", "mds", "ridge", "neighbors"])


solvers = st.one_of(
    st.sampled_from(solver_names),
    st.sampled_from([Dense(), Krylov(), Krylov("pivoted")]),
    khas(inits=("auto", "random", "landmarks", "pivoted")),
)


def inner(x, y):
    """Kernel of one pair of rows."""
    return float(np.dot(x, y))


def broken(x, y):
    """Kernel that is NaN for some rows."""
    return np.nan if x[0] > 0 else 1.0


@vectorized
def cauchy(X, Y):
    """Kernel of two blocks of rows, dense or CSR."""
    X, Y = (part.toarray() if sparse.issparse(part) else part for part in (X, Y))
    return 1 / (1 + np.abs(X[:, :1] - Y[:, :1].T))


callables = st.sampled_from([inner, cauchy, inner, cauchy, broken])
kernels = st.one_of(*[named_kernels] * 5, callables)

#: Rows, and pixels per side: mostly enough to work with.
SIZES, SIDES = (30, 24, 18, 14, 11, 8, 5, 2, 1), (24, 20, 18, 16, 13, 12, 5, 1)
KINDS = (
    *["sound"] * 12,
    *("constant", "duplicate", "huge", "tiny", "hole", "infinite", "shifted", "zero", "outlier"),
)


@st.composite
def rows(draw):
    """Draw rows: regular, constant, duplicate, huge, tiny, with NaN."""
    rng = np.random.default_rng(draw(seeds))
    X = rng.normal(size=(draw(st.sampled_from(SIZES)), draw(st.sampled_from([6, 4, 3, 2, 1]))))
    X = _made(X, draw(st.sampled_from(KINDS)), rng)
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32, np.int64]))
    with np.errstate(all="ignore"):
        X = X.astype(dtype)
    return np.asfortranarray(X) if draw(st.booleans()) else X


def _made(X, kind, rng):
    if kind in ("constant", "zero"):
        X[:] = 3.0 if kind == "constant" else 0.0
    elif kind == "duplicate":
        X[1:] = X[0] if rng.random() < 0.3 else X[rng.integers(len(X), size=len(X) - 1)]
    elif kind in ("huge", "tiny"):
        X *= 10.0 ** (rng.integers(5, 305) if kind == "huge" else -rng.integers(5, 305))
    elif kind in ("hole", "infinite"):
        X.flat[rng.integers(X.size)] = np.nan if kind == "hole" else -np.inf
    elif kind == "shifted":
        X += 1e6
    elif kind == "outlier":
        X[-1] *= 10.0 ** rng.integers(1, 12)
    return X


@st.composite
def tables(draw):
    """Draw training rows and new rows, mostly of equal width and type."""
    X, new = draw(rows()), draw(rows())
    if draw(st.integers(0, 9)) < 9:
        new = new[:, np.arange(X.shape[1]) % new.shape[1]]
    form = draw(st.sampled_from(["dense"] * 9 + ["csr", "csr matrix", "csc", "lists"]))
    return as_form(X, form), as_form(new, form)


def as_form(X, form):
    """Convert rows to another type."""
    if form == "dense":
        return X
    if form == "lists":
        return X.tolist()
    kind = {"csr": sparse.csr_array, "csr matrix": sparse.csr_matrix, "csc": sparse.csc_array}
    return kind[form](np.where(np.abs(X) < 0.5, 0, X).astype(X.dtype))


@st.composite
def kernel_pcas(draw):
    """Draw parameters, mostly valid."""
    parameters = {
        "n_components": draw(st.sampled_from([2, 1, 3, 3, 4, 5, 40, None, 0.5])),
        **_kernel(draw),
        "eigen_solver": draw(solvers),
        "max_iter": draw(st.sampled_from([None, 1, 3])),
        "tol": draw(st.sampled_from([0, 0, 1e-3, 0.1])),
        "fit_inverse_transform": draw(st.booleans()),
        "preimage": draw(preimages),
        "remove_zero_eig": draw(st.booleans()),
        "whiten": draw(st.booleans()),
        "warm_start": draw(st.sampled_from([False, False, False, True])),
        "max_memory": draw(st.sampled_from([None, None, "10MB"])),
        "n_jobs": draw(st.sampled_from([None, 1, 2])),
        "random_state": 0,
    }
    return KernelPCA(**_spoiled(draw, parameters))


@st.composite
def hebbian_pcas(draw):
    """Draw parameters of HebbianPCA."""
    parameters = {
        "n_components": draw(st.sampled_from([1, 2, 6, None])),
        "rule": draw(khas(("kha", "kha/t", "kha/et"))),
        "max_iter": draw(st.sampled_from([1, 3])),
        "random_state": 0,
    }
    return HebbianPCA(**_spoiled(draw, parameters))


@st.composite
def incremental_kernel_pcas(draw):
    """Draw incremental streams."""
    parameters = {
        "n_components": draw(st.sampled_from([1, 2, 3])),
        **_kernel(draw),
        "preimage": draw(preimages.filter(lambda name: name != "ridge")),
        "basis": draw(st.sampled_from(["auto", "means", "rows", "preimages"])),
        "max_basis_rows": draw(st.sampled_from(["auto", None, 5, 12])),
        "forgetting": draw(st.sampled_from([1.0, 0.9])),
        "whiten": draw(st.booleans()),
        "random_state": 0,
    }
    return IncrementalKernelPCA(**_spoiled(draw, parameters))


@st.composite
def online_kernel_pcas(draw):
    """Draw online streams."""
    parameters = {
        "n_components": draw(st.sampled_from([1, 2, 3])),
        **_kernel(draw),
        "rule": draw(khas(inits=("rows", "random"))),
        "forgetting": draw(st.sampled_from([1.0, 0.9])),
        "whiten": draw(st.booleans()),
        "random_state": 0,
    }
    return OnlineKernelPCA(**_spoiled(draw, parameters))


@st.composite
def clusterings(draw):
    """Draw clusterings."""
    parameters = {
        "n_clusters": draw(st.sampled_from([1, 2, 3, 8])),
        "n_components": draw(st.sampled_from([None, 1, 2, 4])),
        "normalize": draw(st.sampled_from(["njw", None])),
        **_kernel(draw),
        "eigen_solver": draw(solvers),
        "max_iter": draw(st.sampled_from([None, 2])),
        "n_init": draw(st.sampled_from([1, 2])),
        "random_state": 0,
    }
    return KernelSpectralClustering(**_spoiled(draw, parameters))


def _kernel(draw):
    return {
        "kernel": draw(kernels),
        "gamma": draw(gammas),
        "degree": draw(st.sampled_from([1, 2, 3, 2.5])),
        "coef0": draw(st.sampled_from([0, 1, -1, 1e6])),
    }


def _spoiled(draw, parameters):
    if draw(st.integers(0, 7)) == 7:
        parameters[draw(st.sampled_from(sorted(parameters)))] = draw(numbers)
    return parameters


estimators = st.one_of(
    kernel_pcas(), kernel_pcas(), hebbian_pcas(), incremental_kernel_pcas(), online_kernel_pcas()
)
