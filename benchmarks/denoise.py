"""Denoising of photographs: ``denoise_image`` with default settings against other methods.

Cameraman, boat and house are read from the folder named by IKPCA_DATA; without it scikit-learn's
china and flower are used. Non-local means need scikit-image. The parameters of the other methods
are chosen by the clean image.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from ikpca import KernelPCA
from ikpca.kernels import Floats
from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.applications import denoise_image
from ikpca_papers.figures import picture_grid, png
from ikpca_papers.guenter2006.image_denoising import Case, Denoised, cases, oracles, run_denoiser

#: One setting changed each.
VARIANTS: dict[str, Callable[[Floats], Floats]] = {
    "projection only": partial(
        denoise_image,
        scheme="single",
        shrink=False,
        pca=KernelPCA(12, kernel="rbf", gamma="scale", random_state=0),
    ),
    "one model": partial(denoise_image, scheme="single"),
    "sub-images": partial(denoise_image, scheme="sub-images"),
    "groups (default)": denoise_image,
    "linear kernel": partial(denoise_image, pca=KernelPCA(64, kernel="linear", tol=1e-3)),
}


def compare(case: Case, variants: bool) -> list[Denoised]:
    if variants:
        return [run_denoiser(name, denoiser, case) for name, denoiser in VARIANTS.items()]
    return [*oracles(case), run_denoiser("denoise_image", denoise_image, case)]


def crop(case: Case, result: list[Denoised]) -> tuple[list[np.ndarray], list[str]]:
    """Cut out the center of each image, and return it with a caption."""
    part = tuple(slice(length // 4, 3 * length // 4) for length in case.clean.shape)
    noisy = signal_to_noise_ratio(case.clean, case.noisy)
    images = [case.clean, case.noisy, *(one.image for one in result)]
    notes = [case.name, f"{noisy:.1f} dB", *(f"{one.decibels:.1f} dB" for one in result)]
    return [image[part] for image in images], notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/denoise"))
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    parser.add_argument("--variants", action="store_true", help="settings of denoise_image")
    parser.add_argument("--case", help="only this image")
    arguments = parser.parse_args()
    table, pictures = [], []
    for case in cases(arguments.data):
        if arguments.case not in (None, case.name):
            continue
        result = compare(case, arguments.variants)
        print(f"{case.name}, noise {case.level:g}: SNR in dB (seconds)")
        for one in result:
            seconds = f"({one.seconds:5.1f})"
            print(f"  {one.name:18s} {one.decibels:6.2f} {seconds}  {one.note}", flush=True)
            table.append(
                {"image": case.name, "noise": case.level, "method": one.name,
                 "decibels": one.decibels, "seconds": one.seconds, "note": one.note}
            )  # fmt: skip
        pictures.append(crop(case, result))
    arguments.out.mkdir(parents=True, exist_ok=True)
    name = "variants" if arguments.variants else "denoise"
    (arguments.out / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n")
    titles = ["clean", "noisy", *(one.name for one in result)]
    rows, notes = zip(*pictures, strict=True)
    (arguments.out / f"{name}.png").write_bytes(png(picture_grid(rows, titles, notes), dpi=150))


if __name__ == "__main__":
    main()
