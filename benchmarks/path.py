"""Count the files of the library whose functions a call uses: the path that a reader follows.

Run: ``python benchmarks/path.py [--files]``.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import ikpca
from ikpca import IncrementalKernelPCA, KernelPCA, NoveltyDetector

ROOT = Path(ikpca.__file__).parent


def files_called(call: Callable[[], Any]) -> set[str]:
    """Return the files of the library with a function that is called, in any thread."""
    result: set[str] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            result.add(code.co_filename)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return {str(Path(file).relative_to(ROOT)) for file in result if file.startswith(str(ROOT))}


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls by name, on rows that need no optional path."""
    X = np.random.default_rng(0).normal(size=(1500, 5))
    settings: dict[str, Any] = {"kernel": "rbf", "gamma": 0.2, "random_state": 0}
    krylov = KernelPCA(3, eigen_solver="krylov", **settings).fit(X)
    hebbian = KernelPCA(3, eigen_solver="kha/et", max_iter=3, **settings)
    # Compiled before it is counted.
    hebbian.fit(X)
    stream = IncrementalKernelPCA(3, **settings)
    with_tol = KernelPCA(3, tol=1e-2, **settings)
    detector = NoveltyDetector(random_state=0)
    more_rows = np.random.default_rng(0).normal(size=(6000, 5))
    return {
        "krylov fit": lambda: krylov.fit(X),
        "tol fit": lambda: with_tol.fit(more_rows),
        "kha/et fit": lambda: hebbian.fit(X),
        "partial_fit": lambda: stream.partial_fit(X[:600]).partial_fit(X[600:]),
        "detector fit": lambda: detector.fit(X),
        "inverse_transform": lambda: krylov.inverse_transform(np.zeros((2, 3))),
    }


def main() -> None:
    """Print the number of files per call, and with ``--files`` their names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="print the names of the files")
    arguments = parser.parse_args()
    for name, call in calls().items():
        files = sorted(files_called(call))
        print(f"{name}: {len(files)} files")
        if arguments.files:
            print("\n".join(f"    {file}" for file in files))


if __name__ == "__main__":
    main()
