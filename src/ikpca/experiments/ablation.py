"""What the steps of the update are for: a stream without each of them, against batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import linalg

from ikpca.estimators import KernelPCA
from ikpca.experiments.agreement import overlaps, subspace_angles
from ikpca.experiments.claims import Claim
from ikpca.experiments.manifold_rows import PARABOLA_GAMMA, parabola
from ikpca.gram import tiles
from ikpca.incremental import Compression, Settings, State, step
from ikpca.kernels import Floats, Gaussian
from ikpca.reduced_sets import IteratedPreimages

__all__ = ["SETTING", "VARIANTS", "Course", "claims", "courses"]

#: Components that are compared.
LEADING = 3
_BATCH = 30
#: A library so small that every reduction costs something.
_REDUCTION = Compression(IteratedPreimages(), limit=18)
_WHOLE = Settings(LEADING, n_oversamples=5, compression=_REDUCTION)
VARIANTS: dict[str, Settings] = {
    "all steps": _WHOLE,
    "mean not updated": replace(_WHOLE, move_mean=False),
    "not re-orthogonalised": replace(_WHOLE, compression=replace(_REDUCTION, orthonormal=False)),
}
SETTING = f"parabola, Gaussian σ = 1; batches of {_BATCH}, a library of {_REDUCTION.limit}"


@dataclass(frozen=True)
class Course:
    """A variant along the stream.

    Parameters
    ----------
    variant : str
    rows : tuple of int
        Rows seen, where it was compared.
    angles : tuple of float
        The largest between the leading components and batch of the same rows, in degrees.
    eigenvalue_errors : tuple of float
        The largest relative one.
    defects : tuple of float
        max |UᵀU − I| of all components.
    """

    variant: str
    rows: tuple[int, ...]
    angles: tuple[float, ...]
    eigenvalue_errors: tuple[float, ...]
    defects: tuple[float, ...]


def courses(n_rows: int = 3000, points: int = 10) -> list[Course]:
    """Stream the parabola through every variant, and compare at equal distances."""
    X = parabola(n_rows)
    ends = [n_rows * (number + 1) // points for number in range(points)]
    truths = [_batch(X[:end]) for end in ends]
    found = []
    for name, settings in VARIANTS.items():
        states = _states(X, settings, ends)
        rows = [_compare(state, batch, X) for state, batch in zip(states, truths, strict=True)]
        found.append(Course(name, tuple(ends), *zip(*rows, strict=True)))
    return found


def _batch(X: Floats) -> KernelPCA:
    model = KernelPCA(LEADING, kernel="rbf", gamma=PARABOLA_GAMMA, tol=1e-8, n_jobs=1)
    return model.set_params(random_state=0).fit(X)


def _states(X: Floats, settings: Settings, ends: Sequence[int]) -> list[State]:
    state, found = State.empty(Gaussian(PARABOLA_GAMMA), X), []
    for begin, end in pairwise([0, *ends]):
        piece = X[begin:end]
        for rows in tiles(len(piece), _BATCH):
            state, _ = step(state, piece[rows], settings)
        found.append(state)
    return found


def _compare(state: State, batch: KernelPCA, X: Floats) -> tuple[float, float, float]:
    subspace = state.subspace()
    gram = subspace.component_gram
    leading = gram[:LEADING, :LEADING]
    projections = subspace.project(X[: batch.coefficients_.shape[1]])[:, :LEADING]
    # Components that lost their orthonormality still span something: that is what is compared.
    root = linalg.cholesky(leading, lower=True)
    spanned = linalg.solve_triangular(root, projections.T, lower=True).T
    exact = batch.eigenvalues_
    eigenvalues = np.square(state.singular_values[:LEADING])
    return (
        float(subspace_angles(overlaps(batch, spanned))[0]),
        float(np.abs(eigenvalues / exact - 1).max()),
        float(np.abs(gram - np.eye(len(gram))).max()),
    )


def claims(found: Sequence[Course]) -> list[Claim]:
    """The whole update is nearer to batch at the end than without either step."""
    whole, *others = found
    return [
        Claim(f"angle of all steps over that with the {other.variant}"
              if other.variant.startswith("mean") else
              f"angle of all steps over that {other.variant}",
              whole.angles[-1] / other.angles[-1], 0.5)
        for other in others
    ]  # fmt: skip
