"""What a stream has been given: enough to know its batches again when they come a second time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from ikpca.errors import InvalidInput
from ikpca.estimators.fingerprint import rows_digest

__all__ = ["Trail"]


@dataclass(frozen=True)
class Trail:
    """Batches that ``partial_fit`` was given, one after the other.

    Parameters
    ----------
    batches, rows : int
        How many.
    digest : str
        Of all of them, and of where each one ends.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4)
    >>> Trail().after(X[:2]).after(X[2:]) == Trail().after(X[:2]).after(X[2:])
    True
    >>> Trail().after(X[:1]).after(X[1:]) == Trail().after(X[:2]).after(X[2:])
    False
    """

    batches: int = 0
    rows: int = 0
    digest: str = ""

    def after(self, batch: Any) -> Trail:
        """With one more batch."""
        chained = hashlib.sha256((self.digest + rows_digest(batch)).encode()).hexdigest()
        return Trail(self.batches + 1, self.rows + int(batch.shape[0]), chained)

    def check_leads_to(self, goal: Trail) -> None:
        """Refuse batches that are not those of a checkpoint, as soon as that is known."""
        if self.batches < goal.batches and self.rows < goal.rows:
            return
        if self != goal:
            raise InvalidInput(
                f"X: the checkpoint is of a stream of {goal.rows} rows in {goal.batches} batches, "
                f"and these {self.rows} rows in {self.batches} batches are others; pass the same "
                "batches again, or go on after them with load_checkpoint."
            )
