"""Problems in the middle of a fit raise a named error, or are corrected and reported."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.errors import InvalidInput, OutOfMemory
from ikpca.kernels import Gaussian
from ikpca.solvers import KHA
from ikpca.solvers.kha_pass import HebbianPasses

X = load_digits().data[:400] / 16
SOLVERS = ("dense", "krylov", "kha/et", "kha-smd")
#: Little enough that tiles are computed anew in every pass.
LITTLE = 6_000_000


class Failing(Gaussian):
    """A Gaussian kernel whose tiles do not fit into memory."""

    def finish(self, out):
        raise MemoryError


def model(solver="kha/et", **parameters):
    settings = {"kernel": Gaussian(0.05), "eigen_solver": solver, "random_state": 0, "max_iter": 6}
    return KernelPCA(4, **settings | parameters)


# --- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tile_without_memory_ends_the_fit_with_a_remedy(solver, n_jobs):
    with pytest.raises(OutOfMemory, match=r"Not enough memory.*max_memory"):
        model(solver, kernel=Failing(0.05), n_jobs=n_jobs).fit(X)


def test_an_array_that_is_too_large_has_a_remedy(monkeypatch):
    def fail(*arguments, **keywords):
        raise MemoryError("Unable to allocate 745. GiB")

    monkeypatch.setattr(KHA, "solve", fail)
    with pytest.raises(OutOfMemory, match=r"745\. GiB.*eigen_solver='krylov'"):
        model().fit(X)


# --- orthonormality ----------------------------------------------------------------------------


def test_hebbian_components_are_orthonormalized_again(monkeypatch):
    original, calls = HebbianPasses._ritz, iter(range(1000))

    def skewed(*given):
        values, T = original(*given)
        return values, T + 0.05 * np.roll(T, 1, axis=0) if next(calls) == 2 else T

    monkeypatch.setattr(HebbianPasses, "_ritz", skewed)
    fitted = model("kha/et").fit(X)
    assert next(calls) == 1 + fitted.n_iter_ + 1, "one step was repeated"
    assert all(record.orthonormality_defect < 1e-10 for record in fitted.history_)


# --- numbers that are none ---------------------------------------------------------------------


class Spoiling(Gaussian):
    """Kernel that is NaN from a given tile on."""

    left = 12

    def finish(self, out):
        super().finish(out)
        type(self).left -= 1
        if type(self).left < 0:
            out[0, 0] = np.nan


def test_values_that_become_nan():
    class Later(Spoiling):
        left = 12

    with pytest.raises(InvalidInput, match="not finite"):
        model("krylov", kernel=Later(0.05), max_memory=LITTLE, max_iter=50).fit(X)

    class EvenLater(Spoiling):
        left = 40

    # The Hebbian passes that saw one are undone; what is left is what sound passes found.
    found = model("kha/et", kernel=EvenLater(0.05), max_memory=LITTLE, max_iter=20).fit(X)
    assert np.isfinite(found.coefficients_).all()
    assert any("gain scaled" in record.note for record in found.history_)
