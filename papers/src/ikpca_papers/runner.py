"""Run experiments: parts in parallel, finished parts are kept, tables are written."""

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
    """Create the folder and check that it is writable, before any work."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def as_csv(rows: Rows) -> str:
    r"""Format rows as CSV, columns in the order in which they first appear.

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


def to_json_types(tables: Mapping[str, Any]) -> Tables:
    """Convert NumPy numbers to Python's, and NaN and infinity, which JSON lacks, to None."""
    return {
        name: [{column: _cell(value) for column, value in row.items()} for row in rows]
        for name, rows in tables.items()
    }


def _cell(value: Any) -> Cell:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    cell: Cell = value
    return cell


@dataclass(frozen=True)
class Results:
    """Results of a finished experiment, as written.

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
    """Folder of one experiment at one size; files are written atomically."""

    folder: Path

    @classmethod
    def of(cls, out: Path, size: str, experiment: str) -> ResultsFolder:
        """Return the folder of an experiment, which need not exist."""
        return cls(out / size / experiment)

    def save_part(
        self, part: Part, fingerprint: str, findings: Findings, cost: Mapping[str, Any]
    ) -> None:
        """Write a finished part; the JSON file comes last and marks it as complete."""
        folder = self.folder / "parts"
        folder.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        arrays: dict[str, Any] = dict(findings.arrays)
        np.savez_compressed(content, **arrays)
        stored = content.getvalue()
        write_file(folder / f"{part.slug}.npz", stored)
        arrays_digest = hashlib.sha256(stored).hexdigest()
        record = {
            "part": part.name,
            "fingerprint": fingerprint,
            **cost,
            "arrays": arrays_digest,
            "tables": to_json_types(findings.tables),
        }
        write_file(folder / f"{part.slug}.json", json.dumps(record, indent=1, allow_nan=False))

    def load_part(self, part: Part, fingerprint: str) -> Mapping[str, Any] | None:
        """Return the record of a finished part, or None if absent, outdated or damaged."""
        path = self.folder / "parts" / f"{part.slug}.json"
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or "tables" not in record:
            return None
        if record.get("fingerprint") != fingerprint:
            return None
        return record if record.get("arrays") == _file_digest(path.with_suffix(".npz")) else None

    def write(self, document: Mapping[str, Any]) -> None:
        """Write tables as CSV, and everything as JSON."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, rows in document["tables"].items():
            write_file(self.folder / f"{name}.csv", as_csv(rows))
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_file(self.folder / "results.json", text)

    def read(self) -> Results | None:
        """Read the results; None if absent or damaged."""
        try:
            document = json.loads((self.folder / "results.json").read_text(encoding="utf-8"))
            arrays = {one["part"]: self._arrays(one["file"]) for one in document["parts"]}
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error):
            return None
        return Results(document, arrays)

    def remove_outdated(self, fingerprint: str) -> None:
        """Remove results of other settings, data or code."""
        finished = self.read()
        if finished is not None and finished.document["fingerprint"] != fingerprint:
            (self.folder / "results.json").unlink()

    def _arrays(self, slug: str) -> dict[str, NDArray[Any]]:
        with np.load(self.folder / "parts" / f"{slug}.npz", allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}


def _file_digest(path: Path) -> str | None:
    """SHA-256 of a file; None if it does not exist."""
    try:
        status = path.stat()
        return _cached_digest(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _cached_digest(path: Path, changed: int, size: int) -> str:
    """SHA-256 of a file, computed once while the file does not change."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


#: By id, in the order of the report.
EXPERIMENTS = {
    "toy-contours": Experiment(toy_contours.plan),
    "usps-kpca": Experiment(usps_kpca.plan),
    "lena-multipatch": Experiment(image_denoising.plan),
    "usps-clustering": Experiment(usps_clustering.plan, usps_clustering.summary),
    "motion": Experiment(motion.plan),
    "face-hyperresolution": Experiment(faces.plan, faces.summary),
    "natural-components": Experiment(natural_components.plan),
    "natural-hyperresolution": Experiment(
        natural_super_resolution.plan, natural_super_resolution.summary
    ),
    "online-toy": Experiment(online.plan),
    "incremental-toy": Experiment(parabola.plan, parabola.summary),
    "manifolds": Experiment(manifolds.plan),
    "kernel-eigenfaces": Experiment(eigenfaces.plan, eigenfaces.summary),
}


#: Processor time is meaningful on a machine that is busy, too.
_COSTS = ("seconds", "processor_seconds", "threads")
#: Called with an experiment, the number of its finished parts and of all its parts.
ProgressCallback: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Job:
    """Experiment that is ready to run: request, parts and results folder."""

    spec: ExperimentSpec
    experiment: Experiment
    size: str
    request: Request
    parts: Sequence[Part]
    folder: ResultsFolder

    @property
    def fingerprint(self) -> str:
        """Digest of everything that the results depend on."""
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
        """Return the parts that are not finished."""
        fingerprint = self.fingerprint
        return [part for part in self.parts if self.folder.load_part(part, fingerprint) is None]


def prepare(
    name: str,
    size: str,
    out: Path,
    data_folder: Path | None = None,
    seed: int = 0,
    experiments: Mapping[str, Experiment] = EXPERIMENTS,
    spec: ExperimentSpec | None = None,
) -> Job:
    """Load the data of an experiment and plan its parts."""
    spec = find_spec(name) if spec is None else spec
    if spec.id not in experiments:
        raise InvalidInput(
            f"{spec.id}: no experiment of this id is registered; add it to EXPERIMENTS."
        )
    inputs = load_inputs(spec.sizes[size].data, data_folder)
    request = Request(spec.settings_of(size), inputs, seed)
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
    """Run one experiment, or its unfinished parts, and return the results.

    Parameters
    ----------
    name : str
        Such as "usps-kpca".
    size : {"quick", "embedded", "real"}
    results_folder : Path
        Finished parts are kept there and reused for the same settings, data and code.
    data_folder : Path, optional
        Of real data.
    n_jobs : int
        Number of parts in parallel, each in a process of its own.
    seed : int
    """
    job = prepare(name, size, results_folder, data_folder, seed)
    failures = run_jobs([job], n_jobs)
    if failures:
        raise RuntimeError(failures[name])
    finished = job.folder.read()
    if finished is None:
        raise RuntimeError(f"{name}: its results were removed while it ran.")
    return finished


def run_jobs(
    jobs: Sequence[Job], n_jobs: int = 1, on_progress: ProgressCallback = lambda *_: None
) -> dict[str, str]:
    """Run the unfinished parts of all jobs; return the reasons of failures by experiment.

    Parts run in parallel with one thread each; jobs that measure time or memory run last, alone.
    """
    todo = {job.spec.id: job.missing() for job in jobs}
    failures: dict[str, str] = {}
    for job in jobs:
        job.folder.remove_outdated(job.fingerprint)
        on_progress(job.spec.id, len(job.parts) - len(todo[job.spec.id]), len(job.parts))
    for alone in (False, True):
        group = [job for job in jobs if job.spec.alone is alone]
        tasks = [(job, part) for job in group for part in todo[job.spec.id]]
        for name, reason in _run_tasks(tasks, 1 if alone else n_jobs, n_jobs if alone else 1):
            if reason:
                failures.setdefault(name, reason)
            else:
                job = next(job for job in group if job.spec.id == name)
                on_progress(name, len(job.parts) - len(job.missing()), len(job.parts))
        for job in group:
            if job.spec.id not in failures:
                _write_results(job)
    return failures


def _run_tasks(
    tasks: Sequence[tuple[Job, Part]], n_jobs: int, threads: int
) -> Iterator[tuple[str, str]]:
    """Yield the experiment of every finished part, and the reason of a failure or ''."""
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    calls = (
        delayed(_run_part)(job.spec.id, part, job.folder, job.fingerprint, threads)
        for job, part in tasks
    )
    try:
        yield from Parallel(n_jobs, return_as="generator_unordered", batch_size=1)(calls)
    finally:
        # Idle processes would hold memory while others are measured.
        if n_jobs > 1 and tasks:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _run_part(
    name: str, part: Part, folder: ResultsFolder, fingerprint: str, threads: int
) -> tuple[str, str]:
    """Run one part and save it in the same process, so that it survives the parent."""
    import multiprocessing

    from threadpoolctl import threadpool_limits

    if multiprocessing.parent_process() is not None:
        # The parent handles interrupts.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with threadpool_limits(threads), warnings.catch_warnings():
            # Gain searches diverge and wide kernels have a small rank; the tables show both.
            warnings.simplefilter("ignore")
            start, cpu_start = time.perf_counter(), time.process_time()
            findings = part.task()
            cost = {
                "seconds": time.perf_counter() - start,
                "processor_seconds": time.process_time() - cpu_start,
                "threads": blas_threads(),
            }
        folder.save_part(part, fingerprint, findings, cost)
    except Exception as error:
        return name, f"{name}, {part.name}: {type(error).__name__}: {error}"
    return name, ""


def _write_results(job: Job) -> None:
    """Concatenate the tables of all parts, in the order of the plan."""
    fingerprint = job.fingerprint
    records = [job.folder.load_part(part, fingerprint) for part in job.parts]
    tables: dict[str, Rows] = {}
    parts = []
    for part, record in zip(job.parts, records, strict=True):
        if record is None:
            return
        for name, rows in record["tables"].items():
            tables.setdefault(name, []).extend(rows)
        cost = {key: record[key] for key in _COSTS}
        parts.append({"part": part.name, "file": part.slug, **cost})
    tables.update(to_json_types(job.experiment.summary(tables)))
    inputs = job.request.inputs
    document: dict[str, Any] = {
        "experiment": job.spec.id,
        "size": job.size,
        "fingerprint": fingerprint,
        "settings": dict(job.request.settings),
        "seed": job.request.seed,
        "data": {"name": inputs.name, "origin": inputs.origin, "sha256": inputs.checksum},
        "versions": versions(),
        "sources": sources_checksum(),
        "parts": parts,
        "tables": tables,
    }
    job.folder.write(document)
