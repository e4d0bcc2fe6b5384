"""Simulated annealing over one-variable moves, cooled geometrically over the budget.

Notation
    spread  standard deviation of the initial values
    T       temperature, in the units of the values
"""

from __future__ import annotations

import math

import numpy as np

from carbo.numerics.types import Floats, Ints
from carbo.space.graphs import Graph, laplacian
from carbo.space.row_space import row_key
from carbo.space.space import Space
from lab.methods.base import Method
from lab.methods.neighbour_move import random_neighbour

HOT, COLD = 0.5, 0.01
"""First and last temperature, in units of the typical change of the value by one move."""


def acceptance(rise: float, temperature: float) -> float:
    """The Metropolis probability of a move that raises the value by `rise`; one for any other move."""
    if rise <= 0:
        return 1.0
    return math.exp(-rise / temperature) if temperature > 0 else 0.0


def temperature(unit: float, progress: float) -> float:
    """T at a progress from 0 to 1; it falls from HOT to COLD units by equal factors."""
    return unit * HOT * math.pow(COLD / HOT, min(max(progress, 0.0), 1.0))


def move_unit(values: list[float], hops: Floats) -> float:
    """The typical change of the value by one move, estimated from values at random points.

    hops (d,): mean number of moves between two values of each variable. The variance of a sum of d independent
    parts is d times that of a part. One move goes 1/hops of the way to a random other value.
    """
    return float(np.std(values) * math.sqrt(2.0 / len(hops)) * np.mean(1.0 / hops))


def mean_hops(graph: Graph) -> float:
    """Mean number of edges between two different values of a variable; 1 where there is only one value."""
    if graph.kind == "complete":
        return 1.0
    if graph.kind == "path":
        return (graph.size + 1) / 3
    from scipy.sparse.csgraph import shortest_path

    distances = shortest_path(laplacian(graph) < 0, unweighted=True)
    between = distances[~np.eye(graph.size, dtype=np.bool_) & np.isfinite(distances)]
    return float(np.mean(between)) if between.size else 1.0


class Annealing:
    """One run, from the best initial point on. A row that `ask` did not return becomes current if it is better."""

    def __init__(self, space: Space, seed: int, budget: int) -> None:
        self._space, self._budget = space, budget
        self._rng = np.random.default_rng(seed)
        self._values: list[float] = []
        self._hops = np.array([mean_hops(variable.graph) for variable in space.variables.values()])
        self._initial: int | None = None
        self._current: tuple[Ints, float] | None = None
        self._proposed: bytes | None = None

    def tell(self, row: Ints, value: float) -> None:
        self._values.append(value)
        rise = value - self._current[1] if self._current else -math.inf
        is_proposed, self._proposed = row_key(row) == self._proposed, None
        if rise < 0 or (is_proposed and self._rng.random() < acceptance(rise, self._temperature())):
            self._current = row.copy(), value

    def ask(self) -> Ints:
        if self._initial is None:
            self._initial = len(self._values)
        if self._current is None:
            row: Ints = self._space.random_rows(self._rng, 1)[0]
        else:
            row = random_neighbour(self._rng, self._space, self._current[0])
        self._proposed = row_key(row)
        return row

    def _temperature(self) -> float:
        """T for the last value; the first evaluation after the initial ones has progress 0."""
        initial = self._initial or 0
        done, steps = len(self._values) - initial - 1, max(self._budget - initial - 1, 1)
        return temperature(move_unit(self._values[: max(initial, 1)], self._hops), done / steps)


ANNEALING = Method("annealing", "Simulated annealing", Annealing, {"hot": HOT, "cold": COLD, "cooling": "geometric"})
