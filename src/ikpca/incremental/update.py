"""The update of a kernel PCA with new samples (Chin 2006, section 4), exact until it is truncated.

All of it happens in coordinates on Z = [u_1 … u_r, µ, Φ(b_1) … Φ(b_c)]: the library of m rows
enters through the inner products of these r + 1 + c vectors alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.incremental.meeting import Meeting, meet
from ikpca.incremental.state import State
from ikpca.kernels import Floats, Rows
from ikpca.spectra import deterministic_signs

__all__ = ["absorb", "update"]

#: Share of the largest k(x, x) below which the squared length of a new direction is no more than
#: rounding. A direction of share t is known to eps/t only, and dropping it loses t: the cut leaves
#: both small.
_RANK_SHARE = float(np.finfo(np.float64).eps ** (2 / 3))
#: Beside the longest new direction, a negative squared length above this is no rounding.
_NEGATIVE_SHARE = 1e-5


def update(state: State, rows: Rows, *, move_mean: bool = True) -> State:
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
    return absorb(meet(state, rows), move_mean=move_mean)


def absorb(meeting: Meeting, *, move_mean: bool = True) -> State:
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
    meeting: Meeting, coordinates: Floats, singular_values: Floats, variance: float
) -> State:
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
