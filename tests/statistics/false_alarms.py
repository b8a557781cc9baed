"""False alarm rates of novelty detectors on new rows of the distribution of the training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ikpca import NoveltyDetector

N_TRAINING, N_NEW, N_SEEDS = 500, 1000, 40
N_FEATURES = (2, 3, 10, 50)
RATES = (0.01, 0.02, 0.05)
#: Rows of a stream that are flagged before they are learned.
_BATCH = 100
_N_CLUSTERS, _SEPARATION = 3, 4.0

#: A detector with a false alarm rate and a seed.
MakeDetector = Callable[[float, int], Any]


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.normal(size=shape)


def t3(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw independent features of Student's t distribution with three degrees of freedom."""
    return rng.standard_t(3, size=shape)


def mixture(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw rows of normal clusters with random centers."""
    centers = _SEPARATION * rng.normal(size=(_N_CLUSTERS, shape[1]))
    return centers[rng.integers(_N_CLUSTERS, size=shape[0])] + rng.normal(size=shape)


DISTRIBUTIONS = {draw.__name__: draw for draw in (normal, t3, mixture)}


@dataclass(frozen=True)
class Cell:
    """Realized rates of one distribution, number of features and nominal rate, per seed."""

    distribution: str
    n_features: int
    nominal: float
    realized: np.ndarray

    @property
    def ratio(self) -> float:
        """Mean of the realized rates divided by the nominal rate."""
        return float(self.realized.mean() / self.nominal)

    @property
    def error(self) -> float:
        """Standard error of the ratio."""
        n_seeds = len(self.realized)
        return float(self.realized.std(ddof=1) / np.sqrt(n_seeds) / self.nominal)


def novelty_detector(**parameters: Any) -> MakeDetector:
    """Return a function that makes detectors with these parameters."""

    def make(rate: float, seed: int) -> NoveltyDetector:
        return NoveltyDetector(false_alarm_rate=rate, random_state=seed, **parameters)

    return make


def flagged_after_fit(make: MakeDetector, X: np.ndarray, new: np.ndarray, seed: int) -> list[float]:
    """Return the share of flagged rows for every nominal rate.

    ``predict`` flags rows with ``p_values(X) <= false_alarm_rate``, so that one fit is sufficient.
    """
    p_values = make(RATES[0], seed).fit(X).p_values(new)
    return [float(np.mean(p_values <= rate)) for rate in RATES]


def flagged_in_stream(make: MakeDetector, X: np.ndarray, new: np.ndarray, seed: int) -> list[float]:
    """Return the same for a stream, in which rows are flagged first and learned then."""
    shares = []
    for rate in RATES:
        detector, n_flagged = make(rate, seed).partial_fit(X), 0
        for first in range(0, len(new), _BATCH):
            batch = new[first : first + _BATCH]
            n_flagged += np.count_nonzero(detector.predict(batch) == -1)
            detector.partial_fit(batch)
        shares.append(n_flagged / len(new))
    return shares


def measure(
    make: MakeDetector,
    *,
    stream: bool = False,
    n_seeds: int = N_SEEDS,
    n_features: tuple[int, ...] = N_FEATURES,
    distributions: tuple[str, ...] = tuple(DISTRIBUTIONS),
) -> Iterator[Cell]:
    """Yield the cells of all combinations, one after the other."""
    flagged = flagged_in_stream if stream else flagged_after_fit
    for distribution, number in product(distributions, n_features):
        shares = []
        for seed in range(n_seeds):
            rng = np.random.default_rng([seed, number])
            rows = DISTRIBUTIONS[distribution](rng, (N_TRAINING + N_NEW, number))
            shares.append(flagged(make, rows[:N_TRAINING], rows[N_TRAINING:], seed))
        for rate, realized in zip(RATES, np.transpose(shares), strict=True):
            yield Cell(distribution, number, rate, realized)


def violations(cells: list[Cell]) -> list[str]:
    """Return the requirements that the cells violate, as sentences."""
    mean = np.mean([cell.ratio for cell in cells])
    texts = []
    if not 0.6 <= mean <= 1.2:
        texts.append(f"the mean rate is {mean:.2f} times the nominal one, not 0.6 to 1.2 times")
    texts += [
        f"{cell.distribution}, {cell.n_features} features, {cell.nominal:.0%}: the rate is "
        f"{cell.ratio:.2f} times the nominal one, more than 1.6 times"
        for cell in cells
        if cell.ratio > 1.6
    ]
    return texts
