"""Parts of ``make faults``, in pieces for child processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.calling import call_batch
from tests.faults.children import shared_out, watched
from tests.faults.disk import full_disk_batch
from tests.faults.files import stored_cases
from tests.faults.jobs import JOBS
from tests.faults.kills import killed_run, reference
from tests.faults.reading import read_batch
from tests.faults.sharing import check_bits, check_caches, thread_batch
from tests.faults.tally import Tally
from tests.faults.texts import text_cases

#: Trials per piece: long enough to pay for a child, short enough to show progress.
_FILES, _TEXTS, _CALLS, _WRITES = 1000, 500, 100, 10
#: A run is killed twice in the mean; more runs are begun than that until all kills are done.
_RUNS_AT_ONCE = 10


@dataclass(frozen=True)
class Part:
    """Name, description, number of trials and function of a part."""

    name: str
    about: str
    count: int
    unit: str
    run: Callable[..., Tally]


def _batches(work, *arguments, size):
    """Part of independent batches with different seeds."""

    def run(count, seed, jobs, tell):
        sizes = [size] * (count // size) + [count % size] * bool(count % size)
        pieces = [(work, *arguments, _seed(seed, number), own) for number, own in enumerate(sizes)]
        return shared_out(watched, pieces, jobs, tell)

    return run


def _seed(seed, number):
    return 1_000_003 * seed + number


def _kills(count, seed, jobs, tell):
    """Run jobs in turn until a number of them were killed."""
    references = {}
    tally = shared_out(lambda name: references.setdefault(name, reference(name)) and Tally(),
                       [(name,) for name in JOBS], jobs, lambda _: None)  # fmt: skip
    number = 0
    while tally.counts["kills"] < count and "ended" not in tally.stated:
        missing = count - tally.counts["kills"]
        runs = range(number, number + max(1, min(_RUNS_AT_ONCE * jobs, missing // 2)))
        order = list(references.values())
        pieces = [(order[run % len(order)], _seed(seed, run)) for run in runs]
        done = tally.counts.copy()
        tally.add(shared_out(killed_run, pieces, jobs, lambda part, done=done: tell(
            Tally(done + part.counts))))  # fmt: skip
        number = runs.stop
    return tally


def _disk(count, seed, jobs, tell):
    pieces = [(full_disk_batch, min(_WRITES, count - start), _seed(seed, start))
              for start in range(0, count, _WRITES)]  # fmt: skip
    # One after the other: what one mounts and fills, another would see.
    return shared_out(watched, pieces, 1, tell)


def _threads(count, seed, jobs, tell):
    return shared_out(watched, [(thread_batch, count)], 1, tell)


def _whole(check):
    """Part that starts its own processes."""

    def run(count, seed, jobs, tell):
        return shared_out(check, [()] * count, 1, tell)

    return run


PARTS = {
    part.name: part
    for part in (
        Part("kills", "SIGKILL at random moments, resumed", 200, "kills", _kills),
        Part("files", "damaged model files and checkpoints", 100_000, "files",
             _batches(read_batch, stored_cases, size=_FILES)),
        Part("texts", "damaged tables", 20_000, "files",
             _batches(read_batch, text_cases, size=_TEXTS)),
        Part("calls", "random calls", 10_000, "calls", _batches(call_batch, size=_CALLS)),
        Part("disk", "a disk that fills", 60, "writes", _disk),
        Part("threads", "eight threads with one model", 20, "rounds", _threads),
        Part("caches", "two processes with one cache", 1, "rounds", _whole(check_caches)),
        Part("bits", "one thread or two, once or twice", 1, "rounds", _whole(check_bits)),
    )
}  # fmt: skip
