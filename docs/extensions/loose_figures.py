"""Figures of gallery scripts that were created without pyplot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_SEEN: set[int] = set()


def loose_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Scraper of sphinx-gallery for figures without pyplot."""
    paths, sharper = [], []
    for value in block_vars["example_globals"].values():
        # The scraper of pyplot handles numbered figures.
        if not isinstance(value, Figure) or getattr(value, "number", None) is not None:
            continue
        if id(value) not in _SEEN:
            _SEEN.add(id(value))
            path = next(block_vars["image_path_iterator"])
            sharp = Path(path).with_name(f"{Path(path).stem}_2_00x.png")
            value.savefig(path, dpi=100)
            value.savefig(sharp, dpi=200)
            paths.append(path)
            sharper.append({0: path, 2.0: str(sharp)})
    return figure_rst(paths, gallery_conf["src_dir"], srcsetpaths=sharper)
