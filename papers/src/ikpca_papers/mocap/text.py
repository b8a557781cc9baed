"""Numbered lines of text files, and limits on the size of recordings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ikpca.errors import InvalidInput

_LINE_ENDS = re.compile(r"\r\n|\n|\r")
#: What ``float`` reads beyond this (nan, 1_000, digits of other scripts) is a fault in a file.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Longer than any count; ``int`` itself gives up on thousands of digits.
_COUNT = re.compile(r"[0-9]{1,15}")
#: No length, angle or time is as large; squares of larger numbers would overflow in the end.
_LARGEST = 1e12
#: As much of a faulty word as a message quotes.
_QUOTED = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One line: the name of its file, its number as editors count, and its text."""

    file: str
    number: int
    text: str

    @property
    def words(self) -> list[str]:
        """What blanks and tabs separate."""
        return self.text.split()

    def fault(self, rule: str, remedy: str) -> InvalidInput:
        """The error for this line: where, which rule, what to do."""
        return InvalidInput(f"{self.file}, line {self.number}: {rule}; {remedy}.")

    def numbers(self, words: Sequence[str], count: int, what: str) -> list[float]:
        """Read exactly ``count`` finite numbers."""
        if len(words) != count:
            raise self.fault(
                f"{what} must have {count} value{'s' * (count != 1)}, not {len(words)}",
                "complete the line or fetch the file again",
            )
        return [self._number(word, what) for word in words]

    def whole_number(self, word: str, what: str) -> int:
        """Read a whole number that is not negative."""
        if not _COUNT.fullmatch(word):
            raise self.fault(
                f"{what} must be a whole number, not {word[:_QUOTED]!r}", "correct the line"
            )
        return int(word)

    def _number(self, word: str, what: str) -> float:
        # Above all inf: 1e999 is spelled like a number.
        value = float(word) if _NUMBER.fullmatch(word) else math.nan
        if not abs(value) <= _LARGEST:
            raise self.fault(
                f"{what} must be a finite number, not {word[:_QUOTED]!r}",
                "correct the value or fetch the file again",
            )
        return value


def read_lines(path: str | Path) -> list[Line]:
    """All lines of a text file, whichever line ends it has, at least one with content."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such file; check the path.")
    content = path.read_bytes()
    texts = _LINE_ENDS.split(_decoded(content).rstrip())
    lines = [Line(path.name, number, text) for number, text in enumerate(texts, start=1)]
    for line in lines:
        if "\0" in line.text:
            raise line.fault("binary content in a text file", "fetch the file again as text")
    if not any(line.words for line in lines):
        raise lines[0].fault("the file is empty", "fetch it again")
    return lines


def _decoded(content: bytes) -> str:
    """Numbers and keywords are ASCII; names and comments may be in either usual encoding."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


#: Bodies with fingers and faces stay below 300.
_MOST_JOINTS = 1000
#: Joints times frames: three hours of 31 joints at 60 frames per second.
_MOST_POSITIONS = 20_000_000


def check_joints(joints: int, line: Line) -> None:
    """Refuse a skeleton that is no body."""
    if joints > _MOST_JOINTS:
        raise line.fault(
            f"a skeleton must have at most {_MOST_JOINTS} joints", "fetch the file again"
        )


def check_size(frames: int, joints: int, line: Line) -> None:
    """Refuse what would not fit into memory."""
    if frames * joints > _MOST_POSITIONS:
        raise line.fault(
            f"{frames} frames of {joints} joints are more than {_MOST_POSITIONS} positions",
            "cut the file into parts",
        )
