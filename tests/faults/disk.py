"""Full disks: every write raises a documented error and keeps the old file."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import ikpca
from ikpca import KernelPCA
from ikpca.cli.files import write_table
from ikpca.errors import UnwritableFile
from ikpca.model_files import read_file
from tests.faults.jobs import JOBS, digest
from tests.faults.tally import Tally

#: A small disk, where one can be mounted.
_SMALL_DISK = 2 * 2**20


def full_disk_batch(folder, count, seed):
    """Run in a child: writes that fail after a number of bytes."""
    tally, rng = Tally(), np.random.default_rng(seed)
    works = (_save, _table, _save, _table, _fit)
    for number in range(count):
        works[number % len(works)](Path(folder), rng, _limited, tally)
        yield tally
        tally = Tally()
    with _small_disk() as (place, reason):
        tally.stated["small disk"] = reason
        for number in range(min(count, 2 * len(works)) if place else 0):
            works[number % len(works)](place, rng, _filled, tally)
    yield tally


def _save(place, rng, fault, tally):
    """Overwrite a model, which is kept if the disk is full."""
    path = place / "model"
    X = rng.normal(size=(int(rng.integers(50, 300)), 20))
    old = KernelPCA(1, kernel="rbf").fit(X[:20])
    old.save(path)
    new = KernelPCA(3, kernel="rbf").fit(X)
    if _failed(lambda: new.save(path), fault, place, 2 * X.nbytes, rng, tally):
        _expect(tally, (ikpca.load(path).eigenvalues_ == old.eigenvalues_).all(), "the old model")
    _expect_no_litter(place, {path}, tally)


def _columns(rows):
    return {f"x{number}": column for number, column in enumerate(rows.T)}


def _table(place, rng, fault, tally):
    """Write rows to files of several formats."""
    path = place / f"rows{rng.choice(['.npy', '.npz', '.csv'])}"
    old, new = np.ones((2, 2)), rng.normal(size=(2000, 10))
    write_table(path, _columns(old))
    before = path.read_bytes()
    if _failed(lambda: write_table(path, _columns(new)), fault, place, new.nbytes, rng, tally):
        _expect(tally, path.read_bytes() == before, "the old table")
    _expect_no_litter(place, {path}, tally)


def _fit(place, rng, fault, tally):
    """A fit whose checkpoint does not fit on the disk resumes later to the same bits."""
    path, name = place / "fit", "kha/et, matrix"
    if _failed(lambda: JOBS[name](path), fault, place, 120_000, rng, tally) and path.exists():
        read_file(path)
    same = digest(JOBS[name](path)) == digest(JOBS[name](None))
    _expect(tally, same, "bits of a fit that went on")
    _expect_no_litter(place, {path}, tally)


def _failed(work, fault, place, size, rng, tally):
    """Return True if the disk was full; other errors are findings."""
    tally.count("writes")
    try:
        with fault(place, int(rng.integers(0, size))):
            work()
    except UnwritableFile:
        tally.count("writes refused for want of room")
        return True
    except Exception as error:
        tally.find(f"full disk: {type(error).__name__}: {error}")
        return True
    tally.count("writes that found room")
    return False


def _expect(tally, holds, what):
    tally.count("looked at afterwards")
    if not holds:
        tally.find(f"full disk: {what} was lost")


def _expect_no_litter(place, files, tally):
    left = set(place.iterdir()) - files
    if left:
        tally.find(f"full disk: left behind {sorted(path.name for path in left)}")
    for path in {*files, *left}:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _limited(place, n_bytes):
    """Limit the size of files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def _filled(place, n_bytes):
    """Fill a small disk up to a number of bytes."""
    ballast = place / "ballast"
    taken = shutil.disk_usage(place).free - n_bytes
    try:
        with contextlib.suppress(OSError):
            ballast.write_bytes(bytes(max(0, taken)))
        yield
    finally:
        ballast.unlink()


@contextlib.contextmanager
def _small_disk():
    """Yield a small mounted folder and its description, or None and the reason."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        yield None, "not tried: mounting one takes the rights of root"
        return
    place = Path(tempfile.mkdtemp(prefix="ikpca-disk-"))
    options = ["-t", "tmpfs", "-o", f"size={_SMALL_DISK}", "tmpfs", str(place)]
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    try:
        if mounted.returncode:
            yield None, f"not to be mounted here ({mounted.stderr.strip()})"
        else:
            yield place, f"{_SMALL_DISK >> 10} kB in memory"
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", str(place)], check=False)
        place.rmdir()
