"""Update of a kernel PCA with new samples, mean shift included (Chin 2006, section 4).

All of it happens in coordinates on Z = [u_1 … u_r, µ, Φ(b_1) … Φ(b_c)]: the library of m rows
enters through the inner products of these r + 1 + c vectors alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Rows
from ikpca.reduced_sets import Reduction, reorthonormalize
from ikpca.solvers import deterministic_signs
from ikpca.streams.incremental_state import BasisGram, IncrementalState
from ikpca.subspace import Expansion


@dataclass(frozen=True, eq=False)
class BatchProducts:
    """A state, a batch of rows, and all kernel values that an update with them takes.

    Parameters
    ----------
    state : State
    rows : rows of shape (c, N)
    across : ndarray of shape (m, c)
        Kernel values of the library with the batch.
    own : ndarray of shape (c, c)
        Those of the batch.
    """

    state: IncrementalState
    rows: Rows
    across: Floats
    own: Floats

    @cached_property
    def seen(self) -> Floats:
        """⟨u_i, Φ(b_j)⟩, and ⟨µ, Φ(b_j)⟩ last: (r + 1)×c."""
        return self.state.vectors @ self.across

    @cached_property
    def gram(self) -> Floats:
        """Inner products of u_1 … u_r, µ, Φ(b_1) … Φ(b_c): what the whole update happens in."""
        return np.block([[self.state.gram, self.seen], [self.seen.T, self.own]])

    def novelty(self, n_components: int) -> Floats:
        """‖Φ(b) − µ − P(Φ(b) − µ)‖², P on the leading components; NaN where nothing was known."""
        if not self.state.n_samples:
            return np.full(len(self.own), np.nan)
        known = self.state.gram
        y = self.seen[:-1] - known[:-1, -1:]
        lengths = np.diagonal(self.own) - 2 * self.seen[-1] + known[-1, -1]
        return np.maximum(lengths - np.square(y[:n_components]).sum(axis=0), 0)


def batch_products(state: IncrementalState, rows: Rows) -> BatchProducts:
    """Compute the kernel values of a batch with the library and with itself, in double."""
    batch = rows.astype(np.float64, copy=False)
    library = state.library.astype(np.float64, copy=False)
    across = np.zeros((0, rows.shape[0]))
    if library.shape[0]:
        across = cross_gram(state.kernel, library, batch)
    own = cross_gram(state.kernel, batch, batch)
    _check_finite(own, across)
    return BatchProducts(state, rows, across, (own + own.T) / 2)


def _check_finite(own: Floats, across: Floats) -> None:
    """Refuse rows so large that their images have no length: one of them would spoil the state."""
    bad = ~(np.isfinite(own).all(axis=0) & np.isfinite(across).all(axis=0))
    if bad.any():
        listed = ", ".join(map(str, np.flatnonzero(bad)[:5]))
        raise InvalidInput(
            f"The kernel values of rows {listed} of the batch are not finite: the update needs "
            "them; scale the rows, or leave these out."
        )


#: max |UᵀU − I| that an update may leave; streams of any length stay far below it.
_MAX_DEFECT = 1e-4


def reorthonormalize_if_needed(state: IncrementalState) -> tuple[IncrementalState, str]:
    """The state, orthonormal; and, where it was not, what was done about it.

    Inner products, which an update only carries along, are computed afresh from the kernel.
    """
    defect = _defect(state)
    if defect <= _MAX_DEFECT:
        return state, ""
    rows = state.library.astype(np.float64, copy=False)
    products = Expansion(state.kernel, rows, state.vectors).products
    gram = state.vectors[:-1] @ products[:-1].T
    if not np.isfinite(gram).all():
        raise InvalidInput(
            "The components of the stream overflowed: nothing was learned from this X; scale the "
            "rows, and begin anew with fit."
        )
    values, vectors = linalg.eigh((gram + gram.T) / 2)
    if values[0] <= _MAX_DEFECT * values[-1]:
        raise InvalidInput(
            "The components of the stream have become linearly dependent, which cannot be mended: "
            "nothing was learned from this X; begin anew with fit, with fewer components."
        )
    turn = linalg.block_diag((vectors / np.sqrt(values)) @ vectors.T, np.ones((1, 1)))
    mended = replace(state, vectors=turn @ state.vectors, products=turn @ products)
    return mended, (
        f"components had lost their orthonormality (by {defect:.1e}) and were made orthonormal "
        f"again (to {_defect(mended):.1e})"
    )


def _defect(state: IncrementalState) -> float:
    r = state.n_components
    defect = float(np.abs(state.gram[:r, :r] - np.eye(r)).max(initial=0.0))
    return defect if np.isfinite(defect) else np.inf


#: Share of the largest k(x, x) below which the squared length of a new direction is no more than
#: rounding. A direction of share t is known to eps/t only, and dropping it loses t: the cut leaves
#: both small.
_RANK_SHARE = float(np.finfo(np.float64).eps ** (2 / 3))
#: Beside the longest new direction, a negative squared length above this is no rounding.
_NEGATIVE_SHARE = 1e-5


def update(state: IncrementalState, rows: Rows, *, move_mean: bool = True) -> IncrementalState:
    """Learn from a batch of rows.

    Parameters
    ----------
    state : State
        Of all batches before; :meth:`State.empty` before the first.
    rows : rows of shape (c, N)
    move_mean : bool
        False leaves the mean where the first batch put it, which kernel PCA does not (an ablation:
        incremental kernel SVD about a fixed point).

    Returns
    -------
    State
        With all components of the numerical rank; ``truncate`` keeps the leading ones.
    """
    return apply_update(batch_products(state, rows), move_mean=move_mean)


def apply_update(meeting: BatchProducts, *, move_mean: bool = True) -> IncrementalState:
    """The update from kernel values that are there."""
    state, G = meeting.state, meeting.gram
    count, r, n = len(meeting.own), state.n_components, state.n_samples
    if n and not move_mean:
        deviations, mean = _from_fixed_mean(r, count)
    else:
        deviations, mean = _from_moving_mean(r, n, count)
    L, rest = _split(G, deviations, r)
    J, K = _orthonormal(G, rest, r)
    turn, singular_values = _left_singular(state.singular_values, L, K)
    components = turn[:r].T @ np.eye(r, len(G)) + turn[r:].T @ J.T  # eq. 18
    components *= _signs(turn[:r], components @ G[:, r + 1 :])[:, None]
    return _grown(
        meeting,
        np.vstack([components, mean]),
        singular_values,
        float(np.einsum("ij,ij->", deviations, G @ deviations)),
    )


def _from_moving_mean(r: int, n: float, count: int) -> tuple[Floats, Floats]:
    """E = [B − µ_B, √(nc/(n+c))(µ_A − µ_B)] and µ = (nµ_A + cµ_B)/(n+c) (eqs. 7–10)."""
    E = np.zeros((r + 1 + count, count + 1))
    E[r + 1 :, :-1] = np.eye(count) - 1 / count
    E[r, -1] = np.sqrt(n * count / (n + count))
    E[r + 1 :, -1] = -E[r, -1] / count
    mean = np.full(len(E), 1 / (n + count))
    mean[:r], mean[r] = 0, n / (n + count)
    return E, mean


def _from_fixed_mean(r: int, count: int) -> tuple[Floats, Floats]:
    """E = B − µ, and µ as it was."""
    E = np.zeros((r + 1 + count, count))
    E[r], E[r + 1 :] = -1, np.eye(count)
    return E, np.eye(len(E))[r]


def _split(G: Floats, E: Floats, r: int) -> tuple[Floats, Floats]:
    """L = UᵀE and H = E − UL (eqs. 14, 15); twice, or H keeps a share of U that rounding left."""
    L, H = np.zeros((r, E.shape[1])), E.copy()
    for _ in range(2):
        part = G[:r] @ H
        H[:r] -= part
        L += part
    return L, H


def _orthonormal(G: Floats, H: Floats, r: int) -> tuple[Floats, Floats]:
    """J and K with H = JK, J orthonormal and of the numerical rank of H (eqs. 16, 17)."""
    values, Q = linalg.eigh(H.T @ G @ H, check_finite=False)
    # Of an indefinite kernel even the largest may be negative.
    rounding = _RANK_SHARE * max(float(np.diagonal(G)[r:].max()), 0.0)
    if values[0] < -max(rounding, _NEGATIVE_SHARE * values[-1]):
        raise InvalidInput(
            f"The kernel is not positive semi-definite on these rows (a squared length is "
            f"{values[0]:.2g}): a stream cannot leave its negative part out, as a batch can; "
            "choose another kernel."
        )
    kept = values > rounding
    roots, Q = np.sqrt(values[kept]), Q[:, kept]
    J, K = H @ Q / roots, roots[:, None] * Q.T
    # Division by small roots has magnified rounding: once more from where that has led.
    J[:r] -= G[:r] @ J
    try:
        R = linalg.cholesky(J.T @ G @ J, check_finite=False)
    except linalg.LinAlgError:
        # Directions that do not stand this are rounding, all of them.
        return J[:, :0], K[:0]
    return linalg.solve_triangular(R, J.T, trans="T", check_finite=False).T, R @ K


def _left_singular(singular_values: Floats, L: Floats, K: Floats) -> tuple[Floats, Floats]:
    """U' and Σ' of F = [Σ L; 0 K] (eqs. 12, 13)."""
    F = np.block([[np.diag(singular_values), L], [np.zeros((len(K), len(L))), K]])
    if not len(F):
        return F[:, :0], np.zeros(0)
    turn, values, _ = linalg.svd(F, full_matrices=False, check_finite=False)
    return turn, values


def _signs(turn: Floats, projections: Floats) -> Floats:
    """Of a component that goes on from an earlier one, its sign; else from where the batch lies."""
    if not len(turn):
        return deterministic_signs(projections)
    goes_on = np.square(turn).sum(axis=0) > 0.5
    return np.where(goes_on, deterministic_signs(turn.T), deterministic_signs(projections))


def _grown(
    meeting: BatchProducts, coordinates: Floats, singular_values: Floats, variance: float
) -> IncrementalState:
    """The state with the batch in its library, from coordinates of the vectors on Z."""
    state = meeting.state
    of_vectors, of_batch = np.split(coordinates, [state.n_components + 1], axis=1)
    products = of_vectors @ np.hstack([state.products, meeting.seen])
    products += of_batch @ np.hstack([meeting.across.T, meeting.own])
    return replace(
        state,
        library=np.vstack([state.library, meeting.rows]),
        vectors=np.hstack([of_vectors @ state.vectors, of_batch]),
        products=products,
        singular_values=singular_values,
        n_samples=state.n_samples + len(meeting.own),
        total_variance=state.total_variance + variance,
        values=state.values and state.values.grown(meeting.across, meeting.own),
    )


@dataclass(frozen=True)
class Compression:
    """When the library is reduced, and to how many rows.

    Parameters
    ----------
    reduction : Reduction
    limit : int
        Rows of the library that are not to be exceeded after a step.
    room : int
        Rows that come between two reductions, at least. Batches of fewer rows leave the library
        smaller by as much, or each of them would cost a reduction.
    orthonormal : bool
        False leaves components as the reduced set has them and Σ as it was (an ablation: without
        section 5.3 errors add up).
    """

    reduction: Reduction
    limit: int
    room: int = 1
    orthonormal: bool = True

    def after_batch(
        self, state: IncrementalState, count: int
    ) -> tuple[IncrementalState, Floats | None]:
        """The state within the limit after a batch of ``count`` rows, and errors if it was not."""
        if state.library.shape[0] <= self.limit:
            return state, None
        least = state.n_components + 1
        return self.reduced(state, max(self.limit - max(0, self.room - count), least))

    def reduced(self, state: IncrementalState, size: int) -> tuple[IncrementalState, Floats]:
        """The state on fewer rows, and the relative error of each component and of the mean."""
        original = state.subspace()
        # ‖δu_i‖ moves Σ² σ_i² ‖δu_i‖², ‖δµ‖ moves n ‖δµ‖²: what errors weigh in the scatter.
        weights = np.append(state.singular_values, np.sqrt(state.n_samples))
        values = None if state.values is None else state.values.matrix()
        reduced = self.reduction.reduce(original.expansion, size, weights, values=values)
        expansion, singular_values = reduced.expansion, state.singular_values
        signs = np.ones(len(expansion.coefficients))
        if self.orthonormal and state.n_components:
            expansion, singular_values = reorthonormalize(
                original, expansion, singular_values, across=reduced.across
            )
            # A component keeps the sign of the one that it goes on from.
            overlaps = expansion.coefficients[:-1] @ reduced.across[:-1].T
            signs = np.append(deterministic_signs(overlaps), 1)
        compressed = replace(
            state,
            library=expansion.basis,
            vectors=expansion.coefficients * signs[:, None],
            products=expansion.products * signs[:, None],
            singular_values=singular_values,
            values=BasisGram((reduced.values,)),
        )
        return compressed, reduced.relative_errors


@dataclass(frozen=True)
class IncrementalSettings:
    """How a stream is learned from.

    Parameters
    ----------
    n_components : int or None
        Components that are asked for; None keeps all of the numerical rank.
    n_oversamples : int
        Components kept beyond them: what a batch truncates cannot come back with a later one.
    forgetting : float
        f in (0, 1]: before each batch, Σ ← fΣ and n ← f²n.
    compression : Compression or None
        None: exact, and the library grows with the stream.
    move_mean : bool
        False for the ablation of :func:`update`.
    """

    n_components: int | None = None
    n_oversamples: int = 0
    forgetting: float = 1.0
    compression: Compression | None = None
    move_mean: bool = True

    @property
    def n_kept(self) -> int | None:
        """Components that go on from batch to batch."""
        return None if self.n_components is None else self.n_components + self.n_oversamples


@dataclass(frozen=True, eq=False)
class UpdateReport:
    """What a reader may want to know of a step.

    Parameters
    ----------
    novelty : ndarray of shape (c,)
        ‖Φ(x) − µ − P(Φ(x) − µ)‖² of the batch, before it was learned from.
    compression_errors : ndarray of shape (r + 1,) or None
        Relative errors of the components and the mean, where the library was compressed.
    recovery : str
        Empty, or what gave way and what was done about it.
    """

    novelty: Floats
    compression_errors: Floats | None = None
    recovery: str = ""


def update_step(
    state: IncrementalState, rows: Rows, settings: IncrementalSettings
) -> tuple[IncrementalState, UpdateReport]:
    """Learn from a batch of rows."""
    visible = settings.n_components
    meeting = batch_products(state.forget(settings.forgetting), rows)
    novelty = meeting.novelty(state.n_components if visible is None else visible)
    state = apply_update(meeting, move_mean=settings.move_mean)
    if settings.n_kept is not None:
        state = state.truncate(settings.n_kept)
    recovery = ""
    # The ablation without it shows what becomes of a stream that nobody mends.
    if settings.compression is None or settings.compression.orthonormal:
        state, recovery = reorthonormalize_if_needed(state)
    if settings.compression is None:
        return state, UpdateReport(novelty, recovery=recovery)
    state, errors = settings.compression.after_batch(state, rows.shape[0])
    return state, UpdateReport(novelty, errors, recovery)


def join_reports(reports: list[UpdateReport]) -> UpdateReport:
    """The parts of one batch as one: all novelties, and the last errors."""
    errors = [each.compression_errors for each in reports if each.compression_errors is not None]
    novelty = np.concatenate([each.novelty for each in reports])
    recoveries = [each.recovery for each in reports if each.recovery]
    return UpdateReport(
        novelty, errors[-1] if errors else None, recoveries[-1] if recoveries else ""
    )
