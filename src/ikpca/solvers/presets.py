"""Eigensolvers by name."""

from __future__ import annotations

from numbers import Integral

from ikpca.errors import invalid_parameter
from ikpca.solvers.adaptive import Adaptive
from ikpca.solvers.base import Solver
from ikpca.solvers.dense import Dense
from ikpca.solvers.kha import KHA, METHODS
from ikpca.solvers.krylov import Krylov
from ikpca.solvers.nystrom import Nystrom

#: scikit-learn's names of iterative solvers stand for krylov.
_SKLEARN_ALIASES = ("arpack", "randomized")
SOLVERS = ("auto", "dense", "krylov", "nystrom", *_SKLEARN_ALIASES, *METHODS)
#: To machine precision, the dense solver is faster up to this order plus rows per component
#: (benchmarks/crossover.py), and with a tolerance up to the last order.
_DENSE_ORDER, _DENSE_ROWS_PER_COMPONENT, _DENSE_TOLERANCE_ORDER = 2200, 10, 1500
#: Order up to which the dense solver finds the components for a fraction of the variance.
_DENSE_VARIANCE_ORDER = 4000


def make_solver(eigen_solver: str | Solver) -> Solver | None:
    """Return the solver of a name or an object; None for "auto", which depends on the rows."""
    if isinstance(eigen_solver, Solver):
        return eigen_solver
    if not isinstance(eigen_solver, str) or eigen_solver not in SOLVERS:
        raise invalid_parameter(
            "eigen_solver",
            eigen_solver,
            "is unknown",
            f"choose one of {', '.join(map(repr, SOLVERS))}, or an object of ikpca.solvers",
        )
    if eigen_solver == "auto":
        return None
    if eigen_solver in METHODS:
        return KHA(eigen_solver)
    kinds: dict[str, type[Solver]] = {"dense": Dense, "nystrom": Nystrom}
    return kinds.get(eigen_solver, Krylov)()


def check_solver(eigen_solver: str | Solver, n_components: float | None) -> None:
    """Validate a solver and the requested number of components."""
    solver = make_solver(eigen_solver)
    is_alias = isinstance(eigen_solver, str) and eigen_solver in _SKLEARN_ALIASES
    if solver is not None and not (is_alias and n_components is None):
        solver.check(n_components)


def choose_solver(
    eigen_solver: str | Solver, n_components: float | None, n_samples: int, tol: float = 0.0
) -> Solver:
    """Return the solver for a number of rows.

    "auto" is dense for small problems, else krylov, or, with a tolerance, landmarks and krylov.
    Krylov is replaced by the dense solver where that is always cheaper.
    """
    solver = make_solver(eigen_solver)
    if solver is not None and not isinstance(solver, Krylov):
        return solver
    if n_components is None:
        return Dense()
    if not isinstance(n_components, Integral):
        small = n_samples <= _DENSE_VARIANCE_ORDER
    else:
        number = int(n_components)
        exact_order = _DENSE_ORDER + _DENSE_ROWS_PER_COMPONENT * number
        small = n_samples <= (_DENSE_TOLERANCE_ORDER if tol > 0 else exact_order)
        if not Krylov.is_applicable(number, n_samples):
            return Dense()
    if solver is not None:
        return solver
    if small:
        return Dense()
    return Adaptive() if tol > 0 else Krylov()
