"""Sparse functions of categories: of 30 variables six matter, by themselves and three of them together.

Notation
    k_i     number of values of variable i, 3 to 7

Objective: sum_i a_i[x_i] over six variables, with a standard normal, minus a bonus where three of the six have the one
combination of values that earns it. The other 24 variables are dead.

The bonus makes good what the three values cost above the best ones, and a standard deviation of the sum on top: the
least value is that much below the least value without the combination.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from carbo.space.variables import Categorical
from lab.problems.base import Problem
from lab.problems.digest import digest
from lab.problems.factors import Factor, Factors
from lab.problems.seeds import check_run, check_seed, instance_stream, single_seed, start_rows

TAG = "carbo_SPARSE_CATEGORIES"
VARIABLES, MATTER, TOGETHER = 30, 6, 3
FEWEST, MOST = 3, 7
BUDGET, INITIAL = 200, 10


class Made(NamedTuple):
    """An instance."""

    sizes: tuple[int, ...]
    function: Factors


def sparse_categories(seed: int, run: int = 1) -> Problem:
    """A random function, to be minimised. The optimum is exact. No initial row has the combination."""
    made = instance(check_seed(seed))
    space = Space({f"x{i}": Categorical(list("abcdefg"[:size])) for i, size in enumerate(made.sizes, start=1)})
    return Problem(
        name="sparse-categories",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=made.function,
        design=partial(_design, made),
        optimum=made.function.least(),
        instance={"seed": int(seed), "numbers": digest(made.sizes, *(f.table for f in made.function.each)),
                  "start_seed": single_seed(TAG, run)},
    )  # fmt: skip


@cache
def instance(seed: int) -> Made:
    """The sizes of a seed, which variables matter, their tables, and last the combination."""
    rng = instance_stream(TAG, seed)
    sizes = rng.randint(FEWEST, MOST + 1, size=VARIABLES).tolist()
    those = rng.permutation(VARIABLES)[:MATTER].tolist()
    alone = [Factor((i,), rng.standard_normal(sizes[i])) for i in those]
    scope = tuple(those[:TOGETHER])
    values = tuple(int(rng.randint(0, sizes[i])) for i in scope)
    cost = sum(float(f.table[v] - f.table.min()) for f, v in zip(alone, values, strict=False))
    spread = math.sqrt(sum(float(factor.table.var()) for factor in alone))
    bonus = np.zeros([sizes[i] for i in scope])
    bonus[values] = -cost - spread
    return Made(tuple(sizes), Factors((*alone, Factor(scope, bonus))))


def _design(made: Made, run: int) -> Ints:
    combination = Factors(made.function.each[-1:])
    rows = start_rows(single_seed(TAG, run), np.array(made.sizes), 4 * INITIAL)
    return np.asarray(rows[combination.many(rows) == 0][:INITIAL])
