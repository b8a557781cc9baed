"""Noisy walks denoised (Günter 2006, figure 4): by how much the mean squared error falls.

CMU's recordings come from the folder named by IKPCA_DATA and are left out where that is absent; the
synthetic walker is always there. Baselines marked * were set with the clean frames in view.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.signal import savgol_filter
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from ikpca.applications import denoise_motion
from ikpca_papers.figures import motion_gif, png, stick_figures
from ikpca_papers.mocap import (
    Motion,
    as_rows,
    body_centred,
    in_metres,
    read_asf_amc,
    synthetic_walker,
    with_noise,
)

COLUMNS = ("σ²=0.1", "σ²=1.5", "nothing set", "PCA*", "neighbours*", "in time*")


def walks(data: Path | None) -> Iterator[tuple[str, Motion]]:
    yield "walker", body_centred(synthetic_walker())
    for name in ("35_01", "07_01") if data is not None else ():
        skeleton, frames = (data / "mocap" / file for file in (f"{name[:2]}.asf", f"{name}.amc"))
        yield name, body_centred(in_metres(read_asf_amc(skeleton, frames)))


def papers(noisy: Motion, variance: float) -> np.ndarray:
    """25 components by KHA-SMD; the paper has σ² = 1.5 and no unit."""
    return denoise_motion(
        noisy.positions, gamma=1 / (2 * variance), n_components=25, eigen_solver="kha-smd",
        random_state=0,
    )  # fmt: skip


def baselines(noisy: Motion) -> dict[str, list[np.ndarray]]:
    """Every setting of what needs no kernel; the best is taken with the clean frames in view."""
    X = as_rows(noisy)
    models = [PCA(rank).fit(X) for rank in range(1, 30)]
    nearest = NearestNeighbors(n_neighbors=60).fit(X).kneighbors(X, return_distance=False)
    return {
        "PCA*": [model.inverse_transform(model.transform(X)) for model in models],
        "neighbours*": [X[nearest[:, :k]].mean(axis=1) for k in range(3, 61, 3)],
        "in time*": [savgol_filter(X, window, 3, axis=0) for window in range(5, 122, 4)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/motion"))
    folder = os.environ.get("IKPCA_DATA")
    parser.add_argument("--data", type=Path, default=folder and Path(folder))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(f"fall of the mean squared error, %; mean of {arguments.seeds} seeds [least]")
    print(f"{'walk':8s} {'noise':>6s}" + "".join(f"{name:>14s}" for name in COLUMNS))
    table = []
    for name, clean in walks(arguments.data):
        for scale in (0.02, 0.05, 0.1):
            runs = [compare(clean, scale, seed) for seed in range(arguments.seeds)]
            row = {column: [run[column] for run in runs] for column in COLUMNS}
            table.append({"walk": name, "noise": scale, **row})
            cells = (f"{100 * np.mean(v):7.1f} [{100 * min(v):4.1f}]" for v in row.values())
            print(f"{name:8s} {scale:6g}" + "".join(cells), flush=True)
        noisy = with_noise(clean, 0.05, seed=0)
        denoised = clean.with_positions(denoise_motion(noisy.positions))
        takes = {"clean": clean, "noisy": noisy, "denoised": denoised}
        (arguments.out / f"{name}.png").write_bytes(png(stick_figures(takes)))
        (arguments.out / f"{name}.gif").write_bytes(motion_gif(takes))
    (arguments.out / "motion.json").write_text(json.dumps(table, indent=1) + "\n")


def compare(clean: Motion, scale: float, seed: int) -> dict[str, float]:
    noisy = with_noise(clean, scale, seed)
    noise = np.mean((noisy.positions - clean.positions) ** 2)

    def fall(found: np.ndarray) -> float:
        return float(1 - np.mean((found.ravel() - clean.positions.ravel()) ** 2) / noise)

    falls = {f"σ²={variance}": fall(papers(noisy, variance)) for variance in (0.1, 1.5)}
    falls["nothing set"] = fall(denoise_motion(noisy.positions))
    return falls | {name: max(map(fall, found)) for name, found in baselines(noisy).items()}


if __name__ == "__main__":
    main()
