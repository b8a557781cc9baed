"""Eigensolvers of the centered kernel matrix."""

from ikpca.solvers.adaptive import Adaptive
from ikpca.solvers.base import (
    Callback,
    EigenSolution,
    Landmarks,
    Outcome,
    PassRecord,
    RunSettings,
    SavedRun,
    Solver,
    plain_interrupts,
)
from ikpca.solvers.coefficient_store import CoefficientStore
from ikpca.solvers.dense import Dense, solve_dense
from ikpca.solvers.kha import KHA, METHODS
from ikpca.solvers.kha_pass import HebbianProgress, HebbianState, safety_for
from ikpca.solvers.kha_reference import (
    hebbian_step,
    hebbian_step_with_products,
    meta_step,
    online_step,
)
from ikpca.solvers.krylov import Krylov, KrylovProgress, KrylovState
from ikpca.solvers.landmarks import landmark_start, uniform_landmarks
from ikpca.solvers.nystrom import LandmarkFit, Nystrom
from ikpca.solvers.presets import SOLVERS, check_solver, choose_solver, make_solver
from ikpca.solvers.problem import (
    Engine,
    GramTransform,
    Plan,
    Problem,
    check_distances,
)
from ikpca.solvers.rayleigh_ritz import (
    Certificate,
    certify,
    deterministic_signs,
    inner_in_double,
)
from ikpca.solvers.sampled_residuals import SampledResiduals

__all__ = [
    "KHA",
    "METHODS",
    "SOLVERS",
    "Adaptive",
    "Callback",
    "Certificate",
    "CoefficientStore",
    "Dense",
    "EigenSolution",
    "Engine",
    "GramTransform",
    "HebbianProgress",
    "HebbianState",
    "Krylov",
    "KrylovProgress",
    "KrylovState",
    "LandmarkFit",
    "Landmarks",
    "Nystrom",
    "Outcome",
    "PassRecord",
    "Plan",
    "Problem",
    "RunSettings",
    "SampledResiduals",
    "SavedRun",
    "Solver",
    "certify",
    "check_distances",
    "check_solver",
    "choose_solver",
    "deterministic_signs",
    "hebbian_step",
    "hebbian_step_with_products",
    "inner_in_double",
    "landmark_start",
    "make_solver",
    "meta_step",
    "online_step",
    "plain_interrupts",
    "safety_for",
    "solve_dense",
    "uniform_landmarks",
]
