"""Passes of the Hebbian solvers over all patterns, and the compiled update of a block.

A step multiplies A from the left by an r×r matrix and adds to one column. So over a block P

    A ← T A + C E_P,        AK' ← T AK' + C K'[P, :],

and T, C follow from Y = (AK')[:, P] and G = K'[P, P] alone. The notation of the compiled functions
is that of the papers; ``kha_reference`` is their oracle. Importing this module starts the compiler,
so import it on use.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from ikpca.errors import invalid_parameter
from ikpca.gram import CenteredGram, tile_slices
from ikpca.kernels import Floats, Indices
from ikpca.solvers.base import EigenSolution, Outcome, PassRecord
from ikpca.solvers.kha import HebbianState
from ikpca.solvers.problem import Plan
from ikpca.solvers.rayleigh_ritz import (
    Certificate,
    certify,
    excess_error,
    inner_in_double,
    rayleigh_ritz,
    relative_residuals,
)

if TYPE_CHECKING:
    from ikpca.solvers.kha import KHA

#: Patterns per sweep, and more of them from so many rows on, where the product over l columns takes
#: longer than the sweep; without effect on the result.
BLOCK_SIZE, LARGE_BLOCK_SIZE, _MANY_ROWS = 128, 256, 20_000
#: Factors of the gains after a pass that diverged: of automatic gains, and of a user's. After so
#: many of them the gain underflows.
_BACKOFF_AUTOMATIC, _BACKOFF_MANUAL, _MAX_RETRIES = 0.25, 0.5, 100
#: max |AK'Aᵀ − I| above which a Rayleigh–Ritz step is repeated.
_MAX_DEFECT = 1e-3
#: Rows up to which every pass is certified by products with K', and the rows that are sampled for
#: the residuals of larger problems, whose products would cost half a pass each.
_CERTIFIED_ROWS, _SAMPLED_ROWS = 1024, 256
#: Random vectors that search the complement of the components for larger eigenvalues.
_N_PROBES = 16


class _Diverged(Exception):
    """A step left the unit ball or overflowed; the pass must be undone."""


class HebbianPasses:
    """Passes over all patterns: sweeps of blocks, then a Rayleigh–Ritz step.

    Automatic gains are capped before every step, and a pass that loses variance is undone. With a
    gain of the user, the steps are those of the papers: a pass in which the components leave the
    unit ball is undone and repeated with a smaller gain, or without back-off ends the run.

    Parameters
    ----------
    solver : KHA
        Method, gain and options.
    gram : CenteredGram
    n_components : int
    seed : int
        Seed of the permutations.
    tol : float
        Residuals are computed exactly before they are reported to be this small.
    """

    def __init__(
        self, solver: KHA, gram: CenteredGram, n_components: int, seed: int, tol: float
    ) -> None:
        self._solver, self._gram, self._r = solver, gram, n_components
        self._seed, self._tol = seed, tol
        self._gain = solver.gain_for(gram.mean_diagonal)
        self._is_repeated = solver.backoff and not solver.automatic
        self._eps = float(np.finfo(gram.dtype).eps)

    def start(self, A: Floats, AK: Floats, plan: Plan) -> HebbianState:
        """Return the state before the first pass, with scaled components."""
        solver, captured = self._solver, 0.0
        T: Floats = np.eye(self._r)
        is_array = not isinstance(solver.init, str)
        N, S = inner_products(A, AK), inner_products(AK, AK)
        if is_array and not np.diag(N).max() > 0:
            raise invalid_parameter(
                "init",
                "array",
                "is zero in feature space and would stay zero",
                "pass rows that are not constant, or init='random'",
            )
        if solver.automatic:
            ritz_values, T = self._ritz(N, S)
            captured = float(ritz_values.sum())
        elif not is_array and not solver.from_landmarks:
            T /= np.sqrt(self._gram.mean_diagonal)
        companions = np.zeros_like(A) if solver.has_companion else A[:0]
        state = HebbianState(
            np.vstack([A, companions]),
            np.vstack([AK, companions]),
            eigenvalues=np.zeros(self._r),
            log_gains=np.full(self._r, solver.initial_log_gain),
            captured=captured,
            length=np.inf,
            plan=plan,
        )
        state = self._rotate(state, T)
        return replace(state, eigenvalues=self._estimate(state), length=self._length(state))

    def step(self, state: HebbianState) -> tuple[HebbianState, PassRecord, Outcome | None]:
        """Run one pass; undo it and reduce the gain if it diverges."""
        started = time.perf_counter()
        after, notes = self._with_backoff(state)
        failed = len(notes) > _MAX_RETRIES or bool(notes and not self._solver.backoff)
        seconds = time.perf_counter() - started
        certificate = self._certificate(after)
        after = replace(after, certificate=certificate)
        note = ""
        if notes:
            count = f" ({len(notes)} times)" if len(notes) > 1 else ""
            note = ("stopped: " if failed else "") + notes[-1] + count
        n_samples, r = self._gram.n_samples, self._r
        last = self._gains(after, after.passes * n_samples - 1, 1)[0]
        change = _row_products(
            after.rows[:r] - state.rows[:r], after.products[:r] - state.products[:r]
        )
        record = PassRecord(
            number=after.passes,
            seconds=seconds,
            eigenvalues=self._spectrum(after),
            residuals=certificate.residuals,
            gains=last * np.exp(after.log_gains),
            entries=self._gram.entries,
            change=max(float(change.sum()), 0.0),
            note=note,
            orthonormality_defect=certificate.orthonormality_defect,
            excess_error=certificate.excess_error,
        )
        return after, record, Outcome.DIVERGED if failed else None

    def progress(self, state: HebbianState) -> HebbianState:
        """Return the checkpoint data after a pass."""
        return replace(state, means=self._gram.means)

    def solution(self, state: HebbianState) -> EigenSolution:
        """Return the components after a pass, with the certificate of its record."""
        eigenvalues = self._spectrum(state).astype(self._gram.dtype)
        solution = EigenSolution.from_components(*self._components(state), eigenvalues, self._gram)
        if state.certificate is None:
            return solution
        return replace(solution, certificate=state.certificate)

    def exact_certificate(self, state: HebbianState) -> Certificate:
        """Certify the components by two products with K'.

        The first product gives the residuals. A Rayleigh–Ritz step on A, the projections and two
        power iterations of random vectors gives estimates of the exact eigenvalues, and with them
        E_min: the residuals alone would not reveal a leading component that is missing.
        """
        gram, eps, eigenvalues = self._gram, self._eps, self._spectrum(state)
        A, Y = (part.astype(np.float64) for part in self._components(state))
        U = _unit_rows(Y)
        probes: Floats = np.random.default_rng([self._seed, 4]).normal(
            size=(gram.n_samples, _N_PROBES)
        )
        KU, probes = np.split(_multiply(gram, np.hstack([U.T, probes])), [len(U)])
        probes = _unit_rows(probes - (probes @ U.T) @ U)
        basis = np.vstack([A, U, probes])
        images = np.vstack([Y, KU, _multiply(gram, probes.T)])
        if not np.isfinite(images).all():
            # Kernel values that are not finite: the coefficients still give a bound.
            bound = relative_residuals(A, Y, eigenvalues)
            return certify(eigenvalues, bound, A @ Y.T, gram.squared_norm_estimate, eps=eps)
        N = basis @ images.T
        ritz_values = rayleigh_ritz((N + N.T) / 2, images @ images.T, drop=max(1e-12, 10 * eps))[0]
        leading, following = ritz_values[: len(Y)], float(ritz_values[len(Y)])
        certificate = certify(
            eigenvalues,
            relative_residuals(U, KU, eigenvalues),
            A @ Y.T,
            gram.squared_norm_estimate,
            following,
            of_projections=True,
            eps=eps,
        )
        # E² − E²_min = Σμ² − 2 tr(YK'Yᵀ) + ‖YYᵀ‖², less than which is rounding error.
        total = float(np.sum(leading * leading))
        captured = float(np.square(Y).sum(axis=1) @ np.einsum("il,il->i", U, KU))
        increase = total - 2 * captured + float(np.sum(np.square(Y @ Y.T)))
        if increase <= 100 * eps * total:
            return certificate
        estimate = excess_error(increase, total, gram.squared_norm_estimate, eps)
        return replace(certificate, excess_error=max(certificate.excess_error, estimate))

    def _certificate(self, state: HebbianState) -> Certificate:
        """Certify the components from a sample of rows, unless there are few or within tol."""
        gram, (A, AK), eigenvalues = self._gram, self._components(state), self._spectrum(state)
        if gram.n_samples > _CERTIFIED_ROWS:
            rng = np.random.default_rng([self._seed, 5, state.passes])
            sample = rng.permutation(gram.n_samples)[:_SAMPLED_ROWS]
            residuals = sampled_residuals(gram, AK, eigenvalues, sample)
            # NaN is not larger than tol either, and is replaced.
            if residuals.max(initial=0.0) > self._tol:
                return certify(
                    eigenvalues,
                    residuals,
                    inner_products(A, AK),
                    gram.squared_norm_estimate,
                    of_projections=True,
                    eps=self._eps,
                )
        return self.exact_certificate(state)

    def _components(self, state: HebbianState) -> tuple[Floats, Floats]:
        """Return A and AK', without companions."""
        return state.rows[: self._r], state.products[: self._r]

    def _spectrum(self, state: HebbianState) -> Floats:
        """Return the Rayleigh quotients ‖(AK')_i‖²/(A_i K' A_iᵀ) of the components."""
        A, AK = self._components(state)
        return _ratio(_row_products(AK, AK), _row_products(A, AK))

    def _estimate(self, state: HebbianState) -> Floats:
        """Return λ for the gains: for those of a user ‖(AK')_i‖/‖A_i‖ (Günter 2006, eq. 13)."""
        if self._solver.automatic:
            return self._spectrum(state)
        A, AK = self._components(state)
        return np.sqrt(_ratio(_row_products(AK, AK), _row_products(A, A)))

    def _length(self, state: HebbianState) -> float:
        """Return the largest eigenvalue of AK'Aᵀ: 1 for orthonormal components."""
        return float(np.linalg.eigvalsh(inner_products(*self._components(state)))[-1])

    def _ritz(self, N: Floats, S: Floats) -> tuple[Floats, Floats]:
        # Directions below this relative length are rounding noise.
        return rayleigh_ritz(N, S, drop=max(1e-12, 10 * self._eps))

    def _rotate(self, state: HebbianState, T: Floats) -> HebbianState:
        """Return TA, and companions TB."""
        T = (np.kron(np.eye(2), T) if self._solver.has_companion else T).astype(self._gram.dtype)
        return replace(state, rows=T @ state.rows, products=T @ state.products)

    def _with_backoff(self, state: HebbianState) -> tuple[HebbianState, list[str]]:
        notes: list[str] = []
        while len(notes) <= _MAX_RETRIES:
            try:
                return self._attempt(state), notes
            except _Diverged as error:
                state = self._back_off(state)
                notes.append(f"{error}; gain scaled to {state.gain_scale:.3g}")
            if not self._is_repeated:
                break
        # The undone pass counts, so that the clock advances.
        return replace(state, passes=state.passes + 1), notes

    def _back_off(self, state: HebbianState) -> HebbianState:
        """Set companions to zero, and reduce the gains."""
        rows, products, log_gains = state.rows.copy(), state.products.copy(), state.log_gains
        rows[self._r :], products[self._r :] = 0, 0
        if self._is_repeated:
            log_gains = np.minimum(log_gains, 0.0)
        factor = _BACKOFF_AUTOMATIC if self._solver.automatic else _BACKOFF_MANUAL
        scale = state.gain_scale * (factor if self._solver.backoff else 0)
        return replace(state, rows=rows, products=products, log_gains=log_gains, gain_scale=scale)

    def _attempt(self, state: HebbianState) -> HebbianState:
        """Run the sweeps of a pass, and the Rayleigh–Ritz step; AK' is updated block by block."""
        gram, solver, n_samples = self._gram, self._solver, self._gram.n_samples
        # The same order when a pass is repeated.
        order = np.random.default_rng([self._seed, 1, state.passes]).permutation(n_samples)
        size = BLOCK_SIZE if n_samples < _MANY_ROWS else LARGE_BLOCK_SIZE
        parts = list(tile_slices(n_samples, size))
        strips = gram.strips([order[part] for part in parts])
        eta = self._gains(state, state.passes * n_samples, n_samples)
        # AK'Aᵀ and AK'Bᵀ, which meta-descent updates.
        N = inner_products(state.rows, state.products)
        inner = N[: self._r, : self._r].copy(), N[: self._r, self._r :].copy()
        options = solver.meta_options(gram.mean_diagonal)
        products, log_gains, blocks = state.products, state.log_gains, []
        # Values beyond single precision become infinite, which is detected.
        with np.errstate(over="ignore", invalid="ignore"):
            for part, (strip, block) in zip(parts, strips, strict=True):
                Y = products[:, order[part]].astype(np.float64, order="C")
                G = block.astype(np.float64, order="C")
                arguments = (
                    Y,
                    G,
                    eta[part],
                    solver.automatic,
                    self._limits(np.diag(G), state.length),
                )
                if solver.has_companion:
                    T, C, failed, log_gains = meta_sweep(*arguments, *inner, log_gains, *options)
                else:
                    T, C, failed = plain_sweep(*arguments)
                if failed != OK or not (np.isfinite(T).all() and np.isfinite(C).all()):
                    raise _Diverged("a step left the unit ball")
                T, C = T.astype(gram.dtype), C.astype(gram.dtype)
                products = strip.update(T, products, C)
                blocks.append((T, C))
            rows = _transform(state.rows, order, blocks)
            return self._finish(replace(state, rows=rows, products=products, log_gains=log_gains))

    def _gains(self, state: HebbianState, seen: int, n_steps: int) -> Floats:
        """Return the gains of steps after ``seen`` patterns."""
        n_samples, times = self._gram.n_samples, np.arange(seen, seen + n_steps, dtype=np.float64)
        if self._solver.clock == "pass":
            # Günter 2006: time ticks "every l iterations".
            times -= times % n_samples
        eta = self._gain.gains(times, n_samples, state.eigenvalues)
        return np.broadcast_to(state.gain_scale * eta, (n_steps, self._r)).copy()

    def _limits(self, diagonal: Floats, length: float) -> Floats:
        """Return twice the Cauchy–Schwarz bound of ‖y‖² for components of that length.

        κ replaces a smaller k'(p, p), which is zero or negative for some patterns and kernels.
        """
        if not self._is_repeated:
            return np.full(len(diagonal), np.finfo(np.float64).max)
        return 2 * max(1.0, length) * np.maximum(diagonal, self._gram.mean_diagonal)

    def _finish(self, state: HebbianState) -> HebbianState:
        """Check the pass, rotate the components, and return the next state."""
        A, AK = self._components(state)
        N, S = inner_products(A, AK), inner_products(AK, AK)
        if not (np.isfinite(N).all() and np.isfinite(S).all()):
            raise _Diverged("the components overflowed")
        if self._is_repeated and np.diag(N).max() > 2 * max(1.0, state.length):
            raise _Diverged("the components left the unit ball")
        ritz_values, T = self._ritz(N, S)
        captured = float(ritz_values.sum())
        rounding = 10 * self._eps * abs(state.captured)
        if self._solver.automatic and captured < state.captured - rounding:
            raise _Diverged("the components lost variance")
        if self._solver.rayleigh_ritz:
            state = self._rotate(state, T)
            A, AK = self._components(state)
            N = inner_products(A, AK)
            if np.abs(N - np.diag(np.diag(N) > 0)).max() > _MAX_DEFECT:
                # One step is not always enough in single precision.
                state = self._rotate(state, self._ritz(N, inner_products(AK, AK))[1])
        return replace(
            state,
            eigenvalues=ritz_values if self._solver.rayleigh_ritz else self._estimate(state),
            captured=captured,
            length=min(state.length, self._length(state)),
            passes=state.passes + 1,
        )


def _transform(R: Floats, order: Indices, blocks: list[tuple[Floats, Floats]]) -> Floats:
    """Return R after the updates T, C of all blocks of the patterns in order.

    T_1..T_b make R ← T_b⋯T_1 R, and C_j ends up multiplied by T_b⋯T_{j+1}: in reverse order, R
    itself is multiplied only once for all blocks.
    """
    later, columns = np.eye(len(R), dtype=R.dtype), []
    for T, C in reversed(blocks):
        columns.append(later @ C)
        later = later @ T
    R = later @ R
    R[:, order] += np.hstack(columns[::-1])
    return R


def inner_products(R: Floats, Z: Floats) -> Floats:
    """Return the symmetric matrix RZᵀ in double precision."""
    N = inner_in_double(R.T, Z.T)
    return (N + N.T) / 2


def _row_products(R: Floats, Z: Floats) -> Floats:
    """Return the inner products of the rows R_i and Z_i in double precision."""
    return np.einsum("il,il->i", R, Z, dtype=np.float64)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def sampled_residuals(
    gram: CenteredGram, projections: Floats, eigenvalues: Floats, sample: Indices
) -> Floats:
    """Estimate ‖K'u_i − λ_i u_i‖/λ_1 for u_i along (AK')_i from a sample of rows of K'."""
    U = _unit_rows(projections.astype(np.float64))
    KU = gram.strip(sample).dot(U.T.astype(gram.dtype)).T.astype(np.float64)
    norms = np.linalg.norm(KU - eigenvalues[:, None] * U[:, sample], axis=1)
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    return norms * np.sqrt(gram.n_samples / len(sample)) / (largest or np.inf)


def _unit_rows(Y: Floats) -> Floats:
    """Return the rows scaled to unit length; rows of zeros stay zero."""
    lengths = np.linalg.norm(Y, axis=1, keepdims=True)
    return np.divide(Y, lengths, out=np.zeros_like(Y), where=lengths > 0)


def _multiply(gram: CenteredGram, V: Floats) -> Floats:
    """Return (K'V)ᵀ in double precision."""
    return gram.multiply(V.astype(gram.dtype)).T.astype(np.float64)


#: Returned by a sweep in place of the step at which it stopped.
OK = -1
#: Sums may be reordered for vector instructions; infinities and NaN keep their meaning.
_MATH = {"reassoc", "contract", "nsz"}
_compiled = njit(cache=True, fastmath=_MATH, nogil=True)
#: Inlined because a called function may be compiled in two ways, depending on whether its caller
#: was compiled or read from the cache, and their last bits differ.
_inlined = njit(cache=True, fastmath=_MATH, nogil=True, forceinline=True)


@_inlined
def _descend(X, y, h, columns, total):
    """Set X ← X − diag(h) lt(yyᵀ) X on the first columns by a running sum over rows."""
    total[:columns] = 0.0
    for i in range(len(y)):
        step = h[i] * y[i]
        for j in range(columns):
            total[j] += y[i] * X[i, j]
            X[i, j] -= step * total[j]


@_inlined
def _project(T, Y_s, C, G_s, s, y):
    """Set y = T Y_s + C G_s, the projections of pattern s before step s."""
    for i in range(len(y)):
        value = 0.0
        for k in range(T.shape[1]):
            value += T[i, k] * Y_s[k]
        for j in range(s):
            value += C[i, j] * G_s[j]
        y[i] = value


@_inlined
def _squared_length(y):
    total = 0.0
    for i in range(len(y)):
        total += y[i] * y[i]
    return total


@_inlined
def _cap(h, y, diagonal):
    """Set h_i ← min(h_i, 1/max(k'(p,p), Σ_{k≤i} y_k²)), so that no row overshoots."""
    q = 0.0
    for i in range(len(y)):
        q += y[i] * y[i]
        bound = max(diagonal, q)
        if h[i] * bound > 1.0:
            h[i] = 1.0 / bound


@_compiled
def plain_sweep(Y, G, eta, capped, limits):
    """Run KHA, KHA/t or KHA/et over a block.

    Parameters
    ----------
    Y : (r, m) projections at the block's start.  G : (m, m) K'[P, P].
    eta : (m, r) gains.  capped : cap them if True.
    limits : (m,) upper bounds on ‖y‖² of each pattern.

    Returns
    -------
    T : (r, r), C : (r, m), and the step at which ‖y‖² exceeded its limit (or OK).
    """
    r, m = Y.shape
    T, C = np.eye(r), np.zeros((r, m))
    y, h, total = np.empty(r), np.empty(r), np.empty(max(r, m))
    by_pattern = np.ascontiguousarray(Y.T)
    for s in range(m):
        _project(T, by_pattern[s], C, G[s], s, y)
        if not _squared_length(y) <= limits[s]:
            return T, C, s
        h[:] = eta[s]
        if capped:
            _cap(h, y, G[s, s])
        _descend(T, y, h, r, total)
        _descend(C, y, h, s, total)
        for i in range(r):
            C[i, s] = h[i] * y[i]
    return T, C, OK


@_inlined
def _advance_log_gains(rho, y, z, M, mu, max_step, max_rho):
    """Set ρ ← ρ + µ diag(ΓK'Bᵀ) (eq. 16).

    With M = AK'Bᵀ, the i-th entry of the diagonal is y_i(z_i − Σ_{k≤i} y_k M_ki).
    """
    for i in range(len(y)):
        pull = z[i]
        for k in range(i + 1):
            pull -= y[k] * M[k, i]
        change = mu * y[i] * pull
        change = min(max(change, -max_step), max_step)
        rho[i] = min(max(rho[i] + change, -max_rho), max_rho)


@_inlined
def _differentiate(A, B, y, z, h, xi, columns, sums):
    """Apply the parts of eqs. 15 and 21 that multiply from the left.

    (A, B) ← (UA, ξUB + VA), U = I − D lt(yyᵀ), V = −D[lt(yyᵀ) + ξ lt(zyᵀ + yzᵀ)], D = diag(h), by
    running sums of yA, zA and yB.
    """
    yA, zA, yB = sums
    yA[:columns] = 0.0
    zA[:columns] = 0.0
    yB[:columns] = 0.0
    for i in range(len(y)):
        step_y, step_z = h[i] * y[i], xi * h[i] * z[i]
        for j in range(columns):
            a, b = A[i, j], B[i, j]
            yA[j] += y[i] * a
            zA[j] += z[i] * a
            yB[j] += y[i] * b
            A[i, j] = a - step_y * yA[j]
            B[i, j] = xi * b - step_y * (yA[j] + xi * yB[j]) - step_z * yA[j] - xi * step_y * zA[j]


@_inlined
def _transpose(source, target, r):
    for i in range(r):
        for j in range(r):
            target[j, i] = source[i, j]


@_inlined
def _advance_products(N, M, yz, h, xi, diagonal, work, sums):
    """Update N = AK'Aᵀ and M = AK'Bᵀ.

    A ← UA + u e_pᵀ, B ← VA + ξUB + v e_pᵀ with u = h∘y, v = h∘(y + ξz). Transposed, the map on the
    right factor is the same running sum; the new column adds A k'_p = y and B k'_p = z.
    """
    r = len(h)
    y, z = yz[:r], yz[r:]
    right_N, right_M, moved = work
    total, _, _ = sums
    _transpose(N, right_N, r)
    _transpose(M, right_M, r)
    _differentiate(right_N, right_M, y, z, h, xi, r, sums)
    _transpose(right_N, N, r)
    _transpose(right_M, M, r)
    _descend(N, y, h, r, total)
    _descend(M, y, h, r, total)
    moved[:] = yz
    _differentiate(moved[:r].reshape(r, 1), moved[r:].reshape(r, 1), y, z, h, xi, 1, sums)
    for i in range(r):
        u_i, Uy_i = h[i] * y[i], moved[i]
        for j in range(r):
            u_j, v_j = h[j] * y[j], h[j] * (y[j] + xi * z[j])
            N[i, j] += Uy_i * u_j + u_i * moved[j] + diagonal * u_i * u_j
            M[i, j] += Uy_i * v_j + u_i * moved[r + j] + diagonal * u_i * v_j


@_compiled
def meta_sweep(YZ, G, eta, capped, limits, N, M, rho, mu, xi, max_step, max_rho):
    """Run KHA-SMD over a block; A and B are stacked, in the basis [A0; B0; E_P].

    Parameters
    ----------
    YZ : (2r, m) projections of A and B.  G, eta, capped, limits : as in ``plain_sweep``.
    N, M : (r, r) AK'Aᵀ and AK'Bᵀ, updated in place.
    rho : (r,) log-gains.
    mu, xi, max_step, max_rho : rate, memory, bounds on |Δρ| and |ρ|.

    Returns
    -------
    T : (2r, 2r), C : (2r, m), the step that diverged (or OK), and the new ρ.
    """
    r, m = YZ.shape[0] // 2, YZ.shape[1]
    T, C = np.eye(2 * r), np.zeros((2 * r, m))
    rho = rho.copy()
    yz, h = np.empty(2 * r), np.empty(r)
    size = max(len(T), m)
    sums = (np.empty(size), np.empty(size), np.empty(size))
    work = (np.empty_like(N), np.empty_like(N), np.empty_like(yz))
    by_pattern = np.ascontiguousarray(YZ.T)
    y, z = yz[:r], yz[r:]
    for s in range(m):
        _project(T, by_pattern[s], C, G[s], s, yz)
        if not (_squared_length(y) <= limits[s] and np.isfinite(_squared_length(z))):
            return T, C, s, rho
        _advance_log_gains(rho, y, z, M, mu, max_step, max_rho)
        for i in range(r):
            h[i] = eta[s, i] * np.exp(rho[i])
        if capped:
            _cap(h, y, G[s, s])
        _differentiate(T[:r], T[r:], y, z, h, xi, 2 * r, sums)
        _differentiate(C[:r], C[r:], y, z, h, xi, s, sums)
        for i in range(r):
            C[i, s] = h[i] * y[i]
            C[r + i, s] = h[i] * (y[i] + xi * z[i])
        _advance_products(N, M, yz, h, xi, G[s, s], work, sums)
    return T, C, OK, rho
