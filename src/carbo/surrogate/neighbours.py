"""Fast predictions of many similar rows: recombined halves, and neighbours, which differ from a parent in one variable.

Notation
    S, n        posterior samples, observations; M columns of one-hot rows (see `cross.Columns`)
    V, N        parents, neighbours
    L           number of all levels: values that the observations distinguish (see `ensemble.Levels`)
    Q           number of layers (see `Kernel.layers`)
    K           (S, V, n) covariances of V rows with the observations
    alpha       (S, n) C^-1 (y - mean)
    A           (S, M, n) factor of each narrow variable's values with each observation (`Kernel.factor`); those of wide
                variables are computed on request
    i           the variable in which a neighbour differs from its parent
    a, c        value of variable i in the parent, and in the neighbour; u its factor in the parent
    x, x'       a parent and its neighbour
    v, v', k    prior variances of f(x) and f(x'), and their prior covariance
    sd, sd'     posterior standard deviations of f(x) and f(x')

A covariance is a sum of products of two half rows' factors (`Kernel.half_factors`). It is affine in the factor of one
variable, with slope `Kernel.factor_slope`. A mean needs this slope summed over the observations with each value of the
changed variable: one matrix product gives the means of all neighbours.

There are two upper bounds of sd', and the cheaper one is used first. A priori f(x') = (k / v) f(x) + e, where e is
independent of f(x) and has variance v' - k^2 / v. Data shrink this variance, and the standard deviation of a sum is at
most the sum of standard deviations:

    sd' <= |k| / v * sd + sqrt(v' - k^2 / v) = sqrt(v') (rho sd / sqrt(v) + sqrt(1 - rho^2)),  rho = |k| / sqrt(v v')

This bound is tight where the variable matters little. The second bound is sd' given some of the observations only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from carbo.kernels.base import Factors
from carbo.kernels.cross import Sums, to_dense
from carbo.numerics.types import Bools, Floats, Ints
from carbo.surrogate.ensemble import CLOSEST, FEW, ROOM, Ensemble, Recombined

Covariances = Callable[[Ints, int | None], Floats]
"""(index, first) -> covariances (S, len(index), first) of those rows with the first observations, or with all."""


class HalfRows(NamedTuple):
    """Half rows: one-hot H (B, R, M), zero outside of `own` (B, d), their variables; and the whole rows (B, R, d)."""

    H: Floats
    rows: Ints
    own: Bools

    def sums(self, sums: Sums, s: int) -> list[Floats]:
        """The sums of their own variables with the observations under sample s, each (B, R, n)."""
        return [total[0] for total in sums.at(self.H, self.rows, self.own, slice(s, s + 1))]


def split_halves(ensemble: Ensemble, starts: Recombined) -> tuple[HalfRows, HalfRows]:
    """The left and the right halves of recombined rows."""
    columns, (B, R, d) = ensemble.columns, starts.left.shape
    left, right = (
        HalfRows(
            to_dense(columns.one_hot(rows.reshape(B * R, d))).reshape(B, R, -1)
            * np.repeat(own[:, columns.narrow], columns.sizes, axis=1)[:, None],
            rows,
            own,
        )
        for rows, own in ((starts.left, starts.cut), (starts.right, ~starts.cut))
    )
    return left, right


class NeighbourPredictor:
    """Predictions of recombined rows and of neighbours under one ensemble.

    sparse_from     number of windows' features from which on covariances of neighbours are computed from the features
                    that differ from their parent's
    """

    def __init__(self, ensemble: Ensemble, sparse_from: int = 256) -> None:
        self._ensemble, self._kernel, self._sparse_from = ensemble, ensemble.kernel, sparse_from

    def bound_recombined(self, starts: Recombined) -> tuple[Floats, Floats]:
        """Posterior means of all recombined rows, and upper bounds of their sd, each (S, len(starts))."""
        ensemble = self._ensemble
        variance = ensemble.prior_variance(starts.rows(np.arange(len(starts) if ensemble.varies else 1)))
        left, right = split_halves(ensemble, starts)
        B, R, _ = starts.left.shape
        mu, explained = np.empty((ensemble.size, B, R, R)), np.empty((ensemble.size, B * R * R))
        # two buffers for all samples: fresh pages cost more than the products
        K, spare = (np.empty((B, R, R, min(FEW, len(ensemble.X)))) for _ in range(2))
        windowed = len(ensemble.tables.windows) > 0
        Psi = ensemble.tables.windows.features(starts.rows(np.arange(len(starts) if windowed else 0)))
        for s, weights in enumerate(ensemble.tables.weights):
            weighted, _ = self._kernel.half_factors(weights, self._kernel.layers(left.sums(ensemble.sums, s)))
            _, plain = self._kernel.half_factors(weights, self._kernel.layers(right.sums(ensemble.sums, s)))
            tall = np.concatenate([factor * ensemble.alpha[s] for factor in weighted], axis=2)
            mu[s] = tall @ np.concatenate(plain, axis=2).transpose(0, 2, 1)
            np.multiply(weighted[0][:, :, None, :FEW], plain[0][:, None, :, :FEW], out=K)
            for one, other in zip(weighted[1:], plain[1:], strict=True):
                K += np.multiply(one[:, :, None, :FEW], other[:, None, :, :FEW], out=spare)
            ensemble.sums.add_windows(K.reshape(1, B * R * R, -1), Psi, slice(s, s + 1), FEW)
            few = np.asfortranarray(ensemble.gps[s].L[:FEW, :FEW])
            V = blas.dtrsm(1.0, few, K.reshape(B * R * R, -1).T, lower=1, overwrite_b=1).T
            explained[s] = np.vecdot(V, V)
        mu += ensemble.mean[:, None, None, None]
        means = mu.reshape(ensemble.size, -1)
        if windowed:
            means += self._window_means(Psi)
        return means, np.sqrt(np.maximum(variance - explained, 1e-12 * variance))

    def predict_neighbours(self, parents: Ints, rows: Ints, owner: Ints) -> NeighbourPredictions:
        """Predictions of rows (N, d) that each differ in one variable from parents[owner]; sd comes on request."""
        ensemble, kernel, change = self._ensemble, self._kernel, SingleChanges(self._ensemble, parents, rows, owner)
        layers = kernel.layers(ensemble.sums.at(ensemble.columns.one_hot(parents), parents))
        weights = ensemble.tables.weights
        K = np.asarray(sum(weight[:, None, None] * layer for weight, layer in zip(weights.T, layers, strict=True)))
        lower = np.stack(kernel.lower_layers(layers), axis=1)  # (S, Q, V, n)
        mu = ensemble.mu(K)[:, owner]
        windowed, Psi = len(ensemble.tables.windows) > 0, ensemble.tables.windows.features(rows)
        if windowed:
            mu += self._window_means(Psi)
        by_level = np.stack(
            [ensemble.sum_by_level(lower[:, q] * ensemble.alpha[:, None]) for q in range(lower.shape[1])], axis=1
        )
        self._add_complete_graphs(mu, by_level, change)
        self._add_other_graphs(mu, by_level, change)
        variance, parent_Psi = ensemble.prior_variance(rows), ensemble.tables.windows.features(parents)
        K_windowed = ensemble.sums.add_windows(K.copy(), parent_Psi) if windowed else K

        def covariances(index: Ints, first: int | None) -> Floats:
            i, at = change.i[index], owner[index]
            factors = Factors(*(partial(self._factors, i, v[index], first) for v in (change.a, change.c)))
            if Psi.shape[1] <= self._sparse_from:
                new = kernel.neighbour_covariances(K, lower, at, factors, weights)
                return ensemble.sums.add_windows(new, Psi[index], first=first)
            new = kernel.neighbour_covariances(K_windowed, lower, at, factors, weights)
            return ensemble.sums.add_window_changes(new, Psi[index] - parent_Psi[at], first)

        return NeighbourPredictions(
            ensemble,
            mu,
            variance,
            lambda: sd_bound_from_parent(ensemble, parents, K_windowed, change, variance),
            covariances,
        )

    def _window_means(self, Psi: Floats) -> Floats:
        """The windows' part of the means (S, N) of rows with features Psi (N, F)."""
        return np.asarray((Psi @ self._window_alpha).T)

    @cached_property
    def _window_alpha(self) -> Floats:
        """Weighted sums of the observations' features times alpha, (F, S)."""
        ensemble = self._ensemble
        return np.asarray(
            (ensemble.sums.Psi.T @ ensemble.alpha.T)
            * ensemble.tables.window_weights[:, ensemble.tables.windows.owner].T
        )

    def _add_complete_graphs(self, mu: Floats, by_level: Floats, change: SingleChanges) -> None:
        """Add the changes on complete graphs to mu: only factors with the old and the new value change."""
        at = np.flatnonzero(self._ensemble.complete[change.i])
        owner, slope = change.owner[at], self._kernel.factor_slope
        same, other = (factor[:, change.i[at]] for factor in self._equality_factors)  # (S, N)
        for s, weights in enumerate(self._ensemble.tables.weights):
            before = by_level[s][:, owner, change.old[at]]  # (Q, N)
            after = by_level[s][:, owner, change.new[at]]
            gap = other[s] - same[s]
            mu[s, at] += gap * slope(weights, same[s], before) - gap * slope(weights, other[s], after)

    def _add_other_graphs(self, mu: Floats, by_level: Floats, change: SingleChanges) -> None:
        """Add the changes on all other graphs to mu: factors with every observed value change."""
        ensemble = self._ensemble
        for j in np.flatnonzero(~ensemble.complete):
            at = np.flatnonzero(change.i == j)
            values, numbers = ensemble.levels.values_of(int(j))
            for s, weights in enumerate(ensemble.tables.weights):
                new, u = (self._factors_between(s, int(j), v[at], values) for v in (change.c, change.a))
                sums = by_level[s][:, change.owner[at], numbers]
                mu[s, at] += np.vecdot(new - u, self._kernel.factor_slope(weights, u, sums))

    @cached_property
    def _equality_factors(self) -> tuple[Floats, Floats]:
        """Factors of equal and of unequal values on complete graphs, each (S, d)."""
        each = [self._kernel.equality_factors(h.scales) for h in self._ensemble.hypers]
        return np.stack([same for same, _ in each]), np.stack([other for _, other in each])

    @cached_property
    def _A(self) -> Floats:
        return self._kernel.factor(self._ensemble.sums.terms[0])

    def _factors(self, i: Ints, values: Ints, first: int | None) -> Floats:
        """Factors (S, len(i), n) of these values of variables i with the (first) observations."""
        ensemble, offset = self._ensemble, self._ensemble.columns.offset[i]
        narrow = offset >= 0
        if narrow.all():
            return self._A[:, offset + values, :first]
        out = np.empty((ensemble.size, len(i), len(ensemble.X[:first])))
        out[:, narrow] = self._A[:, (offset + values)[narrow], :first]
        for j in np.unique(i[~narrow]):
            at = i == j
            out[:, at] = self._kernel.factor(ensemble.sums.first_wide_terms(int(j), values[at], first))
        return out

    def _factors_between(self, s: int, j: int, values: Ints, others: Ints) -> Floats:
        """Factors (len(values), len(others)) of variable j between values and other values under sample s."""
        kernel, scales = self._kernel, self._ensemble.hypers[s].scales
        return kernel.factor(kernel.summands(scales, j, kernel.table(scales, j).at(values[:, None], others))[0])


class SingleChanges:
    """Changes from parents[owner] to their neighbours: variable i goes from value a to c, from level `old` to `new`."""

    def __init__(self, ensemble: Ensemble, parents: Ints, rows: Ints, owner: Ints) -> None:
        self.owner = owner
        self.i = np.argmax(rows != parents[owner], axis=1)
        self.a, self.c = parents[owner, self.i], rows[np.arange(len(rows)), self.i]
        self.old, self.new = (ensemble.levels.number(self.i, v) for v in (self.a, self.c))


@dataclass(frozen=True, eq=False)
class NeighbourPredictions:
    """Predictions of N neighbours: mu and prior variance, each (S, N), and covariances of any of them.

    first_bound     function that computes `sd_bound`, on request because not every caller needs it
    """

    ensemble: Ensemble
    mu: Floats
    prior_variance: Floats
    first_bound: Callable[[], Floats]
    covariances: Covariances

    @cached_property
    def sd_bound(self) -> Floats:
        """The first upper bound of sd, (S, N)."""
        return self.first_bound()

    @property
    def bound_sizes(self) -> list[int]:
        """Numbers of first observations for tighter and tighter bounds `sd(index, first)`, ascending."""
        sizes, m = list[int](), int(CLOSEST * len(self.ensemble.X))
        while m >= 24:  # a bound from fewer observations is not worth its cost
            sizes.insert(0, m)
            m = int(0.2 * m)
        return sizes

    def sd(self, index: Ints, first: int | None = None) -> Floats:
        """sd (S, len(index)) of these neighbours given all observations; given the first ones only, an upper bound."""
        piece = self.ensemble.piece if first is None else max(ROOM // (self.ensemble.size * first), 1)
        parts = [index[i : i + piece] for i in range(0, len(index), piece)] or [index]
        each = [self.ensemble.sd(self.covariances(part, first), self.prior_variance[:, part]) for part in parts]
        return np.concatenate(each, axis=1) if len(each) > 1 else each[0]


def sd_bound_from_parent(
    ensemble: Ensemble, parents: Ints, K: Floats, change: SingleChanges, prior_variance: Floats
) -> Floats:
    """The first upper bound (S, N) of sd, from the parents' covariances K (S, V, n), or the prior's sd if less."""
    v, prior_sd = ensemble.prior_variance(parents), np.sqrt(prior_variance)
    parent_share = (ensemble.sd(K.copy(), v) / np.sqrt(v))[:, change.owner]
    k = ensemble.parent_covariances(parents, change.owner, change.i, change.a, change.c)
    rho = np.minimum(np.abs(k) / (np.sqrt(v)[:, change.owner] * prior_sd), 1.0)
    own_share = np.sqrt(1.0 - rho * rho + 1e-8)  # rounding may leave too little of 1 - rho^2
    return np.asarray(prior_sd * np.minimum(rho * parent_share + own_share, 1.0))
