"""Claims as numbers with limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Claim:
    """A measured value that must stay on one side of a limit.

    Parameters
    ----------
    what : str
    value, limit : float
    side : {"at most", "at least", "below"}

    Examples
    --------
    >>> print(Claim("exponent of the total time", 0.98, 1.1))
    holds: exponent of the total time 0.98, at most 1.1
    >>> print(Claim("correlation", 0.9, 0.99, "at least"))
    DOES NOT HOLD: correlation 0.9, at least 0.99
    """

    what: str
    value: float
    limit: float
    side: Literal["at most", "at least", "below"] = "at most"

    @property
    def holds(self) -> bool:
        """Whether the value is on its side; NaN is on none."""
        if self.side == "at least":
            return self.value >= self.limit
        return self.value < self.limit if self.side == "below" else self.value <= self.limit

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        return f"{verdict}: {self.what} {self.value:.5g}, {self.side} {self.limit:g}"


def as_rows(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """For JSON."""
    return [{**asdict(claim), "holds": claim.holds} for claim in claims]
