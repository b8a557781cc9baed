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


def one_sentence(said, verb, code):
    """Return the error message, which must be the only output."""
    assert said.code == code
    assert not said.out
    lines = said.err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"ikpca-papers data {verb}: ")
    assert lines[0][-1] in ".?"
    return lines[0]


def rows_of(said):
    """Return the table as a dictionary by name."""
    lines = [line.split(maxsplit=4) for line in said.out.splitlines()]
    return {line[0]: line[1:] for line in lines if line and line[0] in registry()}


def test_without_a_command_help_is_printed():
    said = ikpca_papers("data")
    assert said.code == 0
    assert not said.err
    for verb in ("list", "fetch", "where"):
        assert f" {verb} " in said.out


def test_list_shows_shape_size_way_and_terms():
    said = ikpca_papers("data", "list")
    assert said.code == 0, said.err
    rows = rows_of(said)
    assert list(rows) == list(registry())
    assert rows["digits"][:3] == ["1797×64", "0.9", "embedded"]
    # Offline, with nothing at hand.
    assert rows["usps"][:3] == ["7291×256", "2.4", "–"]
    assert rows["usps"][3].startswith("none stated: research only")
    assert "…" not in said.out


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
    said = ikpca_papers("data", "list", "--json", "--data", data)
    told = {one["name"]: one for one in json.loads(said.out)}
    assert list(told) == list(registry())
    assert told["usps"]["shapes"]["X_train"] == [7291, 256]
    assert told["usps"]["experiments"] == ["usps-kpca", "usps-clustering"]
    assert told["frey_faces"]["here"] == ["local"]
    assert told["frey_faces"]["path"] == str(data / "frey_faces.npz")
    remote = told["cmu_walk_35_01"]["remotes"][0]
    assert remote["address"] == "http://mocap.cs.cmu.edu/subjects/35/35.asf"
    assert told["cmu_walk_35_01"]["untried"]


def test_fetch_reports_downloads_and_ends_with_the_path(walk, own_folders):
    walk.cuts = [100]
    said = ikpca_papers("data", "fetch", "cmu_walk_35_01")
    assert said.code == 0, said.err
    path = own_folders.cache / "cmu_walk_35_01.npz"
    assert said.out.splitlines()[0] == f"cmu_walk_35_01: {path}"
    assert "terms: free for research and commercial projects" in said.out
    # The arm is not the walk that was recorded.
    assert "differ from those" in said.out
    assert load("cmu_walk_35_01", offline=True)["joint_names"].shape == (4,)
    assert len(walk.requests) == 3


def test_fetch_as_json_and_quiet(walk, own_folders):
    said = ikpca_papers("data", "fetch", "cmu_walk_35_01", "digits", "--json", "--quiet")
    assert said.code == 0
    assert not said.err
    walked, digits = json.loads(said.out)
    assert walked["path"] == str(own_folders.cache / "cmu_walk_35_01.npz")
    assert (walked["origin"], walked["as_recorded"]) == ("download", False)
    assert digits == {
        "name": "digits", "origin": "embedded", "path": None,
        "checksum": load("digits").checksum, "as_recorded": True,
    }  # fmt: skip


def test_existing_files_are_not_fetched(data):
    said = ikpca_papers("data", "fetch", "frey_faces", "digits", "--data", data)
    assert said.code == 0
    assert not said.err
    assert f"frey_faces: {data / 'frey_faces.npz'}\n" in said.out
    assert "digits: embedded, nothing to fetch\n" in said.out


def test_one_unknown_name_stops_before_the_first_transfer(walk):
    said = ikpca_papers("data", "fetch", "cmu_walk_35_01", "upsp")
    assert "did you mean 'usps'?" in one_sentence(said, "fetch", 2)
    assert not walk.requests


def test_fetch_errors_are_one_sentence(walk, register, own_folders):
    entry = find("frey_faces")
    assert "no address" in one_sentence(ikpca_papers("data", "fetch", entry.name), "fetch", 1)
    walk.files["/mocap/35.asf"] += b"#"
    said = ikpca_papers("data", "fetch", "--quiet", "cmu_walk_35_01")
    assert "does not match the known hash" in one_sentence(said, "fetch", 1)
    del walk.files["/mocap/35.asf"]
    said = ikpca_papers("data", "fetch", "--quiet", "cmu_walk_35_01")
    assert "404 Client Error" in one_sentence(said, "fetch", 1)
    assert not (own_folders.cache / "cmu_walk_35_01.npz").exists()


def test_offline(own_folders):
    said = ikpca_papers("data", "fetch", "mnist")
    assert "offline mode is on" in one_sentence(said, "fetch", 1)
    assert not own_folders.cache.exists()


def test_where(data, own_folders):
    assert (
        ikpca_papers("data", "where", "frey_faces", "--data", data).out
        == f"{data}/frey_faces.npz\n"
    )
    assert ikpca_papers("data", "where", "digits").out == "digits is embedded: it has no file.\n"
    said = ikpca_papers("data", "where", "digits", "--json")
    assert json.loads(said.out) == {"name": "digits", "path": None}
    folders = ikpca_papers("data", "where", "--data", data)
    assert folders.out == f"data folder: {data}\ncache: {own_folders.cache}\n"
    said = ikpca_papers("data", "where", "--json")
    assert json.loads(said.out) == {"data": None, "cache": str(own_folders.cache)}


def test_where_errors_are_one_sentence(tmp_path):
    said = ikpca_papers("data", "where", "usps")
    assert "run: ikpca-papers data fetch usps" in one_sentence(said, "where", 1)
    said = ikpca_papers("data", "where", "teapot_100")
    assert "put teapot_100.npz into a folder" in one_sentence(said, "where", 1)
    said = ikpca_papers("data", "where", "teapot")
    assert "did you mean 'teapot_100'?" in one_sentence(said, "where", 2)
    for verb in (["list"], ["where", "usps"], ["fetch", "usps"]):
        said = ikpca_papers("data", *verb, "--data", tmp_path / "absent")
        assert "absent: is not a folder" in one_sentence(said, verb[0], 1)
