"""Kernel Hebbian solvers: KHA, KHA/t, KHA/et and KHA-SMD (Kim 2003; Günter 2006), and gains."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import reduce
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from ikpca.errors import (
    FLAG,
    Choice,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
    is_auto,
)
from ikpca.gram import CenteredGram, GramSource, center_gram
from ikpca.gram.centering import Centering
from ikpca.gram.resources import Workers
from ikpca.kernels import Floats
from ikpca.solvers.base import EigenSolution, Outcome, RunSettings, Solver, run_passes
from ikpca.solvers.landmarks import LandmarkStart, uniform_landmarks
from ikpca.solvers.problem import Plan, Problem, centered
from ikpca.solvers.rayleigh_ritz import Certificate

METHODS = ("kha", "kha/t", "kha/et", "kha-smd")
#: Landmarks of a start from landmarks; at most a quarter of the rows, to stay cheap.
N_LANDMARKS = 256
#: Columns of A over l rows that a fit needs at most: those of random vectors of a certificate, of
#: two strips, and per component of A, AK', their companions and work space.
_FIXED_COLUMNS, _COLUMNS_PER_COMPONENT = 576, 20
#: Constants of automatic gains, chosen by ``benchmarks/gains.py``: η0 κ for KHA and KHA/t, h_i λ_i
#: at t = 0 for KHA/et and KHA-SMD, from an orthonormal random start and from landmarks, which are
#: closer to the solution.
_STEPS = {"kha": 0.05, "kha/t": 0.5, "kha/et": 7.0, "kha-smd": 7.0}
_STEPS_FROM_LANDMARKS = {"kha": 0.05, "kha/t": 0.1, "kha/et": 5.0, "kha-smd": 5.0}
#: µ κ for KHA-SMD with automatic gains, and with a gain of the user.
_META_RATE, _META_RATE_MANUAL = 0.4, 0.05
#: Bounds on |Δρ| and |ρ| with automatic gains.
_MAX_LOG_STEP, _MAX_LOG_GAIN = 0.1, 4.0
#: Rows of the sample that shows that a kernel is indefinite, and least relative size of a negative
#: eigenvalue, as in scikit-learn.
_SAMPLE_ROWS, _NEGATIVE = 256, 1e-5


class Gain(ABC):
    """Gain per step and component; gains have no state, adaptation takes place in the sweep.

    Gains can be multiplied by numbers and by gains.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.solvers import InverseTime, ReciprocalEigenvalues
    >>> kha_et = 0.05 * InverseTime() * ReciprocalEigenvalues()
    >>> kha_et.gains(np.array([0.0, 10.0]), 10, np.array([4.0, 3.0]))
    array([[0.0625    , 0.08333333],
           [0.03125   , 0.04166667]])
    """

    @abstractmethod
    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return η, of a shape that broadcasts to (steps, components).

        Parameters
        ----------
        times : ndarray of shape (steps,)
            Times t: rows seen before each step.
        n_samples : int
            Number l of rows.
        eigenvalues : ndarray of shape (components,)
            Estimates λ at the start of the pass.
        """

    def __mul__(self, other: Gain | float) -> Product:
        return Product((self, other))

    def __rmul__(self, other: float) -> Product:
        return Product((other, self))


@dataclass(frozen=True)
class Product(Gain):
    """Product of gains and positive numbers, element by element."""

    factors: tuple[Gain | float, ...]

    def __post_init__(self) -> None:
        for factor in self.factors:
            if not isinstance(factor, Gain):
                rule = "must be a positive, finite number or a gain"
                Number(rule, "pass gain='auto'", low=0, open_low=True).check("gain", factor)

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return the product of all factors."""
        values = (
            factor.gains(times, n_samples, eigenvalues)
            if isinstance(factor, Gain)
            else float(factor)
            for factor in self.factors
        )
        return reduce(np.multiply, values, np.ones((1, 1)))


@dataclass(frozen=True)
class InverseTime(Gain):
    """Search-then-converge schedule τ/(t + τ), with τ = l by default as in the papers.

    Parameters
    ----------
    tau : float, optional
        τ, positive, in rows; the number of samples by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.solvers import InverseTime
    >>> InverseTime().gains(np.array([0.0, 100.0]), 100, np.ones(1)).ravel()
    array([1. , 0.5])
    """

    tau: float | None = None

    def __post_init__(self) -> None:
        if self.tau is not None:
            rule = "must be positive and finite"
            Number(rule, "pass None for l", low=0, open_low=True).check("tau", self.tau)

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return τ/(t + τ), the same for every component."""
        tau = n_samples if self.tau is None else self.tau
        return (tau / (times + tau))[:, None]


@dataclass(frozen=True)
class ReciprocalEigenvalues(Gain):
    """Gains ‖λ‖/λ_i (Günter 2006, eq. 12), the "e" of KHA/et, or 1/λ_i without the norm.

    Without ‖λ‖, the factor that multiplies them does not depend on the scale of the kernel.

    Parameters
    ----------
    with_norm : bool, default=True
        Multiply by ‖λ‖, as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.solvers import ReciprocalEigenvalues
    >>> ReciprocalEigenvalues(with_norm=False).gains(np.zeros(1), 10, np.array([4.0, 2.0]))
    array([[0.25, 0.5 ]])
    """

    with_norm: bool = field(default=True, kw_only=True)

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return the reciprocals, the same for every step.

        Eigenvalues are clipped below at the rounding error of the largest, as the gain of a
        component without variance would be infinite.
        """
        largest = float(np.max(eigenvalues, initial=0.0)) or 1.0
        smallest = max(np.finfo(np.float64).eps * largest, np.finfo(np.float64).tiny)
        clipped = np.maximum(eigenvalues, smallest)
        norm = np.linalg.norm(clipped) if self.with_norm else 1.0
        return (norm / clipped)[None, :]


_RULES: ParameterRules = {
    "method": Choice(METHODS),
    "gain": Number("must be 'auto', a positive number or a gain object", "pass gain='auto'",
                   low=0, open_low=True, allowed=("auto", Gain)),
    "meta_gain": Number("must be 'auto' or not negative", "pass meta_gain='auto'",
                        low=0, allowed=("auto",)),
    "meta_decay": Number("must lie in [0, 1]", "the paper uses 0.99", low=0, high=1),
    "log_gain_init": Number("must be 'auto' or finite", "pass 'auto'", allowed=("auto",)),
    "clock": Choice(("pattern", "pass")),
    "rayleigh_ritz": FLAG,
    "backoff": FLAG,
    "change_tol": Number("must not be negative", "pass 0", low=0),
}  # fmt: skip


class KHA(Solver):
    """Kernel Hebbian algorithm (Kim 2003) and its variants (Günter 2006).

    Parameters
    ----------
    method : {"kha", "kha/t", "kha/et", "kha-smd"}, default="kha/et"
        Gain: constant, ∝ 1/t, ∝ 1/(λ_i t), or the latter adapted by stochastic meta-descent.
    gain : "auto", float or gain object, default="auto"
        "auto" needs no tuning. A number is η0 of the papers. An object such as
        :class:`InverseTime` replaces the gain of the method, which "kha-smd" adapts.
    meta_gain : "auto" or float, default="auto"
        Meta-gain µ of KHA-SMD.
    meta_decay : float, default=0.99
        Decay ξ of KHA-SMD.
    log_gain_init : "auto" or float, default="auto"
        Initial log-gain ρ0 of KHA-SMD; 1 in the paper. "auto" is 1 for automatic gains from a
        random start, and 0 otherwise.
    clock : {"pattern", "pass"}, default="pattern"
        1/t gains decay at every pattern, or once per pass as in Günter 2006.
    init : {"auto", "landmarks", "random"} or ndarray, default="auto"
        Initialization of A. "auto": landmarks with automatic gains, random otherwise. "landmarks":
        rows drawn uniformly. An array of shape (n_components, n_samples) sets A, for example to the
        initialization of the papers. :class:`ikpca.HebbianPCA` and :class:`ikpca.OnlineKernelPCA`
        have initializations of their own.
    rayleigh_ritz : bool, default=True
        If True, end every pass with a Rayleigh–Ritz step, unlike the papers.
    backoff : bool, default=True
        If True, undo a pass that diverges and continue with smaller gains. If False, the fit ends
        with the last finished pass, as a run of the papers; needs a gain of your own.
    change_tol : float, default=0
        Stopping criterion of Kim 2003: the fit ends when a pass changes the components by less than
        this squared distance in feature space.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import KernelPCA
    >>> from ikpca.solvers import KHA
    >>> X = load_digits().data / 16
    >>> solver = KHA("kha-smd", gain=0.1, init="random", rayleigh_ritz=False)
    >>> model = KernelPCA(4, kernel="rbf", gamma=0.02, eigen_solver=solver, max_iter=3)
    >>> model.fit(X).n_iter_
    3
    """

    default_max_iter: ClassVar[int] = 50

    def __init__(
        self,
        method: str = "kha/et",
        *,
        gain: float | Gain | Literal["auto"] = "auto",
        meta_gain: float | Literal["auto"] = "auto",
        meta_decay: float = 0.99,
        log_gain_init: float | Literal["auto"] = "auto",
        clock: Literal["pattern", "pass"] = "pattern",
        init: Floats | str = "auto",
        rayleigh_ritz: bool = True,
        backoff: bool = True,
        change_tol: float = 0,
    ) -> None:
        self.method = method
        self.gain = gain
        self.meta_gain = meta_gain
        self.meta_decay = meta_decay
        self.log_gain_init = log_gain_init
        self.clock = clock
        self.init = init
        self.rayleigh_ritz = rayleigh_ritz
        self.backoff = backoff
        self.change_tol = change_tol

    @property
    def name(self) -> str:
        """Name in progress lines and messages."""
        return self.method

    @property
    def automatic(self) -> bool:
        """True if the library chooses the gain, and with it the safety rules."""
        return isinstance(self.gain, str)

    @property
    def has_companion(self) -> bool:
        """True for meta-descent, which needs companion rows B of A."""
        return self.method == "kha-smd"

    def check(self, n_components: float | None) -> None:
        """Validate the options."""
        self.check_options(("auto", "landmarks", "random"))
        if not isinstance(n_components, Integral):
            raise invalid_parameter(
                "n_components",
                n_components,
                f"eigen_solver={self.method!r} needs an integer",
                "pass an integer, or eigen_solver='dense'",
            )

    def check_options(self, inits: tuple[str, ...], unused: tuple[str, ...] = ()) -> None:
        """Validate the options; names in ``unused``, or without effect, must have their default.

        ``inits`` are names of initializations, ``unused`` options that the estimator does not use.
        """
        check_parameters(self, _RULES)
        if isinstance(self.init, str):
            Choice(inits).check("init", self.init)
        own_gain = isinstance(self.gain, Gain)
        if not self.has_companion:
            unused += ("meta_gain", "meta_decay", "log_gain_init")
        if not own_gain and self.method == "kha":
            unused += ("clock",)
        if self.automatic:
            unused += ("backoff",)
        for name in unused:
            value = getattr(self, name)
            default = inspect.signature(KHA).parameters[name].default
            if not isinstance(value, type(default)) or value != default:
                rule = f"has no effect with method={self.method!r} here"
                raise invalid_parameter(name, value, rule, "leave it out")

    def initial_array(self, shape: tuple[int, int]) -> Floats | None:
        """Validate and copy ``init`` if it is an array; None if it is a name."""
        if isinstance(self.init, str):
            return None
        try:
            array = np.array(self.init, dtype=np.float64)
        except (TypeError, ValueError):
            rule = "is not an array of numbers"
            raise invalid_parameter("init", self.init, rule, "pass an array or 'auto'") from None
        if array.shape != shape:
            value, rule = f"array of shape {array.shape}", f"must have shape {shape}"
            raise invalid_parameter("init", value, rule, "one row per component")
        if not np.isfinite(array).all():
            raise invalid_parameter("init", "array", "holds NaN or infinite values", "replace them")
        return array

    def plan(self, problem: Problem, n_components: int) -> Plan:
        """Plan the memory of components, work space and strips."""
        columns = _COLUMNS_PER_COMPONENT * n_components + _FIXED_COLUMNS
        return Plan(columns * problem.row_bytes, keep="matrix")

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`."""
        # Imported here because importing it starts the compiler.
        from ikpca.solvers.kha_pass import HebbianPasses

        assert n_components is not None
        number = min(int(n_components), problem.n_samples)
        if problem.start is not None:
            warm = warm_start_coefficients(problem.start, number, problem.seed)
            solver = clone(self).set_params(init=warm)
            return solver.solve(replace(problem, start=None), number, settings)
        array = self.initial_array((number, problem.n_samples))
        saved: Any = None if settings.saved is None else settings.saved.progress
        plan = self.plan(problem, number) if saved is None else saved.plan
        with problem.open(plan) as (source, workers):
            if saved is None:
                gram, A, AK = self._initial_components(source, number, array, problem.seed, workers)
            else:
                gram = CenteredGram(source, saved.centering, workers)
            if not gram.has_variance:
                zeros = np.zeros((number, gram.n_samples), dtype=gram.dtype)
                solution = EigenSolution.from_components(zeros, zeros, zeros[:, 0], gram)
                return replace(solution, outcome=Outcome.CONVERGED)
            passes = HebbianPasses(self, gram, number, problem.seed, settings.tol)
            state: HebbianState = saved
            if saved is None:
                state = passes.start(A, AK, replace(plan, side=source.side))
                del A, AK
            state, outcome, records = run_passes(passes, state, settings)
            solution = passes.solution(state)
            try:
                if outcome is not Outcome.INTERRUPTED:
                    solution = replace(solution, certificate=passes.exact_certificate(state))
                    outcome = (
                        Outcome.INDEFINITE if _is_indefinite(source, problem.seed) else outcome
                    )
            except KeyboardInterrupt:
                outcome = Outcome.INTERRUPTED
            return replace(solution, outcome=outcome, records=records)

    def _initial_components(
        self, source: GramSource, number: int, array: Floats | None, seed: int, workers: Workers
    ) -> tuple[CenteredGram, Floats, Floats]:
        """Center K, and return A with AK', from one pass over K."""
        if array is None and self.from_landmarks:
            n_landmarks = max(min(N_LANDMARKS, source.n_samples // 4), 4 * number)
            chosen = uniform_landmarks(source.n_samples, n_landmarks, seed)
            start = LandmarkStart(source, number, chosen, workers)
            return center_gram(source, None, workers)[0], start.coefficients(), start.projections
        if array is None:
            array = random_coefficients(number, source.n_samples, seed)
        A = array.astype(source.dtype)
        gram, KA = center_gram(source, A.T, workers)
        return gram, A, KA.T

    @property
    def _init(self) -> Floats | str:
        """Initialization: "auto" is landmarks for automatic gains, otherwise random."""
        if is_auto(self.init):
            return "landmarks" if self.automatic else "random"
        return self.init

    @property
    def from_landmarks(self) -> bool:
        """True if the run starts from landmarks."""
        return isinstance(self._init, str) and self._init == "landmarks"

    def gain_for(self, kappa: float) -> Gain:
        """Return the gain for κ = mean k'(x, x); NaN if κ is not known and not needed."""
        if isinstance(self.gain, Gain):
            return self.gain
        if isinstance(self.gain, str):
            steps = _STEPS_FROM_LANDMARKS if self.from_landmarks else _STEPS
            # The others are divided by λ.
            step = steps[self.method] / (kappa if self.method in ("kha", "kha/t") else 1.0)
        else:
            step = float(self.gain)
        if self.method == "kha":
            return Product((step,))
        kha_t = step * InverseTime()
        if self.method == "kha/t":
            return kha_t
        return kha_t * ReciprocalEigenvalues(with_norm=not self.automatic)

    def meta_options(self, kappa: float) -> tuple[float, float, float, float]:
        """Return µ, ξ and the bounds of Δρ and ρ, infinite in the paper, for a κ."""
        rate = self.meta_gain
        if isinstance(rate, str):
            # Scaled by κ like the inner product it multiplies.
            rate = (_META_RATE if self.automatic else _META_RATE_MANUAL) / kappa
        bounds = (_MAX_LOG_STEP, _MAX_LOG_GAIN) if self.automatic else (np.inf, np.inf)
        return float(rate), float(self.meta_decay), *bounds

    @property
    def initial_log_gain(self) -> float:
        """ρ0 of meta-descent; 0 without it."""
        if not self.has_companion:
            return 0.0
        if isinstance(self.log_gain_init, str):
            is_random = isinstance(self._init, str) and not self.from_landmarks
            return 1.0 if self.automatic and is_random else 0.0
        return float(self.log_gain_init)

    def stream_gain(self, step: float) -> Gain:
        """Return the gain of a stream, whose κ is not known; ``step`` is h_i λ_i at t = 0."""
        if self.automatic and self.method == "kha/et":
            return step * InverseTime() * ReciprocalEigenvalues(with_norm=False)
        if self.automatic:
            raise invalid_parameter(
                "gain",
                "auto",
                f"method={self.method!r} needs a number in a stream",
                "pass 0.05, or method 'kha/et'",
            )
        return self.gain_for(np.nan)


@dataclass(frozen=True, eq=False)
class HebbianState:
    """State between two passes.

    Arrays are replaced and never modified, so that a pass that diverges or is interrupted leaves
    the state as it was.
    """

    #: A, over its companion B if there is one, and their products with K'.
    rows: Floats
    products: Floats
    #: λ for the gains of the next pass, and ρ of meta-descent, zero without it.
    eigenvalues: Floats
    log_gains: Floats
    #: Σ of the Ritz values: the variance that the components capture.
    captured: float
    #: Smallest value so far of the largest eigenvalue of AK'Aᵀ, a bound that prevents components
    #: that have reached unit length from growing again.
    length: float
    plan: Plan
    #: Product of all back-offs so far.
    gain_scale: float = 1.0
    passes: int = 0
    #: None before the first pass.
    certificate: Certificate | None = None
    #: Set in checkpoints only.
    centering: Centering | None = None


def _is_indefinite(source: GramSource, seed: int) -> bool:
    """Return True if the kernel matrix of a sample has significant negative eigenvalues."""
    sample = uniform_landmarks(source.n_samples, _SAMPLE_ROWS, seed)
    K = source.submatrix(sample, sample).astype(np.float64)
    if not np.isfinite(K).all():
        return False
    eigenvalues = np.linalg.eigvalsh(centered(K))
    return bool(eigenvalues[0] < -_NEGATIVE * np.abs(eigenvalues).max())


def random_coefficients(n_components: int, n_samples: int, seed: int) -> Floats:
    """Draw A ~ N(0, 1/(rl)) (Günter 2006, algorithm 1).

    The passes divide it by √κ, κ = mean k'(x, x), so that ‖w_i‖² ≈ 1/r for any kernel.
    """
    shape = (n_components, n_samples)
    return np.random.default_rng([seed, 0]).normal(scale=np.sqrt(1 / np.prod(shape)), size=shape)


def warm_start_coefficients(projections: Floats, n_components: int, seed: int) -> Floats:
    """Return A from projections Y (l, r) of another model: A_i = Y_i/λ_i with λ_i = ‖Y_i‖².

    Components that the other model does not have start at random.
    """
    eigenvalues = np.square(projections).sum(axis=0, dtype=np.float64)
    positive = eigenvalues > 0
    A = (projections[:, positive] / eigenvalues[positive]).T[:n_components]
    random = random_coefficients(n_components, len(projections), seed)
    return np.vstack([A, random[len(A) :]])
