"""Checks of wheel and sdist: missing and unexpected files, installation."""

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
        pytest.skip("not in the source distribution")
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


WHEELS = {
    "as expected": ({}, set(), []),
    "data": ({"ikpca/usps.npz": b""}, set(), ["wheel: ikpca/usps.npz is unexpected"]),
    "caches": ({"ikpca/a.pyc": b""}, set(), ["wheel: ikpca/a.pyc is unexpected"]),
    "tests": ({"tests/a.py": b""}, set(), ["wheel: tests/a.py is unexpected"]),
    "size": ({"ikpca/a.py": b" " * 600_000}, set(), ["wheel: ikpca/a.py has 600,000 bytes"]),
    "left out": ({}, {"src/ikpca/b.py"}, ["wheel: ikpca/b.py is missing"]),
}


@pytest.mark.parametrize(("files", "left_out", "errors"), WHEELS.values(), ids=WHEELS)
def test_wheel_contents(package, tmp_path, monkeypatch, files, left_out, errors):
    expected = dict.fromkeys(package.IN_WHEEL, b"")
    sources = {f"src/{name}" for name in [*expected, *files]}
    monkeypatch.setattr(package, "tracked_files", lambda: sources | left_out if left_out else set())
    wheel = wheel_of(tmp_path, {**expected, **files, "ikpca-0.dist-info/METADATA": b""})
    assert list(package.check_wheel(wheel)) == errors


def test_wheel_without_types(package, tmp_path, monkeypatch):
    monkeypatch.setattr(package, "tracked_files", set)
    files = {name: b"" for name in package.IN_WHEEL if not name.endswith("py.typed")}
    assert list(package.check_wheel(wheel_of(tmp_path, files))) == [
        "wheel: ikpca/py.typed is missing"
    ]


def test_sdist_contents(package, tmp_path, monkeypatch):
    names = [*package.IN_SDIST, "PKG-INFO"]
    monkeypatch.setattr(package, "tracked_files", lambda: {*names, "docs/lost.md"})
    sdist = sdist_of(tmp_path, [*names, "results/table.json"])
    assert list(package.check_sdist(sdist)) == [
        "sdist: results/table.json is not in the repository",
        "sdist: docs/lost.md is missing",
    ]


def test_required_files_are_in_the_repository(package):
    root = SCRIPT.parents[1]
    assert all((root / "src" / name).exists() for name in package.IN_WHEEL)
    assert all((root / name).exists() for name in package.IN_SDIST)
    assert package.INSTALLATION_TEST.exists()


def test_comparison_of_wheels(package, tmp_path):
    (tmp_path / "second").mkdir()
    first = wheel_of(tmp_path, {"a": b"1", "b": b"2", "c": b"3"})
    second = wheel_of(tmp_path / "second", {"a": b"1", "b": b"3"})
    assert [line.split()[0] for line in package.compare_wheels(first, second)] == ["b", "c"]
    assert not list(package.compare_wheels(first, first))


def test_without_network_the_installation_is_skipped(package, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(package.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(package, "install", lambda python, requirement: "no network")
    wheel = wheel_of(tmp_path, {"a.dist-info/METADATA": b""})
    for check in ("check_wheel", "check_sdist", "compare_wheels", "check_metadata"):
        monkeypatch.setattr(package, check, lambda *_: [])
    monkeypatch.setattr(package, "build_all", lambda folder: (wheel, wheel, wheel))
    assert package.main() == 0
    output = capsys.readouterr().out
    assert "package: installation skipped: no network\n" in output
    assert "installation not tested" in output
    assert "good" not in output


def test_a_wheel_that_cannot_be_installed_is_an_error(package, tmp_path, monkeypatch):
    monkeypatch.setattr(package.venv, "create", lambda *_, **__: None)
    results = {"threadpoolctl": "", f"{tmp_path / 'x.whl'}": "no such version"}
    monkeypatch.setattr(package, "install", lambda python, requirement: results[requirement])
    (error,) = package.check_installation(tmp_path, tmp_path / "x.whl")
    assert "no such version" in error
