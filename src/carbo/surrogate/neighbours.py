"""Rows made of others: recombined halves, and neighbours, which differ from a parent in one variable.

Notation
    S, n        posterior samples, observations; M columns of one-hot rows (see `cross.Columns`)
    V, N        parents, neighbours
    L           levels: values by which observations are told apart (see `ensemble.Levels`)
    K           (S, V, n) covariances of V rows with the observations
    alpha       (S, n) C^-1 (y - mean)
    A           (S, M, n) each value's factor with each observation (`Kernel.factor`); of a wide variable's values,
                factors are computed when asked for
    a, c        the value a changed variable had, and the one it gets; u = A at a
    x, x'       a parent and a neighbour of it: variable i has value a in x and c in x'
    v, v', k    prior variances of f(x) and f(x'), and their prior covariance
    sd, sd'     posterior standard deviations of f(x) and f(x')

A covariance is a sum of products of what the two halves of a row contribute (`Kernel.halves`), and grows with one
variable's factor by `Kernel.rest`. Means need the latter summed over observations only by the observations' value of
the changed variable: one matrix product gives all neighbours' means.

Two bounds of sd' come before sd' itself, the cheaper first. A priori f(x') = (k / v) f(x) + e with e independent of
f(x) and of variance v' - k^2 / v; data shrink that variance, and the spread of a sum is at most the sum of spreads:

    sd' <= |k| / v * sd + sqrt(v' - k^2 / v) = sqrt(v') (rho sd / sqrt(v) + sqrt(1 - rho^2)),  rho = |k| / sqrt(v v')

This bound is close where the variable matters little. The second bound is sd' given some of the observations only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from carbo.kernels.base import Factors
from carbo.kernels.cross import Sums, dense
from carbo.numerics.types import Bools, Floats, Ints
from carbo.surrogate.ensemble import CLOSEST, FEW, ROOM, Ensemble, Recombined

MANY = 256
"""Features of windows from which on neighbours are computed from the features that differ from their parent's."""
Covariances = Callable[[Ints, int | None], Floats]
"""(index, first) -> covariances (S, len(index), first) of those rows with the first observations, or with all."""
ROUNDING = 1e-8
"""By how much rounding may leave too little of 1 - rho^2."""
FARTHER, FEWEST = 0.2, 24
"""Share of a closer bound's observations that the one before it is given, and how few make no bound worth its price."""


class Half(NamedTuple):
    """Half rows: one-hot H (B, R, M), zero outside their own variables (B, d), and what they were made of (B, R, d)."""

    H: Floats
    rows: Ints
    own: Bools

    def sums(self, of: Sums, s: int) -> list[Floats]:
        """(B, R, n) each, under sample s."""
        return [total[0] for total in of.at(self.H, self.rows, self.own, slice(s, s + 1))]


def halves(ensemble: Ensemble, starts: Recombined) -> tuple[Half, Half]:
    """The left and the right ones."""
    columns, (B, R, d) = ensemble.columns, starts.left.shape
    left, right = (
        Half(
            dense(columns.one_hot(rows.reshape(B * R, d))).reshape(B, R, -1)
            * np.repeat(own[:, columns.narrow], columns.sizes, axis=1)[:, None],
            rows,
            own,
        )
        for rows, own in ((starts.left, starts.cut), (starts.right, ~starts.cut))
    )
    return left, right


class Neighbours:
    """Means and spreads of rows made of others under one ensemble."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._of, self._kernel = ensemble, ensemble.kernel

    def spread(self, starts: Recombined) -> tuple[Floats, Floats]:
        """mu and an upper bound of sd of all recombined rows, each (S, len(starts))."""
        of = self._of
        variance = of.prior_variance(starts.rows(np.arange(len(starts) if of.varies else 1)))
        left, right = halves(of, starts)
        B, R, _ = starts.left.shape
        mu, explained = np.empty((of.size, B, R, R)), np.empty((of.size, B * R * R))
        K, spare = (np.empty((B, R, R, min(FEW, len(of.X)))) for _ in range(2))  # fresh pages cost more than products
        windowed = len(of.tables.windows) > 0
        Psi = of.tables.windows.features(starts.rows(np.arange(len(starts) if windowed else 0)))
        for s, weights in enumerate(of.tables.weights):
            weighted, _ = self._kernel.halves(weights, self._kernel.layers(left.sums(of.sums, s)))
            _, plain = self._kernel.halves(weights, self._kernel.layers(right.sums(of.sums, s)))
            tall = np.concatenate([own * of.alpha[s] for own in weighted], axis=2)
            mu[s] = tall @ np.concatenate(plain, axis=2).transpose(0, 2, 1)
            np.multiply(weighted[0][:, :, None, :FEW], plain[0][:, None, :, :FEW], out=K)
            for one, other in zip(weighted[1:], plain[1:], strict=True):
                K += np.multiply(one[:, :, None, :FEW], other[:, None, :, :FEW], out=spare)
            of.sums.add_windows(K.reshape(1, B * R * R, -1), Psi, slice(s, s + 1), FEW)
            few = np.asfortranarray(of.gps[s].L[:FEW, :FEW])
            V = blas.dtrsm(1.0, few, K.reshape(B * R * R, -1).T, lower=1, overwrite_b=1).T
            explained[s] = np.vecdot(V, V)
        mu += of.mean[:, None, None, None]
        means = mu.reshape(of.size, -1)
        if windowed:
            means += self._window_means(Psi)
        return means, np.sqrt(np.maximum(variance - explained, 1e-12 * variance))

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Around:
        """What is known of rows that each differ in one variable from parents[owner], before any sd is computed."""
        of, kernel, change = self._of, self._kernel, Change(self._of, parents, rows, owner)
        layers = kernel.layers(of.sums.at(of.columns.one_hot(parents), parents))
        weights = of.tables.weights
        K = np.asarray(sum(c[:, None, None] * own for c, own in zip(weights.T, layers, strict=True)))
        below = np.stack(kernel.below(layers), axis=1)  # (S, Q, V, n)
        mu = of.mu(K)[:, owner]
        windowed, Psi = len(of.tables.windows) > 0, of.tables.windows.features(rows)
        if windowed:
            mu += self._window_means(Psi)
        by_level = np.stack([of.by_level(below[:, q] * of.alpha[:, None]) for q in range(below.shape[1])], axis=1)
        flat = np.flatnonzero(of.complete[change.i])
        self._add_flat(mu, by_level, change, owner, flat)
        for j in np.flatnonzero(~of.complete):
            of_j = np.flatnonzero(change.i == j)
            levels, numbers = of.levels.of(int(j))
            for s in range(of.size):
                new, u = (self._between(s, int(j), v[of_j], levels) for v in (change.c, change.a))
                by = by_level[s][:, owner[of_j], numbers]
                mu[s, of_j] += np.vecdot(new - u, kernel.rest(weights[s], u, by))

        def covariances(index: Ints, first: int | None) -> Floats:
            i, at = change.i[index], owner[index]
            factors = Factors(*(partial(self._factors, i, v[index], first) for v in (change.a, change.c)))
            if Psi.shape[1] <= MANY:
                new = kernel.changed(K, below, at, factors, weights)
                return of.sums.add_windows(new, Psi[index], first=first)
            new = kernel.changed(whole, below, at, factors, weights)
            return of.sums.add_moved(new, Psi[index] - parent[at], first)

        variance, parent = of.prior_variance(rows), of.tables.windows.features(parents)
        whole = of.sums.add_windows(K.copy(), parent) if windowed else K
        return Around(of, mu, variance, lambda: capped(of, parents, whole, change, variance), covariances)

    def _window_means(self, Psi: Floats) -> Floats:
        """(S, N): what windows, features Psi (N, F), add to the means."""
        return np.asarray((Psi @ self._window_alpha).T)

    @cached_property
    def _window_alpha(self) -> Floats:
        """(F, S): the observations' features, summed with alpha and weighted."""
        of = self._of
        return np.asarray((of.sums.Psi.T @ of.alpha.T) * of.tables.window_weights[:, of.tables.windows.owner].T)

    def _add_flat(self, mu: Floats, by_level: Floats, change: Change, owner: Ints, flat: Ints) -> None:
        """Complete graphs: only observations that have the old or the new value are nearer or farther than before."""
        i, rest = change.i[flat], self._kernel.rest
        same, other = (factor[:, i] for factor in self._flat)  # (S, N)
        for s, weights in enumerate(self._of.tables.weights):
            before = by_level[s][:, owner[flat], change.old[flat]]  # (Q, N)
            after = by_level[s][:, owner[flat], change.new[flat]]
            gap = other[s] - same[s]
            mu[s, flat] += gap * rest(weights, same[s], before) - gap * rest(weights, other[s], after)

    @cached_property
    def _flat(self) -> tuple[Floats, Floats]:
        """(S, d) factors of equal and of unequal values of complete graphs."""
        each = [self._kernel.flat(h.scales) for h in self._of.hypers]
        return np.stack([same for same, _ in each]), np.stack([other for _, other in each])

    @cached_property
    def _A(self) -> Floats:
        return self._kernel.factor(self._of.sums.tables[0])

    def _factors(self, i: Ints, values: Ints, first: int | None) -> Floats:
        """(S, len(i), n): factors of those values of variables i with the (first) observations."""
        of, offset = self._of, self._of.columns.offset[i]
        narrow = offset >= 0
        if narrow.all():
            return self._A[:, offset + values, :first]
        out = np.empty((of.size, len(i), len(of.X[:first])))
        out[:, narrow] = self._A[:, (offset + values)[narrow], :first]
        for j in np.unique(i[~narrow]):
            at = i == j
            out[:, at] = self._kernel.factor(of.sums.entries(int(j), values[at], first))
        return out

    def _between(self, s: int, j: int, values: Ints, levels: Ints) -> Floats:
        """Factors of variable j between those values and levels under sample s, (len(values), len(levels))."""
        kernel, scales = self._kernel, self._of.hypers[s].scales
        return kernel.factor(kernel.summands(scales, j, kernel.table(scales, j).at(values[:, None], levels))[0])


class Change:
    """Which variable i of each neighbour differs from its parent, from value a (level old) to value c (level new)."""

    def __init__(self, ensemble: Ensemble, parents: Ints, rows: Ints, owner: Ints) -> None:
        self.owner = owner
        self.i = np.argmax(rows != parents[owner], axis=1)
        self.a, self.c = parents[owner, self.i], rows[np.arange(len(rows)), self.i]
        self.old, self.new = (ensemble.levels.number(self.i, v) for v in (self.a, self.c))


@dataclass(frozen=True, eq=False)
class Around:
    """Neighbours: their mu and prior variance, each (S, N), and the covariances of any of them.

    first_bound: computes `cap`, which whoever asks for mu alone does not need.
    """

    ensemble: Ensemble
    mu: Floats
    prior_variance: Floats
    first_bound: Callable[[], Floats]
    covariances: Covariances

    @cached_property
    def cap(self) -> Floats:
        """A bound of sd, (S, N)."""
        return self.first_bound()

    @property
    def stages(self) -> list[int]:
        """How many observations each closer bound is given."""
        counts, m = list[int](), int(CLOSEST * len(self.ensemble.X))
        while m >= FEWEST:
            counts.insert(0, m)
            m = int(FARTHER * m)
        return counts

    def sd(self, index: Ints, first: int | None = None) -> Floats:
        """sd of those neighbours, (S, len(index)); given only the first observations: an upper bound of it."""
        piece = self.ensemble.piece if first is None else max(ROOM // (self.ensemble.size * first), 1)
        some = [index[i : i + piece] for i in range(0, len(index), piece)] or [index]
        each = [self.ensemble.sd(self.covariances(part, first), self.prior_variance[:, part]) for part in some]
        return np.concatenate(each, axis=1) if len(each) > 1 else each[0]


def capped(ensemble: Ensemble, parents: Ints, K: Floats, change: Change, prior_variance: Floats) -> Floats:
    """(S, N) the first bound, from the parents' covariances K (S, V, n); the prior's sd where that is less."""
    v, before = ensemble.prior_variance(parents), np.sqrt(prior_variance)
    left = (ensemble.sd(K.copy(), v) / np.sqrt(v))[:, change.owner]
    k = ensemble.with_parents(parents, change.owner, change.i, change.a, change.c)
    rho = np.minimum(np.abs(k) / (np.sqrt(v)[:, change.owner] * before), 1.0)
    return np.asarray(before * np.minimum(rho * left + np.sqrt(1.0 - rho * rho + ROUNDING), 1.0))
