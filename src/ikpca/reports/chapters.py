"""One experiment as the page tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ikpca.experiments.registry import EXPERIMENTS
from ikpca.experiments.results_folder import Results, ResultsFolder
from ikpca.experiments.specification import ExperimentSpec, specs
from ikpca.experiments.verdicts import Verdict, judge
from ikpca.figures import Picture, draw

__all__ = ["Chapter", "chapters"]


@dataclass(frozen=True)
class Chapter:
    """A spec with what became of it.

    Parameters
    ----------
    spec : ExperimentSpec
    size : str
    results : Results or None
        None where it was not run, or failed.
    verdicts : tuple of Verdict
    pictures : tuple of Picture
    failure : str
        Why there are no results, where it was tried.
    """

    spec: ExperimentSpec
    size: str
    results: Results | None
    verdicts: tuple[Verdict, ...]
    pictures: tuple[Picture, ...]
    failure: str = ""


def chapters(
    out: Path,
    size: str,
    failures: Mapping[str, str] | None = None,
    known: Sequence[ExperimentSpec] | None = None,
) -> Iterator[Chapter]:
    """Every experiment in order, from what the results folder holds; claims are judged anew."""
    for spec in _in_order() if known is None else known:
        results = ResultsFolder.of(out, size, spec.id).read()
        tables = None if results is None else results.tables
        yield Chapter(
            spec,
            size,
            results,
            tuple(judge(claim, size, tables) for claim in spec.claims),
            () if results is None else tuple(draw(spec, results)),
            (failures or {}).get(spec.id, ""),
        )


def _in_order() -> list[ExperimentSpec]:
    """As the registry has them; what is not registered yet comes last."""
    found = specs()
    first = [name for name in EXPERIMENTS if name in found]
    return [found[name] for name in [*first, *(name for name in found if name not in first)]]
