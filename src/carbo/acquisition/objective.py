"""The objective of the search: an acquisition at rows under one ensemble. Notation as in `functions`.

Bounds of scores come from bounds of sd (`surrogate.neighbours`), which cost less than sd. An acquisition that cannot
fall where sd grows is at most its value at an upper bound of sd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from carbo.acquisition.functions import Acquisition
from carbo.numerics.types import Floats, Ints
from carbo.surrogate.ensemble import Ensemble, Recombined
from carbo.surrogate.neighbours import NeighbourPredictions, NeighbourPredictor


@dataclass(frozen=True, eq=False)
class Pointwise:
    """Scores of rows from their mu and sd, exact or bounded from above.

    penalty     function from rows (N, d) to numbers <= 0 that are added to scores: the log probability of success, if
                evaluations have failed. Log EI becomes the log of EI times this probability
    """

    ensemble: Ensemble
    acquisition: Acquisition
    best: Floats
    penalty: Callable[[Ints], Floats] | None = None

    @cached_property
    def _predictor(self) -> NeighbourPredictor:
        return NeighbourPredictor(self.ensemble)

    def score(self, rows: Ints) -> Floats:
        """Exact scores (N,) of rows (N, d)."""
        piece, scores = 1024, np.empty(len(rows))  # rows scored at a time
        for i in range(0, len(rows), piece):
            some = rows[i : i + piece]
            mu, sd = self.ensemble.predict(some)
            scores[i : i + piece] = self.add_penalty(self.acquisition.score(mu, sd, self.best), some)
        return scores

    def add_penalty(self, scores: Floats, rows: Ints) -> Floats:
        """The scores (N,) of rows (N, d) with the penalty added, if there is one."""
        return scores if self.penalty is None else scores + self.penalty(rows)

    def bound_starts(self, starts: Recombined) -> Floats:
        """Upper bounds (len(starts),) of the scores of recombined rows; +inf if the acquisition has no bounds."""
        if not self.acquisition.rises_with_sd:
            return np.full(len(starts), np.inf)
        mu, sd = self._predictor.bound_recombined(starts)
        return self.acquisition.score(mu, sd, self.best)

    def neighbour_scores(self, parents: Ints, rows: Ints, owner: Ints) -> PointwiseNeighbours:
        """Scores of rows (N, d) that each differ in one variable from parents[owner]."""
        return PointwiseNeighbours(self, rows, self._predictor.predict_neighbours(parents, rows, owner))


class PointwiseNeighbours(NamedTuple):
    """`search.NeighbourScores` of an acquisition."""

    objective: Pointwise
    rows: Ints
    predictions: NeighbourPredictions

    def bounds(self) -> Floats:
        if not self.objective.acquisition.rises_with_sd:
            return np.full(len(self.rows), np.inf)
        return self.objective.acquisition.score(self.predictions.mu, self.predictions.sd_bound, self.objective.best)

    @property
    def tighter_bounds(self) -> list[Callable[[Ints], Floats]]:
        if not self.objective.acquisition.rises_with_sd:
            return []
        return [partial(self._bound_from_first, m) for m in self.predictions.bound_sizes]

    def _bound_from_first(self, first: int, index: Ints) -> Floats:
        """Upper bounds of scores from sd given the first observations only."""
        return self.objective.acquisition.score(
            self.predictions.mu[:, index], self.predictions.sd(index, first), self.objective.best
        )

    def score(self, index: Ints) -> Floats:
        scores = self.objective.acquisition.score(
            self.predictions.mu[:, index], self.predictions.sd(index), self.objective.best
        )
        return self.objective.add_penalty(scores, self.rows[index])
