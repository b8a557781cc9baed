"""Hyperresolution of photographs and faces (Kim 2003, section 4.2), with tables and pictures.

BSDS and Extended Yale B come from the folder named by IKPCA_DATA; without it, scikit-learn's two
photographs and its digits stand in.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from ikpca_papers.figures import picture_grid, png
from ikpca_papers.kim2003 import faces
from ikpca_papers.kim2003.natural_super_resolution import (
    Contestants,
    Enlarged,
    centre,
    enlarge_photographs,
    photographs,
    sigma_of,
)
from ikpca_papers.runner import write_bytes

N_DRAWN = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/hyperresolution"))
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    parser.add_argument("--only", choices=["photographs", "faces"])
    parser.add_argument("--size", type=int, nargs=2, default=(160, 240), help="of a test image")
    parser.add_argument("--factor", type=int, default=4, help="for photographs")
    parser.add_argument("--patches", type=int, default=7000)
    parser.add_argument("--components", type=int, default=300)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.only != "faces":
        run_photographs(arguments)
    if arguments.only != "photographs":
        run_faces(arguments)


def run_photographs(arguments: argparse.Namespace) -> None:
    train, tests = photographs(arguments.data)
    began = time.perf_counter()
    contestants = Contestants.trained(
        list(train.values()),
        arguments.factor,
        n_patches=arguments.patches,
        n_components=arguments.components,
        eigen_solver="krylov",
        random_state=0,
    )
    model = contestants.chosen
    print(
        f"Photographs: {len(train)} to learn from, {model.n_patches_} patches of 14×14, "
        f"{arguments.components} components; factor {arguments.factor}; σ chosen on them: "
        f"{sigma_of(model):.2f}; * made consistent; {time.perf_counter() - began:.0f} s"
    )
    table, results = {}, []
    for found in enlarge_photographs(tests, contestants, tuple(arguments.size)):
        if not results:
            print(f"{'SNR in dB':14s}" + "".join(f"{name:>13s}" for name in found.ratios))
        ratios = found.ratios
        line = "".join(f"{ratio:13.2f}" for ratio in ratios.values())
        print(f"{found.name:14s}{line}   rank {found.rank}", flush=True)
        table[found.name] = {**ratios, "size": found.sharp.shape, "rank": found.rank}
        results.append(found)
    means = {name: np.mean([found.ratios[name] for found in results]) for name in ratios}
    print(f"{'mean':14s}" + "".join(f"{mean:13.2f}" for mean in means.values()))
    wins = {
        rival: sum(found.ratios["overlapping"] > found.ratios[rival] for found in results)
        for rival in ratios
        if rival != "overlapping"
    }
    print(f"overlapping beats, of {len(results)} images of "
          f"{'×'.join(map(str, results[0].sharp.shape))}: {wins}; "
          f"{time.perf_counter() - began:.0f} s in all")  # fmt: skip
    save_table(arguments.out / "photographs.json", table)
    draw_photographs(arguments.out / "photographs.png", results[:N_DRAWN], arguments.factor)


def draw_photographs(path: Path, results: list[Enlarged], factor: int) -> None:
    methods = ["nearest", "bilinear", "linear PCA", "σ = 0.5", "block-wise", "overlapping"]
    rows, notes = [], []
    for found in results:
        low = centre(found.low, (20, 30), 1)
        large = [found.sharp, *(found.images[name] for name in methods)]
        sharp, *others = (centre(image, (20 * factor, 30 * factor), factor) for image in large)
        rows.append([sharp, low, *others])
        notes.append([found.name, "", *(f"{found.ratios[name]:.2f} dB" for name in methods)])
    titles = ["original", "low resolution", *methods]
    write_bytes(path, png(picture_grid(rows, titles, notes)))


def run_faces(arguments: argparse.Namespace) -> None:
    began = time.perf_counter()
    if arguments.data is None:
        factor, ranks, few, images = 2, (5, 10, 20), 300, faces.small_digits()
    else:
        factor, ranks, few, images = 3, (10, 50, 100), 1000, faces.large_faces(arguments.data)
    split = faces.FaceSplit.drawn(images, n_test=100)
    print(f"Faces: {len(split.train)} of {images.shape[1]}×{images.shape[2]} to learn from, "
          f"{len(split.test)} to restore; factor {factor}")  # fmt: skip
    print(f"{'method':34s} {'r':>5s} {'σ':>6s} {'MSE (pixels 0–255)':>20s}")
    shown: dict[str, Any] = {}
    table = []
    for found in faces.restore(split, factor, ranks, few):
        rank = "" if found.n_components is None else str(found.n_components)
        sigma = "" if found.sigma is None else f"{found.sigma:.2f}"
        print(f"{found.name:34s} {rank:>5s} {sigma:>6s} {found.error:20.2f}", flush=True)
        table.append({"method": found.name, "r": rank, "sigma": sigma, "mse": found.error})
        if found.n_components in (None, max(ranks)):
            shown[found.name] = found.images
    print(f"{time.perf_counter() - began:.0f} s")
    save_table(arguments.out / "faces.json", table)
    titles = ["original", *(name.replace(", ", "\n") for name in shown)]
    rows = [[split.test[i], *(found[i] for found in shown.values())] for i in range(6)]
    write_bytes(arguments.out / "faces.png", png(picture_grid(rows, titles)))


def save_table(path: Path, table: Any) -> None:
    write_bytes(path, json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
