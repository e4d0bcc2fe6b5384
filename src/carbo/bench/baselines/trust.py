"""The default preset within a Hamming trust region that restarts, after the idea of Wan et al. 2021 (Casmopolitan).

Suggestions differ from the best point since the last restart in at most `radius` variables. After SUCCESSES better
values in a row the radius grows, after FAILURES in vain it shrinks; below one it is where it began, and the next
region lies around a random point. Other than there, the model sees all evaluations, those before a restart too, and
the counts and radii are of this laboratory. Where all of a region has been evaluated, a random point is suggested.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from carbo import suggest
from carbo.bench.baselines.base import Method
from carbo.bench.baselines.combo import Carbo, recorded
from carbo.errors import SpaceExhausted
from carbo.graph import Ints
from carbo.rows import Bools, RowSet
from carbo.settings import DEFAULT
from carbo.space import Space

SUCCESSES, FAILURES, GROWTH = 3, 10, 1.5
FIRST = 0.5
"""Radius at the beginning, as a share of the variables."""
SETTINGS = dataclasses.replace(DEFAULT, initial=1, patience=0, random_starts=1,
                               spray_starts=DEFAULT.random_starts + DEFAULT.spray_starts)  # fmt: skip


class Within(suggest.Question):
    """A question to which only rows near the incumbent are an answer."""

    radius: int

    def permitted(self, rows: Ints, excluded: RowSet | None = None) -> Bools:
        near = np.count_nonzero(rows != self.incumbent, axis=1) <= self.radius
        return np.asarray(super().permitted(rows, excluded) & near)


class TrustRegion(Carbo):
    """One run."""

    def __init__(self, space: Space, seed: int, budget: int) -> None:
        super().__init__(SETTINGS, space, seed, budget)
        self._rng = np.random.default_rng([seed, 1])
        self._rows: list[Ints] = []
        self._values: list[float] = []
        self._proposed: Ints | None = None
        self._begin()

    def _begin(self) -> None:
        self._radius, self._since = max(1.0, FIRST * self._space.dim), len(self._values)
        self._better = self._vain = 0

    def tell(self, row: Ints, value: float) -> None:
        super().tell(row, value)
        better = value < min(self._values[self._since :], default=np.inf)
        self._rows.append(row)
        self._values.append(value)
        if self._proposed is None or not np.array_equal(row, self._proposed):
            return  # neither success nor failure of the region
        self._better, self._vain = (self._better + 1, 0) if better else (0, self._vain + 1)
        if self._better == SUCCESSES:
            self._radius, self._better = min(self._radius * GROWTH, float(self._space.dim)), 0
        elif self._vain == FAILURES:
            self._radius, self._vain = self._radius / GROWTH, 0
            if self._radius < 1.0:
                self._begin()

    def ask(self) -> Ints:
        optimizer, self._proposed = self._optimizer, None
        if self._since == len(self._values):
            return suggest.unseen(self._rng, self._space, optimizer._excluded())
        asked = optimizer._asker().question()
        centre = self._rows[self._since + int(np.argmin(self._values[self._since :]))]
        radius = int(self._radius)
        settings = dataclasses.replace(asked.settings, spray_distance=radius)
        question = Within(*asked._replace(incumbent=centre, settings=settings))
        question.radius = radius
        try:
            self._proposed = suggest.propose(optimizer._rng, question)
        except SpaceExhausted:
            return suggest.unseen(self._rng, self._space, optimizer._excluded())
        return self._proposed


TRUST = Method(
    "default-trust",
    "carbo, preset default within a trust region",
    TrustRegion,
    {**recorded(SETTINGS), "successes": SUCCESSES, "failures": FAILURES, "growth": GROWTH, "first_radius": FIRST},
)
