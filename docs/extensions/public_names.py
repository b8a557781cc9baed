"""What the reference shows of a class, and where names of scikit-learn lead."""

from __future__ import annotations

import inspect
from typing import Any

from docutils import nodes

_SCIKIT_LEARN = "https://scikit-learn.org/stable/modules/generated"


def setup(app: Any) -> dict[str, Any]:
    """Hook into autodoc and into references that nobody else resolves."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("missing-reference", _elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn gives every estimator are described there."""
    home = getattr(inspect.unwrap(member) if callable(member) else member, "__module__", "") or ""
    return True if home.startswith(("sklearn", "river", "builtins")) else None


def _elsewhere(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Plain addresses in place of an inventory that would have to be downloaded."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("sklearn."):
        return None
    link = nodes.reference("", "", internal=False, refuri=f"{_SCIKIT_LEARN}/{target}.html")
    link += content
    return link
