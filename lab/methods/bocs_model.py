"""The model of BOCS: a sparse Bayesian polynomial of binary variables, its coefficients drawn by Gibbs sampling.

    y = c + X a + noise,      noise ~ N(0, sigma2)
    a_k ~ N(0, sigma2 tau2 beta2_k),  beta_k and tau ~ half-Cauchy(0, 1)       the horseshoe
    p(sigma2) = 1 / sigma2,  p(c) = 1

A half-Cauchy variable is an inverse gamma mixture of inverse gammas (Makalic and Schmidt 2016, IEEE Signal Processing
Letters 23:179): with the auxiliary nu_k and xi every conditional is a normal or an inverse gamma. The constant c,
which has a flat prior, is integrated out: columns of X and y are centred, which costs one degree of freedom. It is not
drawn, because it does not change the minimum. The distribution of a / sigma is the same in all units of y.

Notation
    d, n, p     variables, observations, monomials (the constant left out)
    X           (n, p) monomials of the rows, columns centred
    y           (n,) values, mean 0 and standard deviation 1
    a           (p,) coefficients
    D           (p,) tau2 beta2: prior variances of a in units of sigma2
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from carbo.numerics.types import Floats, Ints
from lab.methods.bocs_search import Polynomial

LEAST, MOST = 1e-30, 1e8
"""Bounds of variances (local, global, their product, and sigma2): beyond them float64 loses the noise next to the
signal. Without noise sigma2 goes to 0 where the polynomial can interpolate the values, and ends at LEAST."""


class Regression(NamedTuple):
    """The data that coefficients are drawn from."""

    X: Floats
    y: Floats


class Chain(NamedTuple):
    """The state of the Gibbs sampler, without the coefficients, which a sweep draws first."""

    beta2: Floats
    """(p,) local scales"""
    nu: Floats
    """(p,) their auxiliaries"""
    tau2: float
    xi: float
    sigma2: float


# ---- the polynomial


@cache
def monomials(d: int, order: int) -> tuple[Ints, ...]:
    """For each degree 1 to `order`, the variables of its monomials (degree, number), in lexicographic order."""
    return tuple(
        np.array(list(combinations(range(d), degree)), dtype=np.intp).reshape(-1, degree).T
        for degree in range(1, order + 1)
    )


def features(rows: ArrayLike, order: int) -> Floats:
    """(n, p): every monomial up to `order` at rows (n, d) of zeros and ones."""
    x = np.asarray(rows, dtype=np.float64)
    blocks = []
    for variables in monomials(x.shape[1], order):
        block = x[:, variables[0]]
        for column in variables[1:]:
            block *= x[:, column]
        blocks.append(block)
    return np.hstack(blocks)


def polynomial(a: Floats, d: int, order: int) -> Polynomial:
    """Coefficients (p,) in the order of `features`, as symmetric arrays; `order` 2 or 3."""
    tensors = []
    for variables in monomials(d, order):
        part, a = a[: variables.shape[1]], a[variables.shape[1] :]
        tensor = np.zeros((d,) * len(variables))
        for turn in permutations(variables):
            tensor[turn] = part
        tensors.append(tensor)
    return Polynomial(*tensors)


def regression(rows: ArrayLike, values: ArrayLike, order: int) -> Regression:
    """Centred features and standardised values. Values that are all the same are only centred."""
    X, y = features(rows, order), np.asarray(values, dtype=np.float64)
    y = y / (float(np.abs(y).max()) or 1.0)  # squares of huge values would overflow
    spread = float(y.std())
    return Regression(X - X.mean(axis=0), (y - y.mean()) / (spread if spread > 1e-14 else 1.0))


# ---- the sampler


def first_chain(p: int) -> Chain:
    """A chain with all scales one."""
    return Chain(np.ones(p), np.ones(p), 1.0, 1.0, 1.0)


def draw(rng: np.random.Generator, chain: Chain, data: Regression, sweeps: int) -> tuple[Chain, Floats]:
    """The chain after so many more sweeps, and the coefficients (p,) of the last one."""
    a = np.zeros(data.X.shape[1])
    for _ in range(sweeps):
        chain, a = sweep(rng, chain, data)
    return chain, a


def sweep(rng: np.random.Generator, chain: Chain, data: Regression) -> tuple[Chain, Floats]:
    """Draw every conditional once: a, sigma2, beta2, tau2, nu, xi. O(n^2 p)."""
    n, p = data.X.shape
    D = within(chain.tau2 * chain.beta2)
    a = coefficients(rng, data, D, chain.sigma2)
    residual = data.y - data.X @ a
    misfit = residual @ residual + np.sum(a**2 / D)
    sigma2 = inverse_gamma(rng, (n - 1 + p) / 2, misfit / 2)
    square = a**2 / (2 * sigma2)
    beta2 = inverse_gamma(rng, 1.0, 1 / chain.nu + square / chain.tau2)
    tau2 = inverse_gamma(rng, (p + 1) / 2, 1 / chain.xi + np.sum(square / beta2))
    nu = inverse_gamma(rng, 1.0, 1 + 1 / beta2)
    xi = inverse_gamma(rng, 1.0, 1 + 1 / tau2)
    return Chain(beta2, nu, float(tau2), float(xi), float(sigma2)), a


def coefficients(rng: np.random.Generator, data: Regression, D: Floats, sigma2: float) -> Floats:
    """An exact draw (p,) of N(A^-1 X'y, sigma2 A^-1), A = X'X + diag(1/D), without forming A.

    Bhattacharya, Chakraborty and Mallick (2016, Biometrika 103:985): a draw of the prior, corrected with the data
    that it would give. Only a system of size n is solved.
    """
    X, y = data
    n, p = X.shape
    scaled = X * np.sqrt(D)
    from carbo.numerics import linalg

    L = linalg.cholesky(scaled @ scaled.T + np.eye(n))
    prior = math.sqrt(sigma2) * np.sqrt(D) * rng.standard_normal(p)
    seen = X @ prior + math.sqrt(sigma2) * rng.standard_normal(n)
    return prior + D * (X.T @ linalg.solve_upper(L, linalg.solve_lower(L, y - seen)))


def inverse_gamma(rng: np.random.Generator, shape: float, rate: Floats | float) -> Floats:
    """Draws with density proportional to v^(-shape - 1) exp(-rate / v), one for each rate, kept within bounds."""
    return within(np.asarray(rate) / rng.standard_gamma(shape, size=np.shape(rate)))


def within(variances: ArrayLike) -> Floats:
    """Variances, clipped to LEAST and MOST."""
    return np.clip(np.asarray(variances, dtype=np.float64), LEAST, MOST)
