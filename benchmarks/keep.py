"""Store a result with date, versions and machine as a record of the benchmarks page.

    python benchmarks/keep.py results/bench-full/scale.json --name scale

The page is built from the records in docs/benchmarks/records. Run this on the machine and in the
environment of the measurement: the date is that of the file, all else is read now.
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
    """Return the name of the processor, or of its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def memory_gb() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("result", type=Path)
    parser.add_argument("--name", help="of the record; by default that of the file")
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the records")
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
    kept = arguments.records / f"{arguments.name or arguments.result.stem}.json"
    kept.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(kept)


if __name__ == "__main__":
    main()
