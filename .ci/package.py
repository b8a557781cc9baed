"""Build wheel and sdist, check their contents, and try the wheel in an empty environment.

Fails where a file is missing or does not belong, where the wheel built from the sdist differs from
that built from the checkout, where the long description cannot be shown, or where
``tests/packaging/plain_installation.py`` finds something wrong. What needs a network and has none
is not tried; that is reported, and fails nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRIAL = ROOT / "tests" / "plain_installation.py"
#: Seconds for an installation; a network that swallows packets is no answer.
_PATIENCE = 600
#: What a wheel of this package may hold, and how large one file may be.
KINDS = {".py", ".typed"}
_LARGEST = 500_000
NEEDED = ["ikpca/py.typed", "ikpca/__init__.py", "ikpca/cli/app.py"]
WITH_SOURCES = ["README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "CONTRIBUTING.md",
                "SECURITY.md", "Makefile", "pyproject.toml", "conftest.py", "docs/index.md",
                "tests/conftest.py", "tests/files/model-v1.ikpca", "papers/pyproject.toml",
                "benchmarks/frontier.py"]  # fmt: skip


def main() -> int:
    """Exit status: 1 for anything wrong, 0 otherwise."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ikpca-package-") as name:
        folder = Path(name)
        wheel, sdist, again = built(folder)
        wrong = [*wrong_in_wheel(wheel), *wrong_in_sdist(sdist), *different(wheel, again)]
        wrong += ill_described(wheel, sdist)
        _tell(f"wheel: {len(members(wheel))} files, {wheel.stat().st_size:,} bytes")
        _tell(f"sdist: {len(members(sdist))} files, {sdist.stat().st_size:,} bytes")
        found = [] if wrong else tried(folder, wheel)
    wrong += found or []
    for line in wrong:
        _tell(f"package: {line}")
    verdict = "not good" if wrong else "inspected, not tested" if found is None else "good"
    _tell(f"package: {verdict}, {time.perf_counter() - begun:.0f} s")
    return 1 if wrong else 0


def built(folder: Path) -> tuple[Path, Path, Path]:
    """Wheel and sdist of the checkout, and the wheel of the unpacked sdist."""
    _build(ROOT, "wheel", folder / "dist")
    _build(ROOT, "sdist", folder / "dist")
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sources", filter="data")
    (sources,) = (folder / "sources").iterdir()
    _build(sources, "wheel", folder / "again")
    return wheel, sdist, folder / "again" / wheel.name


def _build(sources: Path, kind: str, out: Path) -> None:
    # hatchling is here with the other tools: to fetch it once more would need a network.
    command = [
        sys.executable,
        "-m",
        "build",
        f"--{kind}",
        "--no-isolation",
        "--outdir",
        out,
        sources,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"package: no {kind} could be built\n{done.stdout}{done.stderr}")


def members(path: Path) -> dict[str, bytes]:
    """Files by name, without the sdist's own folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(path) as archive:
        files = [one for one in archive.getmembers() if one.isfile()]
        return {one.name.partition("/")[2]: archive.extractfile(one).read() for one in files}


def wrong_in_wheel(wheel: Path) -> Iterator[str]:
    """What is missing, and what does not belong."""
    found = members(wheel)
    ours = {name: content for name, content in found.items() if ".dist-info/" not in name}
    yield from (f"wheel: {name} is missing" for name in NEEDED if name not in ours)
    for name, content in ours.items():
        if not name.startswith("ikpca/") or Path(name).suffix not in KINDS:
            yield f"wheel: {name} does not belong there"
        if len(content) > _LARGEST:
            yield f"wheel: {name} has {len(content):,} bytes"
    kept = tracked()
    if kept:
        sources = {name.removeprefix("src/") for name in kept if name.startswith("src/ikpca/")}
        yield from (f"wheel: {name} is missing" for name in sorted(sources - {*ours}))
        yield from (f"wheel: {name} is not in the repository" for name in sorted({*ours} - sources))


def wrong_in_sdist(sdist: Path) -> Iterator[str]:
    """As for the wheel; tests, benchmarks and docs come with the sources."""
    found = members(sdist)
    yield from (f"sdist: {name} is missing" for name in WITH_SOURCES if name not in found)
    kept = tracked()
    if kept:
        # Its own metadata is written by the build.
        extra = {*found} - kept - {"PKG-INFO"}
        yield from (f"sdist: {name} is not in the repository" for name in sorted(extra))
        folders = ("src/", "papers/", "tests/", "benchmarks/", "docs/")
        missing = {name for name in kept if name.startswith(folders)} - {*found}
        yield from (f"sdist: {name} is missing" for name in sorted(missing))


def different(wheel: Path, again: Path) -> Iterator[str]:
    """Files that the wheel of the sdist has not, or has otherwise."""
    one, other = members(wheel), members(again)
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            yield f"{name} differs between the wheel and the wheel made from the sdist"


def tracked() -> set[str]:
    """Files of the repository; empty where this is no checkout."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return set()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True,
                            check=False)  # fmt: skip
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}


def ill_described(wheel: Path, sdist: Path) -> Iterator[str]:
    """What a package index would refuse to show."""
    command = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"twine check: {done.stdout}{done.stderr}"
    described = next(text for name, text in members(wheel).items() if name.endswith("/METADATA"))
    metadata = message_from_bytes(described)
    yield from (f"METADATA has no {key}" for key in ("License-Expression", "Requires-Python",
                "Keywords", "Summary") if key not in metadata)  # fmt: skip
    if any(one.startswith("License ::") for one in metadata.get_all("Classifier", [])):
        yield "METADATA: a licence classifier beside the licence expression"


def tried(folder: Path, wheel: Path) -> list[str] | None:
    """Try the wheel in an empty environment: alone, with the command line, with the papers.

    Return what is wrong, or None where the dependencies could not be downloaded.
    """
    venv.create(folder / "empty", with_pip=True)
    python = folder / "empty" / "bin" / "python"
    # The smallest dependency: if it cannot be installed, there is no package index.
    trouble = _installed(python, "threadpoolctl")
    if trouble:
        _tell(f"package: not tried in an empty environment: {trouble}")
        return None
    trial = Path(shutil.copy(TRIAL, folder))
    for part, extra in {"library": "", "verbs": "[cli]"}.items():
        trouble = _installed(python, f"{wheel}{extra}")
        if trouble:
            return [f"the wheel{extra} cannot be installed: {trouble}"]
        # Isolated from the folder it starts in, from PYTHONPATH and from the user's packages.
        done = subprocess.run([python, "-I", trial, part], cwd=folder, check=False,
                              capture_output=True, text=True, env=_bare())  # fmt: skip
        _tell(done.stdout.rstrip())
        if done.returncode:
            return [f"{part}: {done.stderr or 'see above'}"]
    trouble = _installed(python, str(ROOT / "papers"))
    if trouble:
        return [f"ikpca-papers cannot be installed: {trouble}"]
    done = subprocess.run([python.with_name("ikpca-papers"), "reproduce", "--list"], cwd=folder,
                          check=False, capture_output=True, text=True, env=_bare())  # fmt: skip
    _tell(f"ikpca-papers reproduce --list: {len(done.stdout.splitlines())} lines")
    return [f"ikpca-papers: {done.stderr}"] if done.returncode else []


def _bare() -> dict[str, str]:
    """What this process was told of Python is not for that of the empty environment."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def _installed(python: Path, what: str) -> str:
    """Nothing, or why it could not be installed."""
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=_PATIENCE)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {_PATIENCE} s"
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
