"""Chin and Suter 2006, section 6, in small: streams against batch kernel PCA."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca_papers.as_printed import POLYNOMIAL, PaperIncrementalPCA
from ikpca_papers.chin2006 import manifolds, parabola, stream_costs
from ikpca_papers.chin2006.parabola import PARABOLA_GAMMA, rising_parabola
from ikpca_papers.large import large_rows
from ikpca_papers.metrics import captured_variance

SETTINGS = {"n_components": 3, "kernel": "rbf", "gamma": PARABOLA_GAMMA}


@pytest.fixture(scope="module")
def cost():
    run = stream_costs.run_stream(partial(rising_parabola, 2500), SETTINGS)
    truth = stream_costs.batch_projections(rising_parabola(2500), SETTINGS)
    return stream_costs.stream_cost(run, truth)


def test_the_parabola_streams_to_the_components_of_batch(cost):
    assert min(cost.correlations) >= 0.9999


def test_memory_stays_flat_after_warm_up(cost):
    held = cost.after_warm_up(cost.held_bytes)
    assert len(held) == (2500 - stream_costs.WARM_UP) / stream_costs.BATCH
    assert abs(stream_costs.relative_rise(held)) <= 0.1
    # And it was not flat while the library filled up, or the claim would say nothing.
    assert cost.held_bytes[0] < 0.6 * held[-1]


def test_exponents_of_the_printed_table():
    result = {
        name: parabola.Duration(name, (1, 2), (1.0, 4.0)) for name in parabola.TABLE_1_SECONDS
    }
    assert result["batch"].paper_exponent == pytest.approx(3.04, abs=0.005)
    assert result["incremental"].paper_exponent == pytest.approx(0.99, abs=0.005)
    assert result["KHA"].paper_exponent == pytest.approx(1.58, abs=0.005)
    assert result["KHA"].exponent == pytest.approx(2)


def test_all_methods_of_table_1_run():
    result = parabola.durations(rows=(60, 90), repeats=1)
    assert [row.method.split(",")[0] for row in result[:3]] == ["batch", "incremental", "KHA"]
    assert all(min(row.seconds) > 0 for row in result)


@pytest.fixture(scope="module")
def angles():
    chosen = {
        ("anywhere", "none"), ("in the box", "none"), ("least error", "none"),
        ("none", "r, all rows kept"), ("least error", "scheme of figure 1"),
        ("least error", "mean update"),
        ("least error", "orthogonalization, n = 2"), ("least error", "n"),
    }  # fmt: skip
    variants = parabola.ablation_variants(6)
    rows = parabola.ablation([v for v in variants if (v.preimages, v.choice) in chosen], 240)
    return {(row.preimages, row.choice, row.value): row for row in rows}


def test_rows_of_least_error_add_nothing_to_the_error_of_truncation(angles):
    paper = angles["least error", "none", "the scheme"]
    exact = angles["none", "r, all rows kept", "6"]
    assert paper.angle == pytest.approx(exact.angle, rel=0.1)
    assert paper.defect < 1e-8
    # Truncation to the three components that are compared costs far more.
    assert angles["none", "r, all rows kept", "3"].angle > 50 * exact.angle


def test_nearest_preimages_in_the_box_of_the_data_do_not_drift(angles):
    assert angles["in the box", "none", "the scheme"].angle < 0.5
    assert angles["anywhere", "none", "the scheme"].angle > 2


@pytest.mark.parametrize(
    "variant",
    [
        ("least error", "scheme of figure 1", "a"),
        ("least error", "scheme of figure 1", "b"),
        ("least error", "mean update", "left out"),
        ("anywhere", "none", "the scheme"),
    ],
)
def test_ablation_of_the_papers_scheme(angles, variant):
    assert angles[variant].angle > 2 * angles["least error", "none", "the scheme"].angle


def test_components_that_are_not_made_orthonormal_again(angles):
    choice = "orthogonalization, n = 2"
    whole, skewed = angles["least error", "n", "2"], angles["least error", choice, "none"]
    printed = angles["least error", choice, "printed"]
    assert whole.defect < 1e-8
    assert min(skewed.defect, printed.defect) > 1e-4


def test_the_papers_scheme_is_exact_where_the_basis_spans_the_feature_space():
    X = rising_parabola(200)
    model = PaperIncrementalPCA(POLYNOMIAL, 3).fit(X)
    batch = KernelPCA(3, kernel=POLYNOMIAL, eigen_solver="dense").fit(X)
    assert len(model.basis_) <= 40
    np.testing.assert_allclose(model.eigenvalues_, batch.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(batch.transform(X)), atol=1e-6)


def test_the_roll_streams_to_the_components_that_batch_separates():
    roll = manifolds.roll()
    assert roll.library_rows <= 200
    assert len(roll.separated) >= 5
    assert roll.correlations[roll.separated].min() >= 0.99
    assert roll.angles(10)[0] < 3


def test_the_papers_scheme_on_a_small_roll():
    X, along, _ = manifolds.perforated_swiss_roll(240)
    result = manifolds.compare(
        "Swiss roll", X, along, 3, parabola.RBF, PaperIncrementalPCA(parabola.RBF, 20, 5)
    )
    assert result.library_rows <= 105
    assert result.correlations.min() > 0.99


def test_the_videos_stream_to_nearly_the_same_components(data_folder):
    teapots, frey = manifolds.real_manifolds(data_folder)
    assert teapots.row((3,))["angle_3"] < 10
    assert frey.row((3,))["angle_3"] < 2
    assert frey.row((3,))["captured"] > 0.99


def test_many_rows_from_a_small_basis():
    _, gamma, load = large_rows(None)
    kernel = {"kernel": "rbf", "gamma": gamma}
    X = load(2500)
    with threadpool_limits(1):
        model = IncrementalKernelPCA(16, max_basis_rows=250, **kernel).fit(X)
    exact = KernelPCA(16, eigen_solver="krylov", tol=1e-4, random_state=0, **kernel).fit(X)
    captured = captured_variance(model.transform(X))
    assert len(model.basis_) <= 250
    # No subspace explains more than the exact one.
    assert 0.95 <= captured / exact.eigenvalues_.sum(dtype=np.float64) <= 1 + 1e-6
    # The model must not report more variance than it explains.
    assert model.eigenvalues_[:16].sum(dtype=np.float64) <= captured * 1.001
