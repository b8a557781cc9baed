"""The look into wheel and sdist: what is missing, what does not belong, what could not be tried."""

from __future__ import annotations

import importlib.util
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "package.py"


@pytest.fixture(scope="module")
def package():
    if not SCRIPT.exists():
        pytest.skip("the scripts of continuous integration are not here")
    spec = importlib.util.spec_from_file_location("package", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel_of(folder, files):
    path = folder / "ikpca-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def sdist_of(folder, names):
    path = folder / "ikpca-0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"ikpca-0/{name}"), io.BytesIO())
    return path


WRONG = {
    "nothing": ({}, set(), []),
    "data": ({"ikpca/usps.npz": b""}, set(), ["wheel: ikpca/usps.npz does not belong there"]),
    "caches": ({"ikpca/a.pyc": b""}, set(), ["wheel: ikpca/a.pyc does not belong there"]),
    "tests": ({"tests/a.py": b""}, set(), ["wheel: tests/a.py does not belong there"]),
    "size": ({"ikpca/a.py": b" " * 600_000}, set(), ["wheel: ikpca/a.py has 600,000 bytes"]),
    "left out": ({}, {"src/ikpca/b.py"}, ["wheel: ikpca/b.py is missing"]),
}


@pytest.mark.parametrize(("files", "kept", "said"), WRONG.values(), ids=WRONG)
def test_wheels_are_looked_into(package, tmp_path, monkeypatch, files, kept, said):
    good = dict.fromkeys(package.NEEDED, b"")
    known = {f"src/{name}" for name in [*good, *files]}
    monkeypatch.setattr(package, "tracked", lambda: known | kept if kept else set())
    wheel = wheel_of(tmp_path, {**good, **files, "ikpca-0.dist-info/METADATA": b""})
    assert list(package.wrong_in_wheel(wheel)) == said


def test_a_wheel_without_types_is_seen(package, tmp_path, monkeypatch):
    monkeypatch.setattr(package, "tracked", set)
    files = {name: b"" for name in package.NEEDED if not name.endswith("py.typed")}
    assert list(package.wrong_in_wheel(wheel_of(tmp_path, files))) == [
        "wheel: ikpca/py.typed is missing"
    ]


def test_sdists_are_looked_into(package, tmp_path, monkeypatch):
    names = [*package.WITH_SOURCES, "PKG-INFO"]
    monkeypatch.setattr(package, "tracked", lambda: {*names, "docs/lost.md"})
    sdist = sdist_of(tmp_path, [*names, "results/table.json"])
    assert list(package.wrong_in_sdist(sdist)) == [
        "sdist: results/table.json is not in the repository",
        "sdist: docs/lost.md is missing",
    ]


def test_what_is_asked_for_is_in_the_repository(package):
    """The lists of needed files cannot ask for what nobody has."""
    root = SCRIPT.parents[1]
    assert all((root / "src" / name).exists() for name in package.NEEDED)
    assert all((root / name).exists() for name in package.WITH_SOURCES)


def test_two_wheels_that_differ(package, tmp_path):
    (tmp_path / "again").mkdir()
    one = wheel_of(tmp_path, {"a": b"1", "b": b"2", "c": b"3"})
    other = wheel_of(tmp_path / "again", {"a": b"1", "b": b"3"})
    assert [line.split()[0] for line in package.different(one, other)] == ["b", "c"]
    assert not list(package.different(one, one))


def test_without_a_network_it_says_so_and_fails_nothing(package, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(package.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(package, "_installed", lambda python, what: "no network")
    wheel = wheel_of(tmp_path, {"a.dist-info/METADATA": b""})
    for look in ("wrong_in_wheel", "wrong_in_sdist", "different", "ill_described"):
        monkeypatch.setattr(package, look, lambda *_: [])
    monkeypatch.setattr(package, "built", lambda folder: (wheel, wheel, wheel))
    assert package.main() == 0
    said = capsys.readouterr().out
    assert "package: not tried in an empty environment: no network\n" in said
    assert "package: inspected, not tested," in said
    assert "good" not in said


def test_with_a_network_a_wheel_that_cannot_be_installed_is_a_failure(
    package, tmp_path, monkeypatch
):
    monkeypatch.setattr(package.venv, "create", lambda *_, **__: None)
    answers = {"threadpoolctl": "", f"{tmp_path / 'x.whl'}": "no such version"}
    monkeypatch.setattr(package, "_installed", lambda python, what: answers[what])
    (said,) = package.tried(tmp_path, tmp_path / "x.whl")
    assert "no such version" in said
