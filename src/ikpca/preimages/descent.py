"""Pre-images by descent in input space, all points at once.

The descent is limited-memory BFGS (Liu, Nocedal 1989) for a batch of independent problems, on the
objectives of the fixed-point iteration (Mika et al. 1999) or of gradient descent (Burges 1996).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ikpca.errors import Number, ParameterRules, check_parameters
from ikpca.kernels import DifferentiableKernel, Floats, Indices, Kernel, RadialKernel
from ikpca.preimages.base import COUNT_RULE, PreimageMethod, Preimages, nearest_images
from ikpca.subspace import Subspace

#: Longest step of the fixed-point iteration, relative to the standard deviation of the basis:
#: starts may be distant, but iterates must not diverge.
_MAX_FIXED_POINT_STEP = 10.0
#: First and longest step of the gradient method, relative to the standard deviation of the basis.
_FIRST_STEP, _MAX_STEP = 0.1, 2.0
#: Pairs of steps and changes of gradients for the two methods.
_FIXED_POINT_HISTORY, _HISTORY = 4, 8
#: Share of the predicted decrease that a step of the gradient method must achieve (Armijo).
_SUFFICIENT_DECREASE = 1e-4
#: Largest negative distance that is attributed to rounding, relative to the smallest objective.
_NEGATIVE_TOLERANCE = 1e-6
#: Rounding error of an objective, in units of the machine precision.
_ROUNDING_UNITS = 8
#: Pairs with ⟨s, y⟩ below this share of ‖s‖‖y‖ are discarded.
_MIN_CURVATURE = 1e-8
#: Factor by which a rejected step is shortened.
_SHRINK = 0.5

_RULES: ParameterRules = {
    "max_iter": COUNT_RULE,
    "tol": Number("must be a nonnegative number", "pass 1e-5", low=0),
}
#: Objective and gradient at rows Z of the points with the given weights and indices. The objective
#: is infinite at rows that are not admissible.
_Evaluate: TypeAlias = Callable[[Floats, Floats, Indices], tuple[Floats, Floats]]


@dataclass(frozen=True)
class _Descent(PreimageMethod):
    """Base class of the methods that descend from a start for every point.

    The objective is ‖P − Φ(z)‖² less ‖P‖², and less k(z, z) if that is the same for all z: small
    inner products would be lost in its rounding error.
    """

    max_iter: int
    tol: float

    def __post_init__(self) -> None:
        check_parameters(self, _RULES)

    @abstractmethod
    def _descend(
        self, subspace: Subspace, coordinates: Floats, starts: Floats
    ) -> tuple[Floats, Floats]:
        """Minimize the objective of the points from the starts; return rows and their objective."""

    # A trial point without a finite objective is rejected.
    @np.errstate(over="ignore", invalid="ignore")
    def _find(self, subspace: Subspace, coordinates: Floats, starts: Floats | None) -> Preimages:
        """Find a row for every point.

        If the result is worse than the nearest basis row, or not finite, the descent is repeated
        from that row, which is also the default start. A point for which that fails as well (such
        as one orthogonal to the images of all basis rows) gets the row itself.
        """
        nearest, products = nearest_images(subspace, coordinates)
        constant = _constant(subspace.kernel)
        limits = subspace.kernel.diagonal(nearest) - constant - 2 * products
        rows, objective = self._descend(
            subspace, coordinates, nearest if starts is None else starts
        )
        worse = np.flatnonzero(~(objective <= limits))
        if starts is not None and len(worse):
            again, lower = self._descend(subspace, coordinates[worse], nearest[worse])
            better = ~(objective[worse] <= lower)
            rows[worse[better]], objective[worse[better]] = again[better], lower[better]
        failed = np.flatnonzero(~np.isfinite(objective))
        rows[failed], objective[failed] = nearest[failed], limits[failed]
        # Rounding errors and indefinite kernels could make distances negative.
        distances = objective + subspace.squared_norms(coordinates) + constant
        return Preimages(rows, np.maximum(distances, 0))


def _constant(kernel: Kernel) -> float:
    """Return k(z, z) if that is the same for all z, otherwise 0."""
    return 1.0 if isinstance(kernel, RadialKernel) else 0.0


@dataclass(frozen=True)
class FixedPoint(_Descent):
    """Fixed-point iteration z ← Σ_j G_ij k(z, x_j) x_j / Σ_j G_ij k(z, x_j), with safeguards.

    The step follows the negative gradient of −ln ⟨P, Φ(z)⟩ and thus, as k(z, z) is constant, of the
    distance. Limited-memory BFGS finds the same fixed points several times faster. Negative weights
    can make a step too long; it is then halved. For the Laplacian kernel the weighted mean becomes
    a weighted median. If ⟨P, Φ(z)⟩ is not positive, the step is undefined, and the iteration
    restarts from the basis row nearest to P in feature space.

    Parameters
    ----------
    max_iter : int
        Evaluations per sample.
    tol : float
        A sample has converged when its next step is shorter than ``tol`` times the standard
        deviation of the basis rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.preimages import FixedPoint
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Subspace(Gaussian(0.1), X, np.array([[0.5, 0.5, 0.0]]))
    >>> FixedPoint().find(midway, np.eye(1)).rows.round(3)
    array([[0.5, 0. ]])
    """

    max_iter: int = 200
    tol: float = 1e-4

    def supports(self, kernel: Kernel) -> bool:
        """Return True for radial kernels."""
        return isinstance(kernel, RadialKernel)

    def _descend(
        self, subspace: Subspace, coordinates: Floats, starts: Floats
    ) -> tuple[Floats, Floats]:
        kernel, basis, std = subspace.kernel, subspace.basis, subspace.basis_std

        def evaluate(Z: Floats, weights: Floats, indices: Indices) -> tuple[Floats, Floats]:
            """Return −ln ⟨P, Φ(z)⟩ and z less its weighted center."""
            values, centers = kernel.weighted_center(Z, basis, weights)
            objective = np.full_like(values, np.inf)
            np.log(values, out=objective, where=values > 0)
            np.negative(objective, out=objective, where=values > 0)
            return objective, Z - centers

        history = _FIXED_POINT_HISTORY if kernel.step_is_gradient else 0
        rows, objective = _minimize(
            evaluate, starts, subspace.weights(coordinates),
            _Curvature(history, _MAX_FIXED_POINT_STEP * std, starts),
            min_step=self.tol * std, max_iter=self.max_iter, scale=1.0,
        )  # fmt: skip
        return rows, -2 * np.exp(-objective)


@dataclass(frozen=True)
class Gradient(_Descent):
    """Minimization of k(z, z) − 2 Σ_j G_ij k(z, x_j) over z by limited-memory BFGS.

    Every sample has its own line search, so that its objective never increases. The cosine kernel
    does not depend on norms; its pre-images have about the norm of their starts.

    Parameters
    ----------
    max_iter : int
        Evaluations per sample.
    tol : float
        A sample has converged when its next step is shorter than ``tol`` times the standard
        deviation of the basis rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.preimages import Gradient
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> midway = Subspace(Linear(), X, np.array([[0.0, 0.5, 0.5]]))
    >>> Gradient().find(midway, np.eye(1)).rows.round(6)
    array([[0.5, 0.5]])
    """

    max_iter: int = 300
    tol: float = 1e-7

    def supports(self, kernel: Kernel) -> bool:
        """Return True for differentiable kernels."""
        return isinstance(kernel, DifferentiableKernel)

    def _descend(
        self, subspace: Subspace, coordinates: Floats, starts: Floats
    ) -> tuple[Floats, Floats]:
        kernel, basis, std = subspace.kernel, subspace.basis, subspace.basis_std
        eps, constant = float(np.finfo(basis.dtype).eps), _constant(subspace.kernel)
        # Only an indefinite kernel has negative squared distances, which may be unbounded.
        tolerance = max(_NEGATIVE_TOLERANCE, eps**0.5)
        exact = -subspace.squared_norms(coordinates) - constant
        lowest = exact - tolerance * np.abs(exact)
        # A gradient that changes the objective by no more than rounding over the basis is zero.
        rounding = _ROUNDING_UNITS * eps / std

        def evaluate(Z: Floats, weights: Floats, indices: Indices) -> tuple[Floats, Floats]:
            """Return the objective of the points and its gradient."""
            values, value_gradients = kernel.weighted_gradient(Z, basis, weights)
            objective = (0 if constant else kernel.diagonal(Z)) - 2 * values
            gradients = kernel.diagonal_gradient(Z) - 2 * value_gradients
            gradients[np.linalg.norm(gradients, axis=1) <= rounding * np.abs(objective)] = 0
            objective[objective < lowest[indices]] = np.inf
            return objective, gradients

        return _minimize(
            evaluate, starts, subspace.weights(coordinates),
            _Curvature(_HISTORY, _MAX_STEP * std, starts, _FIRST_STEP * std),
            min_step=self.tol * std, max_iter=self.max_iter,
            sufficient_decrease=_SUFFICIENT_DECREASE,
        )  # fmt: skip


def _minimize(
    evaluate: _Evaluate,
    starts: Floats,
    weights: Floats,
    curvature: _Curvature,
    *,
    min_step: float,
    max_iter: int,
    sufficient_decrease: float = 0.0,
    scale: float = 0.0,
) -> tuple[Floats, Floats]:
    """Minimize from every start, with backtracking, until the next step is too short.

    A step must achieve the share ``sufficient_decrease`` of the predicted decrease; it is 0 if
    gradients are known only up to a factor. ``scale`` is added to the magnitude of the objective to
    estimate its rounding error. The start is not counted by ``max_iter``.
    Returns rows and their objective.
    """
    rows = starts.copy()
    active = np.arange(len(rows))
    objective, gradients = evaluate(rows, weights, active)
    directions = curvature.directions(active, gradients)
    step_sizes = np.ones(len(rows), dtype=rows.dtype)
    for _ in range(max_iter):
        steps = step_sizes[active, None] * directions[active]
        going = (np.linalg.norm(steps, axis=1) > min_step) & np.isfinite(objective[active])
        if not going.all():
            active, steps, weights = active[going], steps[going], weights[going]
        if not len(active):
            break
        values, slopes = evaluate(rows[active] + steps, weights, active)
        old_values, old_slopes = objective[active], gradients[active]
        # Sufficient decrease, or a smaller gradient within rounding (Hager, Zhang).
        predicted = sufficient_decrease * np.einsum("ij,ij->i", old_slopes, steps)
        rounding = _ROUNDING_UNITS * np.finfo(values.dtype).eps * (scale + np.abs(old_values))
        flatter = np.linalg.norm(slopes, axis=1) < np.linalg.norm(old_slopes, axis=1)
        accept = values <= old_values + predicted
        accept |= (values <= old_values + rounding) & flatter
        step_sizes[active[~accept]] *= _SHRINK
        accepted = active[accept]
        curvature.update(accepted, steps[accept], slopes[accept] - gradients[accepted])
        rows[accepted] += steps[accept]
        objective[accepted], gradients[accepted] = values[accept], slopes[accept]
        step_sizes[accepted] = 1
        directions[accepted] = curvature.directions(accepted, gradients[accepted])
    return rows, objective


class _Curvature:
    """Curvature pairs of every point: the last steps s and changes y of the gradient.

    Without history, directions are negative gradients; none is longer than ``max_step``. The first
    step, before there is a pair, has the length ``first_step``, or that of the gradient.
    """

    def __init__(
        self, history: int, max_step: float, starts: Floats, first_step: float | None = None
    ) -> None:
        n_points, dtype = len(starts), starts.dtype
        self._max_step = max_step
        self._steps = np.zeros((history, *starts.shape), dtype=dtype)
        self._changes = np.zeros_like(self._steps)
        #: 1/⟨s, y⟩; zero for missing pairs, which then have no effect.
        self._inverses = np.zeros((history, n_points), dtype=dtype)
        self._first_steps = None
        if first_step is not None:
            self._first_steps = np.full(n_points, first_step, dtype=dtype)
        self._scales = np.zeros(n_points, dtype=dtype)

    def update(self, indices: Indices, steps: Floats, changes: Floats) -> None:
        """Add pairs; without positive curvature, double the length of the first step instead."""
        if not len(self._steps):
            return
        products = np.einsum("ij,ij->i", steps, changes)
        norms = np.linalg.norm(steps, axis=1) * np.linalg.norm(changes, axis=1)
        squares = np.einsum("ij,ij->i", changes, changes)
        # Values that underflow when squared or inverted count as no curvature.
        tiny = np.finfo(products.dtype).tiny
        valid = (products > _MIN_CURVATURE * norms) & (products >= tiny) & (squares >= tiny)
        if self._first_steps is not None:
            limit, invalid = np.finfo(self._first_steps.dtype).max / 4, indices[~valid]
            self._first_steps[invalid] = 2 * np.minimum(self._first_steps[invalid], limit)
        indices, products = indices[valid], products[valid]
        for pairs in (self._steps, self._changes, self._inverses):
            pairs[:-1, indices] = pairs[1:, indices]
        self._steps[-1, indices], self._changes[-1, indices] = steps[valid], changes[valid]
        self._inverses[-1, indices] = 1 / products
        self._scales[indices] = products / squares[valid]

    def directions(self, indices: Indices, gradients: Floats) -> Floats:
        """Return −Hg by the two-loop recursion, no longer than the longest step."""
        steps, changes = self._steps[:, indices], self._changes[:, indices]
        inverses = self._inverses[:, indices]
        alphas = np.zeros_like(inverses)
        directions = -gradients
        for k in reversed(range(len(steps))):
            alphas[k] = inverses[k] * np.einsum("ij,ij->i", steps[k], directions)
            directions -= alphas[k, :, None] * changes[k]
        directions *= self._initial_scales(indices, gradients)[:, None]
        for k in range(len(steps)):
            betas = inverses[k] * np.einsum("ij,ij->i", changes[k], directions)
            directions += (alphas[k] - betas)[:, None] * steps[k]
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        return directions * (self._max_step / np.maximum(lengths, self._max_step))

    def _initial_scales(self, indices: Indices, gradients: Floats) -> Floats:
        """Return the factors of the identity that start the recursion."""
        first = np.ones(len(indices), dtype=gradients.dtype)
        if self._first_steps is not None:
            norms = np.linalg.norm(gradients, axis=1)
            limits = np.finfo(norms.dtype)
            steps = np.minimum(self._first_steps[indices], limits.max * np.minimum(norms, 1))
            np.divide(steps, norms, out=first, where=norms >= limits.tiny)
        return np.where(self._scales[indices] > 0, self._scales[indices], first)
