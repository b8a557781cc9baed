"""Members of classes in the reference, and links to other libraries."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any

from docutils import nodes
from sphinx.ext import autosummary

_ADDRESSES = {
    "sklearn": "https://scikit-learn.org/stable/modules/generated",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated",
}


def setup(app: Any) -> dict[str, Any]:
    """Connect to autodoc and to unresolved references."""
    # These abbreviations do not end a summary.
    abbreviations = autosummary.WELL_KNOWN_ABBREVIATIONS
    autosummary.WELL_KNOWN_ABBREVIATIONS = (*abbreviations, "eq.", "eqs.")
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _name_members)
    app.connect("autodoc-process-signature", _hide_signature)
    app.connect("missing-reference", _elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Skip inherited members of scikit-learn and of tuples, and fields of named tuples."""
    member = inspect.unwrap(member) if callable(member) else member
    home = getattr(getattr(member, "__objclass__", member), "__module__", "") or ""
    is_field = type(member).__name__ == "_tuplegetter"
    return True if is_field or home.startswith(("sklearn", "builtins")) else None


def _hide_signature(
    app: Any, what: str, name: str, value: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """Hide the signatures of protocols and enumerations, which are not called."""
    is_protocol = getattr(value, "_is_protocol", False)
    is_members = inspect.isclass(value) and issubclass(value, Enum)
    return ("", "") if is_protocol or is_members else None


def _name_members(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Add the members of an enumeration to its docstring."""
    if inspect.isclass(value) and issubclass(value, Enum):
        at = next((i for i, line in enumerate(lines) if "Examples" in line), len(lines))
        named = (
            line for member in value for line in (f"``{member.name}``", f"    {member.value}", "")
        )
        lines[at:at] = ["", *named]


def _elsewhere(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Link to other libraries by address, as an inventory would need a download."""
    target = node.get("reftarget", "")
    address = _ADDRESSES.get(target.partition(".")[0])
    if node.get("refdomain") != "py" or address is None or "." not in target:
        return None
    link = nodes.reference("", "", internal=False, refuri=f"{address}/{target}.html")
    link += content
    return link
