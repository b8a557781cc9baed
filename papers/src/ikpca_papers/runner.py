"""Running of experiments: parts in parallel, finished parts kept, tables written."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import signal
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.model_files import atomic_write
from ikpca_papers import large
from ikpca_papers.chin2006 import eigenfaces, manifolds, parabola
from ikpca_papers.claims import Cell, ExperimentSpec, Rows, Tables, find_spec
from ikpca_papers.experiment import (
    Experiment,
    Findings,
    Part,
    Request,
    blas_threads,
    digest,
    sources_checksum,
    versions,
)
from ikpca_papers.guenter2006 import image_denoising, motion, usps_clustering, usps_kpca
from ikpca_papers.inputs import load_inputs
from ikpca_papers.kim2003 import (
    faces,
    natural_components,
    natural_super_resolution,
    online,
    toy_contours,
)


def prepare_folder(folder: Path) -> None:
    """Make the folder and try to write to it: better refused now than after the work."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_bytes(path: Path, content: str | bytes) -> None:
    """Write beside ``path`` and rename, so that no reader ever finds half a file."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def as_csv(rows: Rows) -> str:
    r"""Columns in the order in which they first appear.

    Examples
    --------
    >>> as_csv([{"method": "kha", "error": 0.5}, {"method": "pca", "rank": 3}])
    'method,error,rank\nkha,0.5,\npca,,3\n'
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def plain(tables: Mapping[str, Any]) -> Tables:
    """Numbers of NumPy become Python's; what is not finite becomes None, as JSON has no name."""
    return {
        name: [{column: _cell(value) for column, value in row.items()} for row in rows]
        for name, rows in tables.items()
    }


def _cell(value: Any) -> Cell:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    known: Cell = value
    return known


@dataclass(frozen=True)
class Results:
    """All that a finished experiment wrote.

    Parameters
    ----------
    document : dict
        Settings, seed, data, versions, threads, parts and tables.
    arrays : dict of dict of arrays
        By part.
    """

    document: Mapping[str, Any]
    arrays: Mapping[str, Mapping[str, NDArray[Any]]]

    @property
    def tables(self) -> Tables:
        """Rows by the name of the table."""
        tables: Tables = self.document["tables"]
        return tables


@dataclass(frozen=True)
class ResultsFolder:
    """One experiment in one size; every file is whole or not there."""

    folder: Path

    @classmethod
    def of(cls, out: Path, size: str, experiment: str) -> ResultsFolder:
        """The folder of an experiment, which need not exist."""
        return cls(out / size / experiment)

    def keep_part(self, part: Part, mark: str, findings: Findings, cost: Mapping[str, Any]) -> None:
        """Write a finished part; the JSON comes last, and its being there says that all is."""
        folder = self.folder / "parts"
        folder.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        arrays: dict[str, Any] = dict(findings.arrays)
        np.savez_compressed(content, **arrays)
        stored = content.getvalue()
        write_bytes(folder / f"{part.slug}.npz", stored)
        arrays_digest = hashlib.sha256(stored).hexdigest()
        record = {
            "part": part.name,
            "mark": mark,
            **cost,
            "arrays": arrays_digest,
            "tables": plain(findings.tables),
        }
        write_bytes(folder / f"{part.slug}.json", json.dumps(record, indent=1, allow_nan=False))

    def part(self, part: Part, mark: str) -> Mapping[str, Any] | None:
        """The record of a finished part with this mark, or None; a damaged one is none."""
        path = self.folder / "parts" / f"{part.slug}.json"
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("mark") != mark or "tables" not in record:
            return None
        return record if record.get("arrays") == _digest_of(path.with_suffix(".npz")) else None

    def write(self, document: Mapping[str, Any]) -> None:
        """Write tables as CSV, and everything as JSON."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, rows in document["tables"].items():
            write_bytes(self.folder / f"{name}.csv", as_csv(rows))
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_bytes(self.folder / "results.json", text)

    def read(self) -> Results | None:
        """What was written, or None where nothing is, or nothing whole."""
        try:
            document = json.loads((self.folder / "results.json").read_text(encoding="utf-8"))
            arrays = {one["part"]: self._arrays(one["file"]) for one in document["parts"]}
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error):
            return None
        return Results(document, arrays)

    def forget(self, mark: str) -> None:
        """Remove a result with another mark: it answers another question."""
        found = self.read()
        if found is not None and found.document["mark"] != mark:
            (self.folder / "results.json").unlink()

    def _arrays(self, slug: str) -> dict[str, NDArray[Any]]:
        with np.load(self.folder / "parts" / f"{slug}.npz", allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}


def _digest_of(path: Path) -> str | None:
    """SHA-256 of a file; None where there is none."""
    try:
        status = path.stat()
        return _digest(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _digest(path: Path, changed: int, size: int) -> str:
    """Read once, as long as the file does not change: parts are asked for over and over."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


#: By id, in the order in which a reader meets them.
EXPERIMENTS = {
    "toy-contours": Experiment(toy_contours.plan),
    "usps-kpca": Experiment(usps_kpca.plan),
    "lena-multipatch": Experiment(image_denoising.plan),
    "usps-clustering": Experiment(usps_clustering.plan, usps_clustering.summary),
    "motion": Experiment(motion.plan),
    "face-hyperresolution": Experiment(faces.plan),
    "natural-components": Experiment(natural_components.plan),
    "natural-hyperresolution": Experiment(natural_super_resolution.plan),
    "online-toy": Experiment(online.plan),
    "incremental-toy": Experiment(parabola.plan, parabola.summary),
    "manifolds": Experiment(manifolds.plan),
    "kernel-eigenfaces": Experiment(eigenfaces.plan, eigenfaces.summary),
    "large": Experiment(large.plan),
}


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
