"""Print the false alarm rates of NoveltyDetector: ``python -m tests.statistics``."""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

from tests.statistics.false_alarms import N_SEEDS, RATES, measure, novelty_detector, violations


def main() -> int:
    """Measure all cells, print a row per distribution and number of features, and check them."""
    parser = argparse.ArgumentParser(prog="python -m tests.statistics", description=__doc__)
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="training sets per cell")
    parser.add_argument("--stream", action="store_true", help="flag, then learn with partial_fit")
    parser.add_argument(
        "--parameters", type=json.loads, default={}, help="parameters of the detector, as JSON"
    )
    options = parser.parse_args()
    print("Realized false alarm rate divided by the nominal one (standard error)")
    print(f"{'distribution':14}{'features':>8}", *(f"{rate:>13.0%}" for rate in RATES))
    cells = []
    make = novelty_detector(**options.parameters)
    for cell in measure(make, stream=options.stream, n_seeds=options.seeds):
        cells.append(cell)
        if len(cells) % len(RATES) == 0:
            row = [f"{one.ratio:6.2f} ({one.error:.2f})" for one in cells[-len(RATES) :]]
            print(f"{cell.distribution:14}{cell.n_features:>8}", *row, flush=True)
    print(f"mean of all cells: {np.mean([cell.ratio for cell in cells]):.2f}")
    print(f"largest cell: {max(cell.ratio for cell in cells):.2f}")
    texts = violations(cells)
    for text in texts:
        print(f"violated: {text}")
    return bool(texts)


if __name__ == "__main__":
    sys.exit(main())
