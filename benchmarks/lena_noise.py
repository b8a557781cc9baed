"""How much noise Günter 2006, section 5.2, may have had: the ratio that exact components come to.

The paper prints a signal-to-noise ratio of 13.46 dB and neither the noise nor the definition. Here
the exact components of the four sub-images are used, so that no gain and no pass matters, and the
ratio is given with the variance of the clean image above the error, and with its squared pixels.
IKPCA_DATA names the folder of test_images_512.npz; about a minute per level on one core.
"""

from __future__ import annotations

import argparse

import numpy as np

from ikpca import KernelPCA
from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.guenter2006.image_denoising import SubImages, denoised_rows
from ikpca_papers.inputs import load_inputs

PARTS = SubImages(side=256, part=133, window=11, stride=2)
SIGMA, COMPONENTS = 1.0, 20


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", type=float, nargs="+", default=[0.02, 0.1, 0.2, 0.35])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    clean = np.asarray(load_inputs("lena").arrays["image"], dtype=np.float64)
    print("noise  before  after, by variance  after, by squares  λ1 and λ20 of the first sub-image")
    for level in arguments.levels:
        rng = np.random.default_rng(arguments.seed)
        noisy = clean + level * rng.normal(size=clean.shape)
        windows, spectra = zip(*(denoised(part) for part in PARTS.cut(noisy)), strict=True)
        image = PARTS.joined(windows)
        print(
            f"{level:5g}  {signal_to_noise_ratio(clean, noisy):6.2f}"
            f"  {signal_to_noise_ratio(clean, image):18.2f}  {by_squares(clean, image):17.2f}"
            f"  {spectra[0][0]:.4g}, {spectra[0][-1]:.4g}",
            flush=True,
        )


def denoised(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Windows of a sub-image as exact components see them, and the eigenvalues."""
    X = PARTS.grid.extract(part)
    model = KernelPCA(
        COMPONENTS,
        kernel="rbf",
        gamma=1 / (2 * SIGMA**2),
        eigen_solver="krylov",
        tol=1e-6,
        random_state=0,
    ).fit(X)
    scale = np.sqrt(model.eigenvalues_)
    vectors = model.eigenvectors_.T
    rows = denoised_rows(X, SIGMA, vectors / scale[:, None], vectors * scale[:, None])
    return rows, model.eigenvalues_


def by_squares(clean: np.ndarray, image: np.ndarray) -> float:
    """10 log10(Σx²/Σ(x − z)²)."""
    return float(10 * np.log10(np.sum(clean**2) / np.sum((clean - image) ** 2)))


if __name__ == "__main__":
    main()
