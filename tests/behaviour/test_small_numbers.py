"""Rows so small that their squares vanish: refused by name, and nothing overflows on the way."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ikpca import HebbianPCA, IncrementalKernelPCA, KernelPCA, OnlineKernelPCA
from ikpca.errors import DivergenceWarning, InvalidInput, RankWarning, RecoveryWarning

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
def test_refused_below_the_limit_and_taken_above(model, dtype):
    rows = (ROWS / np.abs(ROWS).max()).astype(dtype)
    with pytest.raises(InvalidInput, match=rf"no number larger than .* in {dtype}; scale X"):
        model.fit((rows * 0.9 * LIMITS[dtype]).astype(dtype))
    found = model.fit((rows * 1.1 * LIMITS[dtype]).astype(dtype))
    assert np.isfinite(found.transform(rows)).all()
    # All zeros have nothing to lose.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        model.fit(np.zeros_like(rows))


@pytest.mark.parametrize("kind", [HebbianPCA, IncrementalKernelPCA, OnlineKernelPCA])
def test_a_later_batch_may_be_as_small_as_it_likes(kind):
    model = kind(2, random_state=0).partial_fit(ROWS).partial_fit(ROWS * 1e-200)
    assert model.n_samples_seen_ == 2 * len(ROWS)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_overflows_on_the_way_back(seed):
    """Squares, quotients and doublings of pre-images, in single and in double."""
    rng = np.random.default_rng(seed)
    dtype = rng.choice(["float32", "float64"])
    scale = rng.choice([-15, -14, -12, -8] if dtype == "float32" else [-145, -120, -50])
    rows = (rng.normal(size=(12, 3)) * 10.0**scale).astype(dtype)
    kind = rng.choice([KernelPCA, IncrementalKernelPCA, OnlineKernelPCA])
    model = kind(
        2,
        kernel=rng.choice(["linear", "poly", "rbf", "cosine", "laplacian"]),
        gamma=rng.choice(np.array([None, 1e-6, 30.0, "scale"], dtype=object)),
        preimage=rng.choice(["auto", "gradient", "mds", "neighbours", "ridge"]),
        coef0=int(rng.integers(2)),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for harmless in (RankWarning, RecoveryWarning, DivergenceWarning):
            warnings.simplefilter("ignore", harmless)
        try:
            back = model.fit(rows).inverse_transform(model.transform(rows))
        except ValueError:
            # No number for it, or no way back with this kernel: told, and that is all it takes.
            return
    assert np.isfinite(back).all()
