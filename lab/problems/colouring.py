"""Graph colouring: 30 nodes, four colours, and as few edges as can be between nodes of one colour.

The graph is drawn around a colouring that nobody is told: nodes have colours by chance, and EDGES edges join pairs of
different colours, so that no conflict is possible. Nine edges a node make such colourings rare. Every permutation of
the colours has the same value.

Objective: the number of edges whose two nodes have the same colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from carbo.numerics.types import Floats, Ints
from carbo.space.space import Space
from carbo.space.variables import Categorical
from lab.problems.base import Problem, random_design
from lab.problems.digest import digest
from lab.problems.seeds import check_run, check_seed, instance_stream, single_seed

TAG = "carbo_COLOURING"
NODES, EDGES, COLOURS = 30, 135, ("red", "green", "blue", "yellow")
BUDGET, INITIAL = 200, 10


@dataclass(frozen=True, eq=False)
class Conflicts:
    """The objective."""

    edges: Ints
    """(m, 2)"""
    hidden: Ints
    """(n,) a colouring without conflicts."""

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(k,) the conflicts of rows (k, n)."""
        one, other = self.edges.T
        return np.asarray((rows[:, one] == rows[:, other]).sum(axis=1), dtype=np.float64)


def colouring(seed: int, run: int = 1) -> Problem:
    """A random graph, to be coloured. The optimum is 0."""
    made = graph(check_seed(seed))
    space = Space({f"node{i}": Categorical(list(COLOURS)) for i in range(1, NODES + 1)})
    return Problem(
        name="graph-colouring",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=made,
        design=random_design(TAG, space, INITIAL),
        optimum=0.0,
        instance={"seed": int(seed), "numbers": digest(made.edges), "start_seed": single_seed(TAG, run)},
    )


@cache
def graph(seed: int) -> Conflicts:
    """The hidden colouring of a seed, whose colours are as frequent as can be, then the edges."""
    rng = instance_stream(TAG, seed)
    hidden = (np.arange(NODES) % len(COLOURS))[rng.permutation(NODES)]
    one, other = np.triu_indices(NODES, k=1)
    possible = np.flatnonzero(hidden[one] != hidden[other])
    chosen = np.sort(possible[rng.permutation(len(possible))[:EDGES]])
    return Conflicts(np.stack([one[chosen], other[chosen]], axis=1), hidden)
