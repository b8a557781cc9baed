"""Pre-images: noisy digits cleaned by every method, and all samples at once against one by one.

Digits: 1,000 training rows, 200 test rows with noise 0.3; every method chooses its settings on a
fifth of the training rows, with noise added, before it sees a test row.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.preimage_methods import (
    DENOISERS,
    NoisyDigits,
    compare_denoisers,
    together_and_apart,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print("mean squared error per pixel, noise 0.3 (of the noisy rows themselves: 0.09)")
    digits = NoisyDigits.draw()
    table = []
    for name in DENOISERS:
        (row,) = compare_denoisers(digits, [name])
        settings = ", ".join(f"{key} {value}" for key, value in row.settings.items())
        print(f"{name:32s} {row.error:8.4f}   {settings}", flush=True)
        table.append(asdict(row))
    print("\nseconds for 1,000 samples against 5,000 training rows of 64 features, 64 components")
    print(
        f"{'method':12s} {'type':8s} {'threads':>7s} {'together':>9s} {'apart':>8s} {'ratio':>6s}"
    )
    speeds = []
    for threads in sorted({1, arguments.threads}):
        for dtype in ("float64", "float32"):
            for row in together_and_apart(threads, dtype):
                print(
                    f"{row.preimage:12s} {row.dtype:8s} {row.threads:7d} {row.together:9.3f} "
                    f"{row.apart:8.2f} {row.ratio:6.1f}",
                    flush=True,
                )
                speeds.append({**asdict(row), "ratio": row.ratio})
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = {"digits": table, "speed": speeds}
    (arguments.out / "preimages.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
