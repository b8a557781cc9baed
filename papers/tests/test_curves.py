"""Figures of tracking and contour lines."""

from __future__ import annotations

import numpy as np

from ikpca_papers.figures import png, tracking
from ikpca_papers.figures.curves import contours
from ikpca_papers.kim2003.online import Rotation, Track
from ikpca_papers.metrics import surfaces


def tracks():
    times = np.arange(50.0, 1001.0, 50.0)
    curves = [Track(name, times, np.full(20, angle), 64) for name, angle in (("a", 9), ("b", 60))]
    return {Rotation(shape, n=1000): curves for shape in ("ellipse", "parabola")}


def test_every_stream_has_its_curves_and_the_limit():
    figure = tracking(tracks(), limit=15.0)
    assert len(figure.axes) == 2
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines] == ["a", "b"]
        assert [curve.get_ydata()[0] for curve in axes.lines] == [9, 60]
        assert axes.collections[0].get_segments()[0][0][1] == 15.0
        assert {"a", "b"} == {text.get_text() for text in axes.texts}


def test_it_is_a_png():
    assert png(tracking(tracks())).startswith(b"\x89PNG")


def test_contours_are_drawn_with_the_first_models_signs():
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
