"""Streams and estimators that ``streams.py`` compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.decomposition import IncrementalPCA
from sklearn.kernel_approximation import Nystroem

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.kernels import Floats
from ikpca_papers.large import large_rows, usps_rows

#: Rows of a batch, and those from which Nyström draws its landmarks.
BATCH, _FIRST_ROWS = 200, 2000
#: Rows of the window in which the components of a drifting stream are compared.
_WINDOW = 1500


@dataclass(frozen=True)
class Stream:
    """Rows in their order, with a Gaussian kernel.

    Parameters
    ----------
    name : str
    load : callable
    gamma : float
    n_components : int
    forgetting : float
        Below 1, captured variance is that of the last rows.
    """

    name: str
    load: Callable[[], Floats]
    gamma: float
    n_components: int = 16
    forgetting: float = 1.0

    def evaluated(self, X: Floats) -> Floats:
        """Return the rows whose variance is captured."""
        return X if self.forgetting == 1 else X[-_WINDOW:]


class NystroemPCA:
    """Two estimators of scikit-learn: ``Nystroem`` on the first rows, and ``IncrementalPCA``."""

    def __init__(self, stream: Stream, n_landmarks: int) -> None:
        self.landmarks = Nystroem(gamma=stream.gamma, n_components=n_landmarks, random_state=0)
        self.pca = IncrementalPCA(stream.n_components)

    def learn(self, X: Floats) -> None:
        """Learn all rows in batches."""
        self.landmarks.fit(X[:_FIRST_ROWS])
        for part in batches(X):
            self.pca.partial_fit(self.landmarks.transform(part))

    def transform(self, X: Floats) -> Floats:
        """Project rows on the components."""
        projections: Floats = self.pca.transform(self.landmarks.transform(X))
        return projections


class KernelStream:
    """``IncrementalKernelPCA`` in batches."""

    def __init__(self, stream: Stream, **settings: Any) -> None:
        self.model = IncrementalKernelPCA(
            stream.n_components, kernel="rbf", gamma=stream.gamma, forgetting=stream.forgetting,
            random_state=0, **settings,
        )  # fmt: skip
        self.transform = self.model.transform

    def learn(self, X: Floats) -> None:
        """Learn all rows in batches."""
        for part in batches(X):
            self.model.partial_fit(part)


#: Estimators by name; pre-images learn the first rows only, as they take a hundred times as long.
CONTESTANTS: dict[str, Callable[[Stream], Any]] = {
    **{f"ikpca, {m} rows": partial(KernelStream, max_basis_rows=m) for m in (60, 100, 200, 300)},
    **{f"Nystroem {m} + IncrementalPCA": partial(NystroemPCA, n_landmarks=m) for m in (200, 500)},
    "reduced sets of the paper": partial(KernelStream, basis="preimages", max_basis_rows=100),
}
SLOW_CONTESTANT, SLOW_ROWS = "reduced sets of the paper", 1000


def batches(X: Floats) -> Iterator[Floats]:
    """Yield the rows in batches."""
    for start in range(0, len(X), BATCH):
        if len(X) - start >= 2 * BATCH:
            yield X[start : start + BATCH]
        else:
            # IncrementalPCA cannot learn fewer rows than components.
            yield X[start:]
            return


def captured(projections: Floats) -> float:
    """Return the sum of the variances, times the number of rows."""
    return float(np.square(projections - projections.mean(axis=0), dtype=np.float64).sum())


def compare(stream: Stream, repeats: int) -> list[dict[str, Any]]:
    """Run the contestants in turn; return captured variance relative to batch, and seconds."""
    X = stream.load()
    rows = stream.evaluated(X)
    start = process_time()
    batch = KernelPCA(
        stream.n_components, kernel="rbf", gamma=stream.gamma, tol=1e-4, random_state=0
    ).fit(rows)
    # The batch of a drifting stream is its window.
    seconds = {"batch": [process_time() - start]}
    learned, variances = {"batch": len(rows)}, {"batch": captured(batch.transform(rows))}
    for _ in range(repeats):
        for name, make in CONTESTANTS.items():
            part = X[:SLOW_ROWS] if name == SLOW_CONTESTANT else X
            contestant = make(stream)
            start = process_time()
            contestant.learn(part)
            seconds.setdefault(name, []).append(process_time() - start)
            learned[name], variances[name] = len(part), captured(contestant.transform(rows))
    return [
        {
            "data": stream.name,
            "name": name,
            "rows": learned[name],
            "captured": variances[name] / variances["batch"],
            "rows_per_second": learned[name] / float(np.median(seconds[name])),
        }
        for name in seconds
    ]


def streams(data: Path | None, share: float) -> list[Stream]:
    """Return stationary streams, and one ordered by class, with a share of their rows."""
    name, gamma, rows_of = large_rows(data)
    n_rows = int(20000 * share)
    found = [Stream(name, partial(rows_of, n_rows), gamma)]
    if data is not None:
        data = Path(data)
        found += [
            Stream(f"{name} by class", partial(_by_class, data, n_rows), gamma),
            Stream("USPS", partial(usps_rows, data), 1 / 128),
            Stream("Frey faces", partial(_frey, data), 1 / 60),
        ]
    return [
        *found,
        Stream("table", partial(_table, int(100_000 * share)), 1 / 60),
        Stream("Swiss roll", partial(_swiss_roll, n_rows), 2.0, 10),
    ]


def drifting_streams(share: float) -> list[Stream]:
    """Return streams whose distribution changes slowly or abruptly."""
    n_rows = int(20000 * share)
    return [
        Stream(name, partial(load, n_rows), gamma, 8, 0.999)
        for name, load, gamma in (
            ("rotating", _rotating, 0.3),
            ("moving", _moving, 0.1),
            ("jumping", _jumping, 0.1),
            ("widening", _widening, 0.1),
        )
    ]


def _by_class(folder: Path, n_rows: int) -> Floats:
    with np.load(folder / "mnist.npz") as data:
        labels = data["y_train"][:n_rows]
        images = data["X_train"][:n_rows][np.argsort(labels, kind="stable")]
        return np.asarray(images, dtype=np.float32) / 255


def _frey(folder: Path) -> Floats:
    with np.load(folder / "frey_faces.npz") as data:
        images = data[data.files[0]]
        return images.reshape(len(images), -1).astype(np.float32) / 255


def _table(n_rows: int) -> Floats:
    """Return eight clusters on a curved surface of six dimensions in 30 features."""
    rng = np.random.default_rng(3)
    centers, slopes = 2 * rng.normal(size=(8, 6)), rng.normal(size=(6, 30)) / 2.5
    Z = centers[rng.integers(8, size=n_rows)] + rng.normal(size=(n_rows, 6))
    return np.tanh(Z @ slopes) + 0.3 * rng.normal(size=(n_rows, 30))


def _swiss_roll(n_rows: int) -> Floats:
    rows: Floats = make_swiss_roll(n_rows, noise=0.3, random_state=0)[0]
    return rows / 10


def _rotating(n_rows: int) -> Floats:
    rng = np.random.default_rng(4)
    angle, x = np.linspace(0, np.pi, n_rows), rng.uniform(-1, 1, (n_rows, 2)) * [2, 0.4]
    a = np.cos(angle) * x[:, 0] - np.sin(angle) * x[:, 1]
    b = np.sin(angle) * x[:, 0] + np.cos(angle) * x[:, 1]
    return np.column_stack([a, b, a**2 - b**2, 0.1 * rng.normal(size=(n_rows, 3))])


def _moving(n_rows: int) -> Floats:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n_rows, 10)) * np.linspace(1, 0.2, 10)
    rows[:, :3] += np.linspace(0, 6, n_rows)[:, None]
    return rows


def _jumping(n_rows: int) -> Floats:
    rng = np.random.default_rng(6)
    centers, slopes = 1.5 * rng.normal(size=(4, 12)), rng.normal(size=(4, 3, 12)) / 2
    part = np.arange(n_rows) * 4 // n_rows
    curved = np.tanh(1.5 * rng.normal(size=(n_rows, 3)))
    noise = 0.1 * rng.normal(size=(n_rows, 12))
    return centers[part] + np.einsum("ni,nij->nj", curved, slopes[part]) + noise


def _widening(n_rows: int) -> Floats:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(n_rows, 12)) * np.linspace(1, 0.2, 12)
    return rows * np.linspace(1, 3, n_rows)[:, None]
