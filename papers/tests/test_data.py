"""Registry of data sets; embedded, local and downloaded data."""

from __future__ import annotations

import re
import zipfile
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from ikpca.errors import InvalidInput
from ikpca_papers.data import (
    DataUnavailable,
    available_sources,
    data_path,
    fetch,
    find,
    load,
    registry,
)
from ikpca_papers.data.sources import BUILDERS, GENERATORS

#: The table of experiments.
EXPERIMENTS = {
    "toy-contours", "usps-kpca", "lena-multipatch", "usps-clustering", "motion", "online-toy",
    "face-hyperresolution", "natural-components", "natural-hyperresolution", "incremental-toy",
    "manifolds", "kernel-eigenfaces",
}  # fmt: skip
OF_WAY = {
    way: [name for name, entry in registry().items() if entry.way == way]
    for way in ("embedded", "local", "download")
}


pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.fixture
def local(own_folders, register):
    """Data folder with small Frey faces, which the registry describes."""
    folder = own_folders.data
    folder.mkdir()
    entry = replace(find("frey_faces"), shapes={"images": (3, 2, 2)})
    register(entry)
    images = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    np.savez_compressed(folder / "frey_faces.npz", images=images)
    return folder


# The registry.


def test_every_source_has_its_functions():
    assert OF_WAY["embedded"] == list(GENERATORS)
    assert OF_WAY["download"] == list(BUILDERS)
    assert OF_WAY["local"]


def test_every_experiment_has_data_that_are_embedded():
    used = {
        way: {experiment for name in names for experiment in registry()[name].experiments}
        for way, names in OF_WAY.items()
    }
    assert used["embedded"] == EXPERIMENTS
    assert used["local"] | used["download"] < EXPERIMENTS


@pytest.mark.parametrize("entry", registry().values(), ids=registry())
def test_entries_are_complete(entry):
    assert entry.description
    assert entry.source
    assert entry.terms
    assert entry.megabytes > 0
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in entry.checksums)
    # Nobody could yet try a download from the addresses; the table must say so.
    assert bool(entry.untried) == (entry.way == "download")
    for remote in entry.remotes:
        assert re.fullmatch("[0-9a-f]{64}", remote.sha256)
        assert remote.address.rsplit("/", 1)[1] == remote.path.rsplit("/", 1)[1]


@pytest.mark.parametrize(
    ("typed", "meant"), [("ups", "usps"), ("USPS", "usps"), ("swiss_roll", "perforated_swiss_roll")]
)
def test_unknown_name_suggests_the_nearest(typed, meant):
    for function in (load, fetch, data_path, available_sources, find):
        with pytest.raises(InvalidInput, match=f"did you mean '{meant}'"):
            function(typed)


def test_unknown_name_without_similar_ones_lists_all():
    with pytest.raises(InvalidInput, match="there are digits, photographs,"):
        find("qqqqqq")


# Embedded.


@pytest.mark.parametrize("name", OF_WAY["embedded"])
def test_embedded_data_need_no_files(name):
    result = load(name)
    assert {key: array.shape for key, array in result.arrays.items()} == find(name).shapes
    assert (result.name, result.origin, result.path) == (name, "embedded", None)
    assert result.checksum == load(name, source="embedded").checksum
    assert available_sources(name) == ("embedded",)
    assert data_path(name) is None


def test_digits_have_the_recorded_checksum():
    assert load("digits").as_recorded is True
    assert load("parabola").as_recorded is None


def test_data_sets_are_read_only():
    digits = load("digits")
    with pytest.raises(ValueError, match="read-only"):
        digits["X"][0] = 1
    with pytest.raises(TypeError):
        digits.arrays["X"] = None
    with pytest.raises(FrozenInstanceError):
        digits.checksum = ""


def test_embedded_data_have_no_other_source():
    for source in ("local", "download"):
        with pytest.raises(InvalidInput, match="digits is embedded; pass source='auto'"):
            load("digits", source=source)
    with pytest.raises(InvalidInput, match="usps is not embedded"):
        load("usps", source="embedded")
    with pytest.raises(InvalidInput, match="must be auto, embedded, local or download"):
        load("digits", source="web")
    with pytest.raises(InvalidInput, match="nothing to fetch"):
        fetch("digits")


# A local folder.


@pytest.mark.parametrize("name", OF_WAY["local"] + OF_WAY["download"])
def test_local_files_have_the_recorded_checksums(name, data_folder):
    if not (data_folder / find(name).file).exists():
        pytest.skip(f"no {name} in the data folder")
    result = load(name, data_folder)
    assert result.as_recorded
    assert result.origin == "local"
    assert result.path == data_folder / f"{name}.npz" == data_path(name, data_folder)
    size = (data_folder / f"{name}.npz").stat().st_size / 1e6
    assert abs(size - find(name).megabytes) <= 0.05


def test_the_folder_is_named_by_argument_or_environment(local, monkeypatch, tmp_path):
    assert load("frey_faces", local)["images"].shape == (3, 2, 2)
    monkeypatch.setenv("IKPCA_DATA", str(local))
    assert load("frey_faces").path == local / "frey_faces.npz"
    assert load("frey_faces", source="local").as_recorded is False
    # The argument goes first.
    (tmp_path / "other").mkdir()
    assert data_path("frey_faces", tmp_path / "other") is None


def test_missing_folder_is_named(monkeypatch, tmp_path):
    with pytest.raises(DataUnavailable, match=r"no data folder is named; .* in IKPCA_DATA"):
        load("frey_faces", source="local")
    with pytest.raises(DataUnavailable, match=r"^.*absent: is not a folder"):
        load("frey_faces", tmp_path / "absent")
    monkeypatch.setenv("IKPCA_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataUnavailable, match=r"^IKPCA_DATA: .*absent: is not a folder"):
        load("frey_faces")
    assert load("digits").origin == "embedded"


def test_missing_file_is_named(local):
    with pytest.raises(DataUnavailable, match=r"usps\.npz: there is no such file"):
        load("usps", local, source="local")


def test_data_without_address_name_their_source():
    with pytest.raises(DataUnavailable, match=r"no address .* teapot_100\.npz .*Weinberger"):
        load("teapot_100", offline=False)
    assert available_sources("teapot_100", offline=False) == ()


def _truncated(path):
    path.write_bytes(path.read_bytes()[:-40])


def _flipped(path):
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("images.npy").header_offset + 30 + len("images.npy")
    content[start + 20] ^= 0xFF
    path.write_bytes(content)


def _empty(path):
    path.write_bytes(b"")


def _text(path):
    path.write_text("<html>not found</html>")


def _pickle(path):
    np.savez(path, images=np.array([[[0, {}], [0, 0]]] * 3, dtype=object))


def _bare_pickle(path):
    path.write_bytes(b"\x80\x04\x95\x00.")


def _other_names(path):
    np.savez(path, faces=np.zeros((3, 2, 2)))


def _bare_array(path):
    with path.open("wb") as file:
        np.save(file, np.zeros((3, 2, 2)))


def _other_shape(path):
    np.savez(path, images=np.zeros((4, 2, 2)))


def _folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    _truncated: "is damaged or no .npz file",
    _flipped: "is damaged or no .npz file",
    _empty: "is damaged or no .npz file",
    _text: "is damaged or no .npz file",
    _folder: "is damaged or no .npz file",
    _pickle: "holds pickled objects, which can run code and are not read",
    _bare_pickle: "is damaged or no .npz file",
    _other_names: "lacks the array 'images' .it has faces.",
    _bare_array: "is damaged or no .npz file",
    _other_shape: r"has shape \(4, 2, 2\) instead of \(3, 2, 2\)",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_bad_file_raises_one_sentence(local, damage):
    damage(local / "frey_faces.npz")
    with pytest.raises(DataUnavailable, match=DAMAGE[damage]) as raised:
        load("frey_faces", local)
    assert str(raised.value).startswith(f"{local / 'frey_faces.npz'}: ")
    assert "\n" not in str(raised.value)
