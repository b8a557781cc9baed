"""Chin and Suter 2006, table 2: kernel components and ten nearest neighbors."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from ikpca_papers.chin2006.eigenfaces import plan, summary
from ikpca_papers.experiment import Inputs, Request
from ikpca_papers.inputs import load_inputs

SETTINGS = {"components": 16, "batch": 30, "subset": 300, "splits": 1}


def test_more_digits_make_fewer_errors():
    pixels, y = load_digits(return_X_y=True)
    request = Request(SETTINGS, Inputs("digits", "embedded", {"X": pixels / 16, "y": y}, ""))
    chosen = [part for part in plan(request) if "polynomial" in part.name]
    rows = [row for part in chosen for row in part.task().tables["table_2"]]
    errors = {(row["algorithm"], row["set"]): row["error"] for row in rows}
    assert errors["IKPCA", "all"] < errors["KPCA", "subset"]
    assert errors["selected rows", "all"] < errors["KPCA", "subset"]
    for row in rows:
        rows = [*rows, {**row, "kernel": "Gaussian, σ = 1", "error": 50.0}]
    differences = {
        row["kernel"]: row["same_subset"] for row in summary({"table_2": rows})["differences"]
    }
    assert differences["Gaussian, σ = 1"] == 0
    assert differences["polynomial, degree 2"] <= 2


def test_faces_are_shrunk_without_losing_light(data_folder):
    arrays = load_inputs("yale-b-20", data_folder).arrays
    X, people = arrays["X"], arrays["y"]
    assert X.shape == (2414, 400)
    assert len(set(people)) == 38
    with np.load(data_folder / "yaleb_cropped_64x56.npz") as data:
        light = data["images"].mean(axis=(1, 2)) / 255
    np.testing.assert_allclose(X.mean(axis=1), light, atol=1e-12)
