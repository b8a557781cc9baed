"""Child processes; crashes, timeouts and excessive memory are findings."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.faults.tally import Tally

#: Seconds of silence after which a child counts as hanging; within it single files have less.
PATIENCE = 120
#: How often a child is asked whether it said something, or is to be stopped.
_GLANCE = 0.05

_context = multiprocessing.get_context("forkserver")
_stopping = threading.Event()


def set_up():
    """Before the first child: what all of them have imported, and one thread for BLAS.

    A process that is forked while threads of BLAS run may wait for them for ever.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    _context.set_forkserver_preload(["tests.faults.preloaded"])


class Child:
    """Process from a server that has imported the library."""

    def __init__(self, target, *arguments):
        self._receiver, sender = _context.Pipe(duplex=False)
        self._process = _context.Process(target=_work, args=(target, arguments, sender))
        self._process.start()
        sender.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._receiver.close()

    def hear(self, seconds):
        """Return the next message; raise TimeoutError, or EOFError if the process ended."""
        deadline = time.monotonic() + seconds
        while not self._receiver.poll(max(0, min(_GLANCE, deadline - time.monotonic()))):
            if _stopping.is_set():
                raise InterruptedError
            if time.monotonic() > deadline:
                raise TimeoutError
        return self._receiver.recv()

    def kill(self):
        self._process.kill()
        self._process.join()

    def ended(self):
        """Describe how the process ended."""
        self._process.join(5)
        code = self._process.exitcode
        return signal.Signals(-code).name if code is not None and code < 0 else f"status {code}"


def _work(target, arguments, sender):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for part in target(*arguments):
        sender.send(part)
    sender.send(None)


def watched(target, *arguments, patience=PATIENCE):
    """The sum of the tallies that a child yields; its death or silence is a finding.

    ``target`` takes a folder first; the file it was at when it died is kept beside the results.
    """
    tally, folder = Tally(), Path(tempfile.mkdtemp(prefix="ikpca-faults-"))
    try:
        with Child(target, folder, *arguments) as child:
            try:
                while (part := child.hear(patience)) is not None:
                    tally.add(part)
            except TimeoutError:
                tally.find(f"{arguments}: silent for {patience} s{_culprit(folder)}")
            except EOFError:
                tally.find(f"{arguments}: died with {child.ended()}{_culprit(folder)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def _culprit(folder):
    files = [path for path in folder.glob("damaged*") if path.is_file()]
    if not files:
        return ""
    kept = Path(tempfile.mkdtemp(prefix="ikpca-finding-"))
    for path in files:
        shutil.copy(path, kept)
    return f", at a file in {kept}"


def shared_out(work, pieces, jobs, tell):
    """Sum ``work(*piece)`` over pieces in parallel; Ctrl-C ends it early."""
    tally = Tally()
    _stopping.clear()
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(work, *piece) for piece in pieces]
        try:
            for done in as_completed(waiting):
                tally.add(done.result())
                tell(tally)
        except KeyboardInterrupt:
            _stopping.set()
            for one in waiting:
                one.cancel()
            tally.stated["ended"] = "interrupted"
    return tally
