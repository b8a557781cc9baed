"""Streams: the experiments of Chin and Suter 2006, section 6, and MNIST, each with its claims.

Real data come from the folder named by IKPCA_DATA; without it, faces are scikit-learn's digits, and
the videos are left out. --full streams up to 100,000 rows of the parabola, and MNIST (minutes).
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import large_stream
from benchmarks.stream_figures import (
    drift_plot,
    durations_plot,
    projections_plot,
    spectra_plot,
    stream_growth_plot,
)
from sklearn.datasets import load_digits

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.kernels import Floats
from ikpca_papers.chin2006 import eigenfaces, manifolds, parabola
from ikpca_papers.chin2006.eigenfaces import faces
from ikpca_papers.chin2006.parabola import PARABOLA_GAMMA, rising_parabola
from ikpca_papers.chin2006.stream_costs import growth_claims as growth_claims
from ikpca_papers.chin2006.stream_costs import stream_costs
from ikpca_papers.figures import png
from ikpca_papers.figures.curves import contours
from ikpca_papers.large import large_rows
from ikpca_papers.limits import Claim, as_rows
from ikpca_papers.measures import surfaces

GAUSSIAN = {"kernel": "rbf", "gamma": PARABOLA_GAMMA}


@dataclass(frozen=True)
class Desk:
    """Where results go, and what may be used for them."""

    out: Path
    data: Path | None
    full: bool
    threads: int
    exact: Path | None

    def tell(self, name: str, table: Any, claims: Iterable[Claim]) -> None:
        """Print the claims, keep them with the table."""
        found = list(claims)
        for claim in found:
            print(claim, flush=True)
        result = {"table": table, "claims": as_rows(found)}
        (self.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")

    def draw(self, name: str, figure: Any) -> None:
        """Keep a picture."""
        (self.out / f"{name}.png").write_bytes(png(figure, 160))


def run_growth(desk: Desk) -> None:
    sizes = [1000, 3000, 10000, 30000, 100000] if desk.full else [1000, 3000, 10000]
    costs = stream_costs(rising_parabola, sizes, {"n_components": 3, **GAUSSIAN})
    print("| rows | seconds | peak MB | held kB | correlations |")
    print("| ---: | ---: | ---: | ---: | --- |")
    for cost in costs:
        close = ", ".join(f"{value:.6f}" for value in cost.correlations)
        peak, held = (cost.peak_bytes or 0) / 1e6, cost.held_bytes[-1] / 1e3
        print(f"| {cost.rows:,} | {cost.seconds:.2f} | {peak:.1f} | {held:.0f} | {close} |")
    desk.tell("stream_growth", [asdict(cost) for cost in costs], growth_claims(costs))
    desk.draw("stream_growth", stream_growth_plot(costs, "parabola, Gaussian σ = 1, one thread"))


def run_durations(desk: Desk) -> None:
    found = parabola.durations()
    print("| vectors | " + " | ".join(row.method for row in found) + " |")
    print("| ---: |" + " ---: |" * len(found))
    for number, rows in enumerate(found[0].rows):
        print(f"| {rows:,} | " + " | ".join(f"{row.seconds[number]:.3f}" for row in found) + " |")
    print("| exponent | " + " | ".join(f"{row.exponent:.2f}" for row in found) + " |")
    print("| the paper's | " + " | ".join(f"{row.paper_exponent:.2f}" for row in found) + " |")
    desk.tell("durations", [asdict(row) for row in found], parabola.duration_claims(found))
    desk.draw("durations", durations_plot(found, "parabola; table 1 of Chin and Suter"))


def run_contours(desk: Desk) -> None:
    X = rising_parabola(3100)
    batch = KernelPCA(3, eigen_solver="dense", **GAUSSIAN).fit(X)
    streamed = IncrementalKernelPCA(3, **GAUSSIAN).fit(X)
    desk.draw("contours", contours(surfaces(X, {"batch": batch, "streamed": streamed}, 3)))


def run_ablation(desk: Desk) -> None:
    variants = [*parabola.JOINT, *parabola.PAPER] if desk.full else parabola.JOINT
    courses = parabola.courses(variants)
    print("at the end of 3,000 rows, in batches of 30:")
    print("| library | left out | angle to batch | error | orthonormality defect |")
    print("| --- | --- | ---: | ---: | ---: |")
    for course in courses:
        cells = f"{course.angles[-1]:.3f}° | {course.errors[-1]:.2e} | {course.defects[-1]:.1e}"
        print(f"| {course.library} | {course.left_out} | {cells} |")
    desk.tell("ablation", [asdict(course) for course in courses], parabola.ablation_claims(courses))
    desk.draw("ablation", drift_plot(courses, "parabola, Gaussian σ = 1, batches of 30"))


def run_manifolds(desk: Desk) -> None:
    leading = (1, 2, 3, 5, 10)
    heads = " | ".join(f"first {number}" for number in leading)
    print(f"largest angle to batch\n| data | stream | rows | library | {heads} |")
    print("| --- | --- |" + " ---: |" * (len(leading) + 2))
    drawn, table = [], []
    for name, settings in manifolds.VARIANTS.items():
        found = [manifolds.roll(**settings)]
        if desk.data is not None:
            found += manifolds.real_manifolds(desk.data, **settings)
        drawn = drawn or found
        for manifold in found:
            row = {"stream": name, **manifold.row(leading)}
            cells = " | ".join(f"{row[f'angle_{number}']:.3f}°" for number in leading)
            counts = f"{row['rows']:,} | {row['library']:,}"
            print(f"| {row['data']} | {name} | {counts} | {cells} |", flush=True)
            table.append(row)
    print("Swiss roll, |correlation| of ten components:")
    print(" ".join(f"{value:.4f}" for value in drawn[0].correlations))
    print("separated by batch:", ", ".join(str(number + 1) for number in drawn[0].separated))
    desk.tell("manifolds", table, manifolds.manifold_claims(drawn[0]))
    desk.draw("eigenspectra", spectra_plot(drawn))
    for manifold in drawn:
        name = manifold.name.lower().replace(" ", "_")
        desk.draw(f"projections_{name}", projections_plot(manifold))


def run_faces(desk: Desk) -> None:
    if desk.data is None:
        pixels, y = load_digits(return_X_y=True)
        X = pixels / 16
    else:
        X, y = faces(desk.data)
    print("| kernel | batch % | streamed % | streamed, all % | same images | more images, 95 % |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    table, claims = [], []
    for found in eigenfaces.recognise_streams(X, y):
        means = [100 * sum(v) / len(v) for v in (found.batch, found.streamed, found.streamed_all)]
        cells = " | ".join(f"{mean:.2f}" for mean in means)
        low, high = found.gain
        difference = f"{found.difference:+.2f} | {low:.2f} to {high:.2f}"
        print(f"| {found.kernel} | {cells} | {difference} |", flush=True)
        table.append(asdict(found))
        claims += eigenfaces.face_claims(found)
    desk.tell("face_streams", table, claims)


def _exact(desk: Desk, X: Floats, gamma: float) -> Floats:
    """Minutes for MNIST, so they may be kept in a file."""
    if desk.exact is not None and desk.exact.exists():
        kept = json.loads(desk.exact.read_text())
        if kept["rows"] == len(X):
            return np.array(kept["eigenvalues"])
    found = large_stream.exact_eigenvalues(X, 16, desk.threads, kernel="rbf", gamma=gamma)
    if desk.exact is not None:
        kept = {"rows": len(X), "eigenvalues": found.tolist()}
        desk.exact.write_text(json.dumps(kept) + "\n")
    return found


def run_large(desk: Desk) -> None:
    name, gamma, rows_of = large_rows(desk.data)
    load = partial(rows_of, 60000 if desk.full else 6000)
    exact = _exact(desk, load(), gamma)
    found = large_stream.stream_once(
        load, threads=desk.threads, kernel="rbf", gamma=gamma, library_size=1000
    )
    print(f"{name}: {found.rows:,} rows in {found.seconds:.0f} s, library {found.library_rows:,}")
    share = found.claimed / exact.sum()
    print(f"the model's own eigenvalues claim {share:.4f} of the exact variance")
    desk.tell("large_stream", asdict(found), large_stream.large_claims(found, exact, 2000, 300))


PARTS: dict[str, Callable[[Desk], None]] = {
    "growth": run_growth,
    "durations": run_durations,
    "contours": run_contours,
    "ablation": run_ablation,
    "manifolds": run_manifolds,
    "faces": run_faces,
    "large": run_large,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/streams"))
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--exact", type=Path, help="file to keep exact eigenvalues in")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    data = None if arguments.data is None else Path(arguments.data)
    arguments.out.mkdir(parents=True, exist_ok=True)
    desk = Desk(arguments.out, data, arguments.full, arguments.threads, arguments.exact)
    for part in arguments.parts:
        print(f"\n## {part}", flush=True)
        PARTS[part](desk)


if __name__ == "__main__":
    main()
