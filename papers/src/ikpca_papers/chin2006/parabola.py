"""Chin and Suter 2006, figures 1 and 2, table 1: a stream of points on a parabola."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from ikpca import IncrementalKernelPCA, KernelPCA, compress
from ikpca.gram import ComputedGram, center_gram, cross_gram, tile_slices
from ikpca.kernels import Floats, Gaussian, Kernel, Polynomial
from ikpca.reduced_sets import IteratedPreimages, JointPreimages, Reduction, SelectedRows
from ikpca.solvers import hebbian_step
from ikpca.streams import Compression, IncrementalSettings, IncrementalState, update_step
from ikpca.subspace import Expansion
from ikpca_papers.chin2006.stream_costs import stream_costs
from ikpca_papers.claims import Rows, Tables
from ikpca_papers.data.synthetic import parabola
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.limits import Claim
from ikpca_papers.measures import exponent, overlaps, subspace_angles, surfaces

#: σ = 1.
PARABOLA_GAMMA = 0.5


def rising_parabola(n_rows: int, seed: int = 0) -> Floats:
    """Chin and Suter's parabola opens upwards."""
    return parabola(n_rows, curvature=1.0, random_state=seed)


def frey_faces(folder: Path) -> Floats:
    """1,965 frames of 28×20 pixels from 0 to 1."""
    return _images(folder / "frey_faces.npz", 255)


def teapot(folder: Path) -> Floats:
    """A hundred views of 38×50 pixels, from 0 to 1."""
    return _images(folder / "teapot_100.npz", 1)


def _images(path: Path, white: float) -> Floats:
    with np.load(path) as data:
        images = np.asarray(data["images"], dtype=np.float64)
    return images.reshape(len(images), -1) / white


PAPER_ROWS = (520, 1000, 1510, 2020, 2530, 3100)
#: As printed; a Pentium 4 with Matlab, so only their growth compares.
PAPER_SECONDS: dict[str, tuple[float, ...]] = {
    "batch": (7.23, 44.10, 161.23, 413.05, 990.29, 1394.91),
    "incremental": (29.05, 60.23, 93.14, 127.45, 141.28, 165.29),
    "KHA": (93.75, 198.73, 381.92, 695.31, 990.86, 1569.02),
}
#: Passes of KHA; the paper does not say how many its runs took.
_PASSES = 5
#: κη0 of the rule, small enough for the parabola.
_STEP = 0.05
_GAUSSIAN: dict[str, Any] = {"kernel": "rbf", "gamma": PARABOLA_GAMMA}


@dataclass(frozen=True)
class Duration:
    """One method at all sizes, in seconds of the processor, and the paper's beside."""

    method: str
    rows: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """With which the time grows here."""
        return exponent(self.rows, self.seconds)

    @property
    def paper_seconds(self) -> tuple[float, ...]:
        """Of the same method, however it is computed here."""
        return PAPER_SECONDS[self.method.split(",")[0]]

    @property
    def paper_exponent(self) -> float:
        """With which it grows in the paper's table."""
        return exponent(PAPER_ROWS, self.paper_seconds)


def durations(
    rows: Sequence[int] = PAPER_ROWS, n_components: int = 3, repeats: int = 3
) -> list[Duration]:
    """Train all three on one thread; the best of the repeats, since others only add."""
    ways = {
        "batch": _batch,
        "incremental": _incremental,
        "KHA, by pattern": _kha_by_pattern,
        "KHA, in blocks": _kha_in_blocks,
    }
    found = []
    with threadpool_limits(1):
        for name, train in ways.items():
            train(rising_parabola(200), n_components)
            seconds = [
                _best(partial(train, rising_parabola(n_rows), n_components), repeats)
                for n_rows in rows
            ]
            found.append(Duration(name, tuple(rows), tuple(seconds)))
    return found


def duration_claims(found: Sequence[Duration]) -> list[Claim]:
    """Batch grows at least with the square, incremental about linearly."""
    growth = {row.method: row.exponent for row in found}
    return [
        Claim("exponent of batch training", growth["batch"], 2, "at least"),
        Claim("exponent of incremental training", growth["incremental"], 1.1),
    ]


def _batch(X: Floats, n_components: int) -> None:
    KernelPCA(n_components, eigen_solver="dense", n_jobs=1, **_GAUSSIAN).fit(X)


def _incremental(X: Floats, n_components: int) -> None:
    """Batches of 30 rows, ten rows of the library per vector, as in the paper's section 6."""
    model = IncrementalKernelPCA(
        n_components, preimages_per_component=10, batch_size=30, **_GAUSSIAN
    )
    model.fit(X)


def _kha_by_pattern(X: Floats, n_components: int) -> None:
    """The rule as the paper ran it; with a polynomial, since its code for KHA had no Gaussian."""
    rng = np.random.default_rng(0)
    gram, _ = center_gram(ComputedGram(Polynomial(2, 1.0, 1.0), X))
    A: Floats = rng.normal(size=(n_components, len(X)))
    A /= np.sqrt(n_components * len(X) * gram.mean_diagonal)
    gain = np.full(n_components, _STEP / gram.mean_diagonal)
    for _ in range(_PASSES):
        for p in rng.permutation(len(X)):
            A = hebbian_step(A, gram.rows(np.array([p]))[0], p, gain)


def _kha_in_blocks(X: Floats, n_components: int) -> None:
    """The same updates, many patterns at a time."""
    model = KernelPCA(
        n_components, kernel="poly", degree=2, gamma=1, eigen_solver="kha", max_iter=_PASSES,
        rayleigh_ritz=False, random_state=0, n_jobs=1,
    )  # fmt: skip
    model.fit(X)


def _best(train: Callable[[], None], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        train()
        seconds.append(time.process_time() - begun)
    return min(seconds)


#: Components that are compared.
LEADING = 3
_BATCH = 30


@dataclass(frozen=True)
class Variant:
    """A way to learn from a stream: how its library is reduced, and what is left out."""

    library: str
    left_out: str
    settings: IncrementalSettings


def _variants(library: str, reduction: Reduction, limit: int) -> list[Variant]:
    whole = IncrementalSettings(LEADING, n_oversamples=5, compression=Compression(reduction, limit))
    skewed = Compression(reduction, limit, orthonormal=False)
    return [
        Variant(library, "nothing", whole),
        Variant(library, "mean update", replace(whole, move_mean=False)),
        Variant(library, "re-orthogonalisation", replace(whole, compression=skewed)),
    ]


#: Small libraries, so that every reduction costs something.
JOINT = _variants("12 joint pre-images", JointPreimages(), 12)
#: The paper's figure 1: (c), which it proposes, and (a), which it improves on.
PAPER = [
    *_variants("36 pre-images, scheme (c)", IteratedPreimages(), 36),
    *_variants("36 pre-images, scheme (a)", IteratedPreimages(reuse=False, second_pass=False), 36),
]


@dataclass(frozen=True)
class Course:
    """A variant along the stream, against batch kernel PCA of the rows so far.

    Parameters
    ----------
    library, left_out : str
    rows : tuple of int
        Rows seen, where it was compared.
    angles : tuple of float
        The largest between the spans of the leading components, in degrees.
    errors : tuple of float
        ‖Σσ_i² v_i v_iᵀ − Σλ_i u_i u_iᵀ‖ / ‖Σλ_i u_i u_iᵀ‖ over the leading components: what is
        wrong with directions, lengths and eigenvalues at once.
    defects : tuple of float
        max |VᵀV − I| of all components.
    """

    library: str
    left_out: str
    rows: tuple[int, ...]
    angles: tuple[float, ...]
    errors: tuple[float, ...]
    defects: tuple[float, ...]


def courses(variants: Sequence[Variant], n_rows: int = 3000, points: int = 10) -> list[Course]:
    """Stream the parabola through every variant, and compare at equal distances."""
    X = rising_parabola(n_rows)
    ends = tuple(n_rows * (number + 1) // points for number in range(points))
    truths = [_exact_batch(X[:end]) for end in ends]
    found = []
    for variant in variants:
        states = _states(X, variant.settings, ends)
        measured = [_compare(*pair, X) for pair in zip(states, truths, strict=True)]
        columns = (tuple(column) for column in zip(*measured, strict=True))
        found.append(Course(variant.library, variant.left_out, ends, *columns))
    return found


def _exact_batch(X: Floats) -> KernelPCA:
    model = KernelPCA(LEADING, kernel="rbf", gamma=PARABOLA_GAMMA, tol=1e-8, n_jobs=1)
    return model.set_params(random_state=0).fit(X)


def _states(
    X: Floats, settings: IncrementalSettings, ends: Sequence[int]
) -> list[IncrementalState]:
    state, found = IncrementalState.empty(Gaussian(PARABOLA_GAMMA), X), []
    for begin, end in pairwise([0, *ends]):
        piece = X[begin:end]
        for rows in tile_slices(len(piece), _BATCH):
            state, _ = update_step(state, piece[rows], settings)
        found.append(state)
    return found


def _compare(state: IncrementalState, batch: KernelPCA, X: Floats) -> tuple[float, float, float]:
    subspace = state.subspace()
    gram = subspace.component_gram
    leading = gram[:LEADING, :LEADING]
    projections = subspace.project(X[: batch.coefficients_.shape[1]])[:, :LEADING]
    inner = overlaps(batch, projections)
    # Components that lost their orthonormality still span something: that is what is compared.
    root = linalg.cholesky(leading, lower=True)
    spanned = linalg.solve_triangular(root, inner.T, lower=True).T
    return (
        float(subspace_angles(spanned)[0]),
        _scatter_error(batch.eigenvalues_, state.singular_values[:LEADING], inner, leading),
        float(np.abs(gram - np.eye(len(gram))).max()),
    )


def _scatter_error(exact: Floats, sigma: Floats, inner: Floats, gram: Floats) -> float:
    """From inner products alone: ‖S − C‖² = ‖S‖² − 2⟨S, C⟩ + ‖C‖²."""
    weighted = sigma[:, None] * gram * sigma
    mixed = np.square(np.sqrt(exact)[:, None] * inner * sigma).sum()
    total = np.square(exact).sum()
    return float(np.sqrt(max(np.square(weighted).sum() - 2 * mixed + total, 0) / total))


def ablation_claims(found: Sequence[Course]) -> list[Claim]:
    """What is left out is missed where the library is the paper's (a), or good enough to see it.

    With joint pre-images re-orthogonalisation keeps what its name says, and changes no span; with
    the paper's own libraries the error of the library hides that of the mean.
    """
    course = {(each.library, each.left_out): each for each in found}
    whole = [each for each in found if each.left_out == "nothing"]
    joint, last = JOINT[0].library, whole[-1].library
    told = [
        Claim(f"{joint}: angle of the whole update over that without mean update",
              course[joint, "nothing"].angles[-1] / course[joint, "mean update"].angles[-1], 0.5),
        Claim("largest orthonormality defect", max(max(each.defects) for each in whole), 1e-8),
    ]  # fmt: skip
    if last != joint:
        skewed = course[last, "re-orthogonalisation"].errors[-1]
        what = f"{last}: error of the whole update over that without re-orthogonalisation"
        told.append(Claim(what, whole[-1].errors[-1] / skewed, 0.5))
    return told


#: Figure 1 (a), (b), (c); then choosing among the rows, and moving what was chosen.
SCHEMES: dict[str, Reduction] = {
    "separate": IteratedPreimages(reuse=False, second_pass=False),
    "reuse": IteratedPreimages(second_pass=False),
    "second pass": IteratedPreimages(),
    "chosen samples": SelectedRows(),
    "joint pre-images": JointPreimages(tol=0.0),
}


@dataclass(frozen=True)
class SchemeRow:
    """A scheme at one size of the library.

    Parameters
    ----------
    data, scheme : str
    per_vector, rows : int
        n', and the rows that came of it.
    error : float
        √(Σ w² ‖u − u'‖² / Σ w² ‖u‖²) over components and mean; w are the singular values, and the
        largest of them for the mean.
    first, worst : float
        Relative errors of the first component, and of the one that fares worst.
    seconds : float
        Of processor time.
    """

    data: str
    scheme: str
    per_vector: int
    rows: int
    error: float
    first: float
    worst: float
    seconds: float


@dataclass(frozen=True)
class CompressRow:
    """A compressed model beside its original.

    Parameters
    ----------
    compression : str
    rows : int
        Of the library.
    first, worst : float
        Relative errors in feature space of the first component and of the one that fares worst.
    moved : float
        Root mean square change of the projections, as a share of their root mean square.
    speedup : float
        Processor time of ``transform``, the original's over the compressed one's.
    """

    compression: str
    rows: int
    first: float
    worst: float
    moved: float
    speedup: float


def compare_schemes(
    n_samples: int = 500,
    n_components: int = 8,
    sizes: tuple[int, ...] = (1, 2, 4, 8),
    seed: int = 0,
) -> Iterator[SchemeRow]:
    """Reduce components and mean of parabola and digits to n' rows per vector."""
    digits = np.random.default_rng(seed).permutation(load_digits().data / 16)[:n_samples]
    problems: dict[str, tuple[Kernel, Floats]] = {
        "parabola": (Gaussian(0.5), rising_parabola(n_samples, seed)),
        "digits": (Gaussian(0.02), digits),
    }
    for data, (kernel, X) in problems.items():
        vectors, singular_values = components_of(kernel, X, n_components)
        weights = np.append(singular_values, singular_values[0])
        for per_vector in sizes:
            for scheme, reduction in SCHEMES.items():
                start = process_time()
                found = reduction.reduce(vectors, per_vector * (n_components + 1), weights)
                seconds = process_time() - start
                lost, whole = weights**2 @ found.squared_errors, weights**2 @ found.squared_lengths
                errors = found.relative_errors
                yield SchemeRow(
                    data,
                    scheme,
                    per_vector,
                    len(found.expansion.basis),
                    float(np.sqrt(lost / whole)),
                    float(errors[0]),
                    float(errors.max()),
                    seconds,
                )


def compress_digits(
    sizes: tuple[int, ...] = (50, 100, 200, 400), n_components: int = 16
) -> Iterator[CompressRow]:
    """Compress a model of 1,500 digits, and look at the other 297."""
    X = np.random.default_rng(0).permutation(load_digits().data / 16)
    train, test = X[:1500], X[1500:]
    model = KernelPCA(n_components, kernel="rbf", gamma=0.02).fit(train)
    before, seconds = _transformed(model, test)
    for compression in ("samples", "preimages"):
        for size in sizes:
            small = compress(model, size, compression=compression, random_state=0)
            after, less = _transformed(small, test)
            errors = small.compression_error_
            yield CompressRow(
                compression,
                len(small.library_),
                float(errors[0]),
                float(errors.max()),
                float(np.linalg.norm(after - before) / np.linalg.norm(before)),
                seconds / less,
            )


def _transformed(model: Any, X: Floats, repeats: int = 20) -> tuple[Floats, float]:
    """Projections, and the shortest time that they took."""
    times = []
    for _ in range(repeats):
        start = process_time()
        projections = model.transform(X)
        times.append(process_time() - start)
    return projections, min(times)


def components_of(kernel: Kernel, X: Floats, n_components: int) -> tuple[Expansion, Floats]:
    """Components and mean of batch kernel PCA, from scratch, and the singular values."""
    K = cross_gram(kernel, X, X)
    means = K.mean(axis=0)
    values, vectors = np.linalg.eigh(K - means - means[:, None] + means.mean())
    values, vectors = values[: -n_components - 1 : -1], vectors[:, : -n_components - 1 : -1]
    singular_values = np.sqrt(values)
    components = (vectors / singular_values).T
    components -= components.mean(axis=1, keepdims=True)
    uniform = np.full((1, len(X)), 1 / len(X))
    return Expansion(kernel, X, np.vstack([components, uniform])), singular_values


_SETTINGS: dict[str, Any] = {"n_components": 3, "kernel": "rbf", "gamma": PARABOLA_GAMMA}
_WHOLE = "incremental, whole stream"


def plan(request: Request) -> list[Part]:
    """Table 1, then longer streams, then what the update is made of."""
    settings = request.settings
    variants = [*JOINT, *(PAPER if settings["paper_schemes"] else [])]
    return [
        Part("table 1", partial(_durations, settings["rows"], settings["repeats"])),
        Part("streams", partial(_streams, settings["stream_rows"])),
        Part("contours", partial(_contours, settings["contour_rows"])),
        Part("ablation", partial(_ablation, variants, settings["ablation_rows"])),
        *([Part("schemes", _schemes)] if settings["paper_schemes"] else []),
    ]


def _durations(sizes: Sequence[int], repeats: int) -> Findings:
    rows: Rows = [
        {"method": found.method, "rows": size, "seconds": seconds}
        for found in durations(sizes, repeats=repeats)
        for size, seconds in zip(found.rows, found.seconds, strict=True)
    ]
    return Findings({"durations": rows})


def _streams(sizes: Sequence[int]) -> Findings:
    rows: Rows = [
        {
            "rows": cost.rows,
            "seconds": cost.seconds,
            "held_bytes": cost.held_bytes[-1],
            "least_correlation": min(cost.correlations),
        }
        for cost in stream_costs(rising_parabola, sizes, _SETTINGS)
    ]
    return Findings({"streams": rows})


def _contours(n_rows: int) -> Findings:
    X = rising_parabola(n_rows)
    models = {
        "batch": KernelPCA(eigen_solver="dense", **_SETTINGS).fit(X),
        "incremental": IncrementalKernelPCA(**_SETTINGS).fit(X),
    }
    return Findings({}, surfaces(X, models, 3))


def _ablation(variants: Sequence[Variant], n_rows: int) -> Findings:
    rows: Rows = [
        {
            "library": course.library,
            "left_out": course.left_out,
            "rows": course.rows[-1],
            "angle": course.angles[-1],
            "error": course.errors[-1],
            "defect": course.defects[-1],
        }
        for course in courses(variants, n_rows)
    ]
    return Findings({"ablation": rows})


def _schemes() -> Findings:
    return Findings({"schemes": [asdict(row) for row in compare_schemes(sizes=(2, 8))]})


def summary(tables: Tables) -> dict[str, Rows]:
    """With which power of the rows every method's time grows."""
    series: dict[str, list[tuple[int, float]]] = {}
    named = [{**row, "method": _WHOLE} for row in tables["streams"]]
    for row in [*tables["durations"], *named]:
        point = (int(row["rows"] or 0), float(row["seconds"] or 0))
        series.setdefault(str(row["method"]), []).append(point)
    return {
        "exponents": [
            {"method": name, "exponent": exponent([x for x, _ in points], [y for _, y in points])}
            for name, points in series.items()
        ]
    }
