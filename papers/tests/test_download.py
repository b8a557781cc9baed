"""Downloads against a local server that cuts, forgets, lies and fails."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ikpca.errors import InvalidInput
from ikpca_papers.data import DataUnavailable, download, fetch_file
from papers.tests.web_server import serving

CONTENT = np.random.default_rng(0).bytes(300_000)
SHA = hashlib.sha256(CONTENT).hexdigest()
NO_PAUSES = (0.0, 0.0)


@pytest.fixture
def web(monkeypatch):
    monkeypatch.delenv("IKPCA_OFFLINE", raising=False)
    with serving({"rows.bin": CONTENT}) as served:
        yield served


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made on demand" / "rows.bin"


@pytest.fixture
def part(path):
    """Where an unfinished download is kept."""
    path.parent.mkdir()
    return path.with_name("rows.bin.part")


def fetched(web, path, sha256=SHA, **settings):
    return fetch_file(web.address("rows.bin"), path, sha256, pauses=NO_PAUSES, **settings)


def visible(path):
    """What a reader of the folder finds, locks apart."""
    return sorted(one.name for one in path.parent.iterdir() if not one.name.endswith(".lock"))


def test_a_file_comes_once_and_whole(web, path):
    assert fetched(web, path) == path
    assert path.read_bytes() == CONTENT
    assert fetched(web, path) == path
    assert web.ranges == [None]
    assert visible(path) == ["rows.bin"]


def test_progress_grows_to_the_end(web, path):
    seen = []
    fetched(web, path, progress=lambda *told: seen.append(told))
    done = [one[1] for one in seen]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, len(CONTENT))
    assert {(name, total) for name, _, total in seen} == {("rows.bin", len(CONTENT))}


def test_a_cut_connection_is_resumed_where_it_broke(web, path):
    web.cuts = [100_000, 50_000]
    fetched(web, path)
    assert path.read_bytes() == CONTENT
    assert web.ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_cuts_may_be_many_where_every_try_brings_something(web, path):
    web.cuts = [40_000] * 7
    fetched(web, path)
    assert path.read_bytes() == CONTENT
    assert len(web.requests) == 8


def test_tries_end_where_nothing_comes(web, path):
    web.cuts = [0] * 20
    with pytest.raises(DataUnavailable, match=r"ended after 0 of 300000 bytes.*try again later"):
        fetched(web, path)
    assert len(web.requests) == 1 + len(NO_PAUSES)
    assert not path.exists()


def test_what_came_is_kept_for_another_call(web, path):
    web.cuts = [100_000, 0, 0]
    with pytest.raises(DataUnavailable):
        fetched(web, path)
    assert visible(path) == ["rows.bin.part"]
    web.requests.clear()
    seen = []
    fetched(web, path, progress=lambda _, done, total: seen.append((done, total)))
    assert web.ranges == ["bytes=100000-"]
    assert seen[0] == (100_000, len(CONTENT))
    assert path.read_bytes() == CONTENT
    assert visible(path) == ["rows.bin"]


def test_a_server_without_ranges_sends_it_all_again(web, path):
    web.knows_ranges = False
    web.cuts = [100_000]
    fetched(web, path)
    assert path.read_bytes() == CONTENT
    assert web.ranges == [None, "bytes=100000-"]


def test_a_server_without_ranges_that_always_cuts_is_given_up(web, path):
    web.knows_ranges = False
    web.cuts = [100_000] * 20
    with pytest.raises(DataUnavailable, match="ended after 100000 of 300000"):
        fetched(web, path)
    assert len(web.requests) == 1 + len(NO_PAUSES)


def test_a_server_that_sends_another_part_is_not_believed(web, path, part):
    part.write_bytes(CONTENT[:1000])
    web.claimed_start = 500
    fetched(web, path)
    assert path.read_bytes() == CONTENT
    assert web.ranges == ["bytes=1000-", None]


def test_a_file_of_untold_length(web, path):
    web.tells_length = False
    totals = set()
    fetched(web, path, progress=lambda *told: totals.add(told[2]))
    assert path.read_bytes() == CONTENT
    assert totals == {None}


def test_a_complete_part_needs_no_more_bytes(web, path, part):
    part.write_bytes(CONTENT)
    fetched(web, path)
    assert path.read_bytes() == CONTENT
    assert web.ranges == [f"bytes={len(CONTENT)}-"]


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * 300_000, b"x" * 400_000])
def test_a_part_of_another_version_is_thrown_away(web, path, part, left):
    part.write_bytes(left)
    fetched(web, path)
    assert path.read_bytes() == CONTENT
    assert web.ranges[-1] is None


def test_a_wrong_checksum_is_refused_and_nothing_stays(web, path):
    wrong = "0" * 64
    with pytest.raises(DataUnavailable) as refused:
        fetched(web, path, wrong)
    assert f"{SHA} instead of {wrong}" in str(refused.value)
    assert visible(path) == []
    assert len(web.requests) == 1


def test_a_checksum_may_be_in_capitals(web, path):
    assert fetched(web, path, SHA.upper()).exists()


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_line_ends_may_be_left_out_of_the_checksum(web, path, ends):
    web.files["/rows.bin"] = ends.join([b"some", b"lines"] * 100_000)
    lines = b"\n".join([b"some", b"lines"] * 100_000)
    fetched(web, path, hashlib.sha256(lines).hexdigest(), any_line_ends=True)
    assert path.read_bytes() == web.files["/rows.bin"]


def test_an_absent_file_is_told_at_once(web, path):
    address = web.address("absent.bin")
    with pytest.raises(DataUnavailable, match=r"absent\.bin: could not be fetched \(404 Not Found"):
        fetch_file(address, path, SHA, pauses=NO_PAUSES)
    assert len(web.requests) == 1
    assert visible(path) == []


@pytest.mark.parametrize("code", [500, 503, 429])
def test_a_busy_server_is_asked_again(web, path, code):
    web.failures = [code]
    fetched(web, path)
    assert path.read_bytes() == CONTENT
    assert len(web.requests) == 2


def test_a_server_that_stays_busy_is_named(web, path):
    web.failures = [503] * 20
    with pytest.raises(DataUnavailable, match="503 Service Unavailable"):
        fetched(web, path)
    assert len(web.requests) == 1 + len(NO_PAUSES)


def test_no_server(path):
    with serving({}) as gone:
        address = gone.address("rows.bin")
    with pytest.raises(DataUnavailable, match=r"could not be fetched \(.*refused"):
        fetch_file(address, path, SHA, pauses=())


def test_a_silent_server_counts_as_cut(web, path):
    web.gate.clear()
    with pytest.raises(DataUnavailable, match="timed out"):
        fetch_file(web.address("rows.bin"), path, SHA, pauses=(), timeout=0.2)


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://example.org/x", "rows.bin"])
def test_other_kinds_of_address_are_refused(path, address):
    with pytest.raises(InvalidInput, match="must begin with http"):
        fetch_file(address, path, SHA)
    assert not path.parent.exists()


def test_offline_asks_nobody(web, path, monkeypatch):
    with pytest.raises(DataUnavailable, match="offline mode is on"):
        fetched(web, path, offline=True)
    monkeypatch.setenv("IKPCA_OFFLINE", "1")
    with pytest.raises(DataUnavailable, match="offline mode is on"):
        fetched(web, path)
    assert not web.requests
    assert not path.parent.exists()
    # What is asked for goes before what is set; and what is there needs no network.
    fetched(web, path, offline=False)
    assert fetched(web, path, offline=True) == path
    monkeypatch.setenv("IKPCA_OFFLINE", "0")
    path.unlink()
    assert fetched(web, path).exists()


def test_threads_at_once_fetch_once(web, path):
    web.gate.clear()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(fetched, web, path) for _ in range(4)]
        # All are under way before the first byte comes.
        threading.Timer(0.2, web.gate.set).start()
        assert {job.result() for job in jobs} == {path}
    assert path.read_bytes() == CONTENT
    assert web.ranges == [None]


OTHER_PROCESS = """
import sys
from ikpca_papers.data import fetch_file
print("ready", flush=True)
print(fetch_file(*sys.argv[1:]), flush=True)
"""


def test_processes_at_once_fetch_once(web, path):
    command = [sys.executable, "-c", OTHER_PROCESS, web.address("rows.bin"), str(path), SHA]
    web.gate.clear()
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
    # Both are under way before the first byte comes.
    threading.Timer(0.3, web.gate.set).start()
    told = [process.communicate(timeout=60)[0] for process in processes]
    assert told == [f"{path}\n"] * 2
    assert path.read_bytes() == CONTENT
    assert web.ranges == [None]


def test_an_interrupt_in_the_middle_leaves_a_part_and_no_lock(web, path):
    def stop(name, done, total):
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetched(web, path, progress=stop)
    assert visible(path) == ["rows.bin.part"]
    fetched(web, path)
    assert path.read_bytes() == CONTENT
    assert int(web.ranges[-1].removeprefix("bytes=").removesuffix("-")) > 100_000


class FullDisk:
    """A file that takes so many bytes and no more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, chunk):
        self.room -= len(chunk)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(chunk)


def test_a_disk_that_fills_up(web, path, monkeypatch):
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda *opened: FullDisk(real(*opened), 100_000))
    with pytest.raises(DataUnavailable, match=r"no space left on device\); make room"):
        fetched(web, path)
    monkeypatch.undo()
    # Neither the file nor the part of it that filled the disk.
    assert visible(path) == []
    assert len(web.requests) == 1


def test_a_disk_too_small_is_told_before_the_first_byte(web, path, monkeypatch):
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(
        download.shutil, "disk_usage", lambda _: usage._replace(free=len(CONTENT) - 1)
    )
    seen = []
    with pytest.raises(DataUnavailable, match="no space left"):
        fetched(web, path, progress=lambda *told: seen.append(told))
    assert not seen
    assert visible(path) == []


def test_a_file_in_place_of_the_folder(web, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataUnavailable, match=r"file: cannot be written to .*IKPCA_CACHE"):
        fetched(web, tmp_path / "file" / "rows.bin")
    assert not web.requests


@pytest.fixture
def nobody():
    """Not root, who may write everywhere."""
    if not hasattr(os, "seteuid"):
        pytest.skip("permissions are of another kind here")
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield
    os.seteuid(before)


@pytest.fixture
def read_only():
    """A folder that anybody may look into and nobody may write to."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o555)
        yield Path(name)
        os.chmod(name, 0o755)


def test_a_read_only_folder(web, read_only, nobody):
    for path in (read_only / "rows.bin", read_only / "below" / "rows.bin"):
        with pytest.raises(DataUnavailable, match=r"cannot be written to \(permission denied\)"):
            fetched(web, path)
    assert not web.requests


def test_a_folder_that_may_not_be_looked_into(web, read_only, request):
    os.chmod(read_only, 0o000)
    request.getfixturevalue("nobody")
    with pytest.raises(DataUnavailable, match=r"cannot be written to \(permission denied\)"):
        fetched(web, read_only / "below" / "rows.bin")


def test_a_read_only_folder_that_has_the_file(web, read_only):
    (read_only / "rows.bin").write_bytes(CONTENT)
    assert fetched(web, read_only / "rows.bin").read_bytes() == CONTENT
    assert not web.requests
