"""Run experiments: parts side by side, finished ones kept, tables written at the end."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ikpca.errors import InvalidInput
from ikpca.experiments.inputs import load_inputs
from ikpca.experiments.parts import Experiment, Part, Request
from ikpca.experiments.provenance import blas_threads, digest, sources_checksum, versions
from ikpca.experiments.registry import EXPERIMENTS
from ikpca.experiments.results_folder import Results, ResultsFolder
from ikpca.experiments.selections import Rows
from ikpca.experiments.specification import ExperimentSpec, find_spec
from ikpca.experiments.written_tables import plain

__all__ = ["Announce", "Job", "prepare", "run", "run_jobs"]

#: Processor time means something on a machine that has other things to do, too.
_COSTS = ("seconds", "processor_seconds", "threads")
#: Told of an experiment, its finished parts and all of its parts.
Announce: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Job:
    """One experiment, ready to run: what is asked, its parts, and where they are kept."""

    spec: ExperimentSpec
    experiment: Experiment
    size: str
    request: Request
    parts: Sequence[Part]
    folder: ResultsFolder

    @property
    def mark(self) -> str:
        """What a kept part must have been made with."""
        return digest(
            {
                "experiment": self.spec.id,
                "settings": self.request.settings,
                "seed": self.request.seed,
                "data": self.request.inputs.checksum,
                "versions": versions(),
                "sources": sources_checksum(),
            }
        )

    def missing(self) -> list[Part]:
        """Parts that are still to be run."""
        mark = self.mark
        return [part for part in self.parts if self.folder.part(part, mark) is None]


def prepare(
    name: str,
    size: str,
    out: Path,
    data_folder: Path | None = None,
    seed: int = 0,
    experiments: Mapping[str, Experiment] = EXPERIMENTS,
    spec: ExperimentSpec | None = None,
) -> Job:
    """Load the data of an experiment and plan its parts; nothing is computed yet."""
    spec = find_spec(name) if spec is None else spec
    if spec.id not in experiments:
        raise InvalidInput(f"{spec.id}: nothing is registered to run it; add it to the registry.")
    chosen = spec.sizes[size]
    request = Request(chosen.settings, load_inputs(chosen.data, data_folder), seed)
    experiment = experiments[spec.id]
    folder = ResultsFolder.of(out, size, spec.id)
    return Job(spec, experiment, size, request, experiment.plan(request), folder)


def run(
    name: str,
    size: str,
    results_folder: Path,
    data_folder: Path | None = None,
    n_jobs: int = 1,
    seed: int = 0,
) -> Results:
    """Run one experiment, or what is left of it, and read what it wrote.

    Parameters
    ----------
    name : str
        Such as "usps-kpca".
    size : {"quick", "embedded", "real"}
    results_folder : Path
        Finished parts are kept there and not run again for the same settings, data and code.
    data_folder : Path, optional
        Of real data.
    n_jobs : int
        Parts side by side, each in a process of its own.
    seed : int
    """
    job = prepare(name, size, results_folder, data_folder, seed)
    failures = run_jobs([job], n_jobs)
    if failures:
        raise RuntimeError(failures[name])
    found = job.folder.read()
    if found is None:
        raise RuntimeError(f"{name}: its results were removed while it ran.")
    return found


def run_jobs(
    jobs: Sequence[Job], n_jobs: int = 1, announce: Announce = lambda *news: None
) -> dict[str, str]:
    """Run what is missing of all jobs; returns the reason by experiment where a part failed.

    Parts share the machine, one thread each; jobs that measure the machine come last, alone.
    """
    todo = {job.spec.id: job.missing() for job in jobs}
    failures: dict[str, str] = {}
    for job in jobs:
        job.folder.forget(job.mark)
        announce(job.spec.id, len(job.parts) - len(todo[job.spec.id]), len(job.parts))
    for alone in (False, True):
        group = [job for job in jobs if job.spec.alone is alone]
        tasks = [(job, part) for job in group for part in todo[job.spec.id]]
        for name, reason in _executed(tasks, 1 if alone else n_jobs, n_jobs if alone else 1):
            if reason:
                failures.setdefault(name, reason)
            else:
                job = next(job for job in group if job.spec.id == name)
                announce(name, len(job.parts) - len(job.missing()), len(job.parts))
        for job in group:
            if job.spec.id not in failures:
                _finish(job)
    return failures


def _executed(
    tasks: Sequence[tuple[Job, Part]], n_jobs: int, threads: int
) -> Iterator[tuple[str, str]]:
    """The experiment of every part as it is done, and why it failed or nothing."""
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    calls = (
        delayed(_execute)(job.spec.id, part, job.folder, job.mark, threads) for job, part in tasks
    )
    try:
        yield from Parallel(n_jobs, return_as="generator_unordered", batch_size=1)(calls)
    finally:
        # Idle processes would hold memory, and the machine's attention, while others are measured.
        if n_jobs > 1 and tasks:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _execute(
    name: str, part: Part, folder: ResultsFolder, mark: str, threads: int
) -> tuple[str, str]:
    """Run one part and keep it; here, so that what is finished survives the parent."""
    import multiprocessing

    from threadpoolctl import threadpool_limits

    if multiprocessing.parent_process() is not None:
        # An interrupt is for the parent to answer.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with threadpool_limits(threads), warnings.catch_warnings():
            # Searches try gains that are too large, and wide kernels have few directions: what
            # comes of it stands in the tables.
            warnings.simplefilter("ignore")
            begun, worked = time.perf_counter(), time.process_time()
            findings = part.task()
            cost = {
                "seconds": time.perf_counter() - begun,
                "processor_seconds": time.process_time() - worked,
                "threads": blas_threads(),
            }
        folder.keep_part(part, mark, findings, cost)
    except Exception as error:
        return name, f"{name}, {part.name}: {type(error).__name__}: {error}"
    return name, ""


def _finish(job: Job) -> None:
    """Put the tables of all parts together, in the order of the plan."""
    mark = job.mark
    records = [job.folder.part(part, mark) for part in job.parts]
    tables: dict[str, Rows] = {}
    parts = []
    for part, record in zip(job.parts, records, strict=True):
        if record is None:
            return
        for name, rows in record["tables"].items():
            tables.setdefault(name, []).extend(rows)
        cost = {key: record[key] for key in _COSTS}
        parts.append({"part": part.name, "file": part.slug, **cost})
    tables.update(plain(job.experiment.summary(tables)))
    inputs = job.request.inputs
    document: dict[str, Any] = {
        "experiment": job.spec.id,
        "size": job.size,
        "mark": mark,
        "settings": dict(job.request.settings),
        "seed": job.request.seed,
        "data": {"name": inputs.name, "origin": inputs.origin, "sha256": inputs.checksum},
        "versions": versions(),
        "sources": sources_checksum(),
        "parts": parts,
        "tables": tables,
    }
    job.folder.write(document)
