"""Regularised evolution: the oldest member dies, not the worst (Real et al. 2019, algorithm 1)."""

from __future__ import annotations

from collections import deque

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab.methods.base import Method
from lab.methods.neighbour_move import random_neighbour

POPULATION, SAMPLE = 50, 15
"""Sizes of the population and of the sample, P and S, as in the paper's comparison."""


class Evolution:
    """Every evaluated point joins the population, the initial ones first. Of more than P points the oldest dies.

    While the population has fewer than S points, the sample is all of them.
    """

    def __init__(self, space: Space, seed: int, budget: int) -> None:  # noqa: ARG002
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._population: deque[tuple[Ints, float]] = deque(maxlen=POPULATION)

    def tell(self, row: Ints, value: float) -> None:
        self._population.append((row.copy(), value))

    def ask(self) -> Ints:
        size = len(self._population)
        if not size:
            rows = self._space.random_rows(self._rng, 1)
            return np.asarray(rows[0])
        sample = self._rng.choice(size, size=min(SAMPLE, size), replace=False)
        parent, _ = min((self._population[i] for i in sample.tolist()), key=lambda member: member[1])
        return random_neighbour(self._rng, self._space, parent)


EVOLUTION = Method(
    "evolution",
    "Regularised evolution",
    Evolution,
    {"population": POPULATION, "sample": SAMPLE, "mutations": 1},
    valid_only=True,  # "only allowing valid architectures in mutation steps", an advantage that the paper gave it
)
