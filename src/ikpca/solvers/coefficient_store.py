"""Storage of the coefficients A and their products AK'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ikpca.gram import CenteredGram
from ikpca.kernels import Floats, Indices
from ikpca.solvers.rayleigh_ritz import (
    Certificate,
    certify,
    excess_error,
    rayleigh_ritz,
    relative_residuals,
)

#: Random vectors that search the complement of the components for larger eigenvalues.
N_PROBES = 16


def certify_projections(
    gram: CenteredGram, coefficients: Floats, projections: Floats, eigenvalues: Floats, seed: int
) -> Certificate:
    """Compute the certificate by two products with K'.

    The first product gives the residuals. A Rayleigh–Ritz step on A, the projections and two power
    iterations of random vectors gives estimates of the exact eigenvalues, and with them E_min: the
    residuals alone would not reveal a leading component that is missing.

    Parameters
    ----------
    gram : CenteredGram
    coefficients, projections : ndarray of shape (r, l)
        A and AK'.
    eigenvalues : ndarray of shape (r,)
    seed : int
        Seed of the random vectors.
    """
    eps = float(np.finfo(gram.dtype).eps)
    A, Y = (np.asarray(part, dtype=np.float64) for part in (coefficients, projections))
    U = unit_rows(Y)
    probes: Floats = np.random.default_rng([seed, 4]).normal(size=(gram.n_samples, N_PROBES))
    KU, probes = np.split(_multiply(gram, np.hstack([U.T, probes])), [len(U)])
    probes = unit_rows(probes - (probes @ U.T) @ U)
    basis = np.vstack([A, U, probes])
    images = np.vstack([Y, KU, _multiply(gram, probes.T)])
    if not np.isfinite(images).all():
        # Kernel values that are not finite: the coefficients still give a bound.
        bound = relative_residuals(A, Y, eigenvalues)
        return certify(eigenvalues, bound, A @ Y.T, gram.squared_norm_estimate, eps=eps)
    N = basis @ images.T
    ritz_values = rayleigh_ritz((N + N.T) / 2, images @ images.T, drop=max(1e-12, 10 * eps))[0]
    leading, following = ritz_values[: len(Y)], float(ritz_values[len(Y)])
    certificate = certify(
        eigenvalues,
        residual_norms(U, KU, eigenvalues),
        A @ Y.T,
        gram.squared_norm_estimate,
        following,
        of_projections=True,
        eps=eps,
    )
    # E² − E²_min = Σμ² − 2 tr(YK'Yᵀ) + ‖YYᵀ‖², less than which is rounding error.
    total = float(np.sum(leading * leading))
    captured = float(np.square(Y).sum(axis=1) @ np.einsum("il,il->i", U, KU))
    increase = total - 2 * captured + float(np.sum(np.square(Y @ Y.T)))
    if increase <= 100 * eps * total:
        return certificate
    estimate = excess_error(increase, total, gram.squared_norm_estimate, eps)
    return replace(certificate, excess_error=max(certificate.excess_error, estimate))


def residual_norms(U: Floats, KU: Floats, eigenvalues: Floats) -> Floats:
    """Return ‖K'u_i − λ_i u_i‖/λ_1 for the rows u_i of U."""
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    norms = np.linalg.norm(KU - eigenvalues[:, None] * U, axis=1)
    return norms / largest if largest > 0 else np.zeros_like(norms)


def unit_rows(Y: Floats) -> Floats:
    """Return the rows scaled to unit length; rows of zeros stay zero."""
    lengths = np.linalg.norm(Y, axis=1, keepdims=True)
    return np.divide(Y, lengths, out=np.zeros_like(Y), where=lengths > 0)


def _multiply(gram: CenteredGram, V: Floats) -> Floats:
    """Return (K'V)ᵀ in double precision."""
    return gram.multiply(V.astype(gram.dtype)).T.astype(np.float64)


class KernelStrip(Protocol):
    """Rows K'[P, :] of the centered matrix, in this process or distributed."""

    def columns(self, indices: Indices) -> Floats:
        """Return K'[P, indices]."""

    def update(self, T: Floats, products: Floats, C: Floats) -> Floats:
        """Return T RK' + C K'[P, :]."""

    def dot(self, V: Floats) -> Floats:
        """Return K'[P, :] V."""


class CoefficientStore:
    """Rows R (A alone, or A over its companion B) and RK'; computes K' a block of rows at a time.

    ``project``, ``transform`` and ``gram`` do the computation; the other methods inspect or undo.
    The arrays they return are small and in double precision. A store does not depend on the gain.
    """

    def __init__(self, gram: CenteredGram, rows: Floats, products: Floats) -> None:
        self._gram = gram
        self._rows = np.array(rows, dtype=gram.dtype, order="C")
        self._products: Floats = np.array(products, dtype=gram.dtype, order="C")
        self._mark = (self._rows, self._products)
        #: T, P and C of transforms that are not applied to R yet.
        self._pending: list[tuple[Floats, Indices, Floats]] = []
        self._grams: dict[int, Floats] = {}
        self._strip: tuple[Indices, KernelStrip] | None = None
        self._next: tuple[Indices, Callable[[], KernelStrip]] | None = None

    @property
    def n_samples(self) -> int:
        """Number of columns."""
        return self._gram.n_samples

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of the kernel matrix."""
        return self._gram.dtype

    @property
    def entries(self) -> int:
        """Entries of K evaluated so far."""
        return self._gram.entries

    @property
    def mean_diagonal(self) -> float:
        """Mean κ of k'(x, x)."""
        return self._gram.mean_diagonal

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """Return (RK')[:, P] and K'[P, P]; kernel rows of the upcoming blocks may be read ahead."""
        strip = self._strip_of(patterns)
        self._strip = (patterns, strip)
        # C order, which the compiled sweep expects.
        Y = self._products[:, patterns].astype(np.float64, order="C")
        G = strip.columns(patterns).astype(np.float64, order="C")
        if upcoming:
            # Another thread reads them, if there is one and K is stored.
            ahead = self._gram.prefetch_strip(upcoming[0], extra_rows=len(self._rows))
            self._next = (upcoming[0], ahead)
        return Y, G

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """Set R ← TR, then R[:, P] += C (repeated patterns add up), and update RK'.

        RK' ← T RK' + C K'[P, :] is one product; R is updated when it is read.
        """
        T, C = T.astype(self.dtype), C.astype(self.dtype)
        # New arrays, so that the mark needs no copies.
        if patterns.size:
            self._products = self._strip_of(patterns).update(T, self._products, C)
        else:
            self._products = T @ self._products
        self._pending.append((T, patterns, C))
        self._grams = {}

    def _updated_rows(self) -> Floats:
        """Return R with all transforms applied.

        Blocks T, C in order 1..b make R ← T_b⋯T_1 R, and C_j ends up multiplied by T_b⋯T_{j+1}:
        in reverse order, R itself is multiplied only once for all blocks.
        """
        if not self._pending:
            return self._rows
        later = np.eye(len(self._rows), dtype=self.dtype)
        columns = []
        for T, _, C in reversed(self._pending):
            columns.append(later @ C)
            later = later @ T
        patterns = np.concatenate([patterns for _, patterns, _ in reversed(self._pending)])
        self._rows = later @ self._rows
        if len(np.unique(patterns)) == len(patterns):
            self._rows[:, patterns] += np.hstack(columns)
        else:
            np.add.at(self._rows.T, patterns, np.hstack(columns).T)
        self._pending = []
        return self._rows

    def gram(self, power: int) -> Floats:
        """Return R Rᵀ, R K'Rᵀ or RK'(RK')ᵀ in double precision; cached until the next transform."""
        if power not in self._grams:
            left = self._updated_rows() if power == 0 else self._products
            right = self._products if power == 2 else self._updated_rows()
            product = left.astype(np.float64, copy=False) @ right.astype(np.float64, copy=False).T
            self._grams[power] = (product + product.T) / 2
        return self._grams[power]

    def residuals(self, eigenvalues: Floats, sample: Indices) -> Floats:
        """Estimate ‖K'u_i − λ_i u_i‖/λ_1 for u_i along (RK')_i from a sample of rows of K'."""
        U = unit_rows(self._products[: len(eigenvalues)].astype(np.float64))
        KU = self._strip_of(sample).dot(U.T.astype(self.dtype)).T.astype(np.float64)
        return np.sqrt(self.n_samples / len(sample)) * residual_norms(U[:, sample], KU, eigenvalues)

    def mark(self) -> None:
        """Save references to R and RK'; transforms never modify existing arrays."""
        self._mark = (self._updated_rows(), self._products)

    def rewind(self) -> None:
        """Restore R and RK' of the last ``mark``."""
        self._grams, self._pending = {}, []
        self._rows, self._products = self._mark

    def change(self, n_rows: int) -> float:
        """Return tr((A − A₀)K'(A − A₀)ᵀ) of the leading rows, with A₀ at the mark."""
        rows, products = (part[:n_rows] for part in self._mark)
        delta_rows = np.asarray(self._updated_rows()[:n_rows] - rows, dtype=np.float64)
        delta_products = np.asarray(self._products[:n_rows] - products, dtype=np.float64)
        return max(float(np.einsum("il,il->", delta_rows, delta_products)), 0.0)

    def read(self) -> tuple[Floats, Floats]:
        """Return copies of R and RK'."""
        return self._updated_rows().copy(), self._products.copy()

    def _strip_of(self, patterns: Indices) -> KernelStrip:
        if self._strip is not None and self._strip[0] is patterns:
            return self._strip[1]
        if self._next is not None and self._next[0] is patterns:
            return self._next[1]()
        return self._gram.strip(patterns, extra_rows=len(self._rows))
