"""Rows whose squares underflow are rejected, and nothing overflows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ikpca import HebbianPCA, IncrementalKernelPCA, KernelPCA, OnlineKernelPCA
from ikpca.errors import DivergenceWarning, InvalidInput, RankWarning

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(12, 3))
#: Below the first of them squares have no digits left.
LIMITS = {"float32": 3.2e-16, "float64": 1.01e-146}


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize(
    "model",
    [KernelPCA(2), HebbianPCA(2), IncrementalKernelPCA(2), OnlineKernelPCA(2)],
    ids=lambda model: type(model).__name__,
)
def test_rows_below_the_limit_are_rejected(model, dtype):
    rows = (ROWS / np.abs(ROWS).max()).astype(dtype)
    with pytest.raises(InvalidInput, match=rf"{dtype}; scale X"):
        model.fit((rows * 0.9 * LIMITS[dtype]).astype(dtype))
    found = model.fit((rows * 1.1 * LIMITS[dtype]).astype(dtype))
    assert np.isfinite(found.transform(rows)).all()
    # All zeros have nothing to lose.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        model.fit(np.zeros_like(rows))


@pytest.mark.parametrize("kind", [HebbianPCA, IncrementalKernelPCA, OnlineKernelPCA])
def test_later_batches_may_have_small_rows(kind):
    model = kind(2, random_state=0).partial_fit(ROWS).partial_fit(ROWS * 1e-200)
    assert model.n_samples_seen_ == 2 * len(ROWS)


#: Class, type, power of ten, shape, kernel, γ, the way back, coef0.
CASES = [
    (KernelPCA, "float32", -12, (20, 6), "laplacian", "median", "gradient", 1),
    (OnlineKernelPCA, "float32", -10, (12, 3), "laplacian", "median", "gradient", 1),
    (KernelPCA, "float64", -50, (12, 3), "rbf", "median", "ridge", 1),
    (KernelPCA, "float64", -50, (20, 6), "rbf", "scale", "ridge", 1),
    (KernelPCA, "float32", -14, (20, 6), "poly", "scale", "ridge", 1),
    (IncrementalKernelPCA, "float32", -15, (12, 3), "poly", 30.0, "mds", 0),
    (IncrementalKernelPCA, "float32", -8, (3, 1), "poly", None, "auto", -1),
]


@pytest.mark.parametrize(
    ("kind", "dtype", "power", "shape", "kernel", "gamma", "preimage", "coef0"), CASES
)
def test_inverse_transform_does_not_overflow(
    kind, dtype, power, shape, kernel, gamma, preimage, coef0
):
    """Results are finite, or an error names the rows."""
    rng = np.random.default_rng(0)
    for _ in range(15):
        rows = (rng.normal(size=shape) * 10.0**power).astype(dtype)
        model = kind(2, kernel=kernel, gamma=gamma, preimage=preimage, coef0=coef0, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for harmless in (RankWarning, DivergenceWarning):
                warnings.simplefilter("ignore", harmless)
            try:
                back = model.fit(rows).inverse_transform(model.transform(rows))
            except InvalidInput:
                continue
        assert np.isfinite(back).all()


def test_a_tolerance_does_not_lead_to_a_gamma_too_large_for_single_precision():
    rows = np.random.default_rng(0).normal(size=(300, 3))
    settings = {"kernel": "rbf", "gamma": "scale", "eigen_solver": "krylov", "tol": 1e-3}
    model = KernelPCA(2, random_state=0, **settings)
    usual, small = (model.fit(rows * factor).eigenvalues_ for factor in (1, 1e-100))
    np.testing.assert_allclose(small, usual, rtol=1e-5)
