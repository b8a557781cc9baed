"""Build wheel and sdist, check their contents, and test the wheel in an empty environment.

Exit status 1 if a file is missing or unexpected, if the wheel built from the sdist differs from
that built from the checkout, if the metadata are invalid, or if
``tests/packaging/plain_installation.py`` fails. Without network access, the installation is skipped
with a message.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTALLATION_TEST = ROOT / "tests" / "packaging" / "plain_installation.py"
#: Seconds for an installation.
_TIMEOUT = 600
#: Suffixes in a wheel, and the largest size of a file in bytes.
WHEEL_SUFFIXES = {".py", ".typed"}
_MAX_BYTES = 500_000
IN_WHEEL = ["ikpca/py.typed", "ikpca/__init__.py", "ikpca/cli/app.py"]
IN_SDIST = ["README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "CONTRIBUTING.md",
            "SECURITY.md", "Makefile", "pyproject.toml", "conftest.py", "docs/index.md",
            "tests/conftest.py", "tests/files/model-v1.ikpca", "papers/pyproject.toml",
            "benchmarks/frontier.py"]  # fmt: skip


class NoNetwork(Exception):
    """No package index can be reached."""


def main() -> int:
    """Run all checks and return the exit status."""
    verdict = "good"
    with tempfile.TemporaryDirectory(prefix="ikpca-package-") as name:
        folder = Path(name)
        wheel, sdist, second_wheel = build_all(folder)
        print(f"wheel: {len(read_members(wheel))} files, {wheel.stat().st_size:,} bytes")
        print(f"sdist: {len(read_members(sdist))} files, {sdist.stat().st_size:,} bytes")
        errors = [
            *check_wheel(wheel),
            *check_sdist(sdist),
            *compare_wheels(wheel, second_wheel),
            *check_metadata(wheel, sdist),
        ]
        if not errors:
            try:
                errors = check_installation(folder, wheel)
            except NoNetwork as error:
                print(f"package: installation skipped: {error}")
                verdict = "contents checked, installation not tested"
    for line in errors:
        print(f"package: {line}")
    print(f"package: {'failed' if errors else verdict}")
    return 1 if errors else 0


def build_all(folder: Path) -> tuple[Path, Path, Path]:
    """Build wheel and sdist of the checkout, and the wheel of the unpacked sdist."""
    _build(ROOT, "wheel", folder / "dist")
    _build(ROOT, "sdist", folder / "dist")
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sources", filter="data")
    (sources,) = (folder / "sources").iterdir()
    _build(sources, "wheel", folder / "second")
    return wheel, sdist, folder / "second" / wheel.name


def _build(sources: Path, kind: str, out: Path) -> None:
    # hatchling is installed with the other tools; an isolated build would need network access.
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", out,
               sources]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"package: the {kind} cannot be built\n{result.stdout}{result.stderr}")


def read_members(path: Path) -> dict[str, bytes]:
    """Read all files of an archive, without the top folder of an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(path) as archive:
        files = [member for member in archive.getmembers() if member.isfile()]
        return {file.name.partition("/")[2]: archive.extractfile(file).read() for file in files}


def check_wheel(wheel: Path) -> Iterator[str]:
    """Report missing, unexpected and large files."""
    members = {
        name: data for name, data in read_members(wheel).items() if ".dist-info/" not in name
    }
    yield from (f"wheel: {name} is missing" for name in IN_WHEEL if name not in members)
    for name, data in members.items():
        if not name.startswith("ikpca/") or Path(name).suffix not in WHEEL_SUFFIXES:
            yield f"wheel: {name} is unexpected"
        if len(data) > _MAX_BYTES:
            yield f"wheel: {name} has {len(data):,} bytes"
    tracked = tracked_files()
    if tracked:
        sources = {name.removeprefix("src/") for name in tracked if name.startswith("src/ikpca/")}
        yield from (f"wheel: {name} is missing" for name in sorted(sources - {*members}))
        yield from (
            f"wheel: {name} is not in the repository" for name in sorted({*members} - sources)
        )


def check_sdist(sdist: Path) -> Iterator[str]:
    """Report missing and unexpected files."""
    members = read_members(sdist)
    yield from (f"sdist: {name} is missing" for name in IN_SDIST if name not in members)
    tracked = tracked_files()
    if tracked:
        # The build writes PKG-INFO.
        extra = {*members} - tracked - {"PKG-INFO"}
        yield from (f"sdist: {name} is not in the repository" for name in sorted(extra))
        folders = ("src/", "papers/", "tests/", "benchmarks/", "docs/")
        missing = {name for name in tracked if name.startswith(folders)} - {*members}
        yield from (f"sdist: {name} is missing" for name in sorted(missing))


def compare_wheels(wheel: Path, second: Path) -> Iterator[str]:
    """Report files that differ between two wheels."""
    first_members, second_members = read_members(wheel), read_members(second)
    for name in sorted({*first_members, *second_members}):
        if first_members.get(name) != second_members.get(name):
            yield f"{name} differs between the wheels of the checkout and of the sdist"


def tracked_files() -> set[str]:
    """Return the files of the repository; empty outside of a checkout."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return set()
    result = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {name for name in result.stdout.split("\0") if name and (ROOT / name).exists()}


def check_metadata(wheel: Path, sdist: Path) -> Iterator[str]:
    """Report metadata that are missing, or that a package index rejects."""
    command = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        yield f"twine check: {result.stdout}{result.stderr}"
    members = read_members(wheel)
    metadata = message_from_bytes(
        next(data for name, data in members.items() if name.endswith("/METADATA"))
    )
    for key in ("License-Expression", "Requires-Python", "Keywords", "Summary"):
        if key not in metadata:
            yield f"METADATA has no {key}"
    if any(line.startswith("License ::") for line in metadata.get_all("Classifier", [])):
        yield "METADATA has a license classifier and a license expression"


def check_installation(folder: Path, wheel: Path) -> list[str]:
    """Test the wheel in an empty environment: alone, with the command line, with the papers."""
    venv.create(folder / "empty", with_pip=True)
    python = folder / "empty" / "bin" / "python"
    # The smallest dependency: if it cannot be installed, there is no package index.
    error = install(python, "threadpoolctl")
    if error:
        raise NoNetwork(error)
    script = Path(shutil.copy(INSTALLATION_TEST, folder))
    for part, extra in {"library": "", "commands": "[cli]"}.items():
        error = install(python, f"{wheel}{extra}")
        if error:
            return [f"the wheel{extra} cannot be installed: {error}"]
        result = _run_isolated([python, "-I", script, part], folder)
        print(result.stdout.rstrip())
        if result.returncode:
            return [f"{part}: {result.stderr or 'see above'}"]
    error = install(python, str(ROOT / "papers"))
    if error:
        return [f"ikpca-papers cannot be installed: {error}"]
    command = [python.with_name("ikpca-papers"), "reproduce", "--list"]
    result = _run_isolated(command, folder)
    return [f"ikpca-papers: {result.stderr}"] if result.returncode else []


def _run_isolated(command: list[Path | str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command without this process's settings of Python, such as PYTHONPATH."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, env=environment
    )


def install(python: Path, requirement: str) -> str:
    """Install a requirement; return the reason of a failure, else an empty string."""
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               requirement]  # fmt: skip
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT} s"
    if not result.returncode:
        return ""
    return (result.stderr.strip().splitlines() or ["pip failed"])[-1]


if __name__ == "__main__":
    sys.exit(main())
