"""Kernel Hebbian solvers: KHA, KHA/t, KHA/et and KHA-SMD (Kim 2003; Günter 2006)."""

from __future__ import annotations

import inspect
from dataclasses import replace
from numbers import Integral
from typing import ClassVar, Literal

import numpy as np

from ikpca.errors import (
    FLAG,
    Choice,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
    is_auto,
)
from ikpca.gains import Constant, Gain, InverseTime, MetaDescent, ReciprocalEigenvalues
from ikpca.gram import CenteredGram, GramSource, center_gram
from ikpca.gram.resources import Workers
from ikpca.kernels import Floats
from ikpca.solvers.base import (
    EigenSolution,
    Outcome,
    RunSettings,
    Solver,
    run_passes,
)
from ikpca.solvers.kha_pass import LARGE_BLOCK_SIZE, N_PROBES, CoefficientStore, HebbianPasses
from ikpca.solvers.landmarks import (
    LANDMARK_KINDS,
    LandmarkStart,
    choose_landmarks,
    uniform_landmarks,
)
from ikpca.solvers.problem import Plan, Problem, centered

METHODS = ("kha", "kha/t", "kha/et", "kha-smd")
#: Non-zero coefficients per component of a sparse start.
SPARSE_NONZEROS = 32
#: Landmarks of a start from landmarks; at most a quarter of the rows, to stay cheap.
N_LANDMARKS = 256
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
    "change_tol": Number("must not be negative", "pass None", low=0, allowed=(None,)),
}  # fmt: skip


class KHA(Solver):
    """Kernel Hebbian algorithm (Kim 2003) and its variants (Günter 2006).

    Parameters
    ----------
    method : {"kha", "kha/t", "kha/et", "kha-smd"}, default="kha/et"
        Gain: constant, ∝ 1/t, ∝ 1/(λ_i t), or the latter adapted by stochastic meta-descent.
    gain : "auto", float or gain object, default="auto"
        "auto" needs no tuning. A number is η0 of the papers. An object from :mod:`ikpca.gains`
        replaces the gain of the method.
    meta_gain : "auto" or float, default="auto"
        Meta-gain µ of KHA-SMD.
    meta_decay : float, default=0.99
        Decay ξ of KHA-SMD.
    log_gain_init : "auto" or float, default="auto"
        Initial log-gain ρ0 of KHA-SMD; 1 in the paper. "auto" is 1 for automatic gains from a
        random start, and 0 otherwise.
    clock : {"pattern", "pass"}, default="pattern"
        1/t gains decay at every pattern, or once per pass as in Günter 2006.
    init : {"auto", "landmarks", "pivoted", "random", "sparse"} or ndarray, default="auto"
        Initialization of A. "auto": landmarks with automatic gains, random otherwise. "landmarks":
        rows drawn uniformly. "pivoted": rows drawn by randomly pivoted Cholesky, for data with a
        few outlying rows. An array of shape (n_components, n_samples) sets A, for example to the
        initialization of the papers. :class:`ikpca.HebbianPCA` and :class:`ikpca.OnlineKernelPCA`
        have initializations of their own.
    rayleigh_ritz : bool, default=True
        If True, end every pass with a Rayleigh–Ritz step, unlike the papers.
    backoff : bool, default=True
        If True, undo a pass that diverges and continue with smaller gains. If False, the fit ends
        with the last finished pass, as a run of the papers; needs a gain of your own.
    change_tol : float, default=None
        Stopping criterion of Kim 2003: stop when a pass changes the components by at most this
        squared distance.

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
        change_tol: float | None = None,
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

    def check(self, n_components: float | None) -> None:
        """Validate the options."""
        self.check_options(("auto", *LANDMARK_KINDS, "random", "sparse"))
        if not isinstance(n_components, Integral):
            raise invalid_parameter(
                "n_components",
                n_components,
                f"eigen_solver={self.method!r} needs an integer",
                "pass an integer, or eigen_solver='dense'",
            )

    def check_options(self, inits: tuple[str, ...], unused: tuple[str, ...] = ()) -> None:
        """Validate the options; names in ``unused``, or without effect, must have their default.

        Parameters
        ----------
        inits : tuple of str
            Names of initializations.
        unused : tuple of str
            Options that the estimator does not use.
        """
        check_parameters(self, _RULES)
        if isinstance(self.init, str):
            Choice(inits).check("init", self.init)
        self._check_unused(unused)

    def _check_unused(self, unused: tuple[str, ...]) -> None:
        own_gain = isinstance(self.gain, Gain)
        if own_gain or self.method != "kha-smd":
            unused += ("meta_gain", "meta_decay", "log_gain_init")
        if not own_gain and self.method == "kha":
            unused += ("clock",)
        if self.automatic:
            unused += ("backoff",)
        for name in unused:
            value = getattr(self, name)
            default = inspect.signature(KHA).parameters[name].default
            if not isinstance(value, type(default)) or value != default:
                gain = "a gain object" if own_gain else f"method={self.method!r}"
                raise invalid_parameter(
                    name, value, f"has no effect with {gain} here", "leave it out"
                )

    def initial_array(self, shape: tuple[int, int]) -> Floats | None:
        """Validate and copy ``init`` if it is an array; None if it is a name."""
        if isinstance(self.init, str):
            return None
        try:
            array = np.array(self.init, dtype=np.float64)
        except (TypeError, ValueError):
            raise invalid_parameter(
                "init", self.init, "is not an array of numbers", "pass an array or 'auto'"
            ) from None
        if array.shape != shape:
            raise invalid_parameter(
                "init",
                f"array of shape {array.shape}",
                f"must have shape {shape}",
                "one row per component",
            )
        if not np.isfinite(array).all():
            raise invalid_parameter("init", "array", "holds NaN or infinite values", "replace them")
        return array

    def plan(self, problem: Problem, n_components: int) -> Plan:
        """Plan the memory of A, AK', companions, marks, work space, strips and landmarks."""
        columns = 20 * n_components + 4 * N_PROBES + 2 * LARGE_BLOCK_SIZE
        return Plan(columns * problem.row_bytes, keep="matrix")

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`."""
        assert n_components is not None
        number = min(int(n_components), problem.n_samples)
        if problem.start is not None:
            warm = warm_start_coefficients(problem.start, number, problem.seed)
            solver = KHA(**{**self.get_params(), "init": warm})
            return solver.solve(replace(problem, start=None), number, settings)
        array = self.initial_array((number, problem.n_samples))
        saved = None if settings.saved is None else settings.saved.progress
        plan = self.plan(problem, number) if saved is None else saved.plan
        with problem.open(plan) as (source, workers):
            if saved is None:
                store = self._initial_store(source, number, array, problem.seed, workers)
            else:
                gram = CenteredGram(source, saved.means, workers)
                store = CoefficientStore(gram, saved.rows, saved.products)
            if not store.gram.has_variance:
                zeros = np.zeros_like(store.rows[:number])
                solution = EigenSolution.from_components(zeros, zeros, zeros[:, 0], store.gram)
                return replace(solution, outcome=Outcome.CONVERGED)
            plan = replace(plan, side=source.side)
            passes = HebbianPasses(self, store, number, problem.seed, settings.tol, plan)
            state = passes.start() if saved is None else saved.state
            settings = replace(settings, change_tol=self.change_tol)
            state, outcome, records = run_passes(passes, state, settings)
            try:
                solution = passes.solution(state, exact=outcome is not Outcome.INTERRUPTED)
            except KeyboardInterrupt:
                outcome, solution = Outcome.INTERRUPTED, passes.solution(state)
            if outcome is not Outcome.INTERRUPTED and _is_indefinite(source, problem.seed):
                outcome = Outcome.INDEFINITE
            return replace(solution, outcome=outcome, records=records)

    def _initial_store(
        self, source: GramSource, number: int, array: Floats | None, seed: int, workers: Workers
    ) -> CoefficientStore:
        """Center K, and return A over its companion with their products, from one pass over K."""
        if array is None and self.from_landmarks:
            n_landmarks = max(min(N_LANDMARKS, source.n_samples // 4), 4 * number)
            chosen = choose_landmarks(str(self._init), source, n_landmarks, seed)
            start = LandmarkStart.of(source, number, chosen, workers)
            gram = center_gram(source, None, workers)[0]
            A, AK = start.coefficients(), start.projections
        else:
            if array is None:
                array = initial_coefficients(str(self._init), number, source.n_samples, seed)
            A = array.astype(source.dtype)
            gram, KA = center_gram(source, A.T, workers)
            AK = KA.T
        companions = np.zeros_like(A) if self.has_companion else A[:0]
        return CoefficientStore(gram, np.vstack([A, companions]), np.vstack([AK, companions]))

    @property
    def _init(self) -> Floats | str:
        """Initialization: "auto" is landmarks for automatic gains, otherwise random."""
        if is_auto(self.init):
            return "landmarks" if self.automatic else "random"
        return self.init

    @property
    def from_landmarks(self) -> bool:
        """True if the run starts from landmarks."""
        return isinstance(self._init, str) and self._init in LANDMARK_KINDS

    @property
    def has_companion(self) -> bool:
        """True if the gain needs companion rows B; known before the gain is built."""
        if isinstance(self.gain, Gain):
            return isinstance(self.gain, MetaDescent)
        return self.method == "kha-smd"

    def gain_for(self, kappa: float) -> Gain:
        """Return the gain for κ = mean k'(x, x); NaN if κ is not known and not needed."""
        if isinstance(self.gain, Gain):
            return self.gain
        # Rows without variance do not move the components, whatever the gain.
        kappa = kappa if kappa > 0 else 1.0
        step = self._automatic_step(kappa) if isinstance(self.gain, str) else float(self.gain)
        if self.method == "kha":
            return Constant(step)
        kha_t = step * InverseTime()
        if self.method == "kha/t":
            return kha_t
        kha_et = kha_t * ReciprocalEigenvalues(with_norm=not self.automatic)
        return kha_et if self.method == "kha/et" else self._meta_descent(kha_et, kappa)

    def _automatic_step(self, kappa: float) -> float:
        steps = _STEPS_FROM_LANDMARKS if self.from_landmarks else _STEPS
        # The others are divided by λ.
        return steps[self.method] / (kappa if self.method in ("kha", "kha/t") else 1.0)

    def _meta_descent(self, gain: Gain, kappa: float) -> MetaDescent:
        rate, log_gain = self.meta_gain, self.log_gain_init
        if isinstance(rate, str):
            # Scaled by κ like the inner product it multiplies.
            rate = (_META_RATE if self.automatic else _META_RATE_MANUAL) / kappa
        if isinstance(log_gain, str):
            is_random = isinstance(self._init, str) and not self.from_landmarks
            log_gain = 1.0 if self.automatic and is_random else 0.0
        bounds = (_MAX_LOG_STEP, _MAX_LOG_GAIN) if self.automatic else (np.inf, np.inf)
        return MetaDescent(gain, float(rate), self.meta_decay, float(log_gain), *bounds)

    def stream_gain(self, step: float) -> Gain:
        """Return the gain of a stream, whose κ is not known; ``step`` is h_i λ_i at t = 0."""
        if isinstance(self.gain, Gain):
            return self.gain
        if self.automatic and self.method == "kha/et":
            return step * InverseTime() * ReciprocalEigenvalues(with_norm=False)
        for name in ("gain", "meta_gain") if self.has_companion else ("gain",):
            if isinstance(getattr(self, name), str):
                raise invalid_parameter(
                    name,
                    "auto",
                    f"method={self.method!r} needs a number in a stream",
                    "pass 0.05, or method 'kha/et'",
                )
        return self.gain_for(np.nan)


def _is_indefinite(source: GramSource, seed: int) -> bool:
    """Return True if the kernel matrix of a sample has significant negative eigenvalues."""
    sample = uniform_landmarks(source.n_samples, _SAMPLE_ROWS, seed)
    K = source.submatrix(sample, sample).astype(np.float64)
    if not np.isfinite(K).all():
        return False
    eigenvalues = np.linalg.eigvalsh(centered(K))
    return bool(eigenvalues[0] < -_NEGATIVE * np.abs(eigenvalues).max())


def initial_coefficients(kind: str, n_components: int, n_samples: int, seed: int) -> Floats:
    """Draw A ~ N(0, 1/(rl)) (Günter 2006, algorithm 1), or with few non-zeros (section 4).

    The variance of the sparse start gives its components the same length in feature space. The
    solver divides both by √κ, κ = mean k'(x, x), so that ‖w_i‖² ≈ 1/r for any kernel.
    """
    rng = np.random.default_rng([seed, 0])
    shape = (n_components, n_samples)
    if kind == "random":
        return rng.normal(scale=np.sqrt(1 / (n_components * n_samples)), size=shape)
    A = np.zeros(shape)
    nonzeros = min(SPARSE_NONZEROS, n_samples)
    for row in A:
        chosen = rng.choice(n_samples, size=nonzeros, replace=False)
        row[chosen] = rng.normal(scale=np.sqrt(1 / (n_components * nonzeros)), size=nonzeros)
    return A


def warm_start_coefficients(projections: Floats, n_components: int, seed: int) -> Floats:
    """Return A from projections Y (l, r) of another model: A_i = Y_i/λ_i with λ_i = ‖Y_i‖².

    Components that the other model does not have start at random.
    """
    eigenvalues = np.square(projections).sum(axis=0, dtype=np.float64)
    positive = eigenvalues > 0
    A = (projections[:, positive] / eigenvalues[positive]).T[:n_components]
    random = initial_coefficients("random", n_components, len(projections), seed)
    return np.vstack([A, random[len(A) :]])
