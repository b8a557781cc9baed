"""Plots of fitted models."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

pytest.importorskip("matplotlib").use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.transforms import Bbox  # noqa: E402

from ikpca import HebbianPCA, IncrementalKernelPCA, KernelPCA  # noqa: E402
from ikpca.errors import InvalidInput  # noqa: E402
from ikpca.plotting import (  # noqa: E402
    components,
    contributions,
    convergence,
    loadings,
    projections,
    score_page,
    scree,
)
from ikpca.solvers import KHA  # noqa: E402

X, Y = load_digits(return_X_y=True)
X, Y = X[:240] / 16, Y[:240]
MODEL = KernelPCA(5, kernel="rbf", gamma=0.02, eigen_solver="kha/et", max_iter=6, random_state=0)
MODEL.fit(X)


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def test_scree_shows_the_shares_and_their_sum():
    axes = scree(MODEL)
    shares = MODEL.explained_variance_ratio_
    assert_allclose([bar.get_height() for bar in axes.patches], shares)
    assert_allclose(axes.lines[0].get_ydata(), np.cumsum(shares))


def test_scree_of_scikit_learn():
    assert len(scree(PCA(3).fit(X)).patches) == 3


def test_contributions_shows_the_largest_means():
    C = np.array([[0.1, 0.5, 0.0, 0.2], [0.1, 0.1, 0.0, 0.6]])
    axes = contributions(C, ["a", "b", "c", "d"], number=3)
    assert_allclose([bar.get_width() for bar in axes.patches], [0.4, 0.3, 0.1])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["d", "b", "a"]
    assert contributions(C[0], ax=axes) is axes


def test_given_axes_are_used_and_returned():
    axes = pyplot.figure().add_subplot()
    assert scree(MODEL, ax=axes) is axes
    assert projections(MODEL.transform(X), ax=axes) is axes
    assert convergence(MODEL, ax=axes) is axes
    assert len(pyplot.get_fignums()) == 1


@pytest.mark.parametrize("quantity", ["residual", "excess_error", "change"])
def test_convergence_shows_the_history(quantity):
    (line,) = convergence(MODEL, quantity).lines
    told = [r.residuals.max() if quantity == "residual" else getattr(r, quantity)
            for r in MODEL.history_]  # fmt: skip
    assert_array_equal(line.get_xdata(), np.arange(1, 7))
    assert_allclose(line.get_ydata(), told)


def test_convergence_marks_what_was_undone():
    solver = KHA("kha", gain=50.0)
    with pytest.warns(match="gain"):
        model = KernelPCA(3, kernel="rbf", gamma=0.02, eigen_solver=solver, max_iter=8,
                          random_state=0).fit(X)  # fmt: skip
    undone = [record.number for record in model.history_ if record.note]
    assert undone
    assert_array_equal(convergence(model).lines[1].get_xdata(), undone)


def test_convergence_names_every_model():
    axes = convergence({"a": MODEL, "b": MODEL})
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]


def test_projections_take_the_pair_and_the_labels():
    points = MODEL.transform(X)
    axes = projections(points, Y == 3, pair=(2, 1))
    drawn, *legend = axes.collections
    places, colors = np.asarray(drawn.get_offsets()), drawn.get_facecolors()
    for label, entry in zip((False, True), legend, strict=True):
        own = (colors == entry.get_facecolors()).all(axis=1)
        expected = points[label == (Y == 3)][:, [2, 1]]
        assert_allclose(np.sort(places[own], axis=0), np.sort(expected, axis=0))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["False", "True"]


def test_many_labels_have_a_color_scale():
    axes = projections(MODEL.transform(X), X[:, 20] + np.arange(240))
    assert axes.get_legend() is None
    assert len(axes.figure.axes) == 2


def shown(figure):
    return [np.asarray(axes.images[0].get_array()).ravel() for axes in figure.axes]


def test_components_of_a_linear_kernel_are_those_of_pca():
    kernel = KernelPCA(3, kernel="linear").fit(X)
    linear = PCA(3).fit(X)
    for picture, component in zip(shown(components(kernel, (8, 8))), linear.components_,
                                  strict=True):  # fmt: skip
        cosine = picture @ component / np.linalg.norm(picture)
        assert abs(cosine) > 1 - 1e-6


def test_components_of_an_explicit_model_are_drawn_as_they_are():
    model = HebbianPCA(2, random_state=0).fit(X)
    assert_allclose(shown(components(model, (8, 8))), model.components_)


def test_components_of_a_stream():
    model = IncrementalKernelPCA(4, kernel="rbf", gamma=0.02).fit(X)
    assert len(shown(components(model, (8, 8), number=3))) == 3


REFUSED = [
    (lambda: convergence(MODEL, "speed"), "quantity='speed'"),
    (lambda: convergence(IncrementalKernelPCA(2).fit(X)), "fit a KernelPCA"),
    (lambda: projections(X, Y[:5]), "240 rows"),
    (lambda: projections(X, pair=(0, 64)), "pair"),
    (lambda: components(MODEL, (8, 9)), "64 features"),
    (lambda: scree(MODEL.to_sklearn()), "from_sklearn"),
    (lambda: contributions(np.ones((2, 3)), ["a"]), "names has 1"),
    (lambda: contributions(np.ones((2, 3)), number=0), "number=0"),
    (lambda: contributions(np.ones((0, 3))), "C has shape"),
]


def test_refusals_are_one_sentence_before_any_figure(subtests):
    for call, rule in REFUSED:
        with subtests.test(rule):
            with pytest.raises(InvalidInput, match=rule):
                call()
            assert not pyplot.get_fignums()


@pytest.mark.parametrize("draw", [scree, convergence, lambda m: components(m, (8, 8))])
def test_unfitted_models_are_refused(draw):
    with pytest.raises(NotFittedError):
        draw(KernelPCA(2))


def test_missing_matplotlib_is_an_error_with_the_install_command():
    code = "import sys; sys.modules['matplotlib'] = None\nimport ikpca.plotting"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'ikpca[plot]'" in done.stderr.strip().splitlines()[-1]


def test_loadings_of_a_linear_model_are_its_components():
    model = PCA(3).fit(X)
    axes = loadings(model, numbers=(0, 2))
    weights = np.abs(model.components_[[0, 2]]).max(axis=0)
    largest = np.sort(np.argsort(-weights, kind="stable")[:20])
    assert_allclose(axes.images[0].get_array(), model.components_[[0, 2]][:, largest].T)
    assert [text.get_text() for text in axes.get_yticklabels()] == [str(at + 1) for at in largest]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "3"]


def test_loadings_of_a_kernel_model_are_differences_of_preimages():
    step = np.zeros((2, 5))
    step[:, 1] = np.sqrt(MODEL.eigenvalues_[1] / len(X)) * np.array([2, -2])
    up, down = MODEL.inverse_transform(step)
    drawn = loadings(MODEL, numbers=(1,)).images[0].get_array()[:, 0]
    largest = np.sort(np.argsort(-abs(up - down), kind="stable")[:20])
    assert_allclose(drawn, (up - down)[largest])


def test_the_plots_of_a_page_do_not_overlap():
    figure = score_page(MODEL, MODEL.transform(X), Y)
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for box, other in combinations(boxes, 2):
        shared = Bbox.intersection(box, other)
        # A pixel for rounding.
        assert shared is None or min(shared.width, shared.height) < 1


def test_a_page_has_three_plots():
    labels = [axes.get_xlabel() for axes in score_page(MODEL, MODEL.transform(X), pair=(1, 3)).axes]
    assert labels[:3] == ["Component 2", "Component", "Component"]
    assert not pyplot.get_fignums()
