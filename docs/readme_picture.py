"""Draw the figure of the README, that of the front page.

Usage: python docs/readme_picture.py [FILE], by default docs/_static/one_picture.png.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).parent
PICTURE = HERE / "_static" / "one_picture.png"


def draw(path: Path = PICTURE) -> None:
    """Run the script of the front page and save its figure."""
    mpl.use("Agg")
    variables = runpy.run_path(str(HERE / "drawings" / "one_picture.py"))
    # Without the version of matplotlib, so that the file is reproducible.
    variables["figure"].savefig(path, dpi=90, metadata={"Software": None})
    variables["plt"].close(variables["figure"])


if __name__ == "__main__":
    draw(*map(Path, sys.argv[1:2]))
