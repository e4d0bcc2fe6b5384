"""The trust region of `trust` at work: one run of it, and the question whose answers lie near a point."""

from __future__ import annotations

import dataclasses

import numpy as np

from carbo.acquisition import policy as suggest
from carbo.errors import SpaceExhausted
from carbo.numerics.types import Bools, Ints
from carbo.space.rows import RowSet
from carbo.space.space import Space
from lab.methods.presets import Carbo
from lab.methods.trust import FAILURES, FIRST, GROWTH, SETTINGS, SUCCESSES


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
        asked = optimizer._asker().question(optimizer._excluded())
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
