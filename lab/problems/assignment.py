"""Tasks on sites, like quadratic assignment but with fewer sites than tasks, and a price for sharing a site.

Notation
    x       (n,) the site of each task
    c       (n, m) cost of a task on a site
    f       (n, n) flow between two tasks, i < j; 0 for most pairs
    g       (m, m) distance between two sites

Objective: sum_i c[i, x_i] + sum_{i<j} f_ij g[x_i, x_j] + CROWDING * number of pairs of tasks on the same site.
All numbers are whole.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from carbo.errors import SettingsError
from carbo.numerics.types import Floats, Ints
from carbo.space.row_space import ENUMERABLE
from carbo.space.space import Space
from carbo.space.variables import Categorical
from lab.problems.base import Problem, random_design
from lab.problems.seeds import ASSIGNMENT, check_run, check_seed, instance_stream, single_seed

BUDGET = 200
COST, FLOW, FLOWS, EXTENT, CROWDING = 20, 5, 0.3, 9, 8
"""Largest cost and flow, share of the pairs with a flow, side of the square that sites lie in, price of a shared
site."""
OPTIMA = {
    "5dd29c10ca981806": 321.0,
    "1f7bbfbdb9eda65e": 357.0,
    "f872c0bbdbd7ae95": 324.0,
    "1ca5e71ecf51e847": 365.0,
    "0d479ea408c555a7": 388.0,
}
"""fingerprint of the instance -> least value of the seeds 0 to 4, proved by integer programming."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The objective of an instance."""

    c: Ints
    f: Ints
    g: Ints

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(n,) the values of rows (n, d)."""
        first, second = np.triu_indices(len(self.c), k=1)
        here, there = rows[:, first], rows[:, second]
        costs = self.c[np.arange(len(self.c)), rows].sum(axis=1)
        flows = (self.f[first, second] * self.g[here, there]).sum(axis=1)
        return np.asarray(costs + flows + CROWDING * (here == there).sum(axis=1), dtype=np.float64)

    def fingerprint(self) -> str:
        """A digest of the instance's numbers."""
        text = repr([part.tolist() for part in (self.c, self.f, self.g)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def assignment(seed: int, run: int = 1, tasks: int = 15, sites: int = 6) -> Problem:
    """A random instance. Its optimum is known for the laboratory's own instances, and for small ones by enumeration."""
    if tasks < 2 or sites < 2:
        raise SettingsError(f"assignment: expected at least 2 tasks and 2 sites, got tasks={tasks} and sites={sites}; "
                            "for example 15 and 6")  # fmt: skip
    objective = layout(check_seed(seed), tasks, sites)
    space = Space({f"task{i}": Categorical(range(1, sites + 1)) for i in range(1, tasks + 1)})
    small = space.cardinality <= ENUMERABLE
    return Problem(
        name="assignment",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=objective,
        design=random_design(ASSIGNMENT, space),
        optimum=float(objective.many(space.all_rows()).min()) if small else OPTIMA.get(objective.fingerprint()),
        instance={"seed": int(seed), "tasks": tasks, "sites": sites, "numbers": objective.fingerprint(),
                  "start_seed": single_seed(ASSIGNMENT, run)},
    )  # fmt: skip


@cache
def layout(seed: int, tasks: int, sites: int) -> Layout:
    """The instance of a seed: costs, flows, then the positions of sites, whose distances are rounded up."""
    rng = instance_stream(ASSIGNMENT, seed)
    c = rng.randint(0, COST + 1, size=(tasks, sites))
    flowing = rng.random_sample((tasks, tasks)) < FLOWS
    f = np.triu(np.where(flowing, rng.randint(1, FLOW + 1, size=(tasks, tasks)), 0), k=1)
    places = rng.random_sample((sites, 2)) * EXTENT
    g = [[math.ceil(math.dist(a, b)) for b in places.tolist()] for a in places.tolist()]
    return Layout(c, f, np.array(g, dtype=np.intp))
