"""A reduced set of iterated pre-images (Chin 2006, section 5.2), for kernels with a gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ikpca.errors import refuse
from ikpca.gram import cross_gram
from ikpca.kernels import DifferentiableKernel, Floats, Kernel, RadialKernel
from ikpca.preimages import Expansion, FixedPoint, Gradient, PreimageMethod, choose_method
from ikpca.reduced_sets.elimination import eliminate
from ikpca.reduced_sets.ground import Ground
from ikpca.reduced_sets.growth import Library
from ikpca.reduced_sets.least_squares import squared_errors
from ikpca.reduced_sets.merging import check_size, check_weights
from ikpca.reduced_sets.peaks import find_peaks
from ikpca.reduced_sets.reduction import ReducedSet, nearest_on, with_errors

__all__ = ["IteratedPreimages"]

@dataclass(frozen=True)
class IteratedPreimages:
    per_vector: int | Literal["auto"] = "auto"
    reuse: bool = True
    second_pass: bool = True
    tol: float = 1e-4
    method: str | PreimageMethod = "auto"
    together: bool = True
    keep: float = 0.0
    most: int = 4000
    seed: int = 0

    def serves(self, kernel: Kernel) -> bool:
        return isinstance(kernel, DifferentiableKernel | RadialKernel)

    def reduce(self, expansion, size, weights=None, *, values=None):
        size = check_size(expansion, size)
        weights = check_weights(expansion, weights)
        ground = Ground.of(expansion, values, max(self.most, 2 * size), self.seed)
        if ground.expansion.basis.shape[0] <= size:
            return ground.as_it_is()
        method = self._method(expansion.kernel)
        library = Library(ground.candidates, size)
        first = None
        if self.together:
            n = int(self.keep * size)
            if n:
                library.keep(eliminate(ground.values, ground.candidates.coefficients, weights, n), ground.values)
            self._together(library, weights, method)
        else:
            first = self._in_turn(library, weights, method)
        return nearest_on(ground.expansion, library.rows, library.values, library.across, first)

    def _method(self, kernel):
        if self.method != "auto":
            return self.method
        return FixedPoint(30, 1e-2) if isinstance(kernel, RadialKernel) else Gradient(50, 1e-4)

    def _together(self, library, weights, method):
        lengths = np.diagonal(library.vectors.gram)
        m = len(library.vectors.basis)
        made = np.zeros(len(lengths))
        limit = np.inf if self.per_vector == "auto" else self.per_vector
        while library.count < library.size:
            open_ = np.flatnonzero((library.squared_errors > self.tol**2 * lengths) & (made < limit))
            order = np.argsort(-weights[open_]**2 * library.squared_errors[open_])
            who = open_[order][: library.size - library.count]
            if not len(who): break
            made[who] += 1
            if not library.add(find_peaks(method, library.residuals(who), m)): break

    def _in_turn(self, library, weights, method):
        lengths = np.diagonal(library.vectors.gram)
        m = len(library.vectors.basis)
        q = len(lengths)
        C = np.zeros((q, library.size))
        order = np.argsort(-weights, kind="stable")
        for turn, i in enumerate(order):
            share = (library.size-library.count)//(q-turn) if self.per_vector == "auto" else self.per_vector
            for _ in range(share):
                if library.squared_errors[i] <= self.tol**2 * lengths[i]: break
                if not library.add(find_peaks(method, library.residuals(np.array([i])), m)): break
            C[i, :library.count] = library.coefficients()[i]
        return C[:, :library.count]
