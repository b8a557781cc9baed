"""What must be true of ikpca without any extra; then with the extra of the command line alone.

``.ci/package.py`` runs this file in an empty environment, outside the checkout, where nothing but
the wheel and its plain dependencies is installed; the tests run it with the extras hidden. It
therefore needs nothing but the standard library and ikpca. Each line it prints is one thing that
was tried and what came of it; the exit code is 1 where something is not as it must be.
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

#: Seconds for each thing that is tried; what is missing is told at once, and a fit takes few.
_PATIENCE = 300
#: Features that need an extra: what a user writes, the error's class, the extra.
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
#: All in one process, as loading scikit-learn takes longer than all of them.
TRY = """
answers = []
for code in codes:
    try:
        exec(code)
        answers.append(("nothing", "is missing"))
    except Exception as error:
        answers.append((type(error).__name__, str(error)))
print(json.dumps(answers))
"""
#: Verbs that need an extra beside that of the command line.
VERBS = {
    "fit rows.csv -o m.ikpca --dask local": "dask",
}
#: The library at work, on a laptop that has never seen an extra.
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


class Seen(NamedTuple):
    """What a process did."""

    code: int
    out: str
    err: str


def main(parts: list[str]) -> int:
    """Try the parts that are named: ``library``, ``verbs``."""
    with tempfile.TemporaryDirectory(prefix="ikpca-plain-") as folder:
        os.chdir(folder)
        _write_files()
        wrong = [line for part in parts for line in _told(PARTS[part]())]
        os.chdir(tempfile.gettempdir())
    return 1 if wrong else 0


def _told(tried: Iterator[tuple[str, str, bool]]) -> list[str]:
    """Print each thing that was tried; return those that went wrong."""
    wrong = []
    for what, seen, good in tried:
        sys.stdout.write(f"{'good ' if good else 'WRONG'}  {what}: {seen}\n")
        sys.stdout.flush()
        wrong += [] if good else [what]
    return wrong


def library() -> Iterator[tuple[str, str, bool]]:
    """Imports, fits, saves and loads; a sentence for each extra."""
    fits = _python(FITS)
    yield "fit, stream, save and load", fits.out.strip() or fits.err, fits.code == 0
    for word in ("--help", "info"):
        seen = _ikpca(word)
        yield f"ikpca {word}", seen.err.strip(), _is_a_sentence(seen, "cli")
    told = _python(f"{NAMES}codes = {[code for code, *_ in LIBRARY.values()]!r}{TRY}")
    answers = json.loads(told.out) if told.code == 0 else [["", told.err]] * len(LIBRARY)
    for (feature, (_, error, extra)), (kind, said) in zip(LIBRARY.items(), answers, strict=True):
        yield feature, f"{kind}: {said}", kind == error and _has_remedy(said, extra)


def verbs() -> Iterator[tuple[str, str, bool]]:
    """The command line with its own extra: it works, and names what each verb needs beside it."""
    seen = _ikpca("fit rows.csv -o model.ikpca -n 2 --quiet")
    yield "ikpca fit", seen.err.strip() or "a model", seen.code == 0 and not seen.err
    for line in ("--help", "info"):
        seen = _ikpca(line)
        yield f"ikpca {line}", f"{len(seen.out.splitlines())} lines", _is_help(seen)
    for line, extra in VERBS.items():
        seen = _ikpca(line)
        yield f"ikpca {line}", seen.err.strip(), _is_a_sentence(seen, extra)


PARTS: dict[str, Callable[[], Iterator[tuple[str, str, bool]]]] = {
    "library": library,
    "verbs": verbs,
}


def _write_files() -> None:
    Path("a.zarr").mkdir()
    Path("a.parquet").write_bytes(b"PAR1")
    Path("rows.csv").write_text("".join(f"{n},{n * n % 7},{n % 5}\n" for n in range(20)))


def _is_help(seen: Seen) -> bool:
    return seen.code == 0 and not seen.err and bool(seen.out)


def _is_a_sentence(seen: Seen, extra: str) -> bool:
    lines = seen.err.splitlines()
    return seen.code in (1, 2) and not seen.out and len(lines) == 1 and _has_remedy(lines[0], extra)


def _has_remedy(line: str, extra: str) -> bool:
    return re.fullmatch(rf"[^\n]*; run: pip install 'ikpca\[{extra}\]'\.", line) is not None


def _python(code: str) -> Seen:
    return _run([sys.executable, "-W", "error", "-c", code])


def _ikpca(line: str) -> Seen:
    return _run([str(Path(sys.executable).with_name("ikpca")), *line.split()])


def _run(command: list[str]) -> Seen:
    # Neither data nor a cache of the machine may help out.
    left = ("IKPCA_DATA", "IKPCA_CACHE", "IKPCA_OFFLINE")
    surroundings = {key: value for key, value in os.environ.items() if key not in left}
    surroundings["XDG_CACHE_HOME"] = str(Path.cwd() / "cache")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=surroundings,
            timeout=_PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Seen(-1, "", f"no answer within {_PATIENCE} s")
    return Seen(done.returncode, done.stdout, done.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(PARTS)))
