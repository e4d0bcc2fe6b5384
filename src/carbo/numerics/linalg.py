"""Gaussian process algebra on matrices: factor, solve, eliminate, condition.

Notation
    n       number of observations
    C       (n, n) covariance of the observations, noise included
    L       (n, n) lower Cholesky factor of C, Fortran order
    r       (n,) residuals y - mean
    alpha   (n,) C^-1 r
    1, 2    index of the observations that are eliminated first, and of the others (n1 and n2 of them)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from carbo.errors import NumericalError
from carbo.numerics.types import Floats


class Fit(NamedTuple):
    """The log density of residuals, in two parts: log N(r; 0, C) = log_det_half + quad_half - n/2 log 2 pi."""

    log_det_half: float  # -1/2 log det C
    quad_half: float  # -1/2 r' C^-1 r

    @property
    def log_likelihood(self) -> float:
        """log N(r; 0, C) without the constant -n/2 log 2 pi."""
        return self.log_det_half + self.quad_half

    def plus(self, other: Fit) -> Fit:
        """The fit of two independent groups of residuals together."""
        return Fit(self.log_det_half + other.log_det_half, self.quad_half + other.quad_half)


def cholesky(C: Floats, jitters: Sequence[float] = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)) -> Floats:
    """The factor L of C, with the smallest jitter on the diagonal that makes C positive definite. C keeps its values.

    jitters: ascending, in units of the mean diagonal. Raises NumericalError when even the last one fails.
    """
    scale = float(np.mean(np.diagonal(C)))
    for jitter in jitters:
        L = np.array(C, order="F")
        L[np.diag_indices_from(L)] += jitter * scale
        L, info = lapack.dpotrf(L, lower=1, clean=1, overwrite_a=1)
        if info == 0 and math.isfinite(L[-1, -1]):
            return np.asarray(L)
    raise NumericalError(
        f"covariance of {len(C)} observations: expected a positive definite matrix, got one that stays singular "
        f"with {jitters[-1]:g} of its mean diagonal added; are values infinite or NaN?"
    )


def fit_in_place(C: Floats, r: Floats) -> Fit | None:
    """The fit of residuals r (n,) under C (n, n) in Fortran order, which is overwritten; None if C is not positive
    definite.

    The sampler calls this function thousands of times for one suggestion: no copy, no check, one factor, one solve.
    """
    L, info = lapack.dpotrf(C, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        return None
    v, _ = lapack.dtrtrs(L, r, lower=1)
    quad = float(np.dot(v, v))
    log_det = float(np.log(L.diagonal()).sum())
    return Fit(-log_det, -0.5 * quad) if math.isfinite(quad) and math.isfinite(log_det) else None


class Head(NamedTuple):
    """The eliminated observations: their fit, and what the others' Schur complement needs of them.

    With A (n1, n2) the covariance between the two groups: H = A' C11^-1 A and g = A' C11^-1 r1. The others then have
    covariance C22 - H and residuals r2 - g.
    """

    fit: Fit
    H: Floats
    g: Floats


def eliminate(C11: Floats, A: Floats, r1: Floats, H: Floats) -> Head | None:
    """Eliminate observations with covariance C11 (n1, n1) and residuals r1 (n1,); None if C11 is not positive definite.

    All arrays are in Fortran order. C11 and A (n1, n2) are overwritten; the result's H is written into H (n2, n2).
    """
    L, info = lapack.dpotrf(C11, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        return None
    v, _ = lapack.dtrtrs(L, r1, lower=1)
    own_fit = Fit(-float(np.log(L.diagonal()).sum()), -0.5 * float(v @ v))
    if A.shape[1] == 0:
        return Head(own_fit, H, np.empty(0))
    W = blas.dtrsm(1.0, L, A, lower=1, overwrite_b=1)
    return Head(own_fit, blas.dgemm(1.0, W, W, beta=0.0, c=H, trans_a=1, overwrite_c=1), v @ W)


def solve_lower(L: Floats, b: Floats) -> Floats:
    """L^-1 b for a vector or a matrix b."""
    v, _ = lapack.dtrtrs(L, b, lower=1)
    return np.asarray(v)


def solve_upper(L: Floats, b: Floats) -> Floats:
    """L^-T b for a vector or a matrix b."""
    v, _ = lapack.dtrtrs(L, b, lower=1, trans=1)
    return np.asarray(v)


class ConditionedGP(NamedTuple):
    """A Gaussian process given its observations: prior mean, factor L (n, n), and alpha (n,)."""

    mean: float
    L: Floats
    alpha: Floats


def condition(C: Floats, y: Floats, mean: float) -> ConditionedGP:
    """Condition on values y (n,) of covariance C, with constant prior mean. Raises NumericalError like `cholesky`."""
    L = cholesky(C)
    return ConditionedGP(mean, L, solve_upper(L, solve_lower(L, y - mean)))
