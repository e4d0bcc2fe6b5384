"""A function of 25 variables of 2 to 8 values that is measured coarsely: eleven levels, and half of all rows on one.

Notation
    s       the sum behind the levels, of a table for each of twelve variables and for each of ten pairs of them
    least   the least s there is
    high    the median of s over random rows

Objective: floor(10 (s - least) / (high - least)), at most 10: whole numbers from 0 on. Half of the rows are on the
plateau of 10, steps are flat everywhere, and 13 variables are dead. Variables of two values are binary, of the others
each is an ordered or a categorical one; an ordered one's own table has one valley.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Floats, Ints
from carbo.space.space import Space
from carbo.space.variables import Binary, Categorical, Ordinal, Variable
from lab.problems.base import Problem, random_design
from lab.problems.digest import digest
from lab.problems.factors import Factor, Factors
from lab.problems.seeds import check_run, check_seed, instance_stream, single_seed

TAG = "carbo_QUANTISED"
VARIABLES, MATTER, PAIRS = 25, 12, 10
SIZES = (2, 2, 3, 4, 5, 6, 8)
LEVELS, SAMPLE = 10, 2_000
BUDGET, INITIAL = 200, 10


@dataclass(frozen=True, eq=False)
class Levels:
    """The objective."""

    sums: Factors
    least: float
    high: float

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(n,) the levels of rows (n, d)."""
        share = (self.sums.many(rows) - self.least) / (self.high - self.least)
        return np.asarray(np.minimum(np.floor(LEVELS * share + 1e-9), LEVELS))  # rounding does not go below 0


class Made(NamedTuple):
    """An instance."""

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    levels: Levels


def quantised(seed: int, run: int = 1) -> Problem:
    """A random instance. The optimum is 0."""
    made = instance(check_seed(seed))
    kinds = zip(made.sizes, made.ordered, strict=True)
    space = Space({f"x{i}": _variable(size, ordered) for i, (size, ordered) in enumerate(kinds, start=1)})
    tables = (factor.table for factor in made.levels.sums.each)
    return Problem(
        name="quantised",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=made.levels,
        design=random_design(TAG, space, INITIAL),
        optimum=0.0,
        instance={"seed": int(seed), "numbers": digest(made.sizes, made.ordered, *tables),
                  "start_seed": single_seed(TAG, run)},
    )  # fmt: skip


@cache
def instance(seed: int) -> Made:
    """The variables of a seed, which of them matter, the tables, and the rows that say what is high."""
    rng = instance_stream(TAG, seed)
    sizes = np.array(SIZES)[rng.randint(0, len(SIZES), size=VARIABLES)]
    ordered = (rng.random_sample(VARIABLES) < 0.5) & (sizes > 2)
    those = rng.permutation(VARIABLES)[:MATTER]
    tables = [Factor((i,), _alone(rng, sizes[i], ordered[i])) for i in those.tolist()]
    for _ in range(PAIRS):
        i, j = rng.choice(those, size=2, replace=False).tolist()
        tables.append(Factor((i, j), 0.5 * rng.standard_normal((sizes[i], sizes[j]))))
    sums = Factors(tuple(tables))
    least = sums.least()
    assert least is not None
    rows = (rng.random_sample((SAMPLE, VARIABLES)) * sizes).astype(np.intp)
    return Made(tuple(sizes.tolist()), tuple(ordered.tolist()), Levels(sums, least, float(np.median(sums.many(rows)))))


def _alone(rng: np.random.RandomState, size: int, ordered: bool) -> Floats:
    if not ordered:
        return np.asarray(rng.standard_normal(size))
    place, steep = rng.random_sample(2)
    return np.asarray((1 + 3 * steep) * np.abs(np.linspace(0, 1, size) - place))


def _variable(size: int, ordered: bool) -> Variable:
    if size == 2:
        return Binary()
    return Ordinal(range(size)) if ordered else Categorical(list("abcdefgh"[:size]))
