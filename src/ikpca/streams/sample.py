"""Weighted sample of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ikpca.kernels import Floats, Indices, Rows

#: Rows in a sample.
_SAMPLE = 1024


@dataclass(eq=False)
class Sample:
    """Priority sample of a weighted stream: unbiased sums over all of its rows.

    A row of weight w has priority w/u, u uniform in (0, 1]; the largest priorities are kept. Each
    row stands for the weight max(w, largest priority that was dropped). All numbers are logarithms
    relative to the present, so that fading weights need no special treatment.
    """

    rows: Rows
    weights: Floats
    priorities: Floats
    dropped: float = -np.inf

    @property
    def is_complete(self) -> bool:
        """True if no row was dropped."""
        return self.dropped == -np.inf

    @classmethod
    def empty(cls, rows: Rows) -> Sample:
        """Return the sample before the first row."""
        return cls(rows[:0], np.zeros(0), np.zeros(0))

    def fade(self, change: float) -> Sample:
        """Return the sample after all weights have changed by a factor, given as a logarithm."""
        return Sample(
            self.rows, self.weights + change, self.priorities + change, self.dropped + change
        )

    def add(self, rows: Rows, weights: Floats, rng: np.random.Generator) -> Sample:
        """Return the sample after more rows."""
        with np.errstate(divide="ignore"):
            logarithms = np.log(weights)
        priorities = logarithms - np.log1p(-rng.random(len(weights)))
        entering = np.flatnonzero(priorities > self.dropped)
        new = Sample(rows[entering], logarithms[entering], priorities[entering], self.dropped)
        return self.join(new) if len(entering) else self

    def join(self, other: Sample) -> Sample:
        """Return the sample of both streams."""
        priorities = np.concatenate([self.priorities, other.priorities])
        dropped = max(self.dropped, other.dropped)
        kept: Indices = np.arange(len(priorities))
        if len(priorities) > _SAMPLE:
            order = np.argpartition(-priorities, _SAMPLE)
            kept = np.sort(order[:_SAMPLE])
            dropped = max(dropped, float(priorities[order[_SAMPLE]]))
        n_old = len(self.weights)
        rows = stack((self.rows, other.rows)) if n_old else other.rows
        weights = np.concatenate([self.weights, other.weights])
        return Sample(rows[kept], weights[kept], priorities[kept], dropped)

    def scaled_weights(self, total: float) -> Floats:
        """Return the weight that each row stands for, with a given sum."""
        logarithms = np.maximum(self.weights, self.dropped)
        shares = np.exp(logarithms - logarithms.max(initial=-np.inf))
        return shares * (total / max(float(shares.sum()), 1e-300))


def stack(parts: Sequence[Rows]) -> Rows:
    """Return dense or CSR rows below each other."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, "csr")
    return np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate(parts)
