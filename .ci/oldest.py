"""Print the lowest declared version of each dependency, one pin a line, for pip install."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def pins(requirements: list[str]) -> list[str]:
    """Return "name==lowest" for each "name>=lowest"; an extra of our own becomes what it lists."""
    found = []
    for requirement in requirements:
        own = re.fullmatch(r"ikpca\[(.+)\]", requirement)
        if own:
            found += [pin for extra in own[1].split(",") for pin in pins(EXTRAS[extra])]
        else:
            found.append(requirement.replace(">=", "=="))
    return found


if __name__ == "__main__":
    print(*pins([*PROJECT["dependencies"], "ikpca[all,test]"]), sep="\n")  # noqa: T201
