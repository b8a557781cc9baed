"""Contract of every coefficient store, compared with explicit arrays A and K'."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca.gram import ComputedGram, center_gram
from ikpca.gram.sources import StoredGram
from ikpca.kernels import Linear
from ikpca.solvers.kha_pass import CoefficientStore, sampled_residuals

N_SAMPLES, R = 30, 4
# Products of thirty terms, three transforms deep, on numbers of order ten.
TOLERANCE = {np.float64: 1e-11, np.float32: 1e-3}
NO_PATTERN = np.empty(0, dtype=np.intp)
REPEATED = np.array([3, 8, 3, 29, 3])


def some_rows():
    X = np.random.default_rng(0).normal(size=(N_SAMPLES, 6)) + 2
    return X, X - X.mean(axis=0)


def local_store(dtype, start, keep=False):
    X, _ = some_rows()
    source = ComputedGram(Linear(), X.astype(dtype))
    gram, products = center_gram(StoredGram(source) if keep else source, start.T.astype(dtype))
    return CoefficientStore(gram, start, products.T)


def stored_store(dtype, start):
    return local_store(dtype, start, keep=True)


STORES = {
    "local": local_store,
    "local on stored": stored_store,
}
every_store = pytest.mark.parametrize("name", STORES)


class Explicit:
    """Explicit A and K'."""

    def __init__(self, A):
        self.A = A.copy()
        self.K = some_rows()[1] @ some_rows()[1].T

    def transform(self, T, patterns, C):
        self.A = T @ self.A
        for p, column in zip(patterns, C.T, strict=True):
            self.A[:, p] += column

    def gram(self, power):
        return self.A @ np.linalg.matrix_power(self.K, power) @ self.A.T


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@every_store
class TestEveryStore:
    """Tests of all stores."""

    @pytest.fixture
    def rng(self):
        return np.random.default_rng(1)

    @pytest.fixture
    def start(self, rng):
        A = rng.normal(size=(R, N_SAMPLES)) / 5
        A.flags.writeable = False
        return A

    @pytest.fixture
    def store(self, name, dtype, start):
        return STORES[name](dtype, start)

    @pytest.fixture
    def explicit(self, start):
        return Explicit(start)

    @pytest.fixture
    def close(self, dtype):
        def compare(found, expected):
            scale = max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype] * scale)

        return compare

    @pytest.fixture
    def rows_and_products(self):
        """Return the expected A and AK'."""

        def expected(explicit):
            return explicit.A, explicit.A @ explicit.K

        return expected

    @staticmethod
    def compare(store, expected, close):
        for found, values in zip((store.rows, store.products), expected, strict=True):
            close(found, values)

    @pytest.fixture
    def step(self, store, explicit, rng):
        """Apply the same random transform to both."""

        def apply(patterns, project=True):
            T = np.eye(R) + rng.normal(size=(R, R)) / 5
            C = rng.normal(size=(R, len(patterns))) / 5
            if project:
                store.project(patterns)
            store.transform(T, patterns, C)
            explicit.transform(T, patterns, C)

        return apply

    @pytest.mark.parametrize("patterns", [np.array([5]), REPEATED, np.arange(N_SAMPLES)])
    def test_project(self, store, explicit, close, patterns):
        Y, G = store.project(patterns)
        close(Y, (explicit.A @ explicit.K)[:, patterns])
        close(G, explicit.K[np.ix_(patterns, patterns)])
        for small in (Y, G):
            assert small.dtype == np.float64
            assert small.flags.c_contiguous

    @pytest.mark.parametrize(
        ("patterns", "project"),
        [(np.array([5]), True), (REPEATED, True), (REPEATED, False), (NO_PATTERN, False)],
    )
    def test_transform(self, store, explicit, close, step, rows_and_products, patterns, project):
        step(patterns, project)
        self.compare(store, rows_and_products(explicit), close)

    def test_several_transforms_before_a_read(
        self, store, explicit, close, step, rows_and_products
    ):
        step(REPEATED)
        step(NO_PATTERN, project=False)
        step(np.array([0, 3, 12]))
        self.compare(store, rows_and_products(explicit), close)
        Y, _ = store.project(REPEATED)
        close(Y, (explicit.A @ explicit.K)[:, REPEATED])

    def test_transform_of_other_patterns_than_projected(
        self, store, explicit, close, step, rows_and_products
    ):
        store.project(np.array([1, 2, 4]))
        step(np.array([7, 9, 11]), project=False)
        close(store.products, rows_and_products(explicit)[1])

    @pytest.mark.parametrize("power", [0, 1, 2])
    def test_gram(self, store, explicit, close, step, power):
        close(store.inner_products(power), explicit.gram(power))
        step(REPEATED)
        close(store.inner_products(power), explicit.gram(power))
        assert store.inner_products(power).dtype == np.float64

    def test_mark_rewind_and_change(self, store, explicit, close, step, rows_and_products):
        step(REPEATED)
        store.mark()
        marked, kept = explicit.A.copy(), rows_and_products(explicit)
        assert store.change(R) == 0
        step(np.array([2, 6]))
        step(NO_PATTERN, project=False)
        moved = explicit.A - marked
        close(store.change(R), np.trace(moved @ explicit.K @ moved.T))
        close(store.change(2), np.trace(moved[:2] @ explicit.K @ moved[:2].T))
        store.inner_products(1)
        store.rewind()
        self.compare(store, kept, close)
        close(store.inner_products(1), marked @ explicit.K @ marked.T)
        assert store.change(R) == 0

    def test_rewind_restores_the_same_bits(self, store, step):
        step(REPEATED)
        store.mark()
        before = store.rows, store.products
        for _ in range(2):
            step(np.array([2, 6]))
            store.rewind()
            assert all(map(np.array_equal, (store.rows, store.products), before))

    def test_rewind_without_mark_restores_the_start(
        self, store, explicit, close, step, rows_and_products
    ):
        expected = rows_and_products(explicit)
        step(REPEATED)
        store.rewind()
        close(store.rows, expected[0])

    def test_stored_arrays_are_never_modified(self, store, step):
        stored = store.rows, store.products
        copies = [part.copy() for part in stored]
        step(REPEATED)
        assert store.rows is not stored[0]
        assert all(map(np.array_equal, stored, copies))

    def test_arguments_are_not_modified(self, store):
        T, C, patterns = 2 * np.eye(R), np.ones((R, 5)), REPEATED.copy()
        for argument in (T, C, patterns):
            argument.flags.writeable = False
        store.project(patterns)
        store.transform(T, patterns, C)
        assert store.rows.shape == (R, N_SAMPLES)


@pytest.mark.parametrize("sample", [np.arange(N_SAMPLES), REPEATED])
def test_residuals_of_coefficients(sample):
    """Residuals are those of AK': a part of A in the null space of K' has no effect."""
    start = np.random.default_rng(3).normal(size=(R, N_SAMPLES))
    store, K = local_store(np.float64, start), Explicit(start).K
    values = np.array([5.0, 3.0])
    units = start[:2] @ K / np.linalg.norm(start[:2] @ K, axis=1)[:, None]
    defects = (units @ K - values[:, None] * units)[:, sample]
    expected = np.linalg.norm(defects, axis=1) * np.sqrt(N_SAMPLES / len(sample)) / 5
    np.testing.assert_allclose(
        sampled_residuals(store.gram, store.products[:2], values, sample), expected, rtol=1e-11
    )


@every_store
def test_residuals_of_eigenvectors_and_of_no_components_are_zero(name):
    K = Explicit(np.zeros((R, N_SAMPLES))).K
    values, vectors = np.linalg.eigh(K)
    start = np.vstack([vectors[:, -1] / np.sqrt(values[-1]), np.zeros(N_SAMPLES)])
    store = STORES[name](np.float64, start)
    eigenvalues, sample = np.array([values[-1], 0.0]), np.arange(N_SAMPLES)
    residuals = sampled_residuals(store.gram, store.products, eigenvalues, sample)
    # The norm of thirty roundings of the largest eigenvalue.
    assert residuals[0] < 1e-13
    assert residuals[1] == 0


@pytest.mark.parametrize(("keep", "per_block"), [(False, 5 * N_SAMPLES), (True, 0)])
def test_a_block_evaluates_its_kernel_rows_once(keep, per_block):
    """Projection and transform of m patterns share m·l entries; a stored K costs none."""
    store = local_store(np.float64, np.ones((R, N_SAMPLES)), keep)
    before = store.gram.entries
    assert before == N_SAMPLES**2
    store.project(REPEATED)
    store.transform(np.eye(R), REPEATED, np.ones((R, 5)))
    store.inner_products(1)
    assert store.gram.entries == before + per_block
