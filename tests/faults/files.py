"""Damaged files: each loads to what was saved, or raises our error, in little time and memory."""

from __future__ import annotations

import contextlib
import resource
import signal
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ikpca import HebbianPCA, KernelPCA
from ikpca.errors import UnreadableFile
from ikpca.estimators.checkpoints import Checkpoint
from tests.faults.mutations import damaged, forged
from tests.sameness import same

#: No file may take longer to read, or more address space beyond what the process has.
SECONDS, MORE_MEMORY = 5, 2 * 2**30


@dataclass
class Tally:
    """What became of the files."""

    files: int = 0
    loaded: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def model_files(folder):
    """A few small models of different kinds."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    models = [
        KernelPCA(2, kernel="rbf", gamma=0.5).fit(X),
        KernelPCA(2, kernel="poly", eigen_solver="kha-smd", random_state=0, max_iter=2).fit(X),
        HebbianPCA(2, random_state=np.random.RandomState(0), max_iter=2).fit(X),
    ]
    paths = []
    for number, model in enumerate(models):
        path = Path(folder, f"{number}.model")
        model.save(path)
        paths.append(path)
    return paths


def checkpoint_files(folder):
    """One of each solver that has them."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    paths = []
    for number, solver in enumerate(("kha-smd", "krylov")):
        path = Path(folder, f"{number}.checkpoint")
        KernelPCA(2, kernel="rbf", eigen_solver=solver, random_state=0, max_iter=2,
                  checkpoint=path).fit(X)  # fmt: skip
        paths.append(path)
    return paths


def load_checkpoint(path):
    """What resuming reads before it looks at the data."""
    checkpoint = Checkpoint(path, 1)
    return checkpoint.open(), checkpoint.recall()


def fuzz(paths, load, count, seed, *, forge=0.3):
    """Damage files and load them; a file that loads although it was damaged must be equal."""
    rng = np.random.default_rng(seed)
    originals = [(path.read_bytes(), load(path)) for path in paths]
    tally = Tally()
    target = paths[0].with_name("damaged")
    with bounded():
        for _ in range(count):
            number = int(rng.integers(len(paths)))
            forging = rng.random() < forge
            content = forged(paths[number], rng) if forging else damaged(originals[number][0], rng)
            target.write_bytes(content)
            _judge(tally, load, target, None if forging else originals[number][1])
    return tally


def _judge(tally, load, path, expected):
    tally.files += 1
    signal.alarm(SECONDS)
    try:
        found = load(path)
        if expected is not None:
            same(found, expected)
        tally.loaded += 1
    except UnreadableFile:
        tally.refused += 1
    except BaseException as error:
        tally.failures.append(f"{type(error).__name__}: {error}")
    finally:
        signal.alarm(0)


@contextlib.contextmanager
def bounded():
    """Address space and time are limited; going beyond either is a failure like any other."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def _too_long(number, frame):
    raise TimeoutError(f"a file took more than {SECONDS} s")
