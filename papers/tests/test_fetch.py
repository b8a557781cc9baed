"""Downloads from a local server and through scikit-learn."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from types import SimpleNamespace
from urllib.error import URLError
from urllib.request import urlopen as real_urlopen

import numpy as np
import pooch
import pytest
import sklearn.datasets
from numpy.testing import assert_array_equal

from ikpca_papers.data import (
    DataUnavailable,
    available_sources,
    cache_folder,
    entries,
    fetch,
    find,
    load,
    registry,
)
from ikpca_papers.data.sources import _MNIST_COUNTS, _USPS_COUNTS
from papers.tests.motion_files import AMC, ASF
from papers.tests.web_server import serving

pytestmark = pytest.mark.usefixtures("own_folders")
DOWNLOADS = [name for name, entry in registry().items() if entry.way == "download"]


def walk_entry(web, **changes):
    """The walk of the registry, its files on a local server."""
    entry = find("cmu_walk_35_01")
    remotes = tuple(
        replace(remote, address=web.address(remote.path), **changes.get(remote.path, {}))
        for remote in entry.remotes
    )
    return replace(entry, remotes=remotes)


@pytest.fixture
def arm(register):
    """A server with a small arm in place of the walk."""
    texts = {"mocap/35.asf": ASF.encode(), "mocap/35_01.amc": AMC.encode()}
    with serving(texts) as web:
        changes = {
            path: {"sha256": hashlib.sha256(text).hexdigest()} for path, text in texts.items()
        }
        shapes = {"positions": (AMC.count("\nroot"), 4, 3), "joint_names": (4,)}
        register(replace(walk_entry(web, **changes), shapes=shapes))
        yield web


def test_a_walk_is_fetched_once_and_kept(arm, own_folders):
    result = load("cmu_walk_35_01", offline=False)
    assert result.origin == "download"
    assert result["joint_names"].tolist() == ["root", "upper", "fore", "hand"]
    assert result.path == own_folders.cache / "cmu_walk_35_01.npz"
    assert len(arm.requests) == 2
    # From now on without a network, and as a data folder, too.
    assert load("cmu_walk_35_01", offline=True).checksum == result.checksum
    assert load("cmu_walk_35_01", own_folders.cache).origin == "local"
    assert available_sources("cmu_walk_35_01", offline=True) == ("cached",)
    assert available_sources("cmu_walk_35_01", offline=False) == ("cached", "download")


def test_a_folder_goes_before_the_cache(arm, own_folders):
    fetch("cmu_walk_35_01", offline=False)
    folder = own_folders.data
    folder.mkdir()
    (own_folders.cache / "cmu_walk_35_01.npz").rename(folder / "cmu_walk_35_01.npz")
    result = load("cmu_walk_35_01", folder)
    assert (result.origin, result.path.parent) == ("local", folder)
    # Unless it is asked for otherwise; the texts are still in the cache.
    again = load("cmu_walk_35_01", folder, source="download", offline=False)
    assert (again.origin, again.checksum) == ("download", result.checksum)
    assert len(arm.requests) == 2


def test_download_that_differs_from_the_registry(arm, own_folders, register):
    register(replace(entries.registry()["cmu_walk_35_01"], shapes={"positions": (9, 4, 3)}))
    with pytest.raises(DataUnavailable, match=r"instead of \(9, 4, 3\)"):
        fetch("cmu_walk_35_01", offline=False)
    assert not (own_folders.cache / "cmu_walk_35_01.npz").exists()


def test_a_disk_that_fills_up_while_arrays_are_written(arm, own_folders, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(DataUnavailable, match=r"(?i)no space left on device"):
        fetch("cmu_walk_35_01", offline=False)
    assert [path.name for path in own_folders.cache.iterdir()] == ["mocap"]


def set_failures(web):
    web.failures = [503, 500]


def set_cuts(web):
    web.cuts = [100, 0]


@pytest.mark.parametrize("trouble", [set_failures, set_cuts])
def test_a_transfer_that_fails_is_tried_again(arm, trouble):
    trouble(arm)
    assert load("cmu_walk_35_01", offline=False).origin == "download"
    assert len(arm.requests) == 4


def change_file(web):
    web.files["/mocap/35.asf"] += b"#"


def remove_file(web):
    del web.files["/mocap/35.asf"]


def stay_busy(web):
    web.failures = [503] * 20


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (change_file, r"35\.asf.* does not match the known hash"),
        (remove_file, "404 Client Error: .*Not Found"),
        (stay_busy, "503 Server Error"),
    ],
)
def test_a_download_that_fails_leaves_nothing(arm, trouble, message, own_folders):
    trouble(arm)
    with pytest.raises(DataUnavailable, match=message) as raised:
        fetch("cmu_walk_35_01", offline=False)
    assert "\n" not in str(raised.value)
    assert len(arm.requests) == 3
    assert not [path for path in own_folders.cache.rglob("*") if path.is_file()]


def test_refused_connection_is_reported(register):
    with serving({}) as web:
        register(walk_entry(web))
    with pytest.raises(DataUnavailable, match="Connection refused"):
        fetch("cmu_walk_35_01", offline=False)


def test_a_file_in_place_of_the_cache(arm, own_folders):
    own_folders.cache.touch()
    with pytest.raises(DataUnavailable, match=r"could not be fetched into .*cache"):
        fetch("cmu_walk_35_01", offline=False)
    assert not arm.requests


def test_offline_error_names_a_remedy(own_folders):
    for name in DOWNLOADS:
        with pytest.raises(DataUnavailable, match=r"offline mode is on; unset IKPCA_OFFLINE"):
            load(name)
    assert not own_folders.cache.exists()


@pytest.mark.parametrize("ends", [b"\r\n", b"\n"])
@pytest.mark.parametrize("name", ["cmu_walk_35_01", "cmu_walk_07_01"])
def test_recorded_walks_have_the_checksums_of_the_registry(name, ends, data_folder, register):
    entry = find(name)
    texts = {
        remote.path: (data_folder / remote.path).read_bytes().replace(b"\r", b"")
        for remote in entry.remotes
    }
    with serving({path: text.replace(b"\n", ends) for path, text in texts.items()}) as web:
        remotes = tuple(replace(one, address=web.address(one.path)) for one in entry.remotes)
        register(replace(entry, remotes=remotes))
        result = load(name, offline=False)
    assert result.as_recorded
    assert_array_equal(result["positions"], load(name, data_folder)["positions"])


@pytest.fixture
def openml(monkeypatch):
    """Return what scikit-learn returns for a data set of OpenML."""
    served = SimpleNamespace(asked=[], error=None)

    def fetch_openml(*, data_id, data_home, as_frame, return_X_y, parser):
        served.asked.append(data_id)
        if served.error is not None:
            raise served.error
        assert return_X_y
        assert not as_frame
        return served.rows, served.labels

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    return served


def shuffled_labels(counts, rest):
    labels = np.repeat(np.arange(10), counts)
    rng = np.random.default_rng(0)
    return np.concatenate([rng.permutation(labels), rng.integers(10, size=rest)])


def test_usps_from_openml(openml, own_folders):
    labels = shuffled_labels(_USPS_COUNTS, 2007)
    openml.labels = np.array([str(label + 1) for label in labels], dtype=object)
    openml.rows = np.round(np.random.default_rng(0).uniform(-1, 1, (9298, 256)), 3) + 4e-7
    result = load("usps", offline=False)
    assert openml.asked == [41082]
    assert_array_equal(np.concatenate([result["y_train"], result["y_test"]]), labels)
    rounded = np.round(openml.rows, 3).astype(np.float32)
    assert_array_equal(np.vstack([result["X_train"], result["X_test"]]), rounded)
    # What scikit-learn kept for itself is gone.
    assert [path.name for path in own_folders.cache.iterdir()] == ["usps.npz"]


def test_usps_from_openml_equals_the_local_file(openml, data_folder):
    at_hand = load("usps", data_folder)
    openml.rows = np.vstack([at_hand["X_train"], at_hand["X_test"]]).astype(np.float64)
    labels = np.concatenate([at_hand["y_train"], at_hand["y_test"]])
    openml.labels = np.array([str(label + 1) for label in labels], dtype=object)
    assert load("usps", offline=False).as_recorded


def test_another_order_than_the_classic_split_is_rejected(openml, own_folders):
    openml.labels = shuffled_labels(_USPS_COUNTS, 2007)[::-1] + 1
    openml.rows = np.zeros((9298, 256))
    with pytest.raises(DataUnavailable, match="not the classic training set"):
        load("usps", offline=False)
    assert not (own_folders.cache / "usps.npz").exists()


def test_mnist_from_openml(openml, register):
    # Two pixels instead of 784: what is tested is the split.
    register(
        replace(find("mnist"), shapes={"X_train": (60000, 2), "y_train": (60000,),
                                       "X_test": (10000, 2), "y_test": (10000,)}),
    )  # fmt: skip
    labels = shuffled_labels(_MNIST_COUNTS, 10_000)
    openml.labels = labels.astype(str).astype(object)
    openml.rows = np.random.default_rng(0).integers(256, size=(70_000, 2))
    result = load("mnist", offline=False)
    assert openml.asked == [554]
    assert result["X_train"].dtype == np.uint8
    assert_array_equal(result["X_test"], openml.rows[60_000:])
    assert_array_equal(result["y_train"], labels[:60_000])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (URLError("no route to host"), "could not be fetched .*no route to host"),
        (KeyError("md5_checksum"), "could not be fetched .*md5_checksum"),
        (ValueError("md5 checksum does not match"), "could not be fetched .*md5 checksum"),
    ],
)
def test_what_scikit_learn_cannot_fetch(openml, error, message, own_folders):
    openml.error = error
    with pytest.raises(DataUnavailable, match=message):
        load("usps", offline=False)
    assert not [*own_folders.cache.iterdir()]


def described(rows, labels, web):
    """Return the responses of OpenML for a data set with columns ``digit``, ``a`` and ``b``."""
    lines = [f"{label},{a},{b}" for label, (a, b) in zip(labels, rows, strict=True)]
    digits = [str(label) for label in range(1, 11)]
    head = [
        f"@ATTRIBUTE digit {{{','.join(digits)}}}", "@ATTRIBUTE a REAL", "@ATTRIBUTE b REAL",
    ]  # fmt: skip
    arff = "\n".join(["@RELATION usps", *head, "@DATA", *lines, ""]).encode()
    plain = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
    columns = [
        {"index": "0", "name": "digit", "data_type": "nominal", "nominal_value": digits,
         "is_target": "true", **plain},
        {"index": "1", "name": "a", "data_type": "numeric", "is_target": "false", **plain},
        {"index": "2", "name": "b", "data_type": "numeric", "is_target": "false", **plain},
    ]  # fmt: skip
    about = {
        "id": "41082", "name": "usps", "version": "2", "format": "ARFF", "status": "active",
        "file_id": "1", "url": web.address("download/1"),
        "md5_checksum": hashlib.md5(arff).hexdigest(),
    }  # fmt: skip
    number = [{"name": "NumberOfInstances", "value": str(len(lines))}]
    answers = {
        "/about": {"data_set_description": about},
        "/features": {"data_features": {"feature": columns}},
        "/qualities": {"data_qualities": {"quality": number}},
    }
    return {"/download": arff, **{path: json.dumps(it).encode() for path, it in answers.items()}}


@pytest.fixture
def openml_server(monkeypatch):
    """Local server in place of OpenML."""
    from sklearn.datasets import _openml

    with serving({}) as web:

        def urlopen(request, **settings):
            url = getattr(request, "full_url", request)
            kinds = [kind for kind in ("download", "features", "qualities") if f"/{kind}/" in url]
            return real_urlopen(web.address((kinds or ["about"])[0]), **settings)

        monkeypatch.setattr(_openml, "urlopen", urlopen)
        yield web


def test_scikit_learn_reads_what_openml_sends(openml_server, register):
    """The real reader, of which pandas 3 has broken one kind."""
    shapes = {"X_train": (7291, 2), "y_train": (7291,), "X_test": (2007, 2), "y_test": (2007,)}
    register(replace(find("usps"), shapes=shapes))
    labels = shuffled_labels(_USPS_COUNTS, 2007)
    rows = np.round(np.random.default_rng(0).uniform(-1, 1, (9298, 2)), 3)
    openml_server.files = described(rows, labels + 1, openml_server)
    result = load("usps", offline=False)
    assert_array_equal(np.vstack([result["X_train"], result["X_test"]]), rows.astype(np.float32))
    assert_array_equal(np.concatenate([result["y_train"], result["y_test"]]), labels)


def test_scikit_learn_notices_a_damaged_transfer(openml_server, own_folders):
    openml_server.files = described([[0, 0]], [1], openml_server)
    openml_server.files["/download"] += b"1,0,0"
    with pytest.warns(RuntimeWarning, match="redownloading"):  # noqa: SIM117
        with pytest.raises(DataUnavailable, match=r"could not be fetched .*md5 checksum"):
            load("usps", offline=False)
    assert not (own_folders.cache / "usps.npz").exists()


def test_olivetti_faces_are_those_of_scikit_learn(monkeypatch):
    images = np.random.default_rng(0).random((400, 64, 64))
    bunch = SimpleNamespace(images=images, target=np.repeat(np.arange(40), 10))
    monkeypatch.setattr(sklearn.datasets, "fetch_olivetti_faces", lambda *, data_home: bunch)
    result = load("olivetti", offline=False)
    assert_array_equal(result["images"], images.astype(np.float32))
    assert_array_equal(result["subject"], bunch.target)


def test_cache_is_in_the_folder_of_the_platform(monkeypatch):
    monkeypatch.delenv("IKPCA_CACHE")
    assert cache_folder() == pooch.os_cache("ikpca")
    monkeypatch.setenv("IKPCA_CACHE", "~/elsewhere")
    assert "~" not in str(cache_folder())
    assert str(cache_folder("here")) == "here"
