"""Models of all rows without each fold, for cross-validated errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold

from ikpca.errors import InvalidInput, invalid_parameter, is_auto
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.validation import draw_seed, n_threads
from ikpca.gram import cross_gram, read_budget
from ikpca.gram.lazy_rows import LazyRows
from ikpca.gram.resources import Workers
from ikpca.kernels import Floats, Indices, Kernel, Rows
from ikpca.solvers import (
    Adaptive,
    Dense,
    EigenSolution,
    Nystrom,
    Outcome,
    Problem,
    RunSettings,
    Solver,
    solve_dense,
)
from ikpca.solvers.adaptive import choose_solver
from ikpca.solvers.nystrom import LandmarkFit
from ikpca.subspace import MeanResidual, Subspace

#: Default number of landmarks: at least this many, and this many per component. With a small
#: memory budget there are fewer, but at least the last number.
_LANDMARKS, _LANDMARKS_PER_COMPONENT, _MIN_LANDMARKS = 2000, 4, 100
#: Fraction of the variance for which the dense solver has the same limit as for all components.
_MANY_COMPONENTS = 0.99


def choose_fold_solver(
    eigen_solver: str | Solver, n_components: float | None, n_samples: int
) -> Solver:
    """Return the solver of all folds: one set of landmarks where "auto" is not dense."""
    # All components, too, are those of landmarks if there are many rows.
    number = n_components
    if n_components is None and is_auto(eigen_solver):
        number = _MANY_COMPONENTS
    solver = choose_solver(eigen_solver, number, n_samples)
    if isinstance(solver, Adaptive) or (is_auto(eigen_solver) and not isinstance(solver, Dense)):
        return Nystrom()
    return solver


def split_rows(
    n_samples: int, cv: int | BaseCrossValidator, seed: int | None = None
) -> list[Indices]:
    """Return the rows of each fold, contiguous without a seed; every row belongs to one of them."""
    splitter: Any = cv
    if isinstance(cv, int | np.integer):
        number = int(cv)
        # Every model needs two rows.
        needed = max(number, 3 if number > 2 else 4)
        if n_samples < needed:
            raise InvalidInput(
                f"X has n_samples={n_samples}: cv={number} folds need at least {needed} rows; "
                "pass more rows or fewer folds."
            )
        splitter = KFold(number, shuffle=seed is not None, random_state=seed)
    folds = [np.sort(test) for _, test in splitter.split(np.empty((n_samples, 1)))]
    counts = np.bincount(np.concatenate([*folds, []]).astype(np.intp), minlength=n_samples)
    largest = max(len(fold) for fold in folds)
    if not np.array_equal(counts, np.ones(n_samples)) or not 0 < largest <= n_samples - 2:
        raise invalid_parameter(
            "cv",
            cv,
            f"its {len(folds)} test sets must contain each of the {n_samples} rows once, and "
            "leave two rows for every model",
            "pass an integer, or a splitter such as KFold or PredefinedSplit",
        )
    return folds


def fit_folds(model: KernelPCA, X: Rows, folds: Sequence[Indices]) -> tuple[Floats, MeanResidual]:
    """Fit a model, and return the error of each row without its fold, and the mean error.

    With landmarks, the parameters of the model become the numbers of components and landmarks.
    """
    solver = model.eigen_solver
    if isinstance(solver, Nystrom):
        folded = FoldNystrom(folds, solver.n_landmarks)
        model.set_params(eigen_solver=folded, tol=0.0).fit(X)
        # A fit with these parameters finds the same components.
        number, used = len(model.eigenvalues_), Nystrom(folded.n_used)
        model.set_params(n_components=max(1, number), eigen_solver=used)
        return folded.errors, folded.residual
    model.fit(X[:] if isinstance(X, LazyRows) else X)
    X, rows = model.X_fit_, np.arange(model.n_samples_seen_)
    trains = [np.setdiff1d(rows, fold) for fold in folds]
    pairs = zip(trains, folds, strict=True)
    if isinstance(solver, Dense):
        fits = _fit_dense(model, cross_gram(model._subspace.kernel, X, X), pairs)
    else:
        fits = [_fit_iterative(model, train, test) for train, test in pairs]
    errors = np.empty(len(rows))
    for fold, (_, fold_errors) in zip(folds, fits, strict=True):
        errors[fold] = fold_errors
    return errors, MeanResidual.of(X, [subspace for subspace, _ in fits], trains)


def _fit_dense(
    model: KernelPCA, K: Floats, pairs: Iterable[tuple[Indices, Indices]]
) -> list[tuple[Subspace, Floats]]:
    """Return the components of training rows and the errors of test rows, from blocks of K."""

    def fit(pair: tuple[Indices, Indices]) -> tuple[Subspace, Floats]:
        train, test = pair
        number = len(model.eigenvalues_)
        solution = _solve_block(K[np.ix_(train, train)], model.n_components, number)
        subspace = _subspace(model._subspace.kernel, model.X_fit_[train], solution)
        _, errors = subspace.norms_and_residuals_from(K[np.ix_(test, train)], K[test, test])
        return subspace, errors

    with Workers(n_threads(model.n_jobs)) as workers:
        return list(workers.map(fit, pairs))


def _fit_iterative(model: KernelPCA, train: Indices, test: Indices) -> tuple[Subspace, Floats]:
    """Return the components of training rows, and the errors of test rows."""
    X, kernel, solver = model.X_fit_, model._subspace.kernel, model.eigen_solver
    assert isinstance(solver, Solver)
    budget, threads = read_budget(model.max_memory), n_threads(model.n_jobs)
    problem = Problem(kernel, X[train], budget, threads, seed=draw_seed(model.random_state))
    solution = model._solve(solver, problem, model.n_components, model.tol)
    if solution.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    subspace = _subspace(kernel, X[train], solution)
    return subspace, subspace.residuals(X[test])


class FoldNystrom(Nystrom):
    """Nyström solver that, in the same pass over the rows, also fits the rows without each fold.

    The pass gives the moments of every fold, from which all models follow. A model without a fold
    has the landmarks of its own rows only, so that it has not seen the fold at all.
    """

    #: As returned by :func:`fit_folds`.
    errors: Floats
    residual: MeanResidual
    #: Number of landmarks.
    n_used: int

    def __init__(self, folds: Sequence[Indices], n_landmarks: int | str) -> None:
        super().__init__(n_landmarks)
        self.folds = folds

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the components of all rows, and the errors of the models without each fold."""
        count = int(n_components) if isinstance(n_components, Integral) else 0
        number = max(_LANDMARKS, _LANDMARKS_PER_COMPONENT * count)
        errors, subspaces, indices = np.empty(problem.n_samples), list[Subspace](), list[Indices]()
        with Workers(problem.n_threads) as workers:
            fit = self.fit_parts(problem, self.folds, number, max(_MIN_LANDMARKS, count), workers)
            solution = fit.solution(_in_span(n_components, fit))
            for i, fold in enumerate(self.folds):
                own = fit.landmarks[~np.isin(fit.landmarks, fold)]
                if not len(own):
                    raise invalid_parameter(
                        "n_landmarks",
                        len(fit.landmarks),
                        "all landmarks lie in one fold, and the model without this fold has none",
                        "pass more landmarks",
                    )
                part = fit.leave_out(i, own)
                components = part.components(_in_span(n_components, part))
                subspaces.append(_subspace(problem.kernel, part.features.rows, components))
                indices.append(part.indices)
                function = partial(_strip_residuals, subspaces[-1])
                parts = problem.map_rows(function, fit.features.strip, workers, fold)
                errors[fold] = np.concatenate(list(parts))
        used = np.unique(np.concatenate(indices))
        positions = [np.searchsorted(used, own) for own in indices]
        self.residual = MeanResidual.of(problem.take_rows(used), subspaces, positions)
        self.errors, self.n_used = errors, len(fit.landmarks)
        return solution


def _in_span(n_components: float | None, fit: LandmarkFit) -> float | None:
    """Return the number of components; a fraction is one of the variance in the span."""
    if n_components is None or isinstance(n_components, Integral):
        return n_components
    return float(n_components) * fit.captured


def _solve_block(K: Floats, n_components: float | None, n_expected: int) -> EigenSolution:
    if n_components is None or isinstance(n_components, Integral):
        return solve_dense(K, None if n_components is None else min(int(n_components), len(K)))
    # Fewer rows need about as many components as all rows, often fewer.
    solution = solve_dense(K, min(max(n_expected, 1), len(K)))
    if solution.eigenvalues.sum() <= n_components * solution.trace:
        solution = solve_dense(K)
    return solution.select_fraction(n_components)


def _subspace(kernel: Kernel | None, rows: Rows, solution: EigenSolution) -> Subspace:
    """Return the components with variance."""
    nonzero = solution.select(solution.eigenvalues > 0)
    return Subspace.from_centered(
        kernel, rows, nonzero.coefficients, nonzero.centering, nonzero.projections,
        nonzero.landmark_mean,
    )  # fmt: skip


def _strip_residuals(subspace: Subspace, X: Rows, _: int) -> Floats:
    return subspace.residuals(X)
