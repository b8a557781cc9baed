"""Numbered lines of text files, and limits on the size of recordings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ikpca.errors import InvalidInput

_LINE_ENDS = re.compile(r"\r\n|\n|\r")
#: ``float`` also reads nan, 1_000 and digits of other scripts, which are errors in a file.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Longer than any count; ``int`` rejects thousands of digits.
_COUNT = re.compile(r"[0-9]{1,15}")
#: Larger than any length, angle or time; much larger numbers would overflow.
_LARGEST = 1e12
#: Characters of an invalid word in a message.
_QUOTED = 40


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a file: file name, number from 1, text."""

    file: str
    number: int
    text: str

    @property
    def words(self) -> list[str]:
        """Words, separated by blanks and tabs."""
        return self.text.split()

    def error(self, rule: str, remedy: str) -> InvalidInput:
        """Build the error for this line: location, rule, remedy."""
        return InvalidInput(f"{self.file}, line {self.number}: {rule}; {remedy}.")

    def numbers(self, words: Sequence[str], count: int, what: str) -> list[float]:
        """Parse exactly ``count`` finite numbers."""
        if len(words) != count:
            raise self.error(
                f"{what} must have {count} value{'s' * (count != 1)}, not {len(words)}",
                "complete the line or fetch the file again",
            )
        return [self._number(word, what) for word in words]

    def whole_number(self, word: str, what: str) -> int:
        """Parse a non-negative integer."""
        if not _COUNT.fullmatch(word):
            raise self.error(
                f"{what} must be a whole number, not {word[:_QUOTED]!r}", "correct the line"
            )
        return int(word)

    def _number(self, word: str, what: str) -> float:
        # 1e999 has the form of a number, and is infinite.
        value = float(word) if _NUMBER.fullmatch(word) else math.nan
        if not abs(value) <= _LARGEST:
            raise self.error(
                f"{what} must be a finite number, not {word[:_QUOTED]!r}",
                "correct the value or fetch the file again",
            )
        return value


def read_lines(path: str | Path) -> list[Line]:
    """Read all lines of a text file with any line ends; an empty file is an error."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such file; check the path.")
    content = path.read_bytes()
    texts = _LINE_ENDS.split(_decode(content).rstrip())
    lines = [Line(path.name, number, text) for number, text in enumerate(texts, start=1)]
    for line in lines:
        if "\0" in line.text:
            raise line.error("binary content in a text file", "fetch the file again as text")
    if not any(line.words for line in lines):
        raise lines[0].error("the file is empty", "fetch it again")
    return lines


def _decode(content: bytes) -> str:
    """Decode as UTF-8 or Latin-1; only names and comments are not ASCII."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


#: Bodies with fingers and faces have fewer than 300.
_MAX_JOINTS = 1000
#: Joints times frames: three hours of 31 joints at 60 frames per second.
_MAX_POSITIONS = 20_000_000


def check_joints(joints: int, line: Line) -> None:
    """Reject a skeleton with too many joints."""
    if joints > _MAX_JOINTS:
        raise line.error(
            f"a skeleton must have at most {_MAX_JOINTS} joints", "fetch the file again"
        )


def check_size(frames: int, joints: int, line: Line) -> None:
    """Reject a recording that would not fit into memory."""
    if frames * joints > _MAX_POSITIONS:
        raise line.error(
            f"{frames} frames of {joints} joints are more than {_MAX_POSITIONS} positions",
            "cut the file into parts",
        )
