"""Eigensolvers of the centered kernel matrix."""

from ikpca.solvers.adaptive import Adaptive
from ikpca.solvers.base import (
    Callback,
    EigenSolution,
    Outcome,
    PassRecord,
    RunSettings,
    Solver,
)
from ikpca.solvers.dense import Dense, solve_dense
from ikpca.solvers.kha import KHA, Gain, InverseTime, ReciprocalEigenvalues

# Files name these classes.
from ikpca.solvers.kha import HebbianState as HebbianState
from ikpca.solvers.kha import Product as Product
from ikpca.solvers.kha_reference import hebbian_step, hebbian_step_with_products, meta_step
from ikpca.solvers.krylov import Krylov
from ikpca.solvers.krylov import KrylovState as KrylovState
from ikpca.solvers.nystrom import Nystrom
from ikpca.solvers.problem import Plan, Problem
from ikpca.solvers.rayleigh_ritz import Certificate

__all__ = [
    "KHA",
    "Adaptive",
    "Callback",
    "Certificate",
    "Dense",
    "EigenSolution",
    "Gain",
    "InverseTime",
    "Krylov",
    "Nystrom",
    "Outcome",
    "PassRecord",
    "Plan",
    "Problem",
    "ReciprocalEigenvalues",
    "RunSettings",
    "Solver",
    "hebbian_step",
    "hebbian_step_with_products",
    "meta_step",
    "solve_dense",
]
