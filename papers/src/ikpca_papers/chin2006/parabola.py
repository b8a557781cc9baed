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
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.gram import ComputedGram, center_gram, cross_gram, tile_slices
from ikpca.kernels import Floats, Gaussian, Kernel, Polynomial
from ikpca.reduced_sets import IteratedPreimages, JointPreimages, Reduction, SelectedRows
from ikpca.solvers import KHA, hebbian_step
from ikpca.streams import Compression, IncrementalSettings, IncrementalState, update_step
from ikpca.subspace import Subspace
from ikpca_papers.chin2006.stream_costs import stream_costs
from ikpca_papers.claims import MeasuredClaim, Rows, Tables
from ikpca_papers.data.synthetic import parabola
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.metrics import exponent, feature_angles, overlaps, surfaces

#: σ = 1.
PARABOLA_GAMMA = 0.5


def rising_parabola(n_rows: int, seed: int = 0) -> Floats:
    """Draw Chin and Suter's parabola, which opens upwards."""
    return parabola(n_rows, curvature=1.0, random_state=seed)


def frey_faces(folder: Path) -> Floats:
    """Load 1,965 frames of 28×20 pixels from 0 to 1."""
    return _images(folder / "frey_faces.npz", 255)


def teapot(folder: Path) -> Floats:
    """Load 100 views of 38×50 pixels from 0 to 1."""
    return _images(folder / "teapot_100.npz", 1)


def _images(path: Path, white: float) -> Floats:
    with np.load(path) as data:
        images = np.asarray(data["images"], dtype=np.float64)
    return images.reshape(len(images), -1) / white


PAPER_ROWS = (520, 1000, 1510, 2020, 2530, 3100)
#: As printed; measured on a Pentium 4 with Matlab, so only their growth is comparable.
PAPER_SECONDS: dict[str, tuple[float, ...]] = {
    "batch": (7.23, 44.10, 161.23, 413.05, 990.29, 1394.91),
    "incremental": (29.05, 60.23, 93.14, 127.45, 141.28, 165.29),
    "KHA": (93.75, 198.73, 381.92, 695.31, 990.86, 1569.02),
}
#: Passes of KHA; the paper does not report the number.
_PASSES = 5
#: κη0 of the rule, small enough for the parabola.
_STEP = 0.05
_GAUSSIAN: dict[str, Any] = {"kernel": "rbf", "gamma": PARABOLA_GAMMA}


@dataclass(frozen=True)
class Duration:
    """Processor time of one method at all sizes, and that of the paper."""

    method: str
    rows: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Exponent of the growth of time."""
        return exponent(self.rows, self.seconds)

    @property
    def paper_seconds(self) -> tuple[float, ...]:
        """Times of the method in the paper."""
        return PAPER_SECONDS[self.method.split(",")[0]]

    @property
    def paper_exponent(self) -> float:
        """Exponent of the growth of time in the paper's table."""
        return exponent(PAPER_ROWS, self.paper_seconds)


def durations(
    rows: Sequence[int] = PAPER_ROWS, n_components: int = 3, repeats: int = 3
) -> list[Duration]:
    """Time all methods on one thread; the shortest of the repeats."""
    methods = {
        "batch": _batch,
        "incremental": _incremental,
        "KHA, by pattern": _kha_by_pattern,
        "KHA, in blocks": _kha_in_blocks,
    }
    found = []
    with threadpool_limits(1):
        for name, train in methods.items():
            train(rising_parabola(200), n_components)
            seconds = [
                _best(partial(train, rising_parabola(n_rows), n_components), repeats)
                for n_rows in rows
            ]
            found.append(Duration(name, tuple(rows), tuple(seconds)))
    return found


def duration_claims(found: Sequence[Duration]) -> list[MeasuredClaim]:
    """Claim that batch grows at least quadratically, and incremental about linearly."""
    growth = {row.method: row.exponent for row in found}
    return [
        MeasuredClaim("exponent of batch training", growth["batch"], 2, "at least"),
        MeasuredClaim("exponent of incremental training", growth["incremental"], 1.1),
    ]


def _batch(X: Floats, n_components: int) -> None:
    KernelPCA(n_components, eigen_solver="dense", n_jobs=1, **_GAUSSIAN).fit(X)


def _incremental(X: Floats, n_components: int) -> None:
    """Fit in batches of 30 rows with ten basis rows per vector, as in the paper's section 6."""
    model = IncrementalKernelPCA(
        n_components, preimages_per_component=10, batch_size=30, **_GAUSSIAN
    )
    model.fit(X)


def _kha_by_pattern(X: Floats, n_components: int) -> None:
    """Run the rule as in the paper; polynomial, since its code for KHA had no Gaussian."""
    rng = np.random.default_rng(0)
    gram, _ = center_gram(ComputedGram(Polynomial(2, 1.0, 1.0), X))
    A: Floats = rng.normal(size=(n_components, len(X)))
    A /= np.sqrt(n_components * len(X) * gram.mean_diagonal)
    gain = np.full(n_components, _STEP / gram.mean_diagonal)
    for _ in range(_PASSES):
        for p in rng.permutation(len(X)):
            A = hebbian_step(A, gram.rows(np.array([p]))[0], p, gain)


def _kha_in_blocks(X: Floats, n_components: int) -> None:
    """Run the same updates, many patterns at a time."""
    model = KernelPCA(
        n_components, kernel="poly", degree=2, gamma=1,
        eigen_solver=KHA("kha", rayleigh_ritz=False), max_iter=_PASSES, random_state=0, n_jobs=1,
    )  # fmt: skip
    model.fit(X)


def _best(train: Callable[[], None], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        train()
        seconds.append(time.process_time() - start)
    return min(seconds)


#: Components that are compared.
LEADING = 3
_BATCH = 30


@dataclass(frozen=True)
class Variant:
    """Variant of the update: reduction of the basis, and the step that is left out."""

    library: str
    left_out: str
    settings: IncrementalSettings


def _variants(library: str, reduction: Reduction, limit: int) -> list[Variant]:
    whole = IncrementalSettings(LEADING, n_oversamples=5, compression=Compression(reduction, limit))
    skewed = Compression(reduction, limit, orthonormal=False)
    return [
        Variant(library, "nothing", whole),
        Variant(library, "mean update", replace(whole, move_mean=False)),
        Variant(library, "re-orthogonalization", replace(whole, compression=skewed)),
    ]


#: Small bases, so that every reduction has an error.
JOINT = _variants("12 joint pre-images", JointPreimages(), 12)
#: The paper's figure 1: (c), which it proposes, and (a), which it improves.
PAPER = [
    *_variants("36 pre-images, scheme (c)", IteratedPreimages(), 36),
    *_variants("36 pre-images, scheme (a)", IteratedPreimages(reuse=False, second_pass=False), 36),
]


@dataclass(frozen=True)
class AblationCurve:
    """Errors of a variant along the stream, relative to batch kernel PCA of the rows so far.

    Parameters
    ----------
    library, left_out : str
    rows : tuple of int
        Rows seen at each comparison.
    angles : tuple of float
        The largest between the spans of the leading components, in degrees.
    errors : tuple of float
        ‖Σσ_i² v_i v_iᵀ − Σλ_i u_i u_iᵀ‖ / ‖Σλ_i u_i u_iᵀ‖ over the leading components: the error
        of directions, lengths and eigenvalues together.
    defects : tuple of float
        max |VᵀV − I| of all components.
    """

    library: str
    left_out: str
    rows: tuple[int, ...]
    angles: tuple[float, ...]
    errors: tuple[float, ...]
    defects: tuple[float, ...]


def ablation_curves(
    variants: Sequence[Variant], n_rows: int = 3000, points: int = 10
) -> list[AblationCurve]:
    """Run every variant on a stream of the parabola, and compare at equal intervals."""
    X = rising_parabola(n_rows)
    ends = tuple(n_rows * (number + 1) // points for number in range(points))
    truths = [_exact_batch(X[:end]) for end in ends]
    found = []
    for variant in variants:
        states = _states(X, variant.settings, ends)
        measured = [_compare(*pair, X) for pair in zip(states, truths, strict=True)]
        columns = (tuple(column) for column in zip(*measured, strict=True))
        found.append(AblationCurve(variant.library, variant.left_out, ends, *columns))
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
    return (
        # The streamed components may be no longer orthonormal.
        float(feature_angles(inner, second=leading)[0]),
        _scatter_error(batch.eigenvalues_, state.singular_values[:LEADING], inner, leading),
        float(np.abs(gram - np.eye(len(gram))).max()),
    )


def _scatter_error(exact: Floats, sigma: Floats, inner: Floats, gram: Floats) -> float:
    """Compute ‖S − C‖ from inner products: ‖S − C‖² = ‖S‖² − 2⟨S, C⟩ + ‖C‖²."""
    weighted = sigma[:, None] * gram * sigma
    mixed = np.square(np.sqrt(exact)[:, None] * inner * sigma).sum()
    total = np.square(exact).sum()
    return float(np.sqrt(max(np.square(weighted).sum() - 2 * mixed + total, 0) / total))


#: Figure 1 (a), (b), (c); then a selection of rows, and its optimization.
SCHEMES: dict[str, Reduction] = {
    "separate": IteratedPreimages(reuse=False, second_pass=False),
    "reuse": IteratedPreimages(second_pass=False),
    "second pass": IteratedPreimages(),
    "chosen samples": SelectedRows(),
    "joint pre-images": JointPreimages(tol=0.0),
}


@dataclass(frozen=True)
class SchemeRow:
    """Error of a scheme at one size of the basis.

    Parameters
    ----------
    data, scheme : str
    per_vector, rows : int
        n', and the resulting number of rows.
    error : float
        √(Σ w² ‖u − u'‖² / Σ w² ‖u‖²) over components and mean; w are the singular values, and the
        largest of them for the mean.
    first, worst : float
        Relative errors of the first component, and of the worst one.
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
                    len(found.subspace.basis),
                    float(np.sqrt(lost / whole)),
                    float(errors[0]),
                    float(errors.max()),
                    seconds,
                )


def components_of(kernel: Kernel, X: Floats, n_components: int) -> tuple[Subspace, Floats]:
    """Compute components and mean of batch kernel PCA, and the singular values."""
    K = cross_gram(kernel, X, X)
    means = K.mean(axis=0)
    values, vectors = np.linalg.eigh(K - means - means[:, None] + means.mean())
    values, vectors = values[: -n_components - 1 : -1], vectors[:, : -n_components - 1 : -1]
    singular_values = np.sqrt(values)
    components = (vectors / singular_values).T
    components -= components.mean(axis=1, keepdims=True)
    uniform = np.full((1, len(X)), 1 / len(X))
    return Subspace(kernel, X, np.vstack([components, uniform])), singular_values


_SETTINGS: dict[str, Any] = {"n_components": 3, "kernel": "rbf", "gamma": PARABOLA_GAMMA}
_WHOLE = "incremental, whole stream"


def plan(request: Request) -> list[Part]:
    """Plan table 1, longer streams, contours and ablation."""
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
            "library": curve.library,
            "left_out": curve.left_out,
            "rows": curve.rows[-1],
            "angle": curve.angles[-1],
            "error": curve.errors[-1],
            "defect": curve.defects[-1],
        }
        for curve in ablation_curves(variants, n_rows)
    ]
    return Findings({"ablation": rows})


def _schemes() -> Findings:
    return Findings({"schemes": [asdict(row) for row in compare_schemes(sizes=(2, 8))]})


def summary(tables: Tables) -> dict[str, Rows]:
    """Compute the exponent of the growth of time of every method."""
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
