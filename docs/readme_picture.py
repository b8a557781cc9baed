"""Draw the picture of the front page for the README, which no build makes.

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
    """Run the script of the front page and keep what it drew."""
    mpl.use("Agg")
    drawn = runpy.run_path(str(HERE / "drawings" / "one_picture.py"))
    # Without the version of the plotting library: the same picture is the same file.
    drawn["figure"].savefig(path, dpi=90, metadata={"Software": None})
    drawn["plt"].close(drawn["figure"])


if __name__ == "__main__":
    draw(*map(Path, sys.argv[1:2]))
