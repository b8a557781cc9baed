"""Code blocks of Markdown pages and their output."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

__all__ = ["Block", "blocks_of", "differs", "run"]

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])|[-+]?\d+e[-+]?\d+")
#: Smaller numbers are rounding errors, which depend on the processor.
_ROUNDING = 1e-9
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Parameters
    ----------
    language : str
        "python", or "console" with commands after a dollar sign and their output beneath.
    code : str
    shown : str or None
        What the page says is printed; None where it says nothing.
    """

    language: str
    code: str
    shown: str | None


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks that can be run; others, such as ``sh``, are not."""
    result = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [Block(language, code, shown or None) for language, code, shown in result]


def run(block: Block, names: dict[str, Any], programs: Mapping[str, Callable[..., Any]]) -> str:
    """Run a block in the current folder and return its output."""
    if block.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, "<page>", "exec"), names)
        return printed.getvalue()
    output = []
    for line in block.code.splitlines():
        if line.startswith("$ "):
            program, *arguments = shlex.split(line[2:], comments=True)
            assert program in programs, f"{line}: only {', '.join(programs)} can be run here"
            captured = programs[program](*arguments)
            assert captured.code == 0, f"{line}: {captured.err}"
            output.append(captured.out)
    return "".join(output)


def differs(block: Block, printed: str) -> str:
    """Return the difference between actual and shown output; empty if they agree."""
    shown = block.shown
    if block.language == "console":
        lines = [line for line in block.code.splitlines(keepends=True) if not line.startswith("$ ")]
        shown = "".join(lines) or None
    if shown is None:
        return ""
    checker = doctest.OutputChecker()
    if checker.check_output(shown, _as_shown(shown, printed), _FLAGS):
        return ""
    return checker.output_difference(doctest.Example("", shown), printed, _FLAGS)


def _as_shown(shown: str, printed: str) -> str:
    """What was printed, with decimals as shown where they agree to one unit of the last digit.

    Another library of linear algebra rounds in another order; a page shows one of the results.
    """
    expected, result = _NUMBER.findall(shown), _NUMBER.findall(printed)
    if len(expected) != len(result):
        return printed
    agreeing = iter([a if _agree(a, b) else b for a, b in zip(expected, result, strict=True)])
    return _NUMBER.sub(lambda _: next(agreeing), printed)


def _agree(shown: str, printed: str) -> bool:
    one, other = Decimal(shown), Decimal(printed)
    unit = Decimal((0, (1,), one.as_tuple().exponent))
    return abs(one - other) <= unit or max(abs(one), abs(other)) < _ROUNDING
