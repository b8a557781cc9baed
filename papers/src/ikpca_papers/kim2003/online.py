"""Kim 2003, appendix A: online KHA on streams of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ikpca import KernelPCA, OnlineKernelPCA
from ikpca.kernels import Floats
from ikpca.solvers import KHA
from ikpca.subspace import Subspace
from ikpca_papers.as_printed import printed_online
from ikpca_papers.claims import Rows
from ikpca_papers.data.synthetic import parabola
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.kim2003.gains import tune_online
from ikpca_papers.metrics import feature_angles, surfaces

#: The paper's three kernels, for rows of unit scale.
KERNELS: dict[str, dict[str, Any]] = {
    "Gaussian, σ = 1": {"kernel": "rbf", "gamma": 0.5},
    "polynomial, degree 2": {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0},
    "tanh": {"kernel": "sigmoid", "gamma": 1.0, "coef0": 0.0},
}
#: Figures 6 and 7: σ = 0.1, a twentieth of the width of the data.
NARROW: dict[str, Any] = {"kernel": "rbf", "gamma": 50.0}
#: Number of covering points, and the radius of their ball relative to that of the rows.
_N_POINTS, _RADIUS_FACTOR = 512, 1.25
#: Most rows of a stream for the batch model of a comparison.
_BATCH_ROWS = 2000
#: Start of every search for a gain.
_FIRST_GUESS = 0.1
#: Ours: gains that do not decay, and one that does.
TRACKERS: dict[str, dict[str, Any]] = {
    "ours, constant gain": {
        "rule": KHA("kha", gain=0.05), "forgetting": 0.995,
    },
    "ours, automatic gain, forgetting": {"forgetting": 0.997},
    "ours, decaying gain": {},
}  # fmt: skip
#: Fixed gains beside the tuned ones: for convergence, and for tracking.
SMALL_GAIN, TRACKING_GAIN = 0.005, 0.05
#: A turn that is slow enough for the rule.
_SLOW_PERIOD = 32_000.0
#: As printed: constant, and decaying as 1/t.
PRINTED_TRACKERS = {"as printed, constant gain": "kha", "as printed, decaying gain": "kha/t"}


def _ellipse(n: int, seed: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(n, 2)) * [0.5, 0.1]


def _thin_parabola(n: int, seed: int) -> Floats:
    return parabola(n, 0.1, random_state=seed)


def _centered_parabola(n: int, seed: int) -> Floats:
    """Subtract the mean of the distribution, so that it turns about it: E y = −E x² = −1/3."""
    return np.add(_thin_parabola(n, seed), [0.0, 1 / 3])


SHAPES: dict[str, Callable[[int, int], Floats]] = {
    "ellipse": _ellipse,
    "parabola": _thin_parabola,
    "parabola about its own mean": _centered_parabola,
}


@dataclass(frozen=True)
class Rotation:
    """Stream from a distribution that rotates about the origin at a constant rate.

    Parameters
    ----------
    shape : str
        Of ``SHAPES``.
    n : int
        Rows.
    period : float
        Rows per revolution.
    seed : int
    """

    shape: str = "ellipse"
    n: int = 9000
    period: float = 8000.0
    seed: int = 0

    def angles(self) -> Floats:
        """Return the angle of the distribution for each row, in radians."""
        return 2 * np.pi * np.arange(self.n) / self.period

    def rows(self) -> Floats:
        """Draw the stream."""
        still = SHAPES[self.shape](self.n, self.seed)
        return np.column_stack(_rotate(still, self.angles()))

    def truth(self, n_components: int, rows: int = 1000, **settings: Any) -> Subspace:
        """Fit the components of the distribution at angle 0, from further rows."""
        still = SHAPES[self.shape](rows, self.seed + 1)
        return KernelPCA(n_components, eigen_solver="dense", **settings).fit(still)._subspace


def rotate_subspace(subspace: Subspace, angle: float) -> Subspace:
    """Rotate the basis rows; exact for kernels that are invariant to rotations."""
    rows = np.column_stack(_rotate(subspace.basis, np.full(len(subspace.basis), angle)))
    return replace(subspace, basis=rows)


def _rotate(rows: Floats, angles: Floats) -> tuple[Floats, Floats]:
    c, s = np.cos(angles), np.sin(angles)
    return c * rows[:, 0] - s * rows[:, 1], s * rows[:, 0] + c * rows[:, 1]


def angle_between(first: Subspace, second: Subspace) -> float:
    """Return the largest principal angle between two subspaces of feature space, in degrees."""
    across = first.products_with(second.basis)[:-1] @ second.components.T
    return float(feature_angles(across, first.component_gram, second.component_gram)[0])


@dataclass(frozen=True, eq=False)
class Track:
    """Angles between a model and the true components over time.

    Parameters
    ----------
    name : str
    times : ndarray of shape (n_measurements,)
        Rows seen at each measurement.
    angles : ndarray of shape (n_measurements,)
        Degrees.
    library : int
        Largest number of basis rows over the stream.
    """

    name: str
    times: Floats
    angles: Floats
    library: int

    def worst_after(self, warm_up: int) -> float:
        """Return the largest angle after so many rows."""
        return float(self.angles[self.times > warm_up].max())


def track_angles(
    rotation: Rotation, name: str, n_components: int = 1, every: int = 50, **settings: Any
) -> Track:
    """Fit a model to the stream and measure its angle to the true components at intervals."""
    kernel = {key: value for key, value in settings.items() if key in _KERNEL_PARAMETERS}
    model = OnlineKernelPCA(n_components, random_state=0, **settings)
    truth, rows, angles = rotation.truth(n_components, **kernel), rotation.rows(), rotation.angles()
    times = np.arange(every, rotation.n + 1, every)
    tracked, library = [], 0
    for end in times:
        model.partial_fit(rows[end - every : end])
        tracked.append(
            angle_between(rotate_subspace(truth, float(angles[end - 1])), model._subspace)
        )
        library = max(library, len(model.basis_))
    return Track(name, times.astype(np.float64), np.array(tracked), library)


_KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")


def track(rotation: Rotation, **kernel: Any) -> tuple[list[Track], Rows]:
    """Run all of ``PRINTED_TRACKERS`` and ``TRACKERS`` on the same rows; return gains, too.

    The gain as printed is open: the one with the least error of rows before they are learned.
    """
    kernel = kernel or KERNELS["Gaussian, σ = 1"]
    tracks, gains = [], []
    rows = rotation.rows()
    for name, method in PRINTED_TRACKERS.items():

        def error(gain: float, method: str = method) -> float:
            model = OnlineKernelPCA(
                1, random_state=0, **kernel, **printed_online(gain, method=method)
            )
            return float(np.nanmean(model.partial_fit(rows).novelty_))

        gain, tried = tune_online(error, _FIRST_GUESS)
        gains += [{"shape": rotation.shape, "run": name, **row} for row in tried]
        tracks.append(track_angles(rotation, name, **kernel, **printed_online(gain, method=method)))
    tracks += [track_angles(rotation, name, **kernel, **gain) for name, gain in TRACKERS.items()]
    return tracks, gains


@dataclass(frozen=True)
class Convergence:
    """Comparison of online components with batch components.

    Parameters
    ----------
    kernel : str
    form : str
        As printed, or ours.
    n : int
        Rows.
    correlations : tuple of float
        Absolute correlations of projections, per component.
    held : float
        Variance explained by the online components, relative to the batch components. For close
        eigenvalues this is more meaningful than the correlations.
    """

    kernel: str
    form: str
    n: int
    correlations: tuple[float, ...]
    held: float


def converge(
    sizes: tuple[int, ...] = (500, 2000, 8000), n_components: int = 2, init: str = "rows"
) -> Iterator[Convergence]:
    """Fit a stationary parabola in one pass, with each of the paper's kernels; ours."""
    for name, kernel in KERNELS.items():
        rows = parabola(max(sizes))
        yield from _converge_to(name, "ours", rows, sizes, n_components, kernel,
                                rule=KHA(init=init))  # fmt: skip


def converge_as_printed(
    sizes: tuple[int, ...] = (500, 2000, 8000), n_components: int = 2
) -> Iterator[tuple[list[Convergence], Rows]]:
    """Fit the same rows as printed: from random points, with a constant gain.

    The gain is open: the one with the least reconstruction error of the rows in feature space, and
    a small one.
    """
    for name, kernel in KERNELS.items():
        rows = parabola(max(sizes))
        gain, tried = tune_online(_error_of(rows, n_components, kernel), _FIRST_GUESS)
        forms = {"as printed": gain, f"as printed, η = {SMALL_GAIN:g}": SMALL_GAIN}
        convergences = [
            one
            for form, eta in forms.items()
            for one in _converge_to(name, form, rows, sizes, n_components, kernel,
                                    **printed_online(eta))
        ]  # fmt: skip
        yield convergences, [{"kernel": name, **row} for row in tried]


def _error_of(
    rows: Floats, n_components: int, kernel: dict[str, Any], init: Any = "random"
) -> Callable[[float], float]:
    """Return a function from a gain to the mean reconstruction error after one pass."""

    def error(gain: float) -> float:
        settings = kernel | printed_online(gain, init)
        model = OnlineKernelPCA(n_components, random_state=0, **settings)
        return float(model.partial_fit(rows).reconstruction_error(rows).mean())

    return error


def _converge_to(
    name: str,
    form: str,
    rows: Floats,
    sizes: Sequence[int],
    n_components: int,
    kernel: dict[str, Any],
    **settings: Any,
) -> Iterator[Convergence]:
    model = OnlineKernelPCA(n_components, random_state=0, **kernel, **settings)
    for begin, end in zip((0, *sizes), sizes, strict=False):
        model.partial_fit(rows[begin:end])
        yield compare(name, form, model, rows[:end], **kernel)


def compare(
    name: str, form: str, model: OnlineKernelPCA, rows: Floats, **kernel: Any
) -> Convergence:
    """Compare an online model with the batch components of the same rows."""
    number = len(model.eigenvalues_)
    batch = KernelPCA(number, eigen_solver="krylov", tol=1e-6, random_state=0, **kernel)
    batch.fit(rows[:_BATCH_ROWS])
    exact, found = batch.transform(rows), model.transform(rows)
    correlations = tuple(
        abs(float(np.corrcoef(exact[:, i], found[:, i])[0, 1])) if found[:, i].any() else 0.0
        for i in range(number)
    )
    held = model.explained_variance_score(rows) / batch.explained_variance_score(rows)
    return Convergence(name, form, len(rows), correlations, held)


def covering(rows: Floats) -> Floats:
    """Draw points from a ball around the rows, dense enough to overlap (figure 7)."""
    center, rng = rows.mean(axis=0), np.random.default_rng([0, 4])
    radius = _RADIUS_FACTOR * np.linalg.norm(rows - center, axis=1).max()
    directions = rng.normal(size=(_N_POINTS, rows.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return center + radius * rng.uniform(size=(_N_POINTS, 1)) ** (1 / rows.shape[1]) * directions


def starts_of_figures_6_and_7(
    rows: Floats, *, as_printed: bool
) -> Iterator[tuple[str, OnlineKernelPCA, Convergence]]:
    """Fit with a narrow Gaussian, from a point far from all rows and from a covering of them."""
    form = "as printed" if as_printed else "ours"
    for start, init in (("distant", np.array([[8.0, 8.0]])), ("covering", covering(rows))):
        settings: dict[str, Any] = {"rule": KHA(init=init)}
        if as_printed:
            gain, _ = tune_online(_error_of(rows, 1, NARROW, init), _FIRST_GUESS)
            settings = printed_online(gain, init)
        model = OnlineKernelPCA(1, random_state=0, **NARROW, **settings)
        model.fit(rows)
        yield start, model, compare("Gaussian, σ = 0.1", form, model, rows, **NARROW)


def plan(request: Request) -> list[Part]:
    """Plan convergence, initial values, and one part per rotating shape."""
    settings = request.settings
    return [
        Part("convergence", partial(_converge, settings["sizes"], settings["components"])),
        Part("starts", partial(_starts, settings["start_rows"])),
        *(
            Part(
                f"turning {shape}",
                partial(_track, shape, settings["turning_rows"], settings["period"], request.seed),
            )
            for shape in ("ellipse", "parabola")
        ),
        Part("turning, fixed gain",
             partial(_track_fixed_gain, settings["slow_rows"], settings["turning_rows"],
                     settings["period"], request.seed)),
    ]  # fmt: skip


def _converge(sizes: Sequence[int], n_components: int) -> Findings:
    convergences: list[Convergence] = []
    gains: Rows = []
    for printed, tried in converge_as_printed(tuple(sizes), n_components):
        convergences += printed
        gains += tried
    convergences += converge(tuple(sizes), n_components)
    rows: Rows = [
        {"kernel": one.kernel, "form": one.form, "rows": one.n, "last": one.n == max(sizes),
         "held": one.held, "least_correlation": min(one.correlations)}
        for one in convergences
    ]  # fmt: skip
    return Findings({"convergence": rows, "gains": gains})


def _starts(n_rows: int) -> Findings:
    X = parabola(n_rows)
    models: dict[str, Any] = {"batch": KernelPCA(1, random_state=0, **NARROW).fit(X)}
    rows: Rows = []
    for as_printed in (True, False):
        for start, model, found in starts_of_figures_6_and_7(X, as_printed=as_printed):
            models[f"{found.form}, {start} start"] = model
            rows.append(
                {"start": start, "form": found.form, "held": found.held,
                 "correlation": found.correlations[0]}
            )  # fmt: skip
    return Findings({"starts": rows}, surfaces(X, models, 1))


def _track(shape: str, n_rows: int, period: float, seed: int) -> Findings:
    warm_up = n_rows // 3
    lags: Rows = []
    curves: Rows = []
    tracks, gains = track(Rotation(shape, n_rows, period, seed))
    for one in tracks:
        names = {"shape": shape, "gain": one.name}
        lags.append({**names, "largest_angle": one.worst_after(warm_up)})
        curves += [
            {**names, "rows": int(time), "angle": float(angle)}
            for time, angle in zip(one.times, one.angles, strict=True)
        ]
    return Findings({"tracking": lags, "angles": curves, "tracking_gains": gains})


def _track_fixed_gain(slow_rows: int, rows: int, period: float, seed: int) -> Findings:
    """Track distributions that turn slowly, or about their own mean, with a fixed gain."""
    runs = [("slowly", shape, slow_rows, _SLOW_PERIOD) for shape in ("ellipse", "parabola")]
    runs += [("about its own mean", shape, rows, period)
             for shape in ("ellipse", "parabola about its own mean")]  # fmt: skip
    table: Rows = []
    for turning, shape, number, turn in runs:
        track = track_angles(
            Rotation(shape, number, turn, seed), turning, every=number // 60,
            **KERNELS["Gaussian, σ = 1"], **printed_online(TRACKING_GAIN),
        )  # fmt: skip
        lag = track.worst_after(number // 3)
        table.append({"turning": turning, "shape": shape, "period": turn, "largest_angle": lag})
    return Findings({"slow_tracking": table})
