"""Gaussian processes conditioned on the data, one for each posterior sample, and their predictions.

Notation
    S, n, N     samples, observations (fantasies at pending rows included), rows to predict
    M           columns of a one-hot row (`cross.Columns`); H (N, M) one-hot rows
    L           number of all levels: values of variables that the observations distinguish (`Levels`)
    K           (S, N, n) covariances between rows and observations
    mu, sd      (S, N) posterior mean and standard deviation of the latent function, standardised

The room `acquisition` turns mu and sd into scores.
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
from carbo.kernels.cross import Columns, Sums, Tables, cross, one_hot, to_dense
from carbo.numerics import linalg
from carbo.numerics.types import Floats, Ints

FEW = 32
"""Number of observations that the first upper bounds of sd use; see `order_by_information`."""
CLOSEST = 0.4
"""Share of the observations that the closest upper bound of sd uses."""
BLOCK = 2**19
"""Number of covariances that are computed at a time."""
ROOM = 2**24
"""Number of covariances that are held in memory at a time: more rows are predicted in pieces."""


class Recombined(NamedTuple):
    """Many uniform random rows made from few, in B blocks of R x R rows.

    Block b combines every left half with every right half: variables in cut[b] come from left[b], the others from
    right[b]. Every row is uniform, and two rows that share no half are independent. Under a product kernel the means of
    a block cost one small matrix product.
    """

    left: Ints  # (B, R, d)
    right: Ints  # (B, R, d)
    cut: NDArray[np.bool_]  # (B, d)

    def __len__(self) -> int:
        B, R, _ = self.left.shape
        return int(B * R * R)

    def rows(self, index: Ints) -> Ints:
        """The rows with these indices, (len(index), d)."""
        R = self.left.shape[1]
        b, pair = np.divmod(index, R * R)
        i, j = np.divmod(pair, R)
        return np.where(self.cut[b], self.left[b, i], self.right[b, j])


class Levels:
    """Numbers for the values that the observations distinguish, one after another over the variables.

    A narrow variable has one number for each value. A wide variable has one for each observed value, and one more for
    all other values. Example: a binary variable, then one of 1,000 values, of which 3 and 17 were observed. Values 0
    and 1 have the numbers 0 and 1; 3 has number 2, 17 has number 3, and all others have number 4.
    """

    def __init__(self, sizes: Ints, wide: Ints, X: Ints) -> None:
        self._observed = {int(j): np.unique(X[:, j]) for j in wide}
        self.counts = sizes.copy()
        for j, values in self._observed.items():
            self.counts[j] = len(values) + 1
        self._offset = np.cumsum(self.counts) - self.counts
        self.X = self.number(np.arange(X.shape[1]), X) - self._offset

    def number(self, i: Ints, values: Ints) -> Ints:
        """The numbers of values of variables i; the two arrays are broadcast."""
        out = self._offset[i] + values
        for j, observed in self._observed.items():
            at = np.broadcast_to(i == j, out.shape)
            place = np.minimum(np.searchsorted(observed, values[at]), len(observed) - 1)
            out[at] = self._offset[j] + np.where(observed[place] == values[at], place, len(observed))
        return np.asarray(out)

    def values_of(self, j: int) -> tuple[Ints, slice]:
        """The values of variable j that do not share their number, and the slice of these numbers."""
        values = self._observed.get(j, np.arange(self.counts[j]))
        return values, slice(int(self._offset[j]), int(self._offset[j]) + len(values))


class Ensemble:
    """S conditioned Gaussian processes over the same rows X (n, d), each with its values (S, n).

    values  equal for all samples at observations, and different at pending rows, where they are fantasies
    order   (n,) index in the data of each row of X; None if there are fantasies
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
        self.gps = self._condition()
        self.alpha = np.stack([g.alpha for g in self.gps])
        self.mean = np.array([g.mean for g in self.gps])

    def _condition(self) -> list[linalg.ConditionedGP]:
        """The Gaussian process of each sample, conditioned on its values."""
        H, K = self.columns.one_hot(self.X), np.empty((len(self.X), len(self.X)))
        return [
            linalg.condition(_add_noise(self._fill(s, H, self.X, K), h), self.values[s], h.mean)
            for s, h in enumerate(self.hypers)
        ]

    @property
    def size(self) -> int:
        """S, the number of samples."""
        return len(self.hypers)

    @cached_property
    def levels(self) -> Levels:
        """The numbers of the values that the observations distinguish."""
        return Levels(self.sizes, self.columns.wide, self.X)

    def sum_by_level(self, weighted: Floats) -> Floats:
        """Sums (S, V, L) of numbers for each observation (S, V, n), over the observations with each level."""
        S, V, n = weighted.shape
        return np.asarray((self._level_indicators @ weighted.reshape(-1, n).T).T).reshape(S, V, -1)

    @cached_property
    def _level_indicators(self) -> Any:
        """One where an observation has the level, (L, n)."""
        return one_hot(self.levels.counts, self.levels.X).T

    def covariances(self, rows: Ints, first: int | None = None) -> Floats:
        """Covariances K (S, N, n) between rows and the (first) observations."""
        n, H = len(self.X[:first]), self.columns.one_hot(rows)
        if self.size * len(rows) * n <= BLOCK:
            return self.sums.covariances(H, rows, first=first)
        K = np.empty((self.size, len(rows), n))
        for s in range(self.size):
            self._fill(s, H, rows, K[s])
        return K

    def _fill(self, s: int, H: Any, rows: Ints, out: Floats) -> Floats:
        """Write the covariances of rows under sample s into `out`, in blocks: fresh pages cost more than arithmetic."""
        n = out.shape[1]
        block = max(BLOCK // n, 1)
        for i in range(0, len(rows), block):
            at = slice(i, i + block)
            out[at] = self.sums.covariances(H[at], rows[at], slice(s, s + 1), n)[0]
        return out

    @property
    def piece(self) -> int:
        """Number of rows whose covariances may be held in memory at a time."""
        return max(ROOM // (self.size * len(self.X)), 1)

    def prior_variance(self, rows: Ints) -> Floats:
        """Prior variances (S, N) at rows, at least 1e-200: rounding may make them negative in a space of one point."""
        some = rows if self.varies else rows[:1]
        H = self.columns.one_hot(some)
        return np.broadcast_to(np.maximum(self.tables.variances(H, some), 1e-200), (self.size, len(rows)))

    def parent_covariances(self, parents: Ints, owner: Ints, i: Ints, a: Ints, c: Ints) -> Floats:
        """Prior covariances (S, N) of parents[owner] with neighbours: variable i has value a in one and c in the other.

        They are zero for wide variables, for whose pairs of values no table is kept.
        """
        known, out = np.flatnonzero(self.columns.offset[i] >= 0), np.zeros((self.size, len(owner)))
        i, a, c, owner = i[known], a[known], c[known], owner[known]
        H, before, after = (
            self.columns.one_hot(parents),
            self.columns.pair_index(i, a, a),
            self.columns.pair_index(i, a, c),
        )
        out[:, known] = self.tables.parent_covariances(H, parents, owner, i, before, after)
        return out

    def mu(self, K: Floats) -> Floats:
        """Posterior means (S, N) from covariances K (S, N, n)."""
        return np.asarray(self.mean[:, None] + np.matmul(K, self.alpha[:, :, None])[:, :, 0])

    def at_observations(self) -> Floats:
        """Posterior means at the observations (S, n): K alpha = (C - noise I) alpha = values - mean - noise alpha."""
        noise = np.exp([h.log_noise for h in self.hypers])
        return np.asarray(self.values - noise[:, None] * self.alpha)

    def sd(self, K: Floats, prior_variance: Floats) -> Floats:
        """Posterior standard deviations (S, N) given the first m observations, from covariances K (S, N, m).

        With m < n they are upper bounds of those given all observations. K is overwritten.
        """
        m, explained = K.shape[2], np.empty(K.shape[:2])
        for s, conditioned in enumerate(self.gps):
            V = blas.dtrsm(1.0, conditioned.L[:m, :m], K[s].T, lower=1, overwrite_b=1).T
            explained[s] = np.vecdot(V, V)
        return np.sqrt(np.maximum(prior_variance - explained, 1e-12 * prior_variance))

    def predict(self, rows: Ints) -> tuple[Floats, Floats]:
        """Posterior means and standard deviations at rows, each (S, N)."""
        if len(rows) > self.piece:
            parts = [self.predict(rows[i : i + self.piece]) for i in range(0, len(rows), self.piece)]
            mu, sd = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
            return mu, sd
        K = self.covariances(rows)
        return self.mu(K), self.sd(K, self.prior_variance(rows))

    def mean_at(self, rows: Ints) -> Floats:
        """Posterior means at rows, averaged over the samples, (N,)."""
        pieces = (rows[i : i + self.piece] for i in range(0, len(rows), self.piece))
        return np.concatenate([self.mu(self.covariances(some)).mean(axis=0) for some in pieces] or [np.empty(0)])

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Mean and variance (S, n) of each observation given all others, noise included.

        They have a closed form (Rasmussen and Williams 2006, equation 5.12): value_i - alpha_i / [C^-1]_ii and
        1 / [C^-1]_ii.
        """
        inverses = (lapack.dtrtri(g.L, lower=1)[0] for g in self.gps)
        precision = np.stack(
            [np.einsum("ij,ij->j", inverse, inverse) for inverse in inverses]
        )  # diagonal of C^-1 = L^-T L^-1
        return self.values - self.alpha / precision, 1.0 / precision

    def joint_prediction(self, s: int, rows: Ints) -> tuple[Floats, Floats]:
        """Mean (N,) and covariance (N, N) of the latent function at rows under sample s."""
        h, g, w = self.hypers[s], self.gps[s], self.w[s]
        K = cross(self.kernel, h.scales, w, rows, self.X)
        V = linalg.solve_lower(g.L, K.T)
        return g.mean + K @ g.alpha, cross(self.kernel, h.scales, w, rows, rows) - V.T @ V

    def extend(self, rng: np.random.Generator, rows: Ints) -> Ensemble:
        """The ensemble conditioned also on fantasies at pending rows: noisy values that each sample draws there."""
        values = []
        for s, h in enumerate(self.hypers):
            mean, cov = self.joint_prediction(s, rows)
            L = linalg.cholesky(_add_noise(cov, h))
            values.append(np.append(self.values[s], mean + L @ rng.standard_normal(len(rows))))
        return Ensemble(self.kernel, self.hypers, np.concatenate([self.X, rows]), np.stack(values))


def build(kernel: Kernel, hypers: list[Hyper], data: Data) -> Ensemble:
    """The ensemble of these samples given the data, the most informative observations first."""
    order = order_by_information(data)
    return Ensemble(kernel, hypers, data.X[order], np.tile(data.y[order], (len(hypers), 1)), order)


def order_by_information(data: Data) -> Ints:
    """Indices of the observations, the most informative ones first: sd given the first ones is then close to sd.

    The first FEW are FEW / 2 with the best values, then FEW / 2 that are each far from all before. Up to the share
    CLOSEST of all observations, the best remaining value and the farthest observation alternate. The others follow by
    value.
    """
    n, by_value = len(data.y), np.argsort(data.y, kind="stable")
    H = one_hot(data.X.max(axis=0) + 1, data.X)
    alike = to_dense(H @ H.T)
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


def _add_noise(K: Floats, h: Hyper) -> Floats:
    """A copy of K (n, n) with the noise variance added to the diagonal."""
    C = np.array(K)
    C.flat[:: len(C) + 1] += math.exp(h.log_noise)
    return C
