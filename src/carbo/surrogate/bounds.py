"""What is known of rows that differ in one variable from a parent, and what bounds their spread before it is computed.

Notation
    S, V, N, n  posterior samples, parents, neighbours, observations
    x, x'       a parent and a neighbour of it: variable i has value a in x and c in x'
    v, v', k    prior variances of f(x) and f(x'), and their prior covariance
    sd, sd'     posterior standard deviations of f(x) and f(x')

Two bounds of sd', cheap first. A priori f(x') = (k / v) f(x) + e with e independent of f(x) and of variance
v' - k^2 / v; data shrink that variance, and the spread of a sum is at most the sum of spreads:

    sd' <= |k| / v * sd + sqrt(v' - k^2 / v) = sqrt(v') (rho sd / sqrt(v) + sqrt(1 - rho^2)),  rho = |k| / sqrt(v v')

which is close where the variable matters little. And sd' is at most what it is given some of the observations only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from carbo.numerics.types import Floats, Ints
from carbo.surrogate.ensemble import CLOSEST, ROOM, Ensemble

Covariances = Callable[[Ints, int | None], Floats]
"""(index, first) -> covariances (S, len(index), first) of those rows with the first observations, or with all."""
ROUNDING = 1e-8
"""By how much rounding may leave too little of 1 - rho^2."""
FARTHER, FEWEST = 0.2, 24
"""Share of a closer bound's observations that the one before it is given, and how few make no bound worth its price."""


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
    k = ensemble.beside(parents, change.owner, change.i, change.a, change.c)
    rho = np.minimum(np.abs(k) / (np.sqrt(v)[:, change.owner] * before), 1.0)
    return np.asarray(before * np.minimum(rho * left + np.sqrt(1.0 - rho * rho + ROUNDING), 1.0))


def looked_up(ensemble: Ensemble, stack: Floats, i: Ints, values: Ints, first: int | None) -> Floats:
    """(S, len(i), n): those values of variables i with the (first) observations, from `stack` (S, M, n).

    Of wide variables, which the stack does not have, as `Sums.entries` gives them.
    """
    offset = ensemble.columns.offset[i]
    narrow = offset >= 0
    if narrow.all():
        return stack[:, offset + values, :first]
    out = np.empty((ensemble.size, len(i), len(ensemble.X[:first])))
    out[:, narrow] = stack[:, (offset + values)[narrow], :first]
    for j in np.unique(i[~narrow]):
        at = i == j
        out[:, at] = ensemble.sums.entries(int(j), values[at], first)
    return out
