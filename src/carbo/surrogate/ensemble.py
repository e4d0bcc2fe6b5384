"""Gaussian processes conditioned on the data, one for each posterior sample, and what the search asks of them.

Notation
    S, n, N     samples, observations (pending fantasies included), rows asked about
    M           number of values of the variables that are not wide: columns of a one-hot row (`sums.Columns`)
    H           (N, M) one-hot rows
    T           (S, M, n) per-variable tables, stacked: H @ T sums them over variables (`sums.Sums`)
    mu, sd      (S, N) posterior mean and standard deviation of the latent function, standardised

Nothing here knows an acquisition function; `acquisition` turns mu and sd into scores.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from carbo.inference.data import Data, Hyper
from carbo.kernels.base import Kernel
from carbo.kernels.cross import Columns, Sums, Tables, cross, dense, one_hot
from carbo.numerics import linalg
from carbo.numerics.types import Floats, Ints

TINY = 1e-200
"""Least prior variance: a space of one point has none, and rounding may leave less than none."""
FEW = 32
"""Observations that the first bounds of sd are given; see `by_information`."""
CLOSEST = 0.4
"""Share of the observations that the closest bound of sd is given."""
BLOCK = 2**19
"""Covariances computed at a time, in numbers."""
ROOM = 2**24
"""Covariances held at a time, in numbers: more rows than that are answered in pieces."""


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


class Levels:
    """Numbers the values by which observations are told apart: all of a narrow variable's, the observed ones of a wide
    one's, and one number for all others of that.
    """

    def __init__(self, kernel: Kernel, X: Ints) -> None:
        sizes = [s.size for s in kernel.spectra]
        wide = Columns(kernel).wide
        self._seen = {int(j): np.unique(X[:, j]) for j in wide}
        self.counts = np.array([len(self._seen[j]) + 1 if j in self._seen else k for j, k in enumerate(sizes)])
        self._offset = np.cumsum(self.counts) - self.counts
        self.X = self.number(np.arange(X.shape[1]), X) - self._offset

    def number(self, i: Ints, values: Ints) -> Ints:
        """Of values of variables i; the two are broadcast."""
        out = self._offset[i] + values
        for j, seen in self._seen.items():
            at = np.broadcast_to(i == j, out.shape)
            place = np.minimum(np.searchsorted(seen, values[at]), len(seen) - 1)
            out[at] = self._offset[j] + np.where(seen[place] == values[at], place, len(seen))
        return np.asarray(out)

    def of(self, j: int) -> tuple[Ints, slice]:
        """Variable j's values that have a number of their own, and where their numbers are."""
        values = self._seen.get(j, np.arange(self.counts[j]))
        return values, slice(int(self._offset[j]), int(self._offset[j]) + len(values))


class Ensemble:
    """S conditioned Gaussian processes over the same rows X (n, d); each sample has its own values (S, n).

    Values differ between samples where pending rows are fantasised, and are equal otherwise.
    order: (n,) which observation of the data each row is, where all rows are of the data.
    """

    def __init__(self, kernel: Kernel, hypers: list[Hyper], X: Ints, values: Floats, order: Ints | None = None) -> None:
        self.kernel, self.hypers, self.X, self.values, self.order = kernel, hypers, X, values, order
        self.w = [np.exp(h.log_w) for h in hypers]
        self.sizes = np.array([s.size for s in kernel.spectra])
        self.columns = Columns(kernel)
        self.tables = Tables(kernel, [h.scales for h in hypers], self.w, self.columns)
        self.sums = Sums(self.tables, self.columns, X)
        self.complete = np.array([s.kind == "complete" for s in kernel.spectra])
        self.varies = not self.complete.all()
        self.gps = self._conditioned()
        self.alpha = np.stack([g.alpha for g in self.gps])
        self.mean = np.array([g.mean for g in self.gps])

    def _conditioned(self) -> list[linalg.Conditioned]:
        H, K = self.columns.one_hot(self.X), np.empty((len(self.X), len(self.X)))
        return [
            linalg.condition(_with_noise(self._fill(s, H, self.X, K), h), self.values[s], h.mean)
            for s, h in enumerate(self.hypers)
        ]

    @property
    def size(self) -> int:
        return len(self.hypers)

    @cached_property
    def levels(self) -> Levels:
        return Levels(self.kernel, self.X)

    def by_level(self, weighted: Floats) -> Floats:
        """(S, V, L): what is given per observation (S, V, n), summed over the observations with each of the levels."""
        S, V, n = weighted.shape
        return np.asarray((self._by_level @ weighted.reshape(-1, n).T).T).reshape(S, V, -1)

    @cached_property
    def _by_level(self) -> Any:
        return one_hot(self.levels.counts, self.levels.X).T

    def covariances(self, rows: Ints, first: int | None = None) -> Floats:
        """Between rows and the (first) observations under every sample, (S, N, n)."""
        n, H = len(self.X[:first]), self.columns.one_hot(rows)
        if self.size * len(rows) * n <= BLOCK:
            return self.sums.covariances(H, rows, first=first)
        K = np.empty((self.size, len(rows), n))
        for s in range(self.size):
            self._fill(s, H, rows, K[s])
        return K

    def _fill(self, s: int, H: Any, rows: Ints, out: Floats) -> Floats:
        """Covariances of rows under sample s, a block at a time: fresh pages cost more than the arithmetic on them."""
        n = out.shape[1]
        block = max(BLOCK // n, 1)
        for i in range(0, len(rows), block):
            some = slice(i, i + block)
            out[some] = self.sums.covariances(H[some], rows[some], slice(s, s + 1), n)[0]
        return out

    @property
    def piece(self) -> int:
        """Rows whose covariances may be held at a time."""
        return max(ROOM // (self.size * len(self.X)), 1)

    def prior_variance(self, rows: Ints) -> Floats:
        """(S, N)."""
        some = rows if self.varies else rows[:1]
        H = self.columns.one_hot(some)
        return np.broadcast_to(np.maximum(self.tables.variances(H, some), TINY), (self.size, len(rows)))

    def with_parents(self, parents: Ints, owner: Ints, i: Ints, a: Ints, c: Ints) -> Floats:
        """Prior covariances (S, N) of parents[owner] with what they are when variable i goes from value a to value c.

        Zero for wide variables, of whose pairs of values there is no table.
        """
        known, out = np.flatnonzero(self.columns.offset[i] >= 0), np.zeros((self.size, len(owner)))
        i, a, c, owner = i[known], a[known], c[known], owner[known]
        H, before, after = self.columns.one_hot(parents), self.columns.pair(i, a, a), self.columns.pair(i, a, c)
        out[:, known] = self.tables.with_parent(H, parents, owner, i, before, after)
        return out

    def mu(self, K: Floats) -> Floats:
        """Posterior mean (S, N) from covariances K (S, N, n)."""
        return np.asarray(self.mean[:, None] + np.matmul(K, self.alpha[:, :, None])[:, :, 0])

    def at_observations(self) -> Floats:
        """mu at the observations (S, n): K alpha = (C - noise I) alpha = values - mean - noise alpha."""
        noise = np.exp([h.log_noise for h in self.hypers])
        return np.asarray(self.values - noise[:, None] * self.alpha)

    def sd(self, K: Floats, prior_variance: Floats) -> Floats:
        """Posterior standard deviation (S, N) given the first m observations, from covariances K (S, N, m).

        With m < n that is an upper bound of the one given all.
        K is overwritten.
        """
        m, explained = K.shape[2], np.empty(K.shape[:2])
        for s, conditioned in enumerate(self.gps):
            V = blas.dtrsm(1.0, conditioned.L[:m, :m], K[s].T, lower=1, overwrite_b=1).T
            explained[s] = np.vecdot(V, V)
        return np.sqrt(np.maximum(prior_variance - explained, 1e-12 * prior_variance))

    def predict(self, rows: Ints) -> tuple[Floats, Floats]:
        """mu and sd at rows."""
        if len(rows) > self.piece:
            parts = [self.predict(rows[i : i + self.piece]) for i in range(0, len(rows), self.piece)]
            mu, sd = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
            return mu, sd
        K = self.covariances(rows)
        return self.mu(K), self.sd(K, self.prior_variance(rows))

    def mean_at(self, rows: Ints) -> Floats:
        """mu at rows, averaged over the samples, (N,)."""
        pieces = (rows[i : i + self.piece] for i in range(0, len(rows), self.piece))
        return np.concatenate([self.mu(self.covariances(some)).mean(axis=0) for some in pieces] or [np.empty(0)])

    def left_out(self) -> tuple[Floats, Floats]:
        """Mean and variance (S, n) of each observation given all others, noise included.

        Leaving one out changes nothing but its own row and column of the covariance C, so that its prediction has a
        closed form (Rasmussen and Williams 2006, equation 5.12): value - alpha_i / [C^-1]_ii and 1 / [C^-1]_ii.
        """
        inverses = (lapack.dtrtri(g.L, lower=1)[0] for g in self.gps)
        precision = np.stack([np.einsum("ij,ij->j", inverse, inverse) for inverse in inverses])  # of L^-T L^-1
        return self.values - self.alpha / precision, 1.0 / precision

    def joint(self, s: int, rows: Ints) -> tuple[Floats, Floats]:
        """Mean (N,) and covariance (N, N) of the latent function at rows under sample s."""
        h, g, w = self.hypers[s], self.gps[s], self.w[s]
        K = cross(self.kernel, h.scales, w, rows, self.X)
        V = linalg.solve_lower(g.L, K.T)
        return g.mean + K @ g.alpha, cross(self.kernel, h.scales, w, rows, rows) - V.T @ V

    def extend(self, rng: np.random.Generator, rows: Ints) -> Ensemble:
        """The ensemble given fantasies at pending rows: each sample draws its own noisy values there."""
        values = []
        for s, h in enumerate(self.hypers):
            mean, cov = self.joint(s, rows)
            L = linalg.cholesky(_with_noise(cov, h))
            values.append(np.append(self.values[s], mean + L @ rng.standard_normal(len(rows))))
        return Ensemble(self.kernel, self.hypers, np.concatenate([self.X, rows]), np.stack(values))


def build(kernel: Kernel, hypers: list[Hyper], data: Data) -> Ensemble:
    """The ensemble of plain data, its most informative observations first."""
    order = by_information(data)
    return Ensemble(kernel, hypers, data.X[order], np.tile(data.y[order], (len(hypers), 1)), order)


def by_information(data: Data) -> Ints:
    """Observations in an order whose beginnings tell much, so that sd given such a beginning is close to sd.

    Of the first FEW, half have the best values and half are far from all before; then, up to the share CLOSEST of all,
    they take turns at both; the rest is sorted by value.
    """
    n, by_value = len(data.y), np.argsort(data.y, kind="stable")
    H = one_hot(data.X.max(axis=0) + 1, data.X)
    alike = dense(H @ H.T)
    chosen = by_value[: FEW // 2].tolist()
    nearest = alike[chosen].max(axis=0)
    nearest[chosen] = np.inf
    while len(chosen) < min(max(FEW, int(CLOSEST * n)), n):
        far = len(chosen) < FEW or len(chosen) % 2 == 0
        new = int(np.argmin(nearest)) if far else int(by_value[np.argmax(nearest[by_value] < np.inf)])
        chosen.append(new)
        np.maximum(nearest, alike[new], out=nearest)
        nearest[new] = np.inf
    return np.concatenate([chosen, by_value[nearest[by_value] < np.inf]]).astype(np.intp)


def _with_noise(K: Floats, h: Hyper) -> Floats:
    C = np.array(K)
    C.flat[:: len(C) + 1] += math.exp(h.log_noise)
    return C
