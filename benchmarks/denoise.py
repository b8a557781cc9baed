"""Denoising of noisy photographs: ours with nothing set, beside others at their best.

Cameraman, boat and house come from the folder named by IKPCA_DATA; without it, scikit-learn's china
and flower. Non-local means need scikit-image. Parameters of the others are chosen by looking at the
clean image, ours are not.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.figures import picture_grid, png
from ikpca_papers.guenter2006.image_denoising import (
    DENOISERS,
    VARIANTS,
    Case,
    Denoised,
    cases,
    denoised,
    oracles,
)


def contest(case: Case, variants: bool) -> list[Denoised]:
    chosen = VARIANTS if variants else DENOISERS
    found = [] if variants else list(oracles(case))
    return [*found, *(denoised(name, function, case) for name, function in chosen.items())]


def shown(case: Case, found: list[Denoised]) -> tuple[list[np.ndarray], list[str]]:
    """A quarter of each picture, so that the eye can judge, and what stands below it."""
    part = tuple(slice(length // 4, 3 * length // 4) for length in case.clean.shape)
    noisy = signal_to_noise_ratio(case.clean, case.noisy)
    images = [case.clean, case.noisy, *(one.image for one in found)]
    notes = [case.name, f"{noisy:.1f} dB", *(f"{one.decibels:.1f} dB" for one in found)]
    return [image[part] for image in images], notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/denoise"))
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    parser.add_argument("--variants", action="store_true", help="ours with one thing changed each")
    parser.add_argument("--case", help="only this image")
    arguments = parser.parse_args()
    table, pictures = [], []
    for case in cases(arguments.data):
        if arguments.case not in (None, case.name):
            continue
        found = contest(case, arguments.variants)
        print(f"{case.name}, noise {case.level:g}: SNR in dB (seconds)")
        for one in found:
            seconds = f"({one.seconds:5.1f})"
            print(f"  {one.name:18s} {one.decibels:6.2f} {seconds}  {one.note}", flush=True)
            row = {"image": case.name, "noise": case.level, "method": one.name}
            found_out = {"decibels": one.decibels, "seconds": one.seconds, "note": one.note}
            table.append(row | found_out)
        pictures.append(shown(case, found))
    arguments.out.mkdir(parents=True, exist_ok=True)
    name = "variants" if arguments.variants else "denoise"
    (arguments.out / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n")
    titles = ["clean", "noisy", *(one.name for one in found)]
    rows, notes = zip(*pictures, strict=True)
    (arguments.out / f"{name}.png").write_bytes(png(picture_grid(rows, titles, notes), dpi=150))


if __name__ == "__main__":
    main()
