"""``ikpca-papers data``: list, fetch, where."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from ikpca_papers.data import find, load, registry
from papers.tests.command_line import ikpca_papers
from papers.tests.motion_files import AMC, ASF
from papers.tests.web_server import serving

pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.fixture
def data(own_folders, register):
    """A folder with small Frey faces."""
    own_folders.data.mkdir()
    register(replace(find("frey_faces"), shapes={"images": (3, 2, 2)}))
    np.savez(own_folders.data / "frey_faces.npz", images=np.zeros((3, 2, 2), dtype=np.uint8))
    return own_folders.data


@pytest.fixture
def walk(register, monkeypatch):
    """A server with a small arm in place of the walk."""
    monkeypatch.setenv("IKPCA_OFFLINE", "0")
    texts = {"mocap/35.asf": ASF.encode(), "mocap/35_01.amc": AMC.encode()}
    with serving(texts) as web:
        entry = find("cmu_walk_35_01")
        remotes = tuple(
            replace(
                remote,
                address=web.address(remote.path),
                sha256=hashlib.sha256(texts[remote.path]).hexdigest(),
            )
            for remote in entry.remotes
        )
        register(replace(entry, remotes=remotes, shapes={"joint_names": (4,)}))
        yield web


def one_sentence(captured, verb, code):
    """Return the error message, which must be the only output."""
    assert captured.code == code
    assert not captured.out
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"ikpca-papers data {verb}: ")
    assert lines[0][-1] in ".?"
    return lines[0]


def rows_of(captured):
    """Return the table as a dictionary by name."""
    lines = [line.split(maxsplit=4) for line in captured.out.splitlines()]
    return {line[0]: line[1:] for line in lines if line and line[0] in registry()}


def test_without_a_command_help_is_printed():
    captured = ikpca_papers("data")
    assert captured.code == 0
    assert not captured.err
    for verb in ("list", "fetch", "where"):
        assert f" {verb} " in captured.out


def test_list_shows_shape_size_way_and_terms():
    captured = ikpca_papers("data", "list")
    assert captured.code == 0, captured.err
    rows = rows_of(captured)
    assert list(rows) == list(registry())
    assert rows["digits"][:3] == ["1797×64", "0.9", "embedded"]
    # Offline, with nothing at hand.
    assert rows["usps"][:3] == ["7291×256", "2.4", "–"]
    assert rows["usps"][3].startswith("none stated: research only")
    assert "…" not in captured.out


def test_list_shows_folder_cache_and_network(data, own_folders, monkeypatch):
    assert rows_of(ikpca_papers("data", "list", "--data", data))["frey_faces"][2] == "local"
    monkeypatch.setenv("IKPCA_DATA", str(data))
    monkeypatch.setenv("IKPCA_OFFLINE", "0")
    own_folders.cache.mkdir()
    (own_folders.cache / "teapot_100.npz").touch()
    rows = rows_of(ikpca_papers("data", "list"))
    ways = {name: rows[name][2] for name in ("frey_faces", "usps", "teapot_100", "bsds_grey")}
    assert ways == {
        "frey_faces": "local", "usps": "download", "teapot_100": "cached", "bsds_grey": "–",
    }  # fmt: skip


def test_list_as_json_has_all_fields(data):
    captured = ikpca_papers("data", "list", "--json", "--data", data)
    entries = {one["name"]: one for one in json.loads(captured.out)}
    assert list(entries) == list(registry())
    assert entries["usps"]["shapes"]["X_train"] == [7291, 256]
    assert entries["usps"]["experiments"] == ["usps-kpca", "usps-clustering"]
    assert entries["frey_faces"]["here"] == ["local"]
    assert entries["frey_faces"]["path"] == str(data / "frey_faces.npz")
    remote = entries["cmu_walk_35_01"]["remotes"][0]
    assert remote["address"] == "http://mocap.cs.cmu.edu/subjects/35/35.asf"
    assert entries["cmu_walk_35_01"]["untried"]


def test_fetch_reports_downloads_and_ends_with_the_path(walk, own_folders):
    walk.cuts = [100]
    captured = ikpca_papers("data", "fetch", "cmu_walk_35_01")
    assert captured.code == 0, captured.err
    path = own_folders.cache / "cmu_walk_35_01.npz"
    assert captured.out.splitlines()[0] == f"cmu_walk_35_01: {path}"
    assert "terms: free for research and commercial projects" in captured.out
    # The arm is not the walk that was recorded.
    assert "differ from those" in captured.out
    assert load("cmu_walk_35_01", offline=True)["joint_names"].shape == (4,)
    assert len(walk.requests) == 3


def test_fetch_as_json_and_quiet(walk, own_folders):
    captured = ikpca_papers("data", "fetch", "cmu_walk_35_01", "digits", "--json", "--quiet")
    assert captured.code == 0
    assert not captured.err
    walked, digits = json.loads(captured.out)
    assert walked["path"] == str(own_folders.cache / "cmu_walk_35_01.npz")
    assert (walked["origin"], walked["as_recorded"]) == ("download", False)
    assert digits == {
        "name": "digits", "origin": "embedded", "path": None,
        "checksum": load("digits").checksum, "as_recorded": True,
    }  # fmt: skip


def test_existing_files_are_not_fetched(data):
    captured = ikpca_papers("data", "fetch", "frey_faces", "digits", "--data", data)
    assert captured.code == 0
    assert not captured.err
    assert f"frey_faces: {data / 'frey_faces.npz'}\n" in captured.out
    assert "digits: embedded, nothing to fetch\n" in captured.out


def test_one_unknown_name_stops_before_the_first_transfer(walk):
    captured = ikpca_papers("data", "fetch", "cmu_walk_35_01", "upsp")
    assert "did you mean 'usps'?" in one_sentence(captured, "fetch", 2)
    assert not walk.requests


def test_fetch_errors_are_one_sentence(walk, register, own_folders):
    entry = find("frey_faces")
    assert "no address" in one_sentence(ikpca_papers("data", "fetch", entry.name), "fetch", 1)
    walk.files["/mocap/35.asf"] += b"#"
    captured = ikpca_papers("data", "fetch", "--quiet", "cmu_walk_35_01")
    assert "does not match the known hash" in one_sentence(captured, "fetch", 1)
    del walk.files["/mocap/35.asf"]
    captured = ikpca_papers("data", "fetch", "--quiet", "cmu_walk_35_01")
    assert "404 Client Error" in one_sentence(captured, "fetch", 1)
    assert not (own_folders.cache / "cmu_walk_35_01.npz").exists()


def test_fetch_does_not_connect_offline(own_folders):
    captured = ikpca_papers("data", "fetch", "mnist")
    assert "offline mode is on" in one_sentence(captured, "fetch", 1)
    assert not own_folders.cache.exists()


def test_where_prints_the_path(data, own_folders):
    assert (
        ikpca_papers("data", "where", "frey_faces", "--data", data).out
        == f"{data}/frey_faces.npz\n"
    )
    assert ikpca_papers("data", "where", "digits").out == "digits is embedded: it has no file.\n"
    captured = ikpca_papers("data", "where", "digits", "--json")
    assert json.loads(captured.out) == {"name": "digits", "path": None}
    folders = ikpca_papers("data", "where", "--data", data)
    assert folders.out == f"data folder: {data}\ncache: {own_folders.cache}\n"
    captured = ikpca_papers("data", "where", "--json")
    assert json.loads(captured.out) == {"data": None, "cache": str(own_folders.cache)}


def test_where_errors_are_one_sentence(tmp_path):
    captured = ikpca_papers("data", "where", "usps")
    assert "run: ikpca-papers data fetch usps" in one_sentence(captured, "where", 1)
    captured = ikpca_papers("data", "where", "teapot_100")
    assert "put teapot_100.npz into a folder" in one_sentence(captured, "where", 1)
    captured = ikpca_papers("data", "where", "teapot")
    assert "did you mean 'teapot_100'?" in one_sentence(captured, "where", 2)
    for verb in (["list"], ["where", "usps"], ["fetch", "usps"]):
        captured = ikpca_papers("data", *verb, "--data", tmp_path / "absent")
        assert "absent: is not a folder" in one_sentence(captured, verb[0], 1)
