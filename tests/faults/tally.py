"""Outcomes of the trials of one part."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Sums that can be added up; a finding is anything that must not happen.

    ``counts`` add up, of ``most`` the largest counts, ``stated`` are limits and reasons.
    """

    counts: Counter = field(default_factory=Counter)
    most: dict[str, float] = field(default_factory=dict)
    stated: dict[str, str] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def count(self, name, number=1):
        self.counts[name] += number

    def reach(self, name, value):
        self.most[name] = max(self.most.get(name, value), value)

    def find(self, what):
        self.findings.append(what)

    def add(self, other):
        self.counts.update(other.counts)
        for name, value in other.most.items():
            self.reach(name, value)
        self.stated.update(other.stated)
        self.findings += other.findings

    def figures(self):
        """Return the tally for the report and for JSON."""
        most = {f"most {name}": round(value, 3) for name, value in self.most.items()}
        return {**self.counts, **most, **self.stated, "findings": len(self.findings)}
