"""Solver objects from flat keyword arguments, for tests that vary one option at a time."""

from __future__ import annotations

from typing import Any

from ikpca.solvers import KHA, Krylov

_OPTIONS = set(KHA().get_params()) - {"method"}


def with_solver(eigen_solver: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with a solver object that has their options, or with its name."""
    options = {name: value for name, value in parameters.items() if name in _OPTIONS}
    others = {name: value for name, value in parameters.items() if name not in _OPTIONS}
    if not options:
        return {"eigen_solver": eigen_solver, **others}
    kind = Krylov(**options) if eigen_solver == "krylov" else KHA(eigen_solver, **options)
    return {"eigen_solver": kind, **others}


def with_learning_rule(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the same for estimators with a ``rule``, where a number is a constant gain."""
    constant = isinstance(parameters.get("gain"), float | int)
    settings = with_solver("kha" if constant else "kha/et", parameters)
    return {"rule": settings.pop("eigen_solver"), **settings}
