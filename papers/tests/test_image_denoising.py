"""Günter 2006, section 5.2: denoised photographs, with nothing set."""

from __future__ import annotations

import pytest

from ikpca.applications import denoise_image
from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.guenter2006.image_denoising import Case, cases, oracles


@pytest.mark.parametrize("name", ["cameraman", "boat", "house"])
def test_ours_is_above_linear_pca_at_its_best_rank(data_folder, name):
    """A quarter of the picture; linear PCA has its rank chosen by the clean image."""
    for whole in cases(data_folder, levels=(0.1, 0.2)):
        if whole.name == name:
            part = slice(128, 384), slice(128, 384)
            case = Case(name, whole.level, whole.clean[part], whole.noisy[part])
            linear = next(oracles(case))
            ours = signal_to_noise_ratio(case.clean, denoise_image(case.noisy))
            assert ours > linear.decibels
