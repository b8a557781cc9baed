"""Contract of every source of the kernel matrix."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from ikpca.estimators.spectral_clustering import NormalizedGram
from ikpca.gram import ComputedGram, PrecomputedGram, center_gram, cross_gram, full_matrix, multiply
from ikpca.gram.resources import SERIAL, Workers
from ikpca.gram.sources import TILE, CachedGram, cache_source
from ikpca.kernels import FeatureSplit, Gaussian, Linear
from ikpca.subspace import Subspace
from tests.conftest import explicitly_centered
from tests.pairwise import pairwise

KERNEL = Gaussian(0.2)
SMALL, LARGE = 50, TILE + 60
# Entries of K are at most 1, sums have at most LARGE terms.
TOLERANCE = {np.float64: 1e-11, np.float32: 2e-4}


def read_only(array):
    """Return a read-only view of the array."""
    (array.data if sparse.issparse(array) else array).flags.writeable = False
    return array


@cache
def rows_of(n_samples, dtype):
    rng = np.random.default_rng(n_samples)
    X = rng.normal(size=(n_samples, 4))
    X[rng.random(size=X.shape) < 0.3] = 0
    return read_only(X.astype(dtype))


@cache
def symmetric_matrix(n_samples, dtype):
    X = rows_of(n_samples, np.float64)
    squares = np.square(X).sum(axis=1)
    distances = squares[:, None] + squares[None] - 2 * X @ X.T
    return read_only(np.exp(-0.2 * np.maximum(distances, 0)).astype(dtype))


@cache
def asymmetric_matrix(n_samples, dtype):
    rng = np.random.default_rng(n_samples)
    skew = rng.uniform(-0.2, 0.2, size=(n_samples, n_samples))
    return read_only(symmetric_matrix(n_samples, dtype) + skew.astype(dtype))


@cache
def normalized_matrix(n_samples, dtype):
    """D^{-1/2} K D^{-1/2}, reflected so that the root of the degrees becomes constant."""
    K = symmetric_matrix(n_samples, np.float64)
    degrees = K.sum(axis=1)
    w = np.sqrt(degrees / degrees.sum()) - 1 / np.sqrt(n_samples)
    P = np.eye(n_samples) - 2 * np.outer(w, w) / (w @ w)
    return read_only((P @ (K / np.sqrt(np.outer(degrees, degrees))) @ P).astype(dtype))


@cache
def centered_matrix(matrix, n_samples):
    return read_only(explicitly_centered(matrix(n_samples, np.float64)))


class NothingHeld(PrecomputedGram):
    """Matrix whose entries count as evaluated, for asymmetric kernels."""

    def fill(self, rows, columns, out):
        self.entries += out.size
        super().fill(rows, columns, out)

    def stored_tile(self, rows, columns):
        return None


def computed(kind):
    return lambda n, dtype: ComputedGram(KERNEL, read_only(kind(rows_of(n, dtype))))


def precomputed(kind, matrix):
    return lambda n, dtype: PrecomputedGram(read_only(kind(matrix(n, dtype))))


def stored(source):
    return cache_source(source, "matrix", 10**9, SERIAL)


SOURCES = {
    "computed dense": computed(np.asarray),
    "computed csr": computed(sparse.csr_array),
    "precomputed dense": precomputed(np.asarray, symmetric_matrix),
    "precomputed csr": precomputed(sparse.csr_array, symmetric_matrix),
    "precomputed asymmetric": precomputed(np.asarray, asymmetric_matrix),
    "stored": lambda n, dtype: stored(computed(np.asarray)(n, dtype)),
    "not held asymmetric": lambda n, dtype: NothingHeld(asymmetric_matrix(n, dtype)),
    "folded": lambda n, dtype: ComputedGram(
        KERNEL, rows_of(n, dtype), split=FeatureSplit.from_rows(rows_of(n, dtype))
    ),
    "small tiles": lambda n, dtype: ComputedGram(KERNEL, rows_of(n, dtype), side=300),
    "cached in part": lambda n, dtype: CachedGram(
        ComputedGram(KERNEL, rows_of(n, dtype), side=300), 3 * 300**2 * 4
    ),
    "cached asymmetric": lambda n, dtype: CachedGram(
        NothingHeld(asymmetric_matrix(n, dtype)), 10**8
    ),
    "normalized": lambda n, dtype: NormalizedGram(computed(np.asarray)(n, dtype)),
    "normalized cached": lambda n, dtype: NormalizedGram(
        CachedGram(computed(np.asarray)(n, dtype), 10**8)
    ),
}


@cache
def shared_source(name, n_samples, dtype):
    """Reading does not change a source, except for the count of entries."""
    return SOURCES[name](n_samples, dtype)


@pairwise(slow=True, name=SOURCES, n_samples=[SMALL, LARGE], dtype=[np.float64, np.float32])
class TestEverySource:
    """Tests of all sources; add new ones to ``SOURCES``."""

    @pytest.fixture
    def source(self, name, n_samples, dtype):
        return shared_source(name, n_samples, dtype)

    @pytest.fixture
    def matrix(self, name):
        if "normalized" in name:
            return normalized_matrix
        return asymmetric_matrix if "asymmetric" in name else symmetric_matrix

    @pytest.fixture
    def K(self, matrix, n_samples):
        return matrix(n_samples, np.float64)

    @pytest.fixture
    def centered_K(self, matrix, n_samples):
        return centered_matrix(matrix, n_samples)

    @pytest.fixture
    def close(self, dtype):
        def compare(found, expected):
            scale = float(np.abs(expected).max(initial=1.0))
            np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype] * scale)

        return compare

    def test_fill(self, source, K, close, n_samples, dtype):
        out = np.full((7, 20), np.nan, dtype=dtype)
        source.fill(slice(3, 10), slice(15, 35), out)
        close(out, K[3:10, 15:35])
        indices = np.array([9, 2, 2, n_samples - 1])
        for columns in (slice(5, 25), slice(0, n_samples)):
            out = np.full((4, columns.stop - columns.start), np.nan, dtype=dtype)
            source.fill(indices, columns, out)
            close(out, K[indices, columns])

    def test_fill_of_a_view(self, source, K, close, n_samples, dtype):
        board = np.zeros((2 * n_samples, 6), dtype=dtype)
        source.fill(np.array([4, 0, 4]), slice(0, n_samples), board.T[::2, ::2])
        close(board.T[::2, ::2], K[[4, 0, 4]])
        assert not board[1::2].any()
        assert not board[:, 1::2].any()

    def test_diagonal_is_a_new_array(self, source, K, close):
        found = source.diagonal()
        close(found, np.diag(K))
        found[:] = 0
        close(source.diagonal(), np.diag(K))

    def test_multiply(self, source, K, close, n_samples, dtype):
        V = read_only(np.random.default_rng(0).normal(size=(n_samples, 3)).astype(dtype))
        for columns in (0, 1, 3):
            product = multiply(source, V[:, :columns])
            assert product.shape == (n_samples, columns)
            assert product.dtype == dtype
            close(product, K @ V[:, :columns])

    def test_whole_and_stored_tiles(self, source, K, close, name, n_samples, dtype):
        assert source.n_samples == n_samples
        assert source.dtype == dtype
        assert source.symmetric is ("asymmetric" not in name)
        found = full_matrix(source)
        assert found.dtype == dtype
        close(found, K)
        stored = source.stored_tile(slice(0, 20), slice(20, 50))
        if stored is not None:
            close(stored, K[:20, 20:50])

    def test_centered(self, source, K, centered_K, close, n_samples, dtype):
        V = np.random.default_rng(1).normal(size=(n_samples, 2)).astype(dtype)
        gram, product = center_gram(source, read_only(V))
        assert gram.n_samples == n_samples
        assert gram.dtype == product.dtype == dtype
        close(product, centered_K @ V)
        close(gram.multiply(V), centered_K @ V)
        close(gram.diagonal(), np.diag(centered_K))
        close(gram.mean_diagonal, np.trace(centered_K) / n_samples)
        close(gram.squared_norm_estimate, np.sum(centered_K**2))
        close(gram.centering.column_means, K.mean(axis=0))
        close(gram.centering.grand_mean, K.mean())
        assert gram.has_variance

    def test_centered_strips(self, source, centered_K, close, n_samples, dtype):
        gram, _ = center_gram(source)
        rng = np.random.default_rng(2)
        patterns, T = np.array([5, 1, 5, n_samples - 1]), rng.normal(size=(3, 3)).astype(dtype)
        C, products = (rng.normal(size=(3, n)).astype(dtype) for n in (4, n_samples))
        close(gram.rows(patterns), centered_K[patterns])
        strip = gram.strip(patterns)
        close(strip.columns(np.arange(n_samples)), centered_K[patterns])
        close(strip.columns(np.array([0, 7, 7])), centered_K[np.ix_(patterns, [0, 7, 7])])
        updated = strip.update(T, read_only(products), C)
        close(updated, T @ products + C @ centered_K[patterns])
        assert updated.dtype == dtype

    def test_new_rows_are_centered_with_training_means(
        self, source, K, centered_K, close, n_samples, dtype
    ):
        centering = center_gram(source)[0].centering
        A = np.random.default_rng(3).normal(size=(2, n_samples)).astype(dtype)
        rows = K.astype(dtype)
        subspace = Subspace.from_centered(None, rows, A, centering, (A @ centered_K).astype(dtype))
        close(subspace.project(rows), centered_K @ A.T)
        close(subspace.project(sparse.csr_array(rows)), centered_K @ A.T)

    def test_threads_change_no_bit(self, source, n_samples, dtype):
        V = np.random.default_rng(4).normal(size=(n_samples, 3)).astype(dtype)

        def everything(n_threads):
            with Workers(n_threads) as workers:
                gram, product = center_gram(source, V, workers)
                strip = gram.strip(np.array([3, 1, 3]))
                updated = strip.update(np.eye(3, dtype=dtype), product.T, V[:3].T.copy())
                return [product, updated, gram.multiply(V), full_matrix(source, workers)]

        for one, two in zip(everything(1), everything(2), strict=True):
            assert np.array_equal(one, two)


def test_constant_kernels_have_no_variance():
    X = np.ones((SMALL, 3)) * 0.1
    for dtype in (np.float64, np.float32):
        gram, _ = center_gram(ComputedGram(Linear(), X.astype(dtype)))
        assert not gram.has_variance


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compact_tiles_are_rounded_to_16_bits_in_the_cache_or_not(dtype):
    X, V = rows_of(LARGE, dtype), np.random.default_rng(0).normal(size=(LARGE, 3)).astype(dtype)
    kept, computed_again = (
        CachedGram(ComputedGram(KERNEL, X), size, compact=True) for size in (10**8, 0)
    )
    K = full_matrix(kept)
    errors = K - symmetric_matrix(LARGE, np.float64)
    assert 0.4 / 65535 < np.abs(errors).max() < 0.52 / 65535
    assert errors.std() == pytest.approx(1 / np.sqrt(12) / 65535, rel=0.05)
    entries = kept.entries
    np.testing.assert_array_equal(multiply(kept, V), multiply(computed_again, V))
    assert kept.entries == entries
    assert computed_again.entries == entries
    np.testing.assert_array_equal(full_matrix(computed_again), K)


def test_compact_values_do_not_wrap_around():
    """Differences of large squares exceed 1 by rounding errors."""
    X = np.random.default_rng(0).normal(0, 300, size=(50, 3)).astype(np.float32)
    source = ComputedGram(Gaussian(1.0), X, split=FeatureSplit.from_rows(X))
    values, rounded = full_matrix(source), full_matrix(CachedGram(source, 0, compact=True))
    assert values.max() > 1 + 1 / 65535
    np.testing.assert_allclose(rounded, np.minimum(values, 1), atol=0.52 / 65535)


def test_threads_share_long_strips_without_changing_a_bit():
    """Above 4,096 columns the update itself is shared."""
    X = np.random.default_rng(5).normal(size=(5000, 3))
    C, products = np.random.default_rng(6).normal(size=(2, 3)), X[:, :2].T.copy()

    def updated(n_threads):
        with Workers(n_threads) as workers:
            gram, _ = center_gram(ComputedGram(Linear(), X), workers=workers)
            return gram.strip(np.array([0, 4999, 7])).update(np.eye(2), products, C)

    assert np.array_equal(updated(1), updated(2))
    centered_X = X - X.mean(axis=0)
    expected = products + C @ centered_X[[0, 4999, 7]] @ centered_X.T
    np.testing.assert_allclose(updated(2), expected, atol=1e-11)


@pytest.mark.parametrize("n_samples", [SMALL, TILE, LARGE])
class TestCounting:
    """Counts of evaluated entries of K."""

    @staticmethod
    def upper_tiles(n_samples):
        """Half of K, and the other half of small squares on its diagonal."""
        entries = 0
        pieces = [min(TILE, n_samples - start) for start in range(0, n_samples, TILE)]
        for piece in pieces:
            squares = [piece]
            while max(squares) >= 512:
                squares = [part for side in squares for part in (side // 2, side - side // 2)]
            entries += (piece**2 + sum(side**2 for side in squares)) // 2
        return entries + (n_samples**2 - sum(piece**2 for piece in pieces)) // 2

    def test_products_of_a_symmetric_matrix_read_the_upper_tiles(self, n_samples):
        source = SOURCES["computed dense"](n_samples, np.float64)
        multiply(source, np.ones((n_samples, 3)))
        assert source.entries == self.upper_tiles(n_samples)
        full_matrix(source)
        assert source.entries == 2 * self.upper_tiles(n_samples)

    def test_products_of_an_asymmetric_matrix_read_all(self, n_samples):
        source = NothingHeld(asymmetric_matrix(n_samples, np.float64))
        multiply(source, np.ones((n_samples, 3)))
        assert source.entries == n_samples**2

    def test_centering_needs_no_further_entries(self, n_samples):
        """Row sums come with K·V; column sums of an asymmetric K need a second evaluation."""
        source = SOURCES["computed dense"](n_samples, np.float64)
        assert center_gram(source, np.ones((n_samples, 3)))[0].entries == self.upper_tiles(
            n_samples
        )
        asymmetric = NothingHeld(asymmetric_matrix(n_samples, np.float64))
        assert center_gram(asymmetric)[0].entries == 2 * n_samples**2

    def test_strips_and_diagonal(self, n_samples):
        gram, _ = center_gram(SOURCES["computed dense"](n_samples, np.float64))
        before = gram.entries
        strip = gram.strip(np.arange(6))
        strip.columns(np.arange(6))
        strip.update(np.eye(2), np.ones((2, n_samples)), np.ones((2, 6)))
        assert gram.entries == before + 6 * n_samples
        gram.diagonal()
        assert gram.entries == before + 7 * n_samples

    def test_a_stored_matrix_is_evaluated_once(self, n_samples):
        matrix = stored(SOURCES["computed dense"](n_samples, np.float64))
        gram, _ = center_gram(matrix, np.ones((n_samples, 1)))
        gram.rows(np.arange(5))
        gram.diagonal()
        assert matrix.entries == gram.entries == self.upper_tiles(n_samples)

    def test_precomputed_entries_are_not_counted(self, n_samples):
        source = SOURCES["precomputed dense"](n_samples, np.float64)
        gram, _ = center_gram(source, np.ones((n_samples, 3)))
        gram.rows(np.arange(5))
        assert gram.entries == 0

    def test_cached_tiles_are_evaluated_once_and_change_no_bit(self, n_samples):
        """Room for one tile of 300 × 300 beside the smaller ones at the border."""
        V = np.random.default_rng(7).normal(size=(n_samples, 3))
        counted, source = (
            ComputedGram(KERNEL, rows_of(n_samples, np.float64), side=300) for _ in range(2)
        )
        cached = CachedGram(source, 300**2 * 8)
        expected = multiply(counted, V)
        assert np.array_equal(multiply(cached, V), expected)
        assert cached.entries == counted.entries
        kept = min(n_samples, 300) ** 2
        assert np.array_equal(multiply(cached, V), expected)
        assert cached.entries == 2 * counted.entries - kept

    def test_count_of_entries_does_not_depend_on_threads(self, n_samples):
        source = SOURCES["computed dense"](n_samples, np.float64)
        with Workers(2) as workers:
            multiply(source, np.ones((n_samples, 1)), workers)
        assert source.entries == self.upper_tiles(n_samples)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_cross_gram_of_more_rows_than_a_tile(kind):
    X, Y = rows_of(30, np.float64), rows_of(LARGE, np.float64)
    expected = np.exp(-0.2 * np.square(X[:, None] - Y[None]).sum(axis=2))
    np.testing.assert_allclose(cross_gram(KERNEL, kind(X), kind(Y)), expected, atol=1e-12)


def test_symmetry_is_tested_up_to_rounding():
    K = symmetric_matrix(SMALL, np.float64).copy()
    K[0, 1] += 1e-16
    assert PrecomputedGram(K).symmetric
    K[0, 1] += 1e-9
    assert not PrecomputedGram(K).symmetric


class TestWorkers:
    """Threads that share tiles; ``tests/gram/test_parallel.py`` has their order and errors."""

    def test_scratch_is_reused_by_a_thread(self):
        workers, dtype = Workers(), np.dtype(np.float32)
        first = workers.scratch((4, 3), dtype)
        assert first.shape == (4, 3)
        assert first.dtype == dtype
        assert np.shares_memory(first, workers.scratch((2, 2), dtype))

    def test_usable_again_after_the_context(self):
        workers = Workers(2)
        for _ in range(2):
            with workers:
                assert list(workers.map(abs, [-1, 2])) == [1, 2]
        assert list(workers.map(abs, [-1, 2])) == [1, 2]
