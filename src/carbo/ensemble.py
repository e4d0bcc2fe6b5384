"""Gaussian processes conditioned on the data, one for each posterior sample, and what the search asks of them.

Notation
    S, n, N     samples, observations (pending fantasies included), rows asked about
    M           total number of values, sum_i m_i: columns of a one-hot row
    H           (N, M) one-hot rows
    T           (M, S * n) per-variable tables of all samples side by side: H @ T sums them over variables
    mu, sd      (S, N) posterior mean and standard deviation of the latent function, standardised

Nothing here knows an acquisition function; `acquisition` turns mu and sd into scores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import blas

from carbo import gp
from carbo.graph import Floats, Ints
from carbo.kernel import FLOOR, Kernel, Product, cross, diffusion, gram
from carbo.posterior import Data, Hyper

DENSE_COLUMNS = 1024
"""One-hot rows wider than this are multiplied as sparse matrices."""


class Recombined(NamedTuple):
    """Many uniform random rows from few: row (a, s) takes the variables in `cut` from left[a] and the others from
    right[(a + shifts[s]) % len(right)]. Every row is uniform, and two rows that share no half are independent.
    """

    left: Ints  # (R, d)
    right: Ints  # (R, d)
    cut: np.ndarray[tuple[int], np.dtype[np.bool_]]  # (d,)
    shifts: Ints

    def __len__(self) -> int:
        return len(self.left) * len(self.shifts)

    def rows(self, index: Ints) -> Ints:
        """The rows of those indices, (len(index), d)."""
        s, a = np.divmod(index, len(self.left))
        return np.where(self.cut, self.left[a], self.right[(a + self.shifts[s]) % len(self.right)])


class Ensemble:
    """S conditioned Gaussian processes over the same rows X (n, d); each sample has its own values (S, n).

    Values differ between samples where pending rows are fantasised, and are equal otherwise.
    """

    def __init__(self, kernel: Kernel, hypers: list[Hyper], X: Ints, values: Floats) -> None:
        self.kernel, self.hypers, self.X, self.values = kernel, hypers, X, values
        self.w = [np.exp(h.log_w) for h in hypers]
        self.gps = [
            gp.condition(_with_noise(gram(kernel, h.scales, w, X), h), y, h.mean)
            for h, w, y in zip(hypers, self.w, values, strict=True)
        ]
        self.alpha = np.stack([g.alpha for g in self.gps])
        self.mean = np.array([g.mean for g in self.gps])
        sizes = np.array([s.size for s in kernel.spectra])
        self._offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._width = int(sizes.sum())
        per_sample = [kernel.tables(h.scales, X) for h in hypers]
        self._tables = [
            np.ascontiguousarray(np.concatenate([np.concatenate(t[q]) for t in per_sample], axis=1))
            for q in range(len(per_sample[0]))
        ]
        self.varies = not all(s.kind == "complete" for s in kernel.spectra)

    @property
    def size(self) -> int:
        return len(self.hypers)

    def one_hot(self, rows: Ints) -> Floats | sparse.csr_array:
        """H, dense where it is narrow."""
        columns = rows + self._offsets
        if self._width > DENSE_COLUMNS:
            pointers = np.arange(0, columns.size + 1, columns.shape[1])
            return sparse.csr_array((np.ones(columns.size), columns.reshape(-1), pointers), (len(rows), self._width))
        H = np.zeros((len(rows), self._width))
        H[np.arange(len(rows))[:, None], columns] = 1.0
        return H

    def covariances(self, rows: Ints) -> Floats:
        """Between rows and observations under every sample, (S, N, n)."""
        H, n = self.one_hot(rows), len(self.X)
        sums = [(H @ T).reshape(len(rows), self.size, n) for T in self._tables]
        return np.stack(
            [
                self.kernel.combine([np.ascontiguousarray(q[:, s]) for q in sums], h.scales, self.w[s])
                for s, h in enumerate(self.hypers)
            ]
        )

    def prior_variance(self, rows: Ints) -> Floats:
        """(S, N), or (S, 1) where it is the same for all rows."""
        some = rows if self.varies else rows[:1]
        return np.stack([self.kernel.diagonal(h.scales, w, some) for h, w in zip(self.hypers, self.w, strict=True)])

    def mu(self, K: Floats) -> Floats:
        """Posterior mean (S, N) from covariances K (S, N, n)."""
        return self.mean[:, None] + np.matmul(K, self.alpha[:, :, None])[:, :, 0]

    def sd(self, K: Floats, prior_variance: Floats) -> Floats:
        """Posterior standard deviation (S, N) from covariances K (S, N, n)."""
        explained = np.empty(K.shape[:2])
        for s, g in enumerate(self.gps):
            V = blas.dtrsm(1.0, g.L, K[s].T, lower=1)
            explained[s] = np.einsum("ij,ij->j", V, V)
        return np.sqrt(np.maximum(prior_variance - explained, 1e-12 * prior_variance))

    def predict(self, rows: Ints) -> tuple[Floats, Floats]:
        """mu and sd at rows."""
        K = self.covariances(rows)
        return self.mu(K), self.sd(K, self.prior_variance(rows))

    def joint(self, s: int, rows: Ints) -> tuple[Floats, Floats]:
        """Mean (N,) and covariance (N, N) of the latent function at rows under sample s."""
        h, g, w = self.hypers[s], self.gps[s], self.w[s]
        K = cross(self.kernel, h.scales, w, rows, self.X)
        V = gp.solve_lower(g.L, K.T)
        return g.mean + K @ g.alpha, cross(self.kernel, h.scales, w, rows, rows) - V.T @ V

    def mu_recombined(self, starts: Recombined) -> Floats:
        """mu of all recombined rows, (S, len(starts)), in float32: a product kernel's halves multiply."""
        if not isinstance(self.kernel, Product) or self._width > DENSE_COLUMNS:
            rows = starts.rows(np.arange(len(starts)))
            blocks = [self.mu(self.covariances(rows[i : i + 512])) for i in range(0, len(rows), 512)]
            return np.concatenate(blocks, axis=1)
        own = np.repeat(starts.cut, [s.size for s in self.kernel.spectra])
        T = self._tables[0].astype(np.float32)
        A = np.exp(self.one_hot(starts.left)[:, own].astype(np.float32) @ T[own])
        B = np.exp(self.one_hot(starts.right)[:, ~own].astype(np.float32) @ T[~own])
        A *= (self.alpha * np.array(self.w)).reshape(-1).astype(np.float32)
        n, R = len(self.X), len(starts.left)
        mu = np.empty((self.size, len(starts.shifts), R))
        for s in range(self.size):
            a, b = np.ascontiguousarray(A[:, s * n : (s + 1) * n]), np.ascontiguousarray(B[:, s * n : (s + 1) * n])
            b = np.concatenate([b, b])
            for j, shift in enumerate(starts.shifts):
                mu[s, j] = np.vecdot(a, b[shift : shift + R])
        return self.mean[:, None] + mu.reshape(self.size, -1)

    def mu_swapped(self, K: Floats, parents: Ints, rows: Ints, owner: Ints) -> Floats:
        """mu (S, N) at rows that differ from parents[owner] in one variable each; K (S, V, n) is the parents'.

        Product kernel alone. Covariances change by the factor F[c, x] / F[a, x] where variable i moves from a to c
        and the observation has x there; summed over observations by value, all neighbours cost one matrix product.
        """
        i = np.argmax(rows != parents[owner], axis=1)
        at = np.arange(len(rows))
        a, c = parents[owner, i], rows[at, i]
        weighted = K * self.alpha[:, None, :]
        by_value = weighted @ self.one_hot(self.X)  # (S, V, M): sums over the observations with that value
        mu = np.tile(self.mean[:, None], len(rows)) + weighted.sum(axis=2)[:, owner]
        complete = np.array([s.kind == "complete" for s in self.kernel.spectra])
        flat = np.flatnonzero(complete[i])
        rho = np.stack([self._unequal(h) for h in self.hypers])[:, i[flat]]
        mu[:, flat] += (rho - 1.0) * by_value[:, owner[flat], (self._offsets[i] + a)[flat]]
        mu[:, flat] += (1.0 / rho - 1.0) * by_value[:, owner[flat], (self._offsets[i] + c)[flat]]
        for j in np.flatnonzero(~complete):
            of_j = np.flatnonzero(i == j)
            columns = slice(self._offsets[j], self._offsets[j] + self.kernel.spectra[j].size)
            for s, h in enumerate(self.hypers):
                F = self._factor(int(j), h)
                ratio = F[c[of_j]] / F[a[of_j]] - 1.0
                mu[s, of_j] += np.vecdot(ratio, by_value[s, owner[of_j], columns])
        return mu

    def _factor(self, j: int, h: Hyper) -> Floats:
        spectrum = self.kernel.spectra[j]
        table = diffusion(spectrum, float(h.scales.log_beta[j])).columns(np.arange(spectrum.size))
        return np.maximum(table, FLOOR)

    def _unequal(self, h: Hyper) -> Floats:
        return np.array([max(float(diffusion(s, b).values[1]), FLOOR) if s.kind == "complete" else 1.0
                         for s, b in zip(self.kernel.spectra, h.scales.log_beta, strict=True)])  # fmt: skip

    def extend(self, rng: np.random.Generator, rows: Ints) -> Ensemble:
        """The ensemble given fantasies at pending rows: each sample draws its own noisy values there."""
        values = []
        for s, h in enumerate(self.hypers):
            mean, cov = self.joint(s, rows)
            L = gp.cholesky(_with_noise(cov, h))
            values.append(np.append(self.values[s], mean + L @ rng.standard_normal(len(rows))))
        return Ensemble(self.kernel, self.hypers, np.concatenate([self.X, rows]), np.stack(values))


def build(kernel: Kernel, hypers: list[Hyper], data: Data) -> Ensemble:
    """The ensemble of plain data."""
    return Ensemble(kernel, hypers, data.X, np.tile(data.y, (len(hypers), 1)))


def _with_noise(K: Floats, h: Hyper) -> Floats:
    C = np.array(K)
    C.flat[:: len(C) + 1] += math.exp(h.log_noise)
    return C
