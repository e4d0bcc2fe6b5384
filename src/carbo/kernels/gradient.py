"""The order kernel's covariance and its derivatives by all parameters at once.

Notation
    n, d, Q     observations, variables, highest order; m_i values of variable i
    z_i, r_i    centred table and relevance of variable i, as in `base`; a_i = r_i z_i
    p_s, e_q    (n, n) power sums and elementary symmetric polynomials of the a_i
    c_q         w_q / e_q(r): the weight of e_q
    C           (n, n) sum_q c_q e_q, plus the windows' part, a constant, and noise on the diagonal
    W           (n, n) symmetric: the derivatives are those of sum(W * C)
    Phi         (n, F) features of the variables on complete graphs of up to `WIDE` values: m_i - 1 columns for each of
                them, with Phi_i Phi_i' = z_i

The recursion (e_q without i) = e_q - a_i (e_{q-1} without i) removes variable i from e_q; it is a polynomial in z_i. On
a complete graph z_i has two values, so that z_i^2 = ((m_i - 2) z_i + 1) / (m_i - 1), and every power of z_i is affine
in z_i. The derivatives by the relevances then need only the sums of W * e_q and of W * e_q * z_i, and the latter come
from one matrix product with Phi. Other graphs, and larger ones, need these sums between values or between observations:
see `observed_tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, repeat
from typing import NamedTuple

import numpy as np

from carbo.kernels.base import Scales, Slopes
from carbo.kernels.observed_tables import observed_tables
from carbo.kernels.ordinal import Entries
from carbo.kernels.polynomials import affine_powers, elementary_symmetric, inverse_norms, norm_slopes, slope_by_variable
from carbo.kernels.spectra import WIDE, Spectrum
from carbo.kernels.windows import Windows, features
from carbo.numerics.types import Floats, Ints


class Evaluation(NamedTuple):
    """The quantities of the last computed covariance, which its derivatives need.

    tables, a   entries of z and of a = r z for each of `observed_tables`
    rho, weights    of the windows, as in `windows`
    """

    r: Floats
    tables: list[Entries]
    a: list[Floats]
    e: list[Floats]
    norms: Floats
    c: Floats
    rho: Floats
    weights: Floats


class OrdersGradient:
    """`base.Gradient` of the order kernel for observations X (n, d)."""

    def __init__(self, spectra: Sequence[Spectrum], highest: int, windows: Windows, X: Ints) -> None:
        active = [(i, s) for i, s in enumerate(spectra) if s.size > 1]
        complete = [(i, s) for i, s in active if s.kind == "complete" and s.size <= WIDE]
        sizes = np.array([s.size for _, s in complete], dtype=np.intp)
        self._highest, self._active = highest, np.array([float(s.size > 1) for s in spectra])
        self._which = np.array([i for i, _ in complete], dtype=np.intp)
        self._owner = np.repeat(np.arange(len(complete)), sizes - 1)  # of each column of Phi, in self._which
        self._Phi = np.zeros((len(X), 0))
        if complete:
            self._Phi = np.concatenate([features(s.size)[X[:, i]] for i, s in complete], axis=1)
        self._line, self._level = affine_powers(sizes, highest)
        self._tables = observed_tables([(i, s) for i, s in active if s.kind != "complete" or s.size > WIDE], X)
        n = len(X)
        self._sums, self._weighted_buffers, self._polynomial_buffers = (np.empty((highest, n, n)) for _ in range(3))
        self._C, self._scratch = np.empty((n, n)), np.empty((n, n))
        self._windows, self._Psi = windows, windows.features(X)

    def covariance(self, scales: Scales, log_w: Floats, constant: float, noise: float) -> Floats:
        r = self._active * np.exp(scales.log_relevance)
        entries = [table.entries(scales.log_beta[table.variables]) for table in self._tables]
        a = [r[table.variables][:, None, None] * own.z for table, own in zip(self._tables, entries, strict=True)]
        e, norms = self._polynomials(self._power_sums(r, a)), elementary_symmetric(r, self._highest)
        c = np.exp(log_w[: self._highest]) * inverse_norms(norms)
        rho = self._windows.rho(scales.log_relevance)
        weights = self._windows.weights(rho, np.exp(log_w[self._highest :]))
        self._last = Evaluation(r, entries, a, e, norms, c, rho, weights)
        C = np.multiply(e[0], c[0], out=self._C)
        for weight, q in zip(c[1:], e[1:], strict=True):
            C += np.multiply(q, weight, out=self._scratch)
        C += constant
        C.reshape(-1)[:: len(C) + 1] += noise
        if len(weights):
            C += np.dot(self._Psi * weights[self._windows.owner], self._Psi.T, out=self._scratch)
        return np.asarray(C)

    def slopes(self, W: Floats) -> Slopes:
        r, entries, a, e, norms, c, rho, weights = self._last
        weighted = [W, *(np.multiply(W, q, out=G) for q, G in zip(e[:-1], self._weighted_buffers, strict=False))]
        totals = np.array([*(G.sum() for G in weighted), np.vdot(W, e[-1])])  # of W * e_0, ..., W * e_Q
        log_relevance = norm_slopes(r, norms, c * totals[1:])
        log_relevance[self._which] += self._complete_graph_slopes(r, c, weighted, totals)
        log_beta = np.zeros(len(r))
        for table, own, z in zip(self._tables, a, entries, strict=True):
            by = slope_by_variable(c, own, [table.collect(G) for G in weighted])
            log_relevance[table.variables] += np.einsum("vij,vij->v", by, own)
            if table.depends_on_beta:
                log_beta[table.variables] = r[table.variables] * np.einsum("vij,vij->v", by, z.derivative())
        by_window, by_order = self._windows.slopes(W, self._Psi, rho, weights)
        return Slopes(log_beta, log_relevance + by_window, np.append(c * totals[1:], by_order))

    def _power_sums(self, r: Floats, a: list[Floats]) -> list[Floats]:
        """Power sums p_1..p_Q (n, n); (1, 1) for a power sum whose entries are all the same."""
        sums, own = [], r[self._which]
        for s in range(1, self._highest + 1):
            p = self._sums[s - 1]
            weight, level = own**s * self._line[s], float(own**s @ self._level[s])
            if not (np.any(weight) or self._tables):
                sums.append(np.full((1, 1), level))
                continue
            np.dot(self._Phi * weight[self._owner], self._Phi.T, out=p)
            p += level
            sums.append(p)
        for table, first in zip(self._tables, a, strict=True):
            for p, power in zip(sums, accumulate(repeat(first, len(sums)), np.multiply), strict=True):
                np.add(p, table.expand(power), out=p)
        return sums

    def _polynomials(self, p: list[Floats]) -> list[Floats]:
        """e_1..e_Q as in `polynomials.newton`, written into buffers: fresh pages cost more than arithmetic."""
        e = [np.broadcast_to(p[0], self._C.shape)]
        for q in range(2, len(p) + 1):
            total = np.multiply(e[-1], p[0], out=self._polynomial_buffers[q - 1])
            for s in range(2, q + 1):
                term = np.multiply(e[q - s - 1], p[s - 1], out=self._scratch) if s < q else p[s - 1]
                (np.subtract if s % 2 == 0 else np.add)(total, term, out=total)
            total /= q
            e.append(total)
        return e

    def _complete_graph_slopes(self, r: Floats, c: Floats, weighted: list[Floats], totals: Floats) -> Floats:
        """Derivatives by the log relevances of the variables in Phi, with fixed norms: z_i^s is affine in z_i."""
        own, Q = r[self._which], len(c)
        if not len(own):
            return own
        columns = [np.einsum("nf,nf->f", self._Phi, G @ self._Phi) for G in weighted]
        sums = [np.bincount(self._owner, column, len(own)) for column in columns]
        slopes = np.zeros(len(own))
        for q in range(Q):
            for j in range(q + 1):
                power = (
                    self._line[j + 1] * sums[q - j] + self._level[j + 1] * totals[q - j]
                )  # sum of W e_{q-j} z_i^(j+1)
                slopes += c[q] * (-1.0) ** j * own ** (j + 1) * power
        return slopes
