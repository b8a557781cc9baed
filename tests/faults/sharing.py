"""Threads that share a model, processes that share a cache, and reproducible bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from sklearn.datasets import load_digits

import ikpca
from ikpca import HebbianPCA, IncrementalKernelPCA, KernelPCA, OnlineKernelPCA
from tests.faults.jobs import JOBS, OTHERS, digest
from tests.faults.tally import Tally

_THREADS = 8
#: Seconds that a process may take which compiles everything.
_PATIENCE = 600
_ROOT = Path(__file__).resolve().parents[2]


def thread_batch(folder, rounds):
    """Run in a child: eight threads use one model; the results equal those of one thread."""
    X = load_digits().data[:600] / 16
    for name, model in _models(X, Path(folder)).items():
        tally = Tally(stated={"threads": str(_THREADS)})
        parts = [X[start : start + 100 + 17 * start % 300] for start in range(0, 400, 50)]
        alone = [_used(model, part) for part in parts]
        use = partial(_used, model)
        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in range(rounds):
                for number, result in enumerate(pool.map(use, parts)):
                    tally.count("uses by threads at once")
                    if result != alone[number]:
                        tally.find(f"{name}: threads got other bits in part {number}")
        yield tally


def _used(model, rows):
    Y = model.transform(rows)
    back = model.inverse_transform(Y[:10])
    return Y.tobytes(), back.tobytes()


def _models(X, folder):
    rbf = {"kernel": "rbf", "gamma": 0.02}
    models = {
        "KernelPCA": KernelPCA(6, **rbf).fit(X),
        "KernelPCA, two threads": KernelPCA(6, n_jobs=2, max_memory="20MB", **rbf).fit(X),
        "KernelPCA, ridge": KernelPCA(6, fit_inverse_transform=True, **rbf).fit(X),
        "HebbianPCA": HebbianPCA(6, random_state=0, max_iter=3).fit(X),
        "IncrementalKernelPCA": IncrementalKernelPCA(6, max_basis_rows=80, **rbf).fit(X),
        "OnlineKernelPCA": OnlineKernelPCA(6, random_state=0, **rbf).fit(X),
    }
    models["KernelPCA"].save(folder / "model")
    return models | {"a loaded model": ikpca.load(folder / "model")}


def check_caches():
    """Two processes share an empty cache of compiled code."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="ikpca-cache-") as cache:
        own = {"NUMBA_CACHE_DIR": f"{cache}/code"}
        alone = _answers([{"NUMBA_CACHE_DIR": f"{cache}/other"}], "fits")
        together = _answers([own, own], "fits")
        later = _answers([own, own], "fits")
    for when, answers in (("an empty", together), ("a filled", later)):
        for answer in answers:
            tally.count("processes that shared a cache")
            if answer != alone[0]:
                tally.find(f"{when} cache: {answer} in place of {alone[0]}")
    return tally


def check_bits():
    """Results do not depend on the number of threads or on cached code."""
    tally = Tally()
    (one,) = _answers([{"OMP_NUM_THREADS": "1"}], "bits", "1", "1", "None")
    (two,) = _answers([{"OMP_NUM_THREADS": "2"}], "bits", "2", "2", "None")
    for threads, answers in (("one", one), ("two", two)):
        for way, answer in zip(("", ", again", ", as many as BLAS has"), answers, strict=True):
            for name, bits in answer.items():
                tally.count("results compared")
                if bits != one[0][name]:
                    tally.find(f"{name}: other bits with {threads} threads{way}")
    return tally


def _answers(environments, *task):
    """Return the outputs of concurrent processes with different environments."""
    command = [sys.executable, "-m", "tests.faults.sharing", *task]
    running = [
        subprocess.Popen(command, env={**os.environ, **own}, stdout=subprocess.PIPE, cwd=_ROOT)
        for own in environments
    ]
    return [json.loads(process.communicate(timeout=_PATIENCE)[0] or "null") for process in running]


def _bits(n_jobs):
    """Run in a process: print the checksum of all fits and streams."""
    threads = None if n_jobs == "None" else int(n_jobs)
    return {name: digest(fit(None, threads)) for name, fit in (JOBS | OTHERS).items()}


def _compiled():
    """Run in a process: print the checksum of compiled sweeps."""
    fits = {"kha-smd": JOBS["kha-smd"], "hebbian": OTHERS["hebbian"], "online": OTHERS["online"]}
    return {name: digest(fit(None, 1)) for name, fit in fits.items()}


if __name__ == "__main__":
    task, *others = sys.argv[1:]
    answer = _compiled() if task == "fits" else [_bits(n_jobs) for n_jobs in others]
    sys.stdout.write(json.dumps(answer))
