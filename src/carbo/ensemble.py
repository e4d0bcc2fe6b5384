"""Gaussian processes conditioned on the data, one for each posterior sample, and what the search asks of them.

Notation
    S, n, N     samples, observations (pending fantasies included), rows asked about
    M           total number of values, sum_i m_i: columns of a one-hot row
    H           (N, M) one-hot rows
    T           (M, n) a sample's per-variable tables, stacked: H @ T sums them over variables
    mu, sd      (S, N) posterior mean and standard deviation of the latent function, standardised

Nothing here knows an acquisition function; `acquisition` turns mu and sd into scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import blas

from carbo import gp
from carbo.conditional import Data, Hyper
from carbo.graph import Floats, Ints
from carbo.kernel import DENSE_COLUMNS, FLOOR, Kernel, Product, cross, diagonal_tables, diffusion, one_hot, tables

Covariances = Callable[[Ints, bool], Floats]
"""(index, few) -> covariances of those rows with the first FEW observations, or with all."""
TINY = 1e-200
"""Least prior variance: a space of one point has none, and rounding may leave less than none."""
FEW = 32
"""Observations that a bound of sd is given; see `telling`."""
WELL_CONDITIONED, HOPELESS = 1e7, 1e10
"""Condition of the covariance up to which sd in float32 is good to two digits, and up to which it is good enough to
choose the starts that are then scored better."""


class Recombined(NamedTuple):
    """Many uniform random rows from few, in B blocks: block b combines every left half with every right half, taking
    the variables in cut[b] from left[b] and the others from right[b]. Every row is uniform, and two rows that share no
    half are independent; under a product kernel all R x R rows of a block cost one small matrix product.
    """

    left: Ints  # (B, R, d)
    right: Ints  # (B, R, d)
    cut: NDArray[np.bool_]  # (B, d)

    def __len__(self) -> int:
        B, R, _ = self.left.shape
        return int(B * R * R)

    def rows(self, index: Ints) -> Ints:
        """The rows of those indices, (len(index), d)."""
        R = self.left.shape[1]
        b, pair = np.divmod(index, R * R)
        i, j = np.divmod(pair, R)
        return np.where(self.cut[b], self.left[b, i], self.right[b, j])


class Ensemble:
    """S conditioned Gaussian processes over the same rows X (n, d); each sample has its own values (S, n).

    Values differ between samples where pending rows are fantasised, and are equal otherwise.
    """

    def __init__(self, kernel: Kernel, hypers: list[Hyper], X: Ints, values: Floats) -> None:
        self.kernel, self.hypers, self.X, self.values = kernel, hypers, X, values
        self.w = [np.exp(h.log_w) for h in hypers]
        self._sizes = np.array([s.size for s in kernel.spectra])
        self._offsets = np.cumsum(self._sizes) - self._sizes
        self._tables = [tables(kernel, h.scales, X) for h in hypers]
        self._diagonals = [diagonal_tables(kernel, h.scales) for h in hypers]
        self._varies = any(s.kind != "complete" for s in kernel.spectra)
        self.gps = [
            gp.condition(_with_noise(K, h), y, h.mean)
            for h, K, y in zip(hypers, self.covariances(X), values, strict=True)
        ]
        self.alpha = np.stack([g.alpha for g in self.gps])
        self.mean = np.array([g.mean for g in self.gps])

    @property
    def size(self) -> int:
        return len(self.hypers)

    def one_hot(self, rows: Ints) -> Floats | sparse.csr_array:
        """H."""
        return one_hot(self._sizes, rows)

    def covariances(self, rows: Ints, rough: bool = False) -> Floats:
        """Between rows and observations under every sample, (S, N, n); rough: in float32 if that will do."""
        each = self._rough_tables if rough else self._tables
        dtype = each[0][0].dtype
        H, K = self.one_hot(rows), np.empty((self.size, len(rows), len(self.X)), dtype=dtype)
        H = H.astype(dtype)
        for s, h in enumerate(self.hypers):
            K[s] = self.kernel.combine([H @ T for T in each[s]], h.scales, self.w[s])
        return K

    @cached_property
    def _condition(self) -> float:
        """Bounds the condition of every sample's covariance: signal to noise, times observations."""
        ratios = [float(w.sum()) / math.exp(h.log_noise) for w, h in zip(self.w, self.hypers, strict=True)]
        return max(ratios) * len(self.X)

    @cached_property
    def _rough_dtype(self) -> type[np.floating[Any]]:
        """float32 where it is good enough: Newton's identities of the order kernel cancel, and so does a small sd."""
        fine = isinstance(self.kernel, Product) and self._condition < WELL_CONDITIONED
        return np.float32 if fine else np.float64

    @cached_property
    def _rough_tables(self) -> list[list[Floats]]:
        return [[T.astype(self._rough_dtype) for T in some] for some in self._tables]

    @cached_property
    def _rough_L(self) -> list[Floats]:
        return [np.asfortranarray(g.L, dtype=self._rough_dtype) for g in self.gps]

    def prior_variance(self, rows: Ints) -> Floats:
        """(S, N)."""
        H = self.one_hot(rows if self._varies else rows[:1])
        each = zip(self._diagonals, self.hypers, self.w, strict=True)
        variance = [self.kernel.combine([H @ T for T in diagonal], h.scales, w)[:, 0] for diagonal, h, w in each]
        return np.broadcast_to(np.maximum(np.stack(variance), TINY), (self.size, len(rows)))

    def mu(self, K: Floats) -> Floats:
        """Posterior mean (S, N) from covariances K (S, N, n)."""
        return np.asarray(self.mean[:, None] + np.matmul(K, self.alpha[:, :, None].astype(K.dtype))[:, :, 0])

    def sd(self, K: Floats, prior_variance: Floats) -> Floats:
        """Posterior standard deviation (S, N) given the first m observations, from covariances K (S, N, m).

        With m < n that is an upper bound of the one given all.
        K is overwritten.
        """
        m, explained = K.shape[2], np.empty(K.shape[:2])
        rough = K.dtype == np.float32
        for s in range(self.size):
            L = self._rough_L[s] if rough else self.gps[s].L
            solve = blas.strsm if rough else blas.dtrsm
            V = solve(1.0, L[:m, :m], K[s].T, lower=1, overwrite_b=1).T
            explained[s] = np.vecdot(V, V)
        return np.sqrt(np.maximum(prior_variance - explained, 1e-12 * prior_variance))

    def predict(self, rows: Ints, rough: bool = False) -> tuple[Floats, Floats]:
        """mu and sd at rows; rough: in float32 if that will do, for screening."""
        K = self.covariances(rows, rough)
        return self.mu(K), self.sd(K, self.prior_variance(rows))

    def joint(self, s: int, rows: Ints) -> tuple[Floats, Floats]:
        """Mean (N,) and covariance (N, N) of the latent function at rows under sample s."""
        h, g, w = self.hypers[s], self.gps[s], self.w[s]
        K = cross(self.kernel, h.scales, w, rows, self.X)
        V = gp.solve_lower(g.L, K.T)
        return g.mean + K @ g.alpha, cross(self.kernel, h.scales, w, rows, rows) - V.T @ V

    def spread(self, starts: Recombined) -> tuple[Floats, Floats]:
        """mu and an upper bound of sd of all recombined rows, each (S, len(starts)), to a few digits.

        Under a product kernel a row's covariances are its halves' multiplied: no row is ever written out.
        """
        variance = self.prior_variance(starts.rows(np.arange(len(starts) if self._varies else 1)))
        if not isinstance(self.kernel, Product) or self._sizes.sum() > DENSE_COLUMNS:
            rows = starts.rows(np.arange(len(starts)))
            pieces = [self.mu(self.covariances(rows[i : i + 512], True)) for i in range(0, len(rows), 512)]
            mu = np.concatenate(pieces, axis=1)
            return mu, np.broadcast_to(np.sqrt(variance), mu.shape)
        B, R, d = starts.left.shape
        own = np.repeat(starts.cut, self._sizes, axis=1)[:, None]  # (B, 1, M)
        halves = ((starts.left, own), (starts.right, ~own))
        left, right = (
            np.asarray(self.one_hot(rows.reshape(B * R, d))).reshape(B, R, -1) * which for rows, which in halves
        )
        dtype: type[np.floating[Any]] = np.float32 if self._condition < HOPELESS else np.float64
        left, right = left.astype(dtype), right.astype(dtype)
        solve = blas.strsm if dtype is np.float32 else blas.dtrsm
        mu = np.empty((self.size, B, R, R), dtype=dtype)
        explained = np.empty((self.size, B * R * R), dtype=dtype)
        K = np.empty((B, R, R, min(FEW, len(self.X))), dtype=dtype)
        for s, (table,) in enumerate(self._tables):
            w, T = dtype(self.w[s][0]), table.astype(dtype)
            a, b = left @ T, right @ T
            np.exp(a, out=a)
            np.exp(b, out=b)
            a *= w
            mu[s] = (a * self.alpha[s].astype(dtype)) @ b.transpose(0, 2, 1)
            np.multiply(a[:, :, None, :FEW], b[:, None, :, :FEW], out=K)
            few = np.asfortranarray(self.gps[s].L[:FEW, :FEW], dtype=dtype)
            V = solve(1.0, few, K.reshape(B * R * R, -1).T, lower=1, overwrite_b=1).T
            explained[s] = np.vecdot(V, V)
        variance = variance.astype(dtype)
        sd = np.sqrt(np.maximum(variance - explained, dtype(1e-12) * variance + np.finfo(dtype).tiny))
        mu += self.mean[:, None, None, None].astype(dtype)
        return mu.reshape(self.size, -1), sd

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Around:
        """What is known of rows that each differ in one variable from parents[owner], before any sd is computed."""
        variance = self.prior_variance(rows)
        if isinstance(self.kernel, Product):
            mu, covariances = self._swapped(parents, rows, owner)
            return Around(self, mu, variance, covariances)
        K = self.covariances(rows)
        return Around(self, self.mu(K), variance, lambda index, few: K[:, index, : FEW if few else None])

    def _swapped(self, parents: Ints, rows: Ints, owner: Ints) -> tuple[Floats, Covariances]:
        """Covariances change by the factor F[c, x] / F[a, x] where variable i moves from a to c and the observation
        has x there; summed over observations by value, all neighbours' means cost one matrix product.
        """
        K = self.covariances(parents)
        i = np.argmax(rows != parents[owner], axis=1)
        a, c = parents[owner, i], rows[np.arange(len(rows)), i]
        from_, to = self._offsets[i] + a, self._offsets[i] + c
        weighted = K * self.alpha[:, None]
        flat_weighted = weighted.reshape(-1, len(self.X))
        by_value = (self.one_hot(self.X).T @ flat_weighted.T).T  # sums over the observations with that value
        by_value = by_value.reshape(self.size, len(parents), -1)  # (S, V, M)
        mu = self.mean[:, None] + weighted.sum(axis=2)[:, owner]
        complete = np.array([s.kind == "complete" for s in self.kernel.spectra])
        flat = np.flatnonzero(complete[i])
        rho = self._rho[:, i[flat]]
        mu[:, flat] += (rho - 1.0) * by_value[:, owner[flat], from_[flat]]
        mu[:, flat] += (1.0 / rho - 1.0) * by_value[:, owner[flat], to[flat]]
        for j in np.flatnonzero(~complete):
            of_j = np.flatnonzero(i == j)
            columns = slice(self._offsets[j], self._offsets[j] + self.kernel.spectra[j].size)
            for s, h in enumerate(self.hypers):
                ratio = self._factor(int(j), h, c[of_j]) / self._factor(int(j), h, a[of_j])
                mu[s, of_j] += np.vecdot(ratio - 1.0, by_value[s, owner[of_j], columns])

        def covariances(index: Ints, few: bool) -> Floats:
            m = FEW if few else None
            ratio = self._factors[:, to[index], :m]
            ratio /= self._factors[:, from_[index], :m]
            ratio *= K[:, owner[index], :m]
            return ratio

        return mu, covariances

    @cached_property
    def _factors(self) -> Floats:
        """exp of the product kernel's tables, (S, M, n)."""
        return np.stack([np.exp(T) for (T,) in self._tables])

    def _factor(self, j: int, h: Hyper, values: Ints) -> Floats:
        """Rows of variable j's table at those values, (len(values), m_j)."""
        spectrum = self.kernel.spectra[j]
        table = diffusion(spectrum, float(h.scales.log_beta[j]))
        return np.maximum(table.at(values[:, None], np.arange(spectrum.size)), FLOOR)

    @cached_property
    def _rho(self) -> Floats:
        """(S, d) rho of the complete graphs, one for the others."""
        return np.array([[max(float(diffusion(s, b).values[1]), FLOOR) if s.kind == "complete" else 1.0
                          for s, b in zip(self.kernel.spectra, h.scales.log_beta, strict=True)]
                         for h in self.hypers])  # fmt: skip

    def extend(self, rng: np.random.Generator, rows: Ints) -> Ensemble:
        """The ensemble given fantasies at pending rows: each sample draws its own noisy values there."""
        values = []
        for s, h in enumerate(self.hypers):
            mean, cov = self.joint(s, rows)
            L = gp.cholesky(_with_noise(cov, h))
            values.append(np.append(self.values[s], mean + L @ rng.standard_normal(len(rows))))
        return Ensemble(self.kernel, self.hypers, np.concatenate([self.X, rows]), np.stack(values))


@dataclass(frozen=True, eq=False)
class Around:
    """Neighbours: their mu and prior variance, each (S, N), and the covariances of any of them."""

    ensemble: Ensemble
    mu: Floats
    prior_variance: Floats
    covariances: Covariances

    def sd(self, index: Ints) -> Floats:
        """sd of those neighbours, (S, len(index))."""
        return self.ensemble.sd(self.covariances(index, False), self.prior_variance[:, index])

    def sd_bound(self, index: Ints) -> Floats:
        """Upper bound of the same: sd given the first FEW observations."""
        return self.ensemble.sd(self.covariances(index, True), self.prior_variance[:, index])


def build(kernel: Kernel, hypers: list[Hyper], data: Data) -> Ensemble:
    """The ensemble of plain data, its telling observations first."""
    order = telling(data)
    return Ensemble(kernel, hypers, data.X[order], np.tile(data.y[order], (len(hypers), 1)))


def telling(data: Data) -> Ints:
    """Observations in an order whose first FEW tell most: those with the best values, then far from all before."""
    by_value = np.argsort(data.y, kind="stable")
    chosen = by_value[: FEW // 2].tolist()
    distance = np.min(np.count_nonzero(data.X[:, None] != data.X[chosen], axis=2), axis=1)
    distance[chosen] = -1
    while len(chosen) < min(FEW, len(data.y)):
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.count_nonzero(data.X[chosen[-1]] != data.X, axis=1))
        distance[chosen] = -1
    rest = np.ones(len(data.y), dtype=bool)
    rest[chosen] = False
    return np.concatenate([chosen, by_value[rest[by_value]]]).astype(np.intp)


def _with_noise(K: Floats, h: Hyper) -> Floats:
    C = np.array(K)
    C.flat[:: len(C) + 1] += math.exp(h.log_noise)
    return C
