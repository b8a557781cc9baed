"""Kernel eigenfaces with nearest neighbours, cross-validated (Chin and Suter 2006, table 2).

Extended Yale B comes from the folder named by IKPCA_DATA; without it, scikit-learn's digits.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from sklearn.datasets import load_digits

from ikpca_papers.chin2006.eigenfaces import faces, recognise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/eigenfaces"))
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    parser.add_argument("--folds", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.data is None:
        name, (pixels, y) = "digits", load_digits(return_X_y=True)
        X = pixels / 16
    else:
        name, (X, y) = "Extended Yale B, 20×20", faces(arguments.data)
    print(f"{name}: {len(X)} images, {len(set(y))} classes; 36 components, 10 neighbours")
    print(f"{'pipeline':24s} {'error %':>8s} {'± sd':>6s}   ({arguments.folds} folds)")
    table = {}
    for found in recognise(X, y, folds=arguments.folds):
        table[found.name] = found.errors.tolist()
        print(
            f"{found.name:24s} {100 * found.errors.mean():8.2f} {100 * found.errors.std():6.2f}",
            flush=True,
        )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "eigenfaces.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
