"""Signal-to-noise ratio of denoised Lena with exact components, for several levels of noise.

Günter 2006, section 5.2, reports 13.46 dB but neither the noise nor the definition of the ratio.
Exact components of the four sub-images take gains and passes out of the comparison; the ratio is
computed from the variance of the clean image and from its squared pixels. The figures are quoted
in the experiment ``lena-multipatch``. IKPCA_DATA names the folder of test_images_512.npz; about a
minute per level on one core.
"""

from __future__ import annotations

import argparse

import numpy as np

from ikpca import KernelPCA
from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.guenter2006.image_denoising import SubImages, denoise_rows
from ikpca_papers.inputs import load_inputs

PARTS = SubImages(side=256, part=133, window=11, stride=2)
SIGMA, COMPONENTS = 1.0, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", type=float, nargs="+", default=[0.02, 0.1, 0.2, 0.35])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    clean = np.asarray(load_inputs("lena").arrays["image"], dtype=np.float64)
    print("noise  before  after, by variance  after, by squares  λ1 and λ20 of the first sub-image")
    for level in arguments.levels:
        rng = np.random.default_rng(arguments.seed)
        noisy = clean + level * rng.normal(size=clean.shape)
        windows, spectra = zip(*(denoise_windows(part) for part in PARTS.cut(noisy)), strict=True)
        image = PARTS.join(windows)
        print(
            f"{level:5g}  {signal_to_noise_ratio(clean, noisy):6.2f}"
            f"  {signal_to_noise_ratio(clean, image):18.2f}  {by_squares(clean, image):17.2f}"
            f"  {spectra[0][0]:.4g}, {spectra[0][-1]:.4g}",
            flush=True,
        )


def denoise_windows(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Denoise the windows of a sub-image by exact components; also return the eigenvalues."""
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
    rows = denoise_rows(X, SIGMA, vectors / scale[:, None], vectors * scale[:, None])
    return rows, model.eigenvalues_


def by_squares(clean: np.ndarray, image: np.ndarray) -> float:
    """Compute 10 log10(Σx²/Σ(x − z)²)."""
    return float(10 * np.log10(np.sum(clean**2) / np.sum((clean - image) ** 2)))


if __name__ == "__main__":
    main()
