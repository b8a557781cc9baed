"""A fit from checked input to fitted attributes, the same for ``fit`` and ``refine``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ikpca.estimators.advice import (
    warn_of_divergence,
    warn_of_rank,
    warn_of_recovery,
    warn_of_tolerance,
)
from ikpca.estimators.attributes import fitted_attributes
from ikpca.estimators.callbacks import fit_context
from ikpca.estimators.checkpoints import Checkpoint, guarded, open_checkpoint
from ikpca.estimators.components import Components
from ikpca.estimators.gamma import resolve_gamma
from ikpca.estimators.inverting import check_preimage
from ikpca.estimators.magnitudes import check_rows
from ikpca.estimators.observing import requested_observers
from ikpca.estimators.shortage import memory_named
from ikpca.estimators.solving import (
    Problem,
    View,
    as_it_is,
    chosen_solver,
    decompose,
    n_passes,
)
from ikpca.estimators.training import chosen_kernel, learns_ridge, training_rows
from ikpca.estimators.unchanged import watch_rows
from ikpca.hebbian import Floats
from ikpca.loop import Observer, Outcome, interruptible
from ikpca.preimages import ridge_coefficients

__all__ = ["fit_components", "fit_rows", "take_attributes"]


def fit_rows(model: Any, X: Any, start: Floats | None = None, view: View = as_it_is) -> Floats:
    """Check the rows, settle what depends on them, and fit.

    Parameters
    ----------
    model : KernelPCA
        Its own parameters are checked already.
    X : array-like, CSR or memory map
    start, view
        As in :class:`Problem`.
    """
    X = training_rows(model, X)
    check_rows(X)
    seed = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    checkpoint, seed = open_checkpoint(model, X, seed, start)
    model.gamma_ = resolve_gamma(model.gamma, X, model.kernel, seed)
    kernel = chosen_kernel(model, X)
    check_preimage(model, kernel)
    problem = Problem(kernel, X, seed, start, view)
    if checkpoint is not None:
        problem = replace(problem, keeper=checkpoint)
    with guarded(checkpoint):
        return fit_components(model, model, problem)


def fit_components(model: Any, settings: Any, problem: Problem) -> Floats:
    """Run the solver that ``settings`` asks for; the model takes what it finds.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        Projections of the training rows.
    """
    passes = n_passes(settings, problem.n_samples)
    context = fit_context(model, passes)
    unchanged = watch_rows(problem.X)

    def attributes(components: Components) -> dict[str, Any]:
        return fitted_attributes(components, problem.kernel, problem.X, whiten=model.whiten)

    def watch(snapshot: Callable[[], Components]) -> Sequence[Observer[Any, Any]]:
        requested = requested_observers(
            settings,
            chosen_solver(settings, problem.n_samples),
            passes,
            problem.X.dtype,
            context,
            lambda: attributes(snapshot()),
        )
        return [*unchanged, *problem.observers, *requested]

    remedy = "pass max_memory, eigen_solver='krylov', or fewer rows or components"
    with interruptible(), memory_named(remedy):
        components = decompose(settings, problem, watch)
    for observer in unchanged:
        # A direct solver has no passes after which to look.
        observer.see(None, None)
    if isinstance(problem.keeper, Checkpoint):
        problem.keeper.finish()
    take_attributes(model, attributes(components))
    projections = components.projections.T * model._scale
    if learns_ridge(model) and problem.kernel is not None:
        model.X_transformed_fit_ = projections
        model.dual_coef_ = ridge_coefficients(problem.kernel, projections, problem.X, model.alpha)
    if context is not None:
        context.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict)
    _tell(model, components)
    return projections


def take_attributes(model: Any, attributes: dict[str, Any]) -> None:
    """Set the attributes of a fit; those of an earlier one that it lacks go."""
    for stale in ("dual_coef_", "X_transformed_fit_"):
        model.__dict__.pop(stale, None)
    for name, value in attributes.items():
        setattr(model, name, value)


def _tell(model: Any, components: Components) -> None:
    if components.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    warn_of_divergence(model.gain, components.records)
    warn_of_recovery([record.recovery for record in components.records])
    warn_of_rank(model.n_components, len(components.eigenvalues), components.rank)
    warn_of_tolerance(model, components.outcome, components.records)
