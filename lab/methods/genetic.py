"""A plain genetic algorithm, steady state: one child at a time replaces the worst member."""

from __future__ import annotations

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab.methods.base import Method
from lab.methods.neighbour_move import random_neighbour

POPULATION, TOURNAMENT = 20, 3
"""Small, for budgets of a few hundred evaluations; selection by the best of TOURNAMENT members."""


class Genetic:
    """Parents by tournament, uniform crossover, mutation of each variable to another value with probability 1/d.

    The population is the POPULATION best points so far. A child that the constraint forbids is replaced by a neighbour
    of its first parent.
    """

    def __init__(self, space: Space, seed: int, budget: int) -> None:  # noqa: ARG002
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._population: list[tuple[Ints, float]] = []

    def tell(self, row: Ints, value: float) -> None:
        self._population.append((row.copy(), value))
        self._population.sort(key=lambda member: member[1])
        del self._population[POPULATION:]

    def ask(self) -> Ints:
        if len(self._population) < 2:
            return np.asarray(self._space.random_rows(self._rng, 1)[0])
        mother, father = self._parent(), self._parent()
        child = np.where(self._rng.random(len(mother)) < 0.5, mother, father)
        reset = self._rng.random(len(child)) * len(child) < 1.0
        shift = self._rng.integers(1, np.maximum(self._space.sizes, 2))  # 1..k-1: a shift to any other value
        child = np.where(reset, (child + shift) % self._space.sizes, child)
        return child if self._space.feasible(child[None])[0] else random_neighbour(self._rng, self._space, mother)

    def _parent(self) -> Ints:
        """The winner of a tournament: members are sorted, so it is the one with the least index."""
        return self._population[int(self._rng.integers(len(self._population), size=TOURNAMENT).min())][0]


GENETIC = Method(
    "genetic",
    "Genetic algorithm",
    Genetic,
    {"population": POPULATION, "tournament": TOURNAMENT, "crossover": "uniform", "mutation": "1/d", "steady": True},
)
