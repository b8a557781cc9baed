"""Print the lowest declared version of each dependency as a requirements file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def pins(requirements: list[str]) -> list[str]:
    """Return "name==lowest" for each "name>=lowest"; extras of ikpca are expanded."""
    pinned = []
    for requirement in requirements:
        extras = re.fullmatch(r"ikpca\[(.+)\]", requirement)
        if extras:
            pinned += [pin for extra in extras[1].split(",") for pin in pins(EXTRAS[extra])]
        else:
            pinned.append(requirement.replace(">=", "=="))
    return pinned


if __name__ == "__main__":
    print(*pins([*PROJECT["dependencies"], "ikpca[all,test]"]), sep="\n")
