"""Chin and Suter 2006, figures 1 and 2, table 1: a stream of points on a parabola."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from ikpca import KernelPCA
from ikpca.gram import ComputedGram, center_gram, cross_gram, tile_slices
from ikpca.kernels import Floats, Gaussian, Kernel
from ikpca.reduced_sets import (
    ReducedSet,
    Reduction,
    SelectedRows,
)
from ikpca.solvers import KHA, hebbian_step
from ikpca.streams import PreimageState
from ikpca.subspace import Subspace
from ikpca_papers.as_printed import (
    BATCH_ROWS,
    POLYNOMIAL,
    PREIMAGES_PER_VECTOR,
    RBF,
    TABLE_1_ROWS,
    TABLE_1_SECONDS,
    Compression,
    PaperIncrementalPCA,
    SelectedRowsPCA,
)
from ikpca_papers.claims import Cell, Rows, Tables
from ikpca_papers.data.synthetic import parabola
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.metrics import (
    FittedTransformer,
    correlations,
    exponent,
    feature_angles,
    overlaps,
    surfaces,
)
from ikpca_papers.preimage_schemes import PreimageScheme

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


#: Passes of KHA; the paper does not report the number.
_PASSES = 5
#: κη0 of the rule, small enough for the parabola.
_STEP = 0.05
#: Of the parabola, whose kernel (x·y)² has rank 3 with points of the plane.
_COMPONENTS = 3


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
        return TABLE_1_SECONDS[self.method.split(",")[0]]

    @property
    def paper_exponent(self) -> float:
        """Exponent of the growth of time in the paper's table."""
        return exponent(TABLE_1_ROWS, self.paper_seconds)


def durations(rows: Sequence[int] = TABLE_1_ROWS, repeats: int = 3) -> list[Duration]:
    """Time all methods on one thread; the shortest of the repeats."""
    results = []
    with threadpool_limits(1):
        for name, train in METHODS.items():
            train(rising_parabola(200))
            seconds = [_best(partial(train, rising_parabola(n_rows)), repeats) for n_rows in rows]
            results.append(Duration(name, tuple(rows), tuple(seconds)))
    return results


def _batch(X: Floats) -> None:
    KernelPCA(_COMPONENTS, kernel=POLYNOMIAL, eigen_solver="dense", n_jobs=1).fit(X)


def _incremental(kernel: Kernel, X: Floats) -> None:
    PaperIncrementalPCA(kernel, _COMPONENTS).fit(X)


def _selected_rows(X: Floats) -> None:
    SelectedRowsPCA(RBF, _COMPONENTS, 40).fit(X)


def _kha_by_pattern(X: Floats) -> None:
    """Run the rule as in the paper, pattern by pattern."""
    rng = np.random.default_rng(0)
    gram, _ = center_gram(ComputedGram(POLYNOMIAL, X))
    A: Floats = rng.normal(size=(_COMPONENTS, len(X)))
    A /= np.sqrt(_COMPONENTS * len(X) * gram.mean_diagonal)
    gain = np.full(_COMPONENTS, _STEP / gram.mean_diagonal)
    for _ in range(_PASSES):
        for p in rng.permutation(len(X)):
            A = hebbian_step(A, gram.rows(np.array([p]))[0], p, gain)


def _kha_in_blocks(X: Floats) -> None:
    """Run the same updates, many patterns at a time."""
    model = KernelPCA(
        _COMPONENTS, kernel=POLYNOMIAL, eigen_solver=KHA("kha", rayleigh_ritz=False),
        max_iter=_PASSES, random_state=0, n_jobs=1,
    )  # fmt: skip
    model.fit(X)


#: The paper's three with its polynomial; then with its RBF kernel, which its code for KHA did not
#: have; then variants of ours.
METHODS: dict[str, Callable[[Floats], None]] = {
    "batch": _batch,
    "incremental": partial(_incremental, POLYNOMIAL),
    "KHA": _kha_by_pattern,
    "incremental, RBF": partial(_incremental, RBF),
    "incremental, selected rows": _selected_rows,
    "KHA, in blocks": _kha_in_blocks,
}


def _best(train: Callable[[], None], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        train()
        seconds.append(time.process_time() - start)
    return min(seconds)


#: Components that are compared.
LEADING = 3


class FixedMean(PreimageState):
    """Stream about the mean of the first batch: incremental kernel SVD about a fixed point."""

    def deviations(self, count: int) -> tuple[Floats, Floats]:
        """Return E = B − µ and the unchanged µ."""
        if not self.n:
            return super().deviations(count)
        r = len(self.singular_values)
        E = np.zeros((r + 1 + count, count))
        E[r], E[r + 1 :] = -1, np.eye(count)
        return E, np.eye(len(E))[r]


class NotOrthonormal(Compression):
    """Compression without section 5.3, so that errors accumulate."""

    def orthonormalize(
        self, reduced: ReducedSet, singular_values: Floats
    ) -> tuple[Subspace, Floats]:
        """Return the components as they are."""
        return reduced.subspace, singular_values


class PrintedOrthogonalization(NotOrthonormal):
    """Eqs. 22 to 25 as printed.

    P = D^½Qᵀ with normalized columns only scales every component to length one; the singular values
    are the diagonal of S.
    """

    def reduce(self, state: PreimageState, size: int) -> tuple[PreimageState, Floats]:
        """Return the state on fewer rows, and the relative errors of components and mean."""
        compressed, errors = super().reduce(state, size)
        before, after = np.diagonal(state.gram)[:-1], np.diagonal(compressed.gram)[:-1]
        # ⟨u', u⟩ from ‖u − u'‖².
        inner = (before * (1 - errors[:-1] ** 2) + after) / 2
        scales = 1 / np.sqrt(after)
        every = np.append(scales, 1)[:, None]
        scaled = replace(
            compressed,
            vectors=every * compressed.vectors,
            products=every * compressed.products,
            singular_values=scales * inner * state.singular_values,
        )
        return scaled, errors


@dataclass(frozen=True)
class Variant:
    """Variant of the scheme: how pre-images are chosen, one other choice, and its value."""

    preimages: str
    choice: str
    value: str
    n_components: int
    compression: Compression | None = None
    batch_rows: int = BATCH_ROWS
    stream: type[PreimageState] = PreimageState

    def learn(self, X: Floats) -> PreimageState:
        """Learn all rows, in batches."""
        state = self.stream.empty(RBF, X, self.n_components)
        for batch in tile_slices(len(X), self.batch_rows):
            rows = X[batch]
            state, _ = state.learn(rows)
            if self.compression is not None:
                state = self.compression.enforce_limit(state, len(rows))
        return state


#: Nearest pre-images inside the box of the basis rows and anywhere, and rows of least error.
PREIMAGES: dict[str, Callable[..., PreimageScheme]] = {
    "in the box": partial(PreimageScheme, nearest=True),
    "anywhere": partial(PreimageScheme, nearest=True, in_box=False),
    "least error": PreimageScheme,
}


def ablation_variants(n_components: int) -> list[Variant]:
    """Vary one choice of the paper's scheme at a time, with every choice of pre-images."""
    rows = PREIMAGES_PER_VECTOR * (n_components + 1)
    kept = [Variant("none", "r, all rows kept", str(number), number) for number in (3, 6, 10)]
    others = _reductions(
        n_components, "none", "reduction",
        **{"selected rows": Compression(SelectedRows(), rows),
           "joint pre-images": Compression(SelectedRows("auto"), rows)},
    )  # fmt: skip
    varied = [
        variant
        for name, reduction in PREIMAGES.items()
        for variant in _varied(name, reduction, n_components)
    ]
    return [*varied, *kept, *others]


def _reductions(r: int, preimages: str, choice: str, **made: Compression) -> list[Variant]:
    return [Variant(preimages, choice, name, r, compression) for name, compression in made.items()]


def _varied(name: str, reduction: Callable[..., PreimageScheme], r: int) -> list[Variant]:
    """Vary the scheme with one choice of pre-images."""

    def compression(number: int = PREIMAGES_PER_VECTOR, r: int = r, **scheme: bool) -> Compression:
        return Compression(reduction(number, **scheme), number * (r + 1))

    paper, few = compression(), compression(2)
    return [
        Variant(name, "none", "the scheme", r, paper),
        *(Variant(name, "r", str(number), number, compression(r=number)) for number in (3, 10)),
        *_reductions(r, name, "scheme of figure 1", a=compression(reuse=False, second_pass=False),
                     b=compression(second_pass=False), c=paper),
        *_reductions(r, name, "orthogonalization",
                     none=NotOrthonormal(paper.reduction, paper.limit),
                     printed=PrintedOrthogonalization(paper.reduction, paper.limit)),
        *_reductions(r, name, "orthogonalization, n = 2",
                     none=NotOrthonormal(few.reduction, few.limit),
                     printed=PrintedOrthogonalization(few.reduction, few.limit)),
        Variant(name, "mean update", "left out", r, paper, stream=FixedMean),
        *_reductions(r, name, "n", **{str(number): compression(number) for number in (2, 5, 20)}),
        *(Variant(name, "c", str(count), r, paper, count) for count in (10, 100)),
        *_reductions(r, name, "rows between reductions", **{"60": replace(paper, min_growth=60)}),
    ]  # fmt: skip


@dataclass(frozen=True)
class AblationRow:
    """Errors of a variant at the end of the stream, relative to batch kernel PCA.

    Parameters
    ----------
    preimages, choice, value : str
    angle : float
        The largest between the spans of the leading components, in degrees.
    error : float
        ‖Σσ_i² v_i v_iᵀ − Σλ_i u_i u_iᵀ‖ / ‖Σλ_i u_i u_iᵀ‖ over the leading components: the error
        of directions, lengths and eigenvalues together.
    defect : float
        max |VᵀV − I| of all components.
    """

    preimages: str
    choice: str
    value: str
    angle: float
    error: float
    defect: float


def ablation(variants: Sequence[Variant], n_rows: int, seed: int = 0) -> list[AblationRow]:
    """Run every variant on a stream of the parabola."""
    X = rising_parabola(n_rows, seed)
    batch = KernelPCA(LEADING, kernel=RBF, tol=1e-8, n_jobs=1, random_state=0).fit(X)
    results = []
    for variant in variants:
        errors = _compare(variant.learn(X), batch, X)
        results.append(AblationRow(variant.preimages, variant.choice, variant.value, *errors))
    return results


def _compare(state: PreimageState, batch: KernelPCA, X: Floats) -> tuple[float, float, float]:
    subspace = state.subspace
    gram = subspace.component_gram
    leading = gram[:LEADING, :LEADING]
    inner = overlaps(batch, subspace.project(X)[:, :LEADING])
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


#: Figure 1 (a), (b), (c); then (c) with rows that leave the smallest error, a selection of rows,
#: and its optimization.
SCHEMES: dict[str, Reduction] = {
    "separate": PreimageScheme(reuse=False, second_pass=False, nearest=True),
    "reuse": PreimageScheme(second_pass=False, nearest=True),
    "second pass": PreimageScheme(nearest=True),
    "second pass, least error": PreimageScheme(),
    "chosen samples": SelectedRows(),
    "joint pre-images": SelectedRows("auto", tol=0.0),
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
        "parabola": (RBF, rising_parabola(n_samples, seed)),
        "digits": (Gaussian(0.02), digits),
    }
    for data, (kernel, X) in problems.items():
        vectors, singular_values = components_of(kernel, X, n_components)
        weights = np.append(singular_values, singular_values[0])
        for per_vector in sizes:
            for scheme, reduction in SCHEMES.items():
                start = process_time()
                reduced = reduction.reduce(vectors, per_vector * (n_components + 1), weights)
                seconds = process_time() - start
                lost = weights**2 @ reduced.squared_errors
                whole = weights**2 @ reduced.squared_lengths
                errors = reduced.relative_errors
                yield SchemeRow(
                    data,
                    scheme,
                    per_vector,
                    len(reduced.subspace.basis),
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


_SETTINGS: dict[str, Any] = {"n_components": LEADING, "kernel": "rbf", "gamma": PARABOLA_GAMMA}


def plan(request: Request) -> list[Part]:
    """Plan table 1, contours, ablation and figure 1."""
    settings = request.settings
    variants, sizes = ablation_variants(settings["components"]), settings["scheme_sizes"]
    return [
        Part("table 1", partial(_durations, settings["rows"], settings["repeats"])),
        Part("contours", partial(_contours, settings["contour_rows"], settings["components"])),
        Part("ablation", partial(_ablation, variants, settings["ablation_rows"])),
        *([Part("schemes", partial(_schemes, tuple(sizes)))] if sizes else []),
    ]


def _durations(sizes: Sequence[int], repeats: int) -> Findings:
    rows: Rows = [
        {"method": duration.method, "rows": size, "seconds": seconds}
        for duration in durations(sizes, repeats=repeats)
        for size, seconds in zip(duration.rows, duration.seconds, strict=True)
    ]
    return Findings({"durations": rows})


def _contours(n_rows: int, n_components: int) -> Findings:
    X = rising_parabola(n_rows)
    models: dict[str, FittedTransformer] = {
        "batch": KernelPCA(eigen_solver="dense", n_jobs=1, **_SETTINGS).fit(X),
        "incremental": PaperIncrementalPCA(RBF, n_components).fit(X),
        "selected rows": SelectedRowsPCA(Gaussian(PARABOLA_GAMMA), LEADING, 240, 200).fit(X),
    }
    exact = models["batch"].transform(X)
    rows: Rows = [
        {"model": name, "component": number + 1, "correlation": float(correlation)}
        for name, model in models.items() if name != "batch"
        for number, correlation in enumerate(correlations(exact, model.transform(X)[:, :LEADING]))
    ]  # fmt: skip
    return Findings({"figure_2": rows}, surfaces(X, models, LEADING))


def _ablation(variants: Sequence[Variant], n_rows: int) -> Findings:
    return Findings({"ablation": [asdict(row) for row in ablation(variants, n_rows)]})


def _schemes(sizes: tuple[int, ...]) -> Findings:
    return Findings({"schemes": [asdict(row) for row in compare_schemes(sizes=sizes)]})


def summary(tables: Tables) -> dict[str, Rows]:
    """Compute the exponent of the growth of time of every method, and that in the paper."""
    series: dict[str, list[tuple[int, float]]] = {}
    for row in tables["durations"]:
        point = (int(row["rows"] or 0), float(row["seconds"] or 0))
        series.setdefault(str(row["method"]), []).append(point)
    rows: Rows = []
    for name, points in series.items():
        duration = Duration(name, *zip(*points, strict=True))
        rows.append(
            {
                "method": name,
                "exponent": duration.exponent,
                "paper": duration.paper_exponent,
                "difference": abs(duration.exponent - duration.paper_exponent),
            }
        )
    return {"table_1": _table_1(tables["durations"]), "exponents": rows}


def _table_1(durations: Rows) -> Rows:
    """Return seconds as in table 1, the paper's beside ours; the machines differ."""
    ours = {(row["method"], row["rows"]): row["seconds"] for row in durations}
    names = {"KPCA": "batch", "IKPCA": "incremental", "KHA": "KHA"}
    rows: Rows = []
    for place, number in enumerate(TABLE_1_ROWS):
        row: dict[str, Cell] = {"Vectors": number}
        for name, method in names.items():
            row[f"{name}, paper"] = TABLE_1_SECONDS[method][place]
            row[f"{name}, ours"] = ours.get((method, number))
        rows.append(row)
    return rows
