"""Exact truths about two families, by integer programmes in another formulation than the problems' own code."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from carbo.numerics.types import Floats, Ints


class Programme:
    """Rows of linear constraints, collected one at a time; all variables lie in [0, 1]."""

    def __init__(self, cost: Floats, whole: int) -> None:
        self._cost, self._whole = np.asarray(cost, dtype=np.float64), whole
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def add(self, terms: list[tuple[int, float]], low: float, high: float) -> None:
        """low <= sum of coefficient * variable <= high."""
        self._entries += [(len(self._low), column, coefficient) for column, coefficient in terms]
        self._low.append(low)
        self._high.append(high)

    def solved(self) -> Floats:
        """The whole variables, the first ones, of a point that is proved to be the best."""
        rows, columns, coefficients = zip(*self._entries, strict=True)
        matrix: Any = coo_array((coefficients, (rows, columns)), shape=(len(self._low), len(self._cost)))
        integrality = (np.arange(len(self._cost)) < self._whole).astype(np.intp)
        found = milp(self._cost, constraints=LinearConstraint(matrix.tocsr(), self._low, self._high),
                     integrality=integrality, bounds=Bounds(0, 1), options={"mip_rel_gap": 0})  # fmt: skip
        assert found.status == 0, found.message
        return np.asarray(found.x[: self._whole])


def best_packing(p: Ints, w: Ints, capacity: int) -> Ints:
    """The row of the quadratic knapsack with the largest profit: a product of two variables is at most either."""
    pairs = np.argwhere(np.triu(p, k=1) > 0).tolist()
    n = len(w)
    programme = Programme(-np.array([*np.diag(p), *(p[i, j] for i, j in pairs)]), n)
    programme.add([(i, float(w[i])) for i in range(n)], 0, capacity)
    for e, (i, j) in enumerate(pairs):
        programme.add([(n + e, 1.0), (i, -1.0)], -np.inf, 0)
        programme.add([(n + e, 1.0), (j, -1.0)], -np.inf, 0)
    return np.rint(programme.solved()).astype(np.intp)


def best_layout(c: Ints, f: Ints, g: Ints, crowding: int) -> Ints:
    """The row of the assignment family with the least cost.

    Tasks that share a flow are transported from site to site; the l-th task of a site costs l times `crowding`.
    """
    (n, m), pairs = c.shape, np.argwhere(f > 0).tolist()
    flows, places = n * m, n * m + len(pairs) * m * m
    products = [f[i, j] * g.ravel() for i, j in pairs]
    programme = Programme(np.concatenate([c.ravel(), *products, np.tile(crowding * np.arange(n), m)]), flows)
    for i in range(n):
        programme.add([(i * m + s, 1.0) for s in range(m)], 1, 1)
    for e, (i, j) in enumerate(pairs):
        block = flows + e * m * m
        for s in range(m):
            programme.add([*((block + s * m + t, 1.0) for t in range(m)), (i * m + s, -1.0)], 0, 0)
            programme.add([*((block + t * m + s, 1.0) for t in range(m)), (j * m + s, -1.0)], 0, 0)
    for s in range(m):
        taken = [(places + s * n + level, -1.0) for level in range(n)]
        programme.add([*((i * m + s, 1.0) for i in range(n)), *taken], 0, 0)
    return np.asarray(programme.solved().reshape(n, m).argmax(axis=1))
