"""Kernel PCA of streams: exact without a limit, and independent of batches, reads and files."""

from __future__ import annotations

import copy
from functools import reduce

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import IncrementalPCA

from ikpca import IncrementalKernelPCA, KernelPCA, load, vectorized
from ikpca.errors import InvalidInput
from ikpca.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial
from ikpca.streams import MomentState, Sample

KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.1},
    "laplacian": {"kernel": "laplacian", "gamma": 0.1},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.5},
    "cosine": {"kernel": "cosine"},
}
OBJECTS = [Linear(), Gaussian(0.1), Laplacian(0.1), Polynomial(2, 0.5, 1.0), Cosine()]
DIGITS = load_digits().data / 16
WIDE = {"kernel": "rbf", "gamma": 0.02}


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(400, 5)) * [2.0, 1.5, 1.0, 0.7, 0.5]


def batches(X, *sizes):
    """Divide rows into batches of the given sizes, in turns."""
    start = turn = 0
    while start < X.shape[0]:
        yield slice(start, start + sizes[turn % len(sizes)])
        start += sizes[turn % len(sizes)]
        turn += 1


def learn(model, X, *sizes):
    for part in batches(X, *sizes):
        model.partial_fit(X[part])
    return model


def same_bits(first, second, rows):
    return all(
        np.array_equal(one, other)
        for one, other in (
            (first.transform(rows), second.transform(rows)),
            (first.eigenvalues_, second.eigenvalues_),
            (first.basis_, second.basis_),
            (first.mean_, second.mean_),
        )
    )


def distance(found, exact):
    """Relative difference of projections, up to the signs of components."""
    signs = np.sign(np.einsum("ij,ij->j", found, exact))
    return np.abs(found * signs - exact).max() / np.abs(exact).max()


def weighted_eigenvalues(kernel, X, weights, number):
    """Leading eigenvalues of W^½ (I − 1wᵀ/n) K (I − w1ᵀ/n) W^½, by the definition."""
    K = np.empty((len(X), len(X)))
    kernel.fill(X, X, K)
    center = np.eye(len(X)) - np.outer(np.ones(len(X)), weights / weights.sum())
    root = np.sqrt(weights)[:, None]
    return np.linalg.eigvalsh(root * (center @ K @ center.T) * root.T)[::-1][:number]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_all_rows_in_the_basis_are_batch_kernel_pca(rows, kernel):
    model = learn(IncrementalKernelPCA(4, **kernel, max_basis_rows=None), rows, 70, 1)
    batch = KernelPCA(4, **kernel, eigen_solver="dense").fit(rows)
    np.testing.assert_allclose(model.eigenvalues_, batch.eigenvalues_, rtol=1e-10)
    assert distance(model.transform(rows), batch.transform(rows)) < 1e-10
    error = model.reconstruction_error(rows) - batch.reconstruction_error(rows)
    scale = batch.eigenvalues_[0] / len(rows)
    assert np.abs(error).max() < 1e-9 * max(scale, 1)
    share = model.explained_variance_ratio_ / batch.explained_variance_ratio_
    np.testing.assert_allclose(share, 1, rtol=1e-9)
    low, high = model.eigenvalue_bounds_
    assert (low <= batch.eigenvalues_ * (1 + 1e-12)).all()
    assert (batch.eigenvalues_ <= high * (1 + 1e-12)).all()


@pytest.mark.parametrize("kernel", OBJECTS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("forgetting", [1.0, 0.99])
def test_weights_and_forgetting_are_those_of_each_row(rows, kernel, forgetting):
    weights = np.random.default_rng(1).integers(0, 4, size=len(rows)).astype(np.float64)
    model = IncrementalKernelPCA(3, kernel=kernel, max_basis_rows=None, forgetting=forgetting)
    for part in batches(rows, 90):
        model.partial_fit(rows[part], sample_weight=weights[part])
    faded = weights * forgetting ** (2 * np.arange(len(rows))[::-1])
    exact = weighted_eigenvalues(kernel, rows, faded, 3)
    np.testing.assert_allclose(model.eigenvalues_, exact, rtol=1e-10)
    np.testing.assert_allclose(model.mean_, faded @ rows / faded.sum(), rtol=1e-10, atol=1e-12)


def test_a_weight_is_a_number_of_repetitions(rows):
    weights = np.random.default_rng(1).integers(1, 4, size=100)
    settings = {"kernel": "rbf", "gamma": 0.1, "max_basis_rows": None}
    weighted = IncrementalKernelPCA(3, **settings).partial_fit(rows[:100], sample_weight=weights)
    repeated = IncrementalKernelPCA(3, **settings).partial_fit(
        np.repeat(rows[:100], weights, axis=0)
    )
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-10)
    assert distance(weighted.transform(rows), repeated.transform(rows)) < 1e-10


@pytest.mark.parametrize(
    "settings",
    [
        WIDE,
        {**WIDE, "max_basis_rows": 40},
        {**WIDE, "max_basis_rows": 40, "forgetting": 0.998},
        {"kernel": "linear"},
        {"kernel": "laplacian", "gamma": 0.05, "max_basis_rows": 40},
    ],
    ids=["default", "few", "forgetting", "linear", "rows"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_reads_and_files_change_no_bit(tmp_path, settings, dtype):
    X = DIGITS.astype(dtype)
    whole = IncrementalKernelPCA(4, **settings, random_state=0).partial_fit(X)
    parts = IncrementalKernelPCA(4, **settings, random_state=0)
    for number, part in enumerate(batches(X, 1, 30, 2, 100, 300)):
        parts.partial_fit(X[part])
        if number % 3 == 0:
            parts.transform(X[:5])
        if number % 5 == 0:
            parts.save(tmp_path / "model.ikpca")
            parts = load(tmp_path / "model.ikpca")
    assert same_bits(whole, parts, X[:50])
    assert same_bits(whole, IncrementalKernelPCA(4, **settings, random_state=0).fit(X), X[:50])


def test_weights_in_parts_change_no_bit(rows):
    weights = np.random.default_rng(0).exponential(size=len(rows))
    settings = {"kernel": "rbf", "max_basis_rows": 20, "forgetting": 0.99, "random_state": 0}
    whole = IncrementalKernelPCA(2, **settings).partial_fit(rows, sample_weight=weights)
    parts = IncrementalKernelPCA(2, **settings)
    for part in batches(rows, 7, 50):
        parts.partial_fit(rows[part], sample_weight=weights[part]).explained_variance_ratio_.sum()
    assert same_bits(whole, parts, rows)


def test_copies_learn_independently():
    model = learn(IncrementalKernelPCA(4, **WIDE, random_state=0), DIGITS[:300], 7)
    other = copy.copy(model)
    other.partial_fit(DIGITS[900:910])
    alone = learn(IncrementalKernelPCA(4, **WIDE, random_state=0), DIGITS[:320], 320)
    assert same_bits(model.partial_fit(DIGITS[300:320]), alone, DIGITS[:50])


def test_rows_of_a_reused_buffer_are_not_held():
    buffer, model = np.empty((10, 64)), IncrementalKernelPCA(4, **WIDE, random_state=0)
    for part in batches(DIGITS[:500], 10):
        buffer[:] = DIGITS[part]
        model.partial_fit(buffer)
    buffer[:] = np.nan
    fresh = IncrementalKernelPCA(4, **WIDE, random_state=0).partial_fit(DIGITS[:500])
    assert same_bits(model, fresh, DIGITS[:50])


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_merged_streams_are_one_stream_without_a_limit(rows, kernel):
    settings = {**kernel, "max_basis_rows": None}
    parts = [
        learn(IncrementalKernelPCA(3, **settings), part, 64) for part in np.split(rows, [150, 330])
    ]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    whole = IncrementalKernelPCA(3, **settings).fit(rows)
    np.testing.assert_allclose(merged.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    assert distance(merged.transform(rows), whole.transform(rows)) < 1e-8
    assert merged.n_samples_seen_ == len(rows)
    np.testing.assert_allclose(merged.mean_, rows.mean(axis=0), atol=1e-12)


def test_streams_on_the_same_full_basis_merge_without_loss():
    """A linear kernel of ten features: every basis spans them all."""
    X = np.random.default_rng(0).normal(size=(5000, 10)) * np.linspace(1, 3, 10) + 5
    parts = [IncrementalKernelPCA(4, random_state=seed).fit(X[seed::3]) for seed in range(3)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    whole = KernelPCA(4, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(merged.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    merged.partial_fit(X[:100])
    assert merged.n_samples_seen_ == 5100


def captured(model, X):
    projections = model.transform(X)
    return np.square(projections - projections.mean(axis=0)).sum()


@pytest.mark.parametrize("is_ordered", [False, True])
def test_blocks_of_a_dask_array_are_learned_in_parallel_and_merged(is_ordered):
    dask = pytest.importorskip("dask")
    array = pytest.importorskip("dask.array")
    X = np.tile(DIGITS, (3, 1)) + 0.03 * np.random.default_rng(0).normal(size=(3 * 1797, 64))
    # Every block has rows that others lack, or all are alike.
    X = X[np.argsort(X[:, 20]) if is_ordered else np.random.default_rng(1).permutation(len(X))]

    @dask.delayed
    def fit(block):
        return IncrementalKernelPCA(8, **WIDE, random_state=0).fit(block)

    blocks = array.from_array(X, chunks=(1400, 64)).to_delayed().ravel()
    parts = dask.compute(*map(fit, blocks), scheduler="threads")
    merged = reduce(IncrementalKernelPCA.merge, parts)
    whole = IncrementalKernelPCA(8, **WIDE, random_state=0).fit(X)
    assert merged.n_samples_seen_ == len(X)
    assert len(merged.basis_) == 100
    assert captured(merged, X) > 0.995 * captured(whole, X)


def test_a_linear_kernel_is_incremental_pca():
    X = DIGITS + np.arange(64)
    model = learn(IncrementalKernelPCA(5, max_basis_rows=64), X, 100)
    other = IncrementalPCA(60, batch_size=300).fit(X)
    np.testing.assert_allclose(
        model.transform(X).var(axis=0), other.explained_variance_[:5] * (1 - 1 / len(X)), rtol=1e-6
    )
    assert distance(model.transform(X), other.transform(X)[:, :5]) < 1e-4
    np.testing.assert_allclose(model.mean_, X.mean(axis=0))


def test_few_basis_rows_capture_almost_all_variance():
    model = learn(IncrementalKernelPCA(8, **WIDE, random_state=0), DIGITS, 100)
    exact = KernelPCA(8, **WIDE, eigen_solver="dense").fit(DIGITS)
    projections = model.transform(DIGITS)
    captured = np.square(projections - projections.mean(axis=0)).sum()
    assert len(model.basis_) == 100
    assert 0.995 * exact.eigenvalues_.sum() < captured < (1 + 1e-9) * exact.eigenvalues_.sum()
    assert abs(model.eigenvalues_.sum() / captured - 1) < 0.005
    gram = model._subspace.component_gram
    np.testing.assert_allclose(gram, np.eye(8), atol=1e-10)


@pytest.mark.parametrize("basis", ["means", "rows"])
def test_the_components_are_those_of_all_rows_in_the_span_of_the_basis(basis):
    """Exact moments on the basis: as long as the first rows are kept, they are recomputed."""
    X = DIGITS[:1000]
    model = learn(IncrementalKernelPCA(4, **WIDE, basis=basis, max_basis_rows=50), X, 64)
    kernel, B = Gaussian(0.02), model.basis_
    K, cross = np.empty((50, 50)), np.empty((1000, 50))
    kernel.fill(B, B, K)
    kernel.fill(X, B, cross)
    Z = cross @ np.linalg.inv(np.linalg.cholesky(K)).T
    values = np.linalg.eigvalsh(np.cov(Z.T, bias=True))[::-1][:4] * 1000
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    low, high = model.eigenvalue_bounds_
    exact = KernelPCA(4, **WIDE, eigen_solver="dense").fit(X).eigenvalues_
    assert (low <= exact).all()
    assert (exact <= high).all()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_tiny_bases(size):
    model = learn(IncrementalKernelPCA(2, **WIDE, max_basis_rows=size), DIGITS, 300)
    assert len(model.basis_) == size
    assert np.isfinite(model.transform(DIGITS[:9])).all()


def test_drift_and_novelty_do_not_depend_on_reads():
    rows = np.vstack([DIGITS[:900], 2 * DIGITS[900:]])
    read = IncrementalKernelPCA(4, **WIDE, random_state=0)
    rare = IncrementalKernelPCA(4, **WIDE, random_state=0)
    for part in batches(rows, 1, 30, 7, 150):
        read.partial_fit(rows[part])
        assert len(read.novelty_) == len(rows[part])
        assert read.drift_detected_ == (read.drift_ >= 1)
        rare.partial_fit(rows[part])
        if part.start > 900:
            np.testing.assert_allclose(rare.novelty_, read.novelty_, rtol=1e-9)
            np.testing.assert_allclose(rare.drift_, read.drift_, rtol=1e-6)


def test_bounds_are_withdrawn_when_the_basis_has_moved():
    assert learn(IncrementalKernelPCA(4, **WIDE), DIGITS, 300).eigenvalue_bounds_ is None


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_duplicates_add_no_basis_rows(rows, kernel):
    model = learn(
        IncrementalKernelPCA(3, **kernel, max_basis_rows=None), np.tile(rows[:40], (20, 1)), 33
    )
    once = IncrementalKernelPCA(3, **kernel, max_basis_rows=None).fit(rows[:40])
    assert len(model.basis_) == len(once.basis_)
    np.testing.assert_allclose(model.eigenvalues_, 20 * once.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_constant_rows_have_no_variance(kernel):
    model = learn(IncrementalKernelPCA(2, **kernel), np.full((400, 3), 3.0), 30)
    assert np.abs(model.transform(np.full((2, 3), 3.0))).max() < 1e-6
    assert np.abs(model.eigenvalues_).max() < 1e-6
    assert np.isfinite(model.transform(np.ones((2, 3)))).all()
    model.partial_fit(np.random.default_rng(0).normal(size=(400, 3)))
    assert model.eigenvalues_[0] > 1


@pytest.mark.parametrize("gamma", [1e-12, 1e-6, 1e3, 1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiny_and_huge_gamma(rows, gamma, dtype):
    X = rows.astype(dtype)
    model = learn(IncrementalKernelPCA(2, kernel="rbf", gamma=gamma), np.tile(X, (4, 1)), 100)
    found = model.transform(X)
    assert np.isfinite(found).all()
    assert np.isfinite(model.eigenvalues_).all()
    assert model.eigenvalues_.sum() <= model._stream.current.total_variance * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_single_precision_far_from_zero(kernel):
    near = np.random.default_rng(0).normal(size=(2000, 4)) * [4, 3, 2, 1]
    far = (near + 1e4).astype(np.float32)
    near = far.astype(np.float64) - 1e4
    settings = {"kernel": kernel, "gamma": 0.02}
    model = learn(IncrementalKernelPCA(3, **settings, random_state=0), far, 100)
    exact = KernelPCA(3, **settings, eigen_solver="dense").fit(near)
    assert model.transform(far).dtype == np.float32
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=0.01)


def test_near_singular_bases():
    """Rows on a line, close together: the numerical rank is about ten."""
    X = np.linspace(0, 1, 3000)[np.random.default_rng(0).permutation(3000), None]
    model = learn(IncrementalKernelPCA(3, kernel="rbf", gamma=1.0), X, 100)
    exact = KernelPCA(3, kernel="rbf", gamma=1.0, eigen_solver="krylov", random_state=0).fit(X)
    assert len(model.basis_) < 20
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)


def state_of(model):
    return copy.deepcopy(vars(model))


def unchanged(model, before, X):
    reference = copy.copy(model)
    reference.__dict__ = before
    return vars(model).keys() == before.keys() and same_bits(model, reference, X)


@vectorized
def fragile(X, Y):
    """Linear kernel that overflows for large rows."""
    values = X @ Y.T
    return np.where(np.abs(values) > 1e6, np.inf, values + 1.0)


@pytest.mark.parametrize("n_before", [10, 100, 640])
@pytest.mark.parametrize("bad", ["nan", "infinite", "kernel", "width", "weights"])
def test_a_refused_batch_changes_no_bit(rows, n_before, bad):
    X = np.tile(rows, (2, 1))
    kernel = fragile if bad == "kernel" else "rbf"
    settings = {"kernel": kernel, "max_basis_rows": 30, "random_state": 0}
    model = IncrementalKernelPCA(2, **settings).partial_fit(X[:n_before])
    before, batch, weights = state_of(model), X[n_before : n_before + 60].copy(), None
    if bad == "nan":
        batch[50, 1] = np.nan
    elif bad == "infinite":
        batch[50, 1] = np.inf
    elif bad == "kernel":
        batch[50] = 1e5
    elif bad == "width":
        batch = batch[:, :3]
    else:
        weights = np.full(60, -1.0)
    with pytest.raises((InvalidInput, ValueError)):
        model.partial_fit(batch, sample_weight=weights)
    assert unchanged(model, before, X)
    good = X[n_before : n_before + 60]
    fresh = IncrementalKernelPCA(2, **settings).partial_fit(X[:n_before]).partial_fit(good)
    assert same_bits(model.partial_fit(good), fresh, X)


@pytest.mark.parametrize("n_values", [1, 3, 7])
def test_an_interrupted_batch_changes_no_bit(rows, n_values):
    calls = []

    @vectorized
    def kernel(X, Y):
        calls.append(None)
        if len(calls) == limit:
            raise KeyboardInterrupt
        return np.exp(-0.1 * np.square(X[:, None] - Y).sum(axis=2))

    limit = -1
    model = IncrementalKernelPCA(2, kernel=kernel, max_basis_rows=30).partial_fit(rows[:100])
    before = state_of(model)
    limit = len(calls) + n_values
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(rows[100:])
    limit = -1
    assert unchanged(model, before, rows)


def test_an_indefinite_kernel_is_refused(rows):
    with pytest.raises(InvalidInput, match="not positive semi-definite"):
        learn(IncrementalKernelPCA(3, kernel="sigmoid", gamma=0.3, coef0=-1.0), rows, 50)


def test_sparse_rows_are_dense_rows():
    X = np.where(DIGITS[:600] > 0.3, DIGITS[:600], 0.0)
    dense = learn(IncrementalKernelPCA(3, **WIDE, basis="rows", random_state=0), X, 100)
    model = learn(IncrementalKernelPCA(3, **WIDE, random_state=0), sparse.csr_array(X), 100)
    assert sparse.issparse(model.basis_)
    np.testing.assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(model.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-6)


def test_the_novelty_is_the_error_before_the_block():
    """On a basis that holds all features, with components that were refreshed just before."""
    X = np.random.default_rng(0).normal(size=(64, 6)) * np.arange(6, 0, -1)
    model = IncrementalKernelPCA(2).partial_fit(X[:32])
    earlier = model.reconstruction_error(X[32:])
    assert np.isnan(model.novelty_).all()
    np.testing.assert_allclose(model.partial_fit(X[32:]).novelty_, earlier, rtol=1e-6)
    single = IncrementalKernelPCA(2).partial_fit(X[:32])
    found = [single.partial_fit(row[None]).novelty_[0] for row in X[32:]]
    np.testing.assert_allclose(found, earlier, rtol=1e-6)


def test_an_indefinite_correction_is_clipped_and_its_trace_is_kept():
    """Variances stay positive, and their sum is at most that of all rows."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        state = MomentState.empty(Gaussian(2.0), np.zeros((0, 2)), 2, 8, seed=seed)
        for number in range(30):
            angle = rng.normal(size=(200, 2)) * 0.3 + [np.cos(number / 3), np.sin(number / 3)]
            state, _ = state.learn(angle, np.ones(200))
            current = state.current
            values = np.linalg.eigvalsh(current.C - np.outer(current.s, current.s) / current.n)
            assert values.min() >= -1e-9 * current.n
            assert np.trace(current.C) <= current.energy * (1 + 1e-9)


def test_the_sample_estimates_sums_over_the_stream_without_bias():
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(40):
        values, weights = rng.normal(size=(4000, 1)) + 1, rng.exponential(size=4000) ** 2
        sample = Sample.empty(values)
        for part in batches(values, 500):
            fade = 0.99 ** (part.stop - part.start)
            sample = sample.fade(np.log(fade)).add(values[part], weights[part], rng)
            weights[: part.start] *= fade
        total = weights.sum()
        found = sample.scaled_weights(total) @ sample.rows[:, 0]
        errors.append(found / (weights @ values[:, 0]) - 1)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors)) + 0.002
    assert np.std(errors) < 0.1
