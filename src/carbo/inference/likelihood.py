"""The log marginal likelihood of a differentiable kernel and its gradient in all parameters at once.

Notation
    n, d        observations, variables
    C           (n, n) signal covariance + 1 + noise I; the ones are the variance of the mean, which has the prior
                N(0, 1) and is integrated out
    W           (n, n) (C^-1 y y' C^-1 - C^-1) / 2: the change of the log likelihood is sum(W * change of C)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from carbo.inference.data import Data
from carbo.kernels.base import Kernel, Scales, Slopes
from carbo.numerics.types import Floats


class Slope(NamedTuple):
    """The log likelihood without its constant, and its derivatives by the kernel's parameters and by the log noise."""

    value: float
    by: Slopes
    log_noise: float
    mean: tuple[float, float]
    """Posterior mean and standard deviation of the process's mean."""


class Likelihood:
    """The log marginal likelihood of one data set under a differentiable kernel."""

    def __init__(self, kernel: Kernel, data: Data) -> None:
        self._gradient, self._y = kernel.gradient(data.X), data.y
        self._spare = np.empty((len(data.y), len(data.y)))

    def at(self, scales: Scales, log_w: Floats, log_noise: float) -> Slope | None:
        """The log likelihood and its derivatives at these parameters; None where C is not positive definite."""
        noise = math.exp(log_noise)
        C = self._gradient.covariance(scales, log_w, 1.0, noise)
        L, info = lapack.dpotrf(C.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            return None
        v, _ = lapack.dtrtrs(L, self._y, lower=1)
        value = -float(np.log(L.diagonal()).sum()) - 0.5 * float(v @ v)
        if not math.isfinite(value):
            return None
        alpha, _ = lapack.dtrtrs(L, v, lower=1, trans=1)
        W = self._weights(L, alpha)
        by = self._gradient.slopes(W)
        mean = float(alpha.sum())  # 1'C^-1 y, with variance 1 - 1'C^-1 1
        sd = math.sqrt(max(1.0 - (mean**2 - 2.0 * float(W.sum())), 0.0))
        return Slope(value, by, noise * float(np.trace(W)), (mean, sd))

    def _weights(self, L: Floats, alpha: Floats) -> Floats:
        """W from the factor L, which is overwritten."""
        half, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
        W = np.asarray(half.T)  # C order: its upper triangle is filled
        block = 64  # rows mirrored at a time
        for i in range(0, len(W), block):
            W[i : i + block, :i] = W[:i, i : i + block].T
            corner = W[i : i + block, i : i + block]
            corner[:] = np.triu(corner) + np.triu(corner, 1).T
        W *= -0.5
        W += np.multiply((0.5 * alpha)[:, None], alpha, out=self._spare)
        return W
