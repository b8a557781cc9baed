"""Tests of ikpca without extras, and with the extra of the command line only.

``.ci/package.py`` runs this script in an empty environment outside of the checkout; the tests run
it with the extras hidden. It needs only the standard library and ikpca. It prints a line per check;
the exit status is 1 if one fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

#: Seconds for each check.
_TIMEOUT = 300
#: Features that need an extra: code, class of the error, extra.
LIBRARY = {
    "plots": ("import ikpca.plotting", "ImportError", "plot"),
    "Parquet": ("ikpca.open_rows('a.parquet')", "InvalidInput", "parquet"),
    "Zarr": ("ikpca.open_rows('a.zarr')", "InvalidInput", "zarr"),
    "Dask": ("import ikpca.dask", "ImportError", "dask"),
}
NAMES = """
import json
from pathlib import Path
import numpy as np
import ikpca
ones = np.ones((4, 4))
"""
#: All in one process, because importing scikit-learn takes longest.
TRY = """
answers = []
for code in codes:
    try:
        exec(code)
        answers.append(("no error", ""))
    except Exception as error:
        answers.append((type(error).__name__, str(error)))
print(json.dumps(answers))
"""
#: Commands that need another extra than that of the command line.
COMMANDS = {
    "fit rows.csv -o m.ikpca --dask local": "dask",
}
#: Use of the library without extras.
FITS = """
import numpy as np
import ikpca
X = np.random.default_rng(0).normal(size=(60, 5))
for solver in ("dense", "krylov", "kha/et"):
    model = ikpca.KernelPCA(3, kernel="rbf", gamma=0.1, eigen_solver=solver, random_state=0).fit(X)
    assert model.transform(X).shape == (60, 3)
    assert model.inverse_transform(model.transform(X[:2])).shape == (2, 5)
stream = ikpca.IncrementalKernelPCA(3, kernel="rbf", gamma=0.1)
for start in range(0, 60, 20):
    stream.partial_fit(X[start : start + 20])
for fitted in (model, stream):
    fitted.save("model.ikpca")
    assert np.array_equal(ikpca.load("model.ikpca").transform(X), fitted.transform(X))
np.savetxt("rows.csv", X, delimiter=",")
print(ikpca.__file__)
"""


class Result(NamedTuple):
    """Exit status and output of a process."""

    status: int
    out: str
    err: str


def main(parts: list[str]) -> int:
    """Run the given parts: ``library``, ``commands``."""
    with tempfile.TemporaryDirectory(prefix="ikpca-plain-") as folder:
        os.chdir(folder)
        _write_files()
        failed = [name for part in parts for name in _report(PARTS[part]())]
        os.chdir(tempfile.gettempdir())
    return 1 if failed else 0


def _report(checks: Iterator[tuple[str, str, bool]]) -> list[str]:
    """Print name, output and result of every check; return the names of those that failed."""
    failed = []
    for name, output, passed in checks:
        print(f"{'passed' if passed else 'FAILED'}  {name}: {output}", flush=True)
        failed += [] if passed else [name]
    return failed


def library() -> Iterator[tuple[str, str, bool]]:
    """Check imports, fits and model files, and the error for each extra."""
    fits = _python(FITS)
    yield "fit, stream, save and load", fits.out.strip() or fits.err, fits.status == 0
    for argument in ("--help", "info model.ikpca"):
        result = _ikpca(argument)
        yield f"ikpca {argument}", result.err.strip(), _is_one_line_error(result, "cli")
    result = _python(f"{NAMES}codes = {[code for code, *_ in LIBRARY.values()]!r}{TRY}")
    errors = json.loads(result.out) if result.status == 0 else [["", result.err]] * len(LIBRARY)
    for (feature, (_, kind, extra)), (actual, message) in zip(LIBRARY.items(), errors, strict=True):
        yield feature, f"{actual}: {message}", actual == kind and _has_remedy(message, extra)


def commands() -> Iterator[tuple[str, str, bool]]:
    """Check the command line with its own extra only."""
    result = _ikpca("fit rows.csv -o model.ikpca -n 2 --quiet")
    yield "ikpca fit", result.err.strip() or "a model", result.status == 0 and not result.err
    for line in ("--help", "info model.ikpca"):
        result = _ikpca(line)
        yield f"ikpca {line}", f"{len(result.out.splitlines())} lines", _is_help(result)
    for line, extra in COMMANDS.items():
        result = _ikpca(line)
        yield f"ikpca {line}", result.err.strip(), _is_one_line_error(result, extra)


PARTS: dict[str, Callable[[], Iterator[tuple[str, str, bool]]]] = {
    "library": library,
    "commands": commands,
}


def _write_files() -> None:
    Path("a.zarr").mkdir()
    Path("a.parquet").write_bytes(b"PAR1")
    Path("rows.csv").write_text("".join(f"{n},{n * n % 7},{n % 5}\n" for n in range(20)))


def _is_help(result: Result) -> bool:
    return result.status == 0 and not result.err and bool(result.out)


def _is_one_line_error(result: Result, extra: str) -> bool:
    lines = result.err.splitlines()
    return (
        result.status in (1, 2)
        and not result.out
        and len(lines) == 1
        and _has_remedy(lines[0], extra)
    )


def _has_remedy(line: str, extra: str) -> bool:
    return re.fullmatch(rf"[^\n]*; run: pip install 'ikpca\[{extra}\]'\.", line) is not None


def _python(code: str) -> Result:
    return _run([sys.executable, "-W", "error", "-c", code])


def _ikpca(line: str) -> Result:
    return _run([str(Path(sys.executable).with_name("ikpca")), *line.split()])


def _run(command: list[str]) -> Result:
    # Without data and caches of the machine.
    hidden = ("IKPCA_DATA", "IKPCA_CACHE", "IKPCA_OFFLINE")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    environment["XDG_CACHE_HOME"] = str(Path.cwd() / "cache")
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment,
            timeout=_TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Result(-1, "", f"no answer within {_TIMEOUT} s")
    return Result(result.returncode, result.stdout, result.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(PARTS)))
