"""Pictures of streams: that they can be drawn, and show what they are given."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca_papers.chin2006.manifolds import Manifold
from ikpca_papers.chin2006.parabola import PAPER_ROWS, PAPER_SECONDS, Course, Duration
from ikpca_papers.chin2006.stream_costs import StreamCost

streams = pytest.importorskip("benchmarks.stream_figures", reason="needs matplotlib")


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_growth_tells_exponent_and_ends():
    seconds, held = (0.01,) * 100, (2000,) * 100
    costs = [
        StreamCost(1000, 0.1, seconds[:10], (), held[:10], None, (1.0,)),
        StreamCost(10000, 1.0, seconds, seconds[10:], held, None, (1.0,)),
    ]
    total, update, memory = streams.stream_growth_plot(costs, "rows").axes
    assert "exponent 1.00" in texts(total)
    assert "at the end 10 ms" in texts(update)
    assert "at the end 2 kB" in texts(memory)


def test_the_paper_stands_beside():
    found = [Duration(method, PAPER_ROWS, PAPER_SECONDS[method]) for method in PAPER_SECONDS]
    for axes, row in zip(streams.durations_plot(found, "rows").axes, found, strict=True):
        paper, ours = axes.get_lines()
        np.testing.assert_allclose(paper.get_ydata(), ours.get_ydata())
        assert axes.get_title(loc="left") == row.method


def test_contours_are_drawn_with_the_first_models_signs():
    from ikpca_papers.figures.curves import contours
    from ikpca_papers.measures import surfaces

    class Tilted:
        def __init__(self, sign):
            self.sign = sign

        def transform(self, X):
            return self.sign * X

    X = np.random.default_rng(0).normal(size=(50, 2))
    first, _, second, _ = contours(surfaces(X, {"a": Tilted(1.0), "b": Tilted(-1.0)}, 2)).axes
    ours, theirs = (axes.collections[-1] for axes in (first, second))
    np.testing.assert_allclose(ours.levels, theirs.levels)
    for mine, other in zip(ours.get_paths(), theirs.get_paths(), strict=True):
        np.testing.assert_allclose(mine.vertices, other.vertices)


def test_every_library_has_a_panel():
    from benchmarks.stream_figures import drift_plot

    courses = [
        Course(library, left_out, (1, 2), (1.0, 1.0), (0.1, 0.2), (0.0, 0.0))
        for library in ("a", "b")
        for left_out in ("nothing", "mean update")
    ]
    panels = drift_plot(courses, "rows").axes
    assert [len(axes.get_lines()) for axes in panels] == [2, 2]


def test_batch_and_streamed_share_their_axes():
    from benchmarks.stream_figures import projections_plot, spectra_plot

    Y = np.random.default_rng(0).normal(size=(30, 4))
    values = np.array([4.0, 3.0, 2.0, 1.0])
    found = Manifold("roll", np.linspace(0, 1, 30), Y, Y, values, values, np.eye(4), 9)
    upper, _, lower, _ = projections_plot(found, 4).axes
    assert upper.get_xlim() == lower.get_xlim()
    batch, streamed = spectra_plot([found]).axes[0].get_lines()
    np.testing.assert_array_equal(batch.get_ydata(), streamed.get_ydata())
