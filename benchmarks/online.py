"""Online KHA on streams (Kim 2003, appendix A): a rotating distribution, convergence, starts."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from ikpca_papers.data import parabola
from ikpca_papers.figures import png, tracking
from ikpca_papers.kim2003.online import Rotation, converge, starts_of_figures_6_and_7, track

WARM_UP = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/online"))
    parser.add_argument("--rows", type=int, default=9000)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rotations = [Rotation(shape, n=arguments.rows) for shape in ("ellipse", "parabola")]
    tracks = {rotation: track(rotation) for rotation in rotations}
    print(f"angle to the truth of the moment after {WARM_UP} rows, degrees; Gaussian, σ = 1")
    print(f"{'stream':10s} {'gain':28s} {'worst':>7s} {'mean':>7s} {'library':>8s}")
    for rotation, curves in tracks.items():
        for curve in curves:
            late = curve.angles[curve.times > WARM_UP]
            print(f"{rotation.shape:10s} {curve.name:28s} {late.max():7.1f} {late.mean():7.1f} "
                  f"{curve.library:8d}")  # fmt: skip
    (arguments.out / "tracking.png").write_bytes(png(tracking(tracks)))
    print("\nparabola: variance held over that of the batch's components; |correlation| with each")
    starts = [found for _, found in starts_of_figures_6_and_7(parabola(2000))]
    table = [*converge(), *converge(init="random"), *starts]
    for found in table:
        cells = " ".join(f"{value:.4f}" for value in (found.held, *found.correlations))
        print(f"{found.kernel:22s} {found.start:9s} {found.n:6d}   {cells}", flush=True)
    (arguments.out / "online.json").write_text(
        json.dumps([asdict(found) for found in table], indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
