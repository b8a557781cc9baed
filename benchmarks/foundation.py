"""Speed as ratios within one run, threads pinned: block form, kernlab, import.

The block form runs against the papers' pattern-by-pattern update on the same matrix; a whole fit
against ``kha`` of R's kernlab, where Rscript has it; and ``import ikpca`` against the import of
scikit-learn's decomposition.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.block_form import KERNEL_GAMMA, block_against_rule, generated_rows, seconds_per_fit
from benchmarks.kernlab import has_kernlab, kernlab_kha

from ikpca.gram import Workers


def import_seconds(module: str, times: int = 5) -> float:
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    found: dict[str, object] = {"threads": arguments.threads}
    print(f"threads: {arguments.threads} (ours; BLAS has one in each)")
    with Workers(arguments.threads) as workers:
        print("\nseconds per pass, l = 2000, r = 16, K given; best of several passes")
        print("rule: A and AK' kept up to date, as the block form does; bare: A alone")
        print(
            f"{'method':10s} {'rule':>9s} {'bare':>9s} {'block':>9s} {'ratio':>7s} {'to bare':>8s}"
        )
        rows = block_against_rule(workers)
    for row in rows:
        bare = "–" if row.bare_rule_seconds is None else f"{row.bare_rule_seconds:.4f}"
        to_bare = "–" if row.bare_ratio is None else f"{row.bare_ratio:.1f}"
        print(
            f"{row.method:10s} {row.rule_seconds:9.4f} {bare:>9s} {row.block_seconds:9.4f} "
            f"{row.ratio:7.1f} {to_bare:>8s}"
        )
    found["block form over rule"] = {row.method: row.ratio for row in rows}
    found["block form over update of A alone"] = {row.method: row.bare_ratio for row in rows}
    X = generated_rows(1000, 64)
    ours = min(seconds_per_fit(X, 16, 10, arguments.threads) for _ in range(4))
    theirs = kernlab_kha(X, KERNEL_GAMMA, 16, passes=10).seconds if has_kernlab() else None
    print("\nten passes of KHA from raw rows, l = 1000, N = 64, r = 16")
    if theirs is None:
        print(f"ours {ours:.3f} s; kernlab: not installed (R with the package kernlab)")
    else:
        print(f"ours {ours:.3f} s; kernlab {theirs:.2f} s; ratio {theirs / ours:.0f}")
        found["kha over kernlab"] = theirs / ours
    ratio = import_seconds("ikpca") / import_seconds("sklearn.decomposition")
    print(f"\nimport ikpca over import sklearn.decomposition: {ratio:.2f}")
    found["import"] = ratio
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "foundation.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
