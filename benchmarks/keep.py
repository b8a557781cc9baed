"""Keep a result for the site: the file that a script wrote, with date, versions and machine.

    python benchmarks/keep.py results/bench-full/scale.json --name scale

The benchmarks page is made from what is kept in docs/benchmarks/records. Run it on the machine and
in the environment that measured: the date is that of the file, the rest is read off here and now.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from ikpca_papers.experiment import versions

RECORDS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "records"


def processor() -> str:
    """Its name where the system tells one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def memory_gb() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("--name", help="of the record; that of the file by default")
    arguments = parser.parse_args()
    result = json.loads(arguments.result.read_text(encoding="utf-8"))
    if isinstance(result, list):
        result = {"table": result}
    changed = datetime.fromtimestamp(arguments.result.stat().st_mtime, UTC)
    result["made"] = {
        "date": changed.date().isoformat(),
        "versions": versions(),
        "cores": os.cpu_count(),
        "processor": processor(),
        "memory_gb": memory_gb(),
    }
    kept = RECORDS / f"{arguments.name or arguments.result.stem}.json"
    kept.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(kept)


if __name__ == "__main__":
    main()
