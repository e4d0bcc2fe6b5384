"""Sums of small tables, and their least value without listing all points.

Notation
    scope   which variables a table depends on
    table   its values, one axis for each variable of the scope

The least value comes from eliminating one variable after the other (non-serial dynamic programming): the tables that
have the variable are added up, and the sum's least value over the variable is a table of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Floats, Ints

LARGEST = 2**22
"""Most entries of a table during elimination; problems that need a larger table are not solved."""


class Factor(NamedTuple):
    """One table and its variables."""

    scope: tuple[int, ...]
    table: Floats


@dataclass(frozen=True, eq=False)
class Factors:
    """The objective: the sum of all tables at a row."""

    each: tuple[Factor, ...]

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(n,) the values of rows (n, d)."""
        values = np.zeros(len(rows))
        for scope, table in self.each:
            values += table[tuple(rows[:, i] for i in scope)]
        return values

    def least(self) -> float | None:
        """The least value, exact but for rounding; None where that needs a table beyond LARGEST."""
        left = list(self.each)
        while variables := {i for scope, _ in left for i in scope}:
            chosen = min(sorted(variables), key=lambda i: _entries([f for f in left if i in f.scope]))
            touched = [factor for factor in left if chosen in factor.scope]
            if _entries(touched) > LARGEST:
                return None
            whole = _sum(touched)
            scope = tuple(i for i in whole.scope if i != chosen)
            smaller = Factor(scope, np.asarray(whole.table.min(axis=whole.scope.index(chosen))))
            left = [factor for factor in left if chosen not in factor.scope] + [smaller]
        return math.fsum(float(factor.table) for factor in left)


def _sizes(factors: list[Factor]) -> dict[int, int]:
    """variable -> number of its values, in ascending order of variables."""
    found = {i: size for scope, table in factors for i, size in zip(scope, table.shape, strict=True)}
    return dict(sorted(found.items()))


def _entries(factors: list[Factor]) -> int:
    return math.prod(_sizes(factors).values())


def _sum(factors: list[Factor]) -> Factor:
    """The sum of tables, as one table over all of their variables."""
    sizes = _sizes(factors)
    total = np.zeros(tuple(sizes.values()))
    for scope, table in factors:
        in_order = np.transpose(table, np.argsort(scope))
        total += in_order.reshape([size if i in scope else 1 for i, size in sizes.items()])
    return Factor(tuple(sizes), total)
