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
from ikpca.experiments.manifold_rows import PARABOLA_GAMMA, rising_parabola
from ikpca.gram import tiles
from ikpca.incremental import Compression, Settings, State, step
from ikpca.kernels import Floats, Gaussian
from ikpca.reduced_sets import IteratedPreimages, JointPreimages, Reduction

__all__ = ["JOINT", "PAPER", "Course", "Variant", "claims", "courses"]

#: Components that are compared.
LEADING = 3
_BATCH = 30


@dataclass(frozen=True)
class Variant:
    """A way to learn from a stream: how its library is reduced, and what is left out."""

    library: str
    left_out: str
    settings: Settings


def _variants(library: str, reduction: Reduction, limit: int) -> list[Variant]:
    whole = Settings(LEADING, n_oversamples=5, compression=Compression(reduction, limit))
    skewed = Compression(reduction, limit, orthonormal=False)
    return [
        Variant(library, "nothing", whole),
        Variant(library, "mean update", replace(whole, move_mean=False)),
        Variant(library, "re-orthogonalisation", replace(whole, compression=skewed)),
    ]


#: Small libraries, so that every reduction costs something.
JOINT = _variants("12 joint pre-images", JointPreimages(), 12)
#: The paper's figure 1: (c), which it proposes, and (a), which it improves on.
PAPER = [
    *_variants("36 pre-images, scheme (c)", IteratedPreimages(), 36),
    *_variants("36 pre-images, scheme (a)", IteratedPreimages(reuse=False, second_pass=False), 36),
]


@dataclass(frozen=True)
class Course:
    """A variant along the stream, against batch kernel PCA of the rows so far.

    Parameters
    ----------
    library, left_out : str
    rows : tuple of int
        Rows seen, where it was compared.
    angles : tuple of float
        The largest between the spans of the leading components, in degrees.
    errors : tuple of float
        ‖Σσ_i² v_i v_iᵀ − Σλ_i u_i u_iᵀ‖ / ‖Σλ_i u_i u_iᵀ‖ over the leading components: what is
        wrong with directions, lengths and eigenvalues at once.
    defects : tuple of float
        max |VᵀV − I| of all components.
    """

    library: str
    left_out: str
    rows: tuple[int, ...]
    angles: tuple[float, ...]
    errors: tuple[float, ...]
    defects: tuple[float, ...]


def courses(variants: Sequence[Variant], n_rows: int = 3000, points: int = 10) -> list[Course]:
    """Stream the parabola through every variant, and compare at equal distances."""
    X = rising_parabola(n_rows)
    ends = tuple(n_rows * (number + 1) // points for number in range(points))
    truths = [_batch(X[:end]) for end in ends]
    found = []
    for variant in variants:
        states = _states(X, variant.settings, ends)
        measured = [_compare(*pair, X) for pair in zip(states, truths, strict=True)]
        columns = (tuple(column) for column in zip(*measured, strict=True))
        found.append(Course(variant.library, variant.left_out, ends, *columns))
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
    inner = overlaps(batch, projections)
    # Components that lost their orthonormality still span something: that is what is compared.
    root = linalg.cholesky(leading, lower=True)
    spanned = linalg.solve_triangular(root, inner.T, lower=True).T
    return (
        float(subspace_angles(spanned)[0]),
        _scatter_error(batch.eigenvalues_, state.singular_values[:LEADING], inner, leading),
        float(np.abs(gram - np.eye(len(gram))).max()),
    )


def _scatter_error(exact: Floats, sigma: Floats, inner: Floats, gram: Floats) -> float:
    """From inner products alone: ‖S − C‖² = ‖S‖² − 2⟨S, C⟩ + ‖C‖²."""
    weighted = sigma[:, None] * gram * sigma
    mixed = np.square(np.sqrt(exact)[:, None] * inner * sigma).sum()
    total = np.square(exact).sum()
    return float(np.sqrt(max(np.square(weighted).sum() - 2 * mixed + total, 0) / total))


def claims(found: Sequence[Course]) -> list[Claim]:
    """What is left out is missed where the library is the paper's (a), or good enough to see it.

    With joint pre-images re-orthogonalisation keeps what its name says, and changes no span; with
    the paper's own libraries the error of the library hides that of the mean.
    """
    course = {(each.library, each.left_out): each for each in found}
    whole = [each for each in found if each.left_out == "nothing"]
    joint, last = JOINT[0].library, whole[-1].library
    told = [
        Claim(f"{joint}: angle of the whole update over that without mean update",
              course[joint, "nothing"].angles[-1] / course[joint, "mean update"].angles[-1], 0.5),
        Claim("largest orthonormality defect", max(max(each.defects) for each in whole), 1e-8),
    ]  # fmt: skip
    if last != joint:
        skewed = course[last, "re-orthogonalisation"].errors[-1]
        what = f"{last}: error of the whole update over that without re-orthogonalisation"
        told.append(Claim(what, whole[-1].errors[-1] / skewed, 0.5))
    return told
