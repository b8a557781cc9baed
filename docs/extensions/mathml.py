"""Formulas as MathML, without scripts or network access."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

_LOG = logging.getLogger(__name__)
#: Marks beside a letter. Fonts raise them by themselves; as exponents they would be tiny.
_PRIMES = re.compile("'+")
#: Bars of a norm. Only the left one would grow, where an index hangs on the right one.
_BARS = re.compile(r"<mo[^>]*>([‖∥])</mo>")


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _display(translator: Any, node: Any) -> None:
    ids = "".join(f'<span id="{name}"></span>' for name in node.get("ids", ()))
    translator.body.append(f'<div class="formula">{ids}{_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _mathml(node: Any, *, as_block: bool) -> str:
    source = node.astext()
    try:
        drawn = latex2mathml.tex2mathml(_PRIMES.sub(_marks, source), as_block=as_block)
    except (MathError, SyntaxError) as error:
        _LOG.warning("formula %r: %s", source, error, location=node)
        return f"<code>{source}</code>"
    return _BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', drawn)


def _marks(apostrophes: re.Match[str]) -> str:
    """Replace apostrophes by primes, as TeX does."""
    return r"\prime " * len(apostrophes[0])
