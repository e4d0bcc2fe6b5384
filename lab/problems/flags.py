"""Flags as compilers and databases have them: most are dead, some matter in pairs, and some conflict.

Of 40 binary flags eight matter, in four pairs. A pair costs nothing at its best setting, a little where both flags are
turned, and more where one of them is: every local optimum but the best is two flips from a better one. Three conflicts
crash whatever has both of two settings, and an evaluation that crashes has no value. Two of the conflicts are between
the best setting of a flag that matters and a setting of one that otherwise does not, the third is between two that
otherwise do not. No conflict rules the optimum out; 28 flags are dead.

Objective: base + sum of the pairs' costs, rounded to 0.01.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from carbo.numerics.types import Bools, Floats, Ints
from lab.problems.base import Problem, binaries, random_design
from lab.problems.digest import digest
from lab.problems.factors import Factor, Factors
from lab.problems.seeds import check_run, check_seed, instance_stream, single_seed

TAG = "carbo_FLAGS"
FLAGS, PAIRS = 40, 4
BUDGET, INITIAL = 200, 10
DECIMALS = 2


@dataclass(frozen=True, eq=False)
class Build:
    """The objective."""

    costs: Factors
    conflicts: Ints
    """(3, 4): a flag, its setting, another flag, its setting."""

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(n,) the values of rows (n, d); NaN where they crash."""
        return np.where(self.crashes(rows), np.nan, np.round(self.costs.many(rows), DECIMALS))

    def crashes(self, rows: Ints) -> Bools:
        """(n,) whether a row has both settings of a conflict."""
        one, its, other, others = self.conflicts.T
        return np.asarray(((rows[:, one] == its) & (rows[:, other] == others)).any(axis=1))


def flags(seed: int, run: int = 1) -> Problem:
    """A random instance. The optimum is exact: every pair at its best, and no conflict."""
    made = build(check_seed(seed))
    space = binaries("flag", FLAGS)
    least = made.costs.least()
    assert least is not None
    tables = (factor.table for factor in made.costs.each)
    return Problem(
        name="flags",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=made,
        design=random_design(TAG, space, INITIAL),
        optimum=round(least, DECIMALS),
        instance={"seed": int(seed), "numbers": digest(made.conflicts, *tables), "start_seed": single_seed(TAG, run)},
        fails=True,
    )


@cache
def build(seed: int) -> Build:
    """The flags of a seed that matter and their best settings, the costs of the pairs, and the conflicts."""
    rng = instance_stream(TAG, seed)
    order = rng.permutation(FLAGS).tolist()
    matter, others = order[: 2 * PAIRS], order[2 * PAIRS :]
    best = rng.randint(0, 2, size=2 * PAIRS).tolist()
    costs = [Factor((), np.asarray(0.5 + 0.5 * rng.random_sample()))]
    for i in range(0, 2 * PAIRS, 2):
        both, first, second = np.array([0.05, 0.2, 0.2]) + 0.1 * rng.random_sample(3)
        turned = np.array([[0.0, second], [first, both]])
        table = turned[np.ix_([best[i], 1 - best[i]], [best[i + 1], 1 - best[i + 1]])]
        costs.append(Factor((matter[i], matter[i + 1]), table))
    a, b, c, d = rng.randint(0, 2, size=4).tolist()
    conflicts = [
        (matter[0], best[0], others[0], a),
        (matter[2], best[2], others[1], b),
        (others[2], c, others[3], d),
    ]
    return Build(Factors(tuple(costs)), np.array(conflicts, dtype=np.intp))
