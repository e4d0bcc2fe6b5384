"""The order kernel's log marginal likelihood and its gradient in all parameters at once.

Notation
    n, d, Q     observations, variables, highest order; m_i values of variable i
    z_i, r_i    centred table and relevance of variable i, as in `kernel`; a_i = r_i z_i
    p_s, e_q    (n, n) power sums and elementary symmetric polynomials of the a_i
    c_q         w_q / e_q(r): the weight of e_q
    C           (n, n) sum_q c_q e_q + 1 + noise I; the ones are the variance of the mean, which has the prior N(0, 1)
                and is integrated out
    W           (n, n) (C^-1 y y' C^-1 - C^-1) / 2: the change of the log likelihood is sum(W * change of C)
    h_q, Psi    parts of variables in a row and their features, as in `adjacent`, where the kernel has them
    Phi         (n, F) features of the variables on complete graphs of up to `WIDE` values: Phi_i Phi_i' = z_i, m_i - 1
                columns each

Removing variable i from e_q is the recursion e_q without i = e_q - a_i (e_{q-1} without i), a polynomial in z_i. On a
complete graph z_i has two values, so that z_i^2 = ((m_i - 2) z_i + 1) / (m_i - 1) and every power of z_i is affine in
z_i: the derivatives in all relevances need only the sums of W * e_q and of W * e_q * z_i, and the latter are columns
of one matrix product with Phi. Other graphs, and larger ones, need these sums by pairs of values or observations: see
`seen`.
"""

from __future__ import annotations

import math
from itertools import accumulate, repeat
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from carbo.inference.data import Data
from carbo.inference.observed_tables import parts
from carbo.kernels.base import Scales
from carbo.kernels.orders import Orders, inverse, symmetric
from carbo.kernels.spectra import WIDE
from carbo.kernels.windows import features, rows_of
from carbo.numerics.types import Floats, Ints

BLOCK = 64
"""Rows mirrored at a time."""


class Slope(NamedTuple):
    """A log likelihood (without its constant) and its derivatives."""

    value: float
    log_beta: Floats
    log_relevance: Floats
    log_w: Floats
    log_noise: float
    mean: tuple[float, float]
    """Posterior mean and standard deviation of the process's mean."""


class Likelihood:
    """Of one data set under an order kernel without the product term."""

    def __init__(self, kernel: Orders, data: Data) -> None:
        some = [(i, s) for i, s in enumerate(kernel.spectra) if s.size > 1]
        complete = [(i, s) for i, s in some if s.kind == "complete" and s.size <= WIDE]
        sizes = np.array([s.size for _, s in complete], dtype=np.intp)
        self._kernel, self._y = kernel, data.y
        self._which = np.array([i for i, _ in complete], dtype=np.intp)
        self._owner = np.repeat(np.arange(len(complete)), sizes - 1)  # of each column of Phi, in self._which
        self._Phi = np.zeros((len(data.y), 0))
        if complete:
            self._Phi = np.concatenate([features(s.size)[data.X[:, i]] for i, s in complete], axis=1)
        self._line, self._level = affine_powers(sizes, kernel.highest)
        rest = [(i, s) for i, s in some if s.kind != "complete" or s.size > WIDE]
        self._parts = parts(rest, data.X)
        n = len(data.y)
        self._sums, self._products, self._polynomial_buffers = (np.empty((kernel.highest, n, n)) for _ in range(3))
        self._C, self._spare = np.empty((n, n)), np.empty((n, n))
        self._rows = rows_of(kernel)
        self._Psi = self._rows.features(data.X)

    def at(self, scales: Scales, log_w: Floats, log_noise: float) -> Slope | None:
        """None where C is not positive definite."""
        r, noise = self._kernel.relevances(scales), math.exp(log_noise)
        tables = [part.tables(scales.log_beta[part.variables]) for part in self._parts]
        a = [r[part.variables][:, None, None] * table.z for part, table in zip(self._parts, tables, strict=True)]
        e = self._polynomials(self._power_sums(r, a))
        Q = self._kernel.highest
        norms = symmetric(r, Q)
        c = np.exp(log_w[:Q]) * inverse(norms)
        C = self._covariance(c, e, noise)
        rho = self._rows.rho(scales.log_relevance)
        weights = self._rows.weights(rho, np.exp(log_w[Q:]))
        if len(weights):
            C += np.dot(self._Psi * weights[self._rows.owner], self._Psi.T, out=self._spare)
        L, info = lapack.dpotrf(C.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            return None
        v, _ = lapack.dtrtrs(L, self._y, lower=1)
        value = -float(np.log(L.diagonal()).sum()) - 0.5 * float(v @ v)
        if not math.isfinite(value):
            return None
        alpha, _ = lapack.dtrtrs(L, v, lower=1, trans=1)
        W = self._weights(L, alpha)
        weighted = [W, *(np.multiply(W, q, out=G) for q, G in zip(e[:-1], self._products, strict=False))]
        totals = np.array([*(G.sum() for G in weighted), np.vdot(W, e[-1])])  # of W * e_0, ..., W * e_Q
        log_relevance = of_norms(r, norms, c * totals[1:])
        log_relevance[self._which] += self._of_complete(r, c, weighted, totals)
        log_beta = np.zeros(len(r))
        for part, own, table in zip(self._parts, a, tables, strict=True):
            by = by_one(c, own, [part.gathered(G) for G in weighted])
            log_relevance[part.variables] += np.einsum("vij,vij->v", by, own)
            if part.moves:
                log_beta[part.variables] = r[part.variables] * np.einsum("vij,vij->v", by, table.change())
        by_row, by_order = self._of_rows(W, rho, weights)
        log_relevance += by_row
        log_w_slope = np.append(c * totals[1:], by_order)
        mean = float(alpha.sum())  # 1'C^-1 y, with variance 1 - 1'C^-1 1
        sd = math.sqrt(max(1.0 - (mean**2 - 2.0 * totals[0]), 0.0))
        return Slope(value, log_beta, log_relevance, log_w_slope, noise * float(np.trace(W)), (mean, sd))

    def _of_rows(self, W: Floats, rho: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """The rows' share of the derivatives by log relevance, and the derivatives by the logarithms of v."""
        rows, norms = self._rows, self._rows.norms(rho)
        columns = np.einsum("nf,nf->f", self._Psi, W @ self._Psi)
        share = weights * np.bincount(rows.owner, columns, len(weights))
        by_order = np.bincount(rows.order, share, len(norms)).astype(np.float64)
        of_norm = (by_order * inverse(norms))[rows.order] * rho
        return (share - of_norm) @ rows.members, by_order

    def _power_sums(self, r: Floats, a: list[Floats]) -> list[Floats]:
        """p_1..p_Q; (1, 1) where it is the same everywhere."""
        sums, own = [], r[self._which]
        for s in range(1, self._kernel.highest + 1):
            p = self._sums[s - 1]
            weight, level = own**s * self._line[s], float(own**s @ self._level[s])
            if not (np.any(weight) or self._parts):
                sums.append(np.full((1, 1), level))
                continue
            np.dot(self._Phi * weight[self._owner], self._Phi.T, out=p)
            p += level
            sums.append(p)
        for part, first in zip(self._parts, a, strict=True):
            for p, power in zip(sums, accumulate(repeat(first, len(sums)), np.multiply), strict=True):
                np.add(p, part.spread(power), out=p)
        return sums

    def _polynomials(self, p: list[Floats]) -> list[Floats]:
        """e_1..e_Q: `orders.newton` in memory of its own, since fresh pages cost more than the arithmetic on them."""
        e = [np.broadcast_to(p[0], self._C.shape)]
        for q in range(2, len(p) + 1):
            total = np.multiply(e[-1], p[0], out=self._polynomial_buffers[q - 1])
            for s in range(2, q + 1):
                term = np.multiply(e[q - s - 1], p[s - 1], out=self._spare) if s < q else p[s - 1]
                (np.subtract if s % 2 == 0 else np.add)(total, term, out=total)
            total /= q
            e.append(total)
        return e

    def _covariance(self, c: Floats, e: list[Floats], noise: float) -> Floats:
        C = np.multiply(e[0], c[0], out=self._C)
        for weight, q in zip(c[1:], e[1:], strict=True):
            C += np.multiply(q, weight, out=self._spare)
        C += 1.0
        C.reshape(-1)[:: len(C) + 1] += noise
        return np.asarray(C)

    def _weights(self, L: Floats, alpha: Floats) -> Floats:
        """W, from the factor L, which is overwritten."""
        half, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
        W = np.asarray(half.T)  # C order: its upper triangle is filled
        for i in range(0, len(W), BLOCK):
            W[i : i + BLOCK, :i] = W[:i, i : i + BLOCK].T
            corner = W[i : i + BLOCK, i : i + BLOCK]
            corner[:] = np.triu(corner) + np.triu(corner, 1).T
        W *= -0.5
        W += np.multiply((0.5 * alpha)[:, None], alpha, out=self._spare)
        return W

    def _of_complete(self, r: Floats, c: Floats, weighted: list[Floats], totals: Floats) -> Floats:
        """The covariance's share, for the variables of complete graphs: by_one with powers of z_i affine in z_i."""
        own, Q = r[self._which], len(c)
        if not len(own):
            return own
        columns = [np.einsum("nf,nf->f", self._Phi, G @ self._Phi) for G in weighted]
        sums = [np.bincount(self._owner, column, len(own)) for column in columns]
        share = np.zeros(len(own))
        for q in range(Q):
            for j in range(q + 1):
                of = self._line[j + 1] * sums[q - j] + self._level[j + 1] * totals[q - j]
                share += c[q] * (-1.0) ** j * own ** (j + 1) * of
        return share


def of_norms(r: Floats, norms: Floats, share: Floats) -> Floats:
    """The norms' part of the derivatives by log r: an order's share (Q,) of the value falls as its norm e_q(r) grows,
    by r_i e_{q-1}(r without i).
    """
    without = np.empty((len(norms), len(r)))
    without[0] = 1.0
    for q in range(1, len(norms)):
        without[q] = np.maximum(norms[q - 1] - r * without[q - 1], 0.0)
    return np.asarray(-r * ((share * inverse(norms)) @ without))


def by_one(c: Floats, a: Floats, e: list[Floats]) -> Floats:
    """d C / d a_i entry by entry: sum_q c_q (e_{q-1} without i), with e_0..e_{Q-1} weighted or not."""
    without = e[0]
    total = c[0] * without
    for q in range(1, len(c)):
        without = e[q] - a * without
        total += c[q] * without
    return np.asarray(total)


def affine_powers(sizes: Ints, highest: int) -> tuple[Floats, Floats]:
    """(line, level), each (highest + 1, len(sizes)): z^s = line_s z + level_s on complete graphs of these sizes."""
    line, level = np.zeros((highest + 1, len(sizes))), np.zeros((highest + 1, len(sizes)))
    level[0] = 1.0
    for s in range(highest):  # z (line z + level) with z^2 = ((m - 2) z + 1) / (m - 1)
        line[s + 1] = line[s] * (sizes - 2) / (sizes - 1) + level[s]
        level[s + 1] = line[s] / (sizes - 1)
    return line, level
