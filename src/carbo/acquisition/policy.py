"""One suggestion: the permitted row with the largest acquisition.

posterior samples -> Ensemble -> acquisition -> starts -> local search -> row
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple

import numpy as np

from carbo.acquisition import search
from carbo.acquisition.functions import acquisition
from carbo.acquisition.objective import Pointwise
from carbo.acquisition.search import Found
from carbo.acquisition.stall import Override, double_changes, first_permitted
from carbo.acquisition.starts import exhaustion_error, random_starts, spray, unseen_row
from carbo.numerics.types import Bools, Floats, Ints
from carbo.settings import Settings
from carbo.space.row_space import RowSet, RowSpace
from carbo.surrogate.ensemble import Ensemble
from carbo.surrogate.subset import PLENTY

LEAST_LOG_SUCCESS = float(np.log(0.5))
"""Least log probability of success of a row that comes in place of the row of largest acquisition."""
SCORES_PER_CLIMBER = 25
"""Starts that a hasty search scores for each climber, the most promising first."""
EXTRA_PER_CLIMBER = 10
"""Extra feasible random rows for each climber, if a constraint leaves too few starts."""


class Request(NamedTuple):
    """All that a suggestion depends on. `excluded` holds row keys; `incumbent` is the best evaluated row.

    penalty     log probability of success of rows; None if no evaluation has failed
    override    a suggestion in place of the row of largest acquisition; None if the search has not stalled
    """

    space: RowSpace
    settings: Settings
    ensemble: Ensemble
    excluded: Set[bytes]
    incumbent: Ints
    penalty: Callable[[Ints], Floats] | None
    override: Override | None = None

    def permitted(self, rows: Ints, excluded: RowSet | None = None) -> Bools:
        """(n,) whether each row is feasible and not excluded; `excluded`: another set than the request's."""
        fresh = ~(excluded or RowSet(self.excluded, self.space.sizes)).contains(rows)
        if self.space.constrained and fresh.any():
            fresh[fresh] = self.space.feasible(rows[fresh])
        return fresh

    @property
    def hasty(self) -> bool:
        """Whether scores take so long that the search computes fewer of them: see `search.step`."""
        return self.settings.predict_from is not None and len(self.ensemble.X) > PLENTY

    @property
    def domain(self) -> search.Domain:
        excluded = RowSet(self.excluded, self.space.sizes)
        return search.Domain(
            lambda rows: self.space.neighbours(rows, self.settings.leaps),
            lambda rows: self.permitted(rows, excluded),
        )

    @property
    def objective(self) -> Pointwise:
        """The acquisition that the settings name, as a score of rows."""
        return Pointwise(self.ensemble, acquisition(self.settings.acquisition), self.reference, self.penalty)

    @property
    def reference(self) -> Floats:
        """(S,) the value from which improvement counts, for each posterior sample."""
        if self.settings.reference == "observed":
            return np.asarray(self.ensemble.values.min(axis=1))
        return np.asarray(self.ensemble.at_observations().min(axis=1))


def propose(rng: np.random.Generator, request: Request) -> Ints:
    """The next row to evaluate, (d,). Raises SpaceExhausted when no permitted row is left."""
    small = request.space.cardinality <= request.settings.exhaustive
    candidates = remaining_rows(request) if small else fresh_neighbours(request)
    if candidates is None and (row := fresh_double(request)) is not None:
        return row
    if candidates is not None:
        return np.asarray(candidates[int(np.argmax(request.objective.score(candidates)))])
    return np.asarray(maximise(rng, request, request.objective).rows[0])


def remaining_rows(request: Request) -> Ints:
    """All permitted rows of a small space. Raises SpaceExhausted if there are none."""
    rows = request.space.all_rows(request.settings.exhaustive)
    rows = rows[request.permitted(rows)]
    if not len(rows):
        raise exhaustion_error(request.space)
    return rows


def fresh_neighbours(request: Request) -> Ints | None:
    """The permitted neighbours of the override's row; None without an override or a permitted neighbour."""
    if request.override is None:
        return None
    rows, _ = request.space.neighbours(request.override.row[None])
    rows = rows[_permitted_override(request)(rows)]
    return rows if len(rows) else None


def fresh_double(request: Request) -> Ints | None:
    """The first permitted row two changes away from the override's row; None without doubt or a permitted row."""
    if request.override is None:
        return None
    row = request.override.row
    _, column, value = request.space.moves(row[None])
    rows = np.repeat(row[None], len(column), axis=0)
    rows[np.arange(len(rows)), column] = value
    mean = request.ensemble.mean_at(np.concatenate([row[None], rows]))
    return first_permitted(double_changes(row, column, value, mean[1:] - mean[0]), _permitted_override(request))


def _permitted_override(request: Request) -> Callable[[Ints], Bools]:
    """A function of rows: which of them may come as an override. Likely failures and, in doubt, repeats may not."""
    assert request.override is not None
    penalty = request.penalty
    excluded = RowSet(request.excluded | request.override.evaluated, request.space.sizes)

    def fresh(rows: Ints) -> Bools:
        out = request.permitted(rows, excluded)
        if penalty is not None and out.any():
            out[out] = penalty(rows[out]) > LEAST_LOG_SUCCESS
        return out

    return fresh


def maximise(rng: np.random.Generator, request: Request, objective: Pointwise) -> Found:
    """The best rows of the search, best first, at least one. Raises SpaceExhausted if no permitted row was found."""
    found = best_starts(rng, request, objective)
    if not len(found.rows):  # nearly all rows are evaluated, or the constraint permits few
        row = unseen_row(rng, request.space, request.excluded)
        found = Found(row[None], objective.score(row[None]))
    return search.climb(objective, request.domain, found, request.hasty)


def best_starts(rng: np.random.Generator, request: Request, objective: Pointwise) -> Found:
    """The best `climbers` of the random and the spray starts, with exact scores."""
    space, settings = request.space, request.settings
    spread = random_starts(rng, space, settings.random_starts)
    near = spray(rng, space, request.incumbent, settings.spray_starts)
    bounds = np.append(objective.bound_starts(spread), np.full(len(near), np.inf))

    def rows(index: Ints) -> Ints:
        far = index < len(spread)
        out = np.empty((len(index), space.dim), dtype=np.intp)
        out[far], out[~far] = spread.rows(index[far]), near[index[~far] - len(spread)]
        return out

    ranked = request.hasty and objective.acquisition.rises_with_sd and not space.constrained
    most = SCORES_PER_CLIMBER * settings.climbers if ranked else None
    found = search.select(objective, request.domain, rows, bounds, settings.climbers, most)
    if space.constrained and len(found.rows) < settings.climbers:
        more = space.random_rows(rng, EXTRA_PER_CLIMBER * settings.climbers)
        more = more[request.permitted(more)]
        both = np.concatenate([found.rows, more]), np.append(found.scores, objective.score(more))
        found = search.best_of(Found(*both), settings.climbers)
    return found
