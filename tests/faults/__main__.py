"""``make faults``: long tests of failures.

``python -m tests.faults --parts kills files --kills 20 --files 5000 --jobs 2``
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

from tests.faults.children import set_up
from tests.faults.parts import PARTS

#: Seconds between two lines of progress.
_SHOWN = 10


def main():
    """Run the selected parts; exit status 1 if there are findings."""
    chosen = _arguments()
    chosen.out.mkdir(parents=True, exist_ok=True)
    set_up()
    results = {}
    for name in chosen.parts:
        count = getattr(chosen, name)
        _say(f"{name}: {PARTS[name].about}, {count:,} {PARTS[name].unit}")
        begun = time.monotonic()
        tally = PARTS[name].run(count, chosen.seed, chosen.jobs, _Progress(begun))
        results[name] = {**tally.figures(), "seconds": round(time.monotonic() - begun)}
        _write(chosen.out / f"{name}.json", chosen, results[name], tally.findings)
        _show(results[name])
        if "ended" in tally.stated:
            break
    _table(results)
    return int(any(figures["findings"] or "ended" in figures for figures in results.values()))


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    for part in PARTS.values():
        parser.add_argument(f"--{part.name}", type=int, default=part.count, metavar="N",
                            help=f"{part.about}: so many {part.unit} ({part.count:,})")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/faults"))
    return parser.parse_args()


class _Progress:
    """Prints the progress of a part, and its findings."""

    def __init__(self, begun):
        self._begun, self._said, self._shown = begun, time.monotonic(), 0

    def __call__(self, tally):
        for finding in tally.findings[self._shown :]:
            _say(f"  FOUND {finding[:2000]}")
        self._shown = len(tally.findings)
        if time.monotonic() - self._said > _SHOWN:
            self._said = time.monotonic()
            name, number = next(iter(tally.counts.items()), ("trials", 0))
            _say(f"  {number:,} {name}, {len(tally.findings)} findings, "
                 f"{self._said - self._begun:.0f} s")  # fmt: skip


def _write(path, chosen, figures, findings):
    machine = {"python": platform.python_version(), "system": platform.platform()}
    content = {"seed": chosen.seed, "jobs": chosen.jobs, **machine, **figures}
    path.write_text(json.dumps({**content, "found": findings[:100]}, indent=1) + "\n")


def _show(figures):
    for what, figure in figures.items():
        _say(f"  {what:45} {f'{figure:,}' if isinstance(figure, int) else figure}")


def _table(results):
    _say(f"\n{'part':10} {'trials':>10} {'findings':>9} {'seconds':>8}")
    for name, figures in results.items():
        trials = next(iter(figures.values()))
        _say(f"{name:10} {trials:>10,} {figures['findings']:>9} {figures['seconds']:>8}")


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
