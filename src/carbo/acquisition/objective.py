"""What the search maximises: an acquisition, or minus the mean, at rows under one ensemble. Notation as in `functions`.

Bounds come from `surrogate.neighbours`: an acquisition that cannot fall where sd grows is bounded by its value at a
bound of sd, which costs less than sd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from carbo.acquisition.functions import Acquisition
from carbo.numerics.types import Floats, Ints
from carbo.surrogate import neighbours
from carbo.surrogate.ensemble import Ensemble, Recombined

PIECE = 1024
"""Rows scored at a time."""


@dataclass(frozen=True, eq=False)
class Pointwise:
    """Scores of rows from mu and sd: exact ones and cheap upper bounds.

    `penalty` (N,), never positive, is added to scores: the log probability of success where evaluations have failed. It
    multiplies what a score is the logarithm of; a confidence bound, or a user's function, is lowered by it.
    """

    ensemble: Ensemble
    acquisition: Acquisition
    best: Floats
    penalty: Callable[[Ints], Floats] | None = None

    @cached_property
    def _neighbours(self) -> neighbours.Neighbours:
        return neighbours.Neighbours(self.ensemble)

    def score(self, rows: Ints) -> Floats:
        """Exact scores, (N,)."""
        parts = [self._score(rows[i : i + PIECE]) for i in range(0, len(rows), PIECE)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _score(self, rows: Ints) -> Floats:
        mu, sd = self.ensemble.predict(rows)
        return self.with_penalty(self.acquisition.score(mu, sd, self.best), rows)

    def with_penalty(self, scores: Floats, rows: Ints) -> Floats:
        return scores if self.penalty is None else scores + self.penalty(rows)

    def bound_starts(self, starts: Recombined) -> Floats:
        """Upper bounds at recombined rows, (len(starts),); +inf where the score has none."""
        if not self.acquisition.rises_with_sd:
            return np.full(len(starts), np.inf)
        mu, sd = self._neighbours.spread(starts)
        return self.acquisition.score(mu, sd, self.best)

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Scored:
        """Scores of rows that each differ in one variable from parents[owner], with bounds."""
        return Scored(self, rows, self._neighbours.around(parents, rows, owner))


class Scored(NamedTuple):
    """`search.Neighbours` of an acquisition."""

    of: Pointwise
    rows: Ints
    known: neighbours.Around

    def bounds(self) -> Floats:
        if not self.of.acquisition.rises_with_sd:
            return np.full(len(self.rows), np.inf)
        return self.of.acquisition.score(self.known.mu, self.known.cap, self.of.best)

    @property
    def closer(self) -> list[Callable[[Ints], Floats]]:
        return [partial(self._at_some, m) for m in self.known.stages] if self.of.acquisition.rises_with_sd else []

    def _at_some(self, first: int, index: Ints) -> Floats:
        """Bounds from sd given the first observations alone."""
        return self.of.acquisition.score(self.known.mu[:, index], self.known.sd(index, first), self.of.best)

    def score(self, index: Ints) -> Floats:
        scores = self.of.acquisition.score(self.known.mu[:, index], self.known.sd(index), self.of.best)
        return self.of.with_penalty(scores, self.rows[index])
