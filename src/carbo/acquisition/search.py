"""Search for the row where a score is largest: choice of starts, and breadth-first local search.

Notation
    rows        (N, d) integer rows; scores (N,), larger is better, -inf is forbidden
    parents     (V, d) the rows where the climbers stand; owner (N,) index of each neighbour's parent

Upper bounds save exact scores: a row is not scored if its bound is below a score that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from carbo.numerics.types import Floats, Ints


class Objective(Protocol):
    """A function of rows to maximise."""

    def score(self, rows: Ints) -> Floats:
        """Exact scores (N,) of rows (N, d)."""

    def neighbour_scores(self, parents: Ints, rows: Ints, owner: Ints) -> NeighbourScores:
        """Scores of rows (N, d) that each differ in one variable from parents[owner]."""


class NeighbourScores(Protocol):
    """Scores of N neighbours, by their indices, and upper bounds of these scores."""

    def bounds(self) -> Floats:
        """Cheap upper bounds of all scores, (N,)."""

    @property
    def tighter_bounds(self) -> Sequence[Callable[[Ints], Floats]]:
        """Functions from indices to upper bounds: each is tighter and more expensive than the one before."""

    def score(self, index: Ints) -> Floats:
        """Exact scores of the neighbours with these indices."""


class Domain(NamedTuple):
    """The rows that the search may visit: neighbours(rows) -> (rows, owner); permitted(rows) -> mask (N,)."""

    neighbours: Callable[[Ints], tuple[Ints, Ints]]
    permitted: Callable[[Ints], NDArray[np.bool_]]


class Found(NamedTuple):
    """Rows and their exact scores, best first."""

    rows: Ints
    scores: Floats


def best_of(found: Found, count: int) -> Found:
    """The `count` best of the found rows, without repeats."""
    _, first = np.unique(found.rows, axis=0, return_index=True)
    first = first[np.argsort(-found.scores[first], kind="stable")][:count]
    return Found(found.rows[first], found.scores[first])


def select(
    objective: Objective,
    domain: Domain,
    rows: Callable[[Ints], Ints],
    bounds: Floats,
    count: int,
    most: int | None = None,
) -> Found:
    """The `count` best permitted rows of a long list.

    rows        function from indices to the rows of the list
    bounds      (N,) upper bounds of their scores
    most        number of rows, those with the highest bounds, that may be scored; None: all

    Rows are scored in the order of their bounds, in growing batches, until `count` scores are within 0.1 % of the
    highest remaining bound: the search climbs from there.
    """
    order = np.argsort(-bounds, kind="stable")[:most]
    best, done, batch = Found(rows(order[:0]), np.empty(0)), 0, max(2 * count, 32)
    while done < len(order):
        bound = bounds[order[done]]
        enough = len(best.scores) >= count and np.isfinite(bound)
        if enough and best.scores[count - 1] + 1e-3 * (1.0 + abs(bound)) >= bound:
            break
        next_rows = rows(order[done : done + batch])
        next_rows = next_rows[domain.permitted(next_rows)]
        found = Found(np.concatenate([best.rows, next_rows]), np.append(best.scores, objective.score(next_rows)))
        best = best_of(found, count)
        done, batch = done + batch, min(2 * batch, 2048)
    return best


def climb(objective: Objective, domain: Domain, starts: Found, hasty: bool = False) -> Found:
    """The summits of a breadth-first local search (paper section 2.4): all starts climb in lockstep.

    A row is a summit if no permitted neighbour has a higher score. hasty: see `step`.
    """
    summits: list[Found] = []
    current = starts
    while len(current.scores):
        moved = step(objective, domain, current, hasty)
        stays = ~(moved.scores > current.scores)
        summits.append(Found(current.rows[stays], current.scores[stays]))
        moved = Found(moved.rows[~stays], moved.scores[~stays])
        current = best_of(moved, len(moved.scores))  # climbers at the same row merge
    if not summits:
        return starts
    found = Found(np.concatenate([s.rows for s in summits]), np.concatenate([s.scores for s in summits]))
    return best_of(found, len(found.scores))


def step(objective: Objective, domain: Domain, current: Found, hasty: bool = False) -> Found:
    """The best permitted neighbour of each climber, or the climber's own row and score if no neighbour is better.

    hasty   if True, a climber does not wait for the best neighbour. Neighbours are scored in batches, in the order of
            their bounds, and the climber moves to the best of the first batch that contains a better one. That saves
            most of the scores if bounds are loose. Summits have the same definition
    """
    rows, owner = domain.neighbours(current.rows)
    keep = domain.permitted(rows)
    rows, owner = rows[keep], owner[keep]
    best = Found(current.rows.copy(), current.scores.copy())
    if not len(rows):
        return best
    neighbours = objective.neighbour_scores(current.rows, rows, owner)
    bounds = neighbours.bounds()
    tighter, share = list(neighbours.tighter_bounds), 2  # neighbours of each climber to score before tightening bounds
    open_ = np.arange(len(rows))
    while len(open_ := open_[bounds[open_] > best.scores[owner[open_]]]):
        chosen = open_[top_of_each_owner(owner[open_], bounds[open_], share)]
        scores = neighbours.score(chosen)
        for j in np.argsort(scores, kind="stable"):
            v = owner[chosen[j]]
            if scores[j] > best.scores[v]:
                best.scores[v], best.rows[v] = scores[j], rows[chosen[j]]
        bounds[chosen] = -np.inf
        if hasty:
            open_ = open_[best.scores[owner[open_]] == current.scores[owner[open_]]]
        for tighten in tighter:
            open_ = open_[bounds[open_] > best.scores[owner[open_]]]
            bounds[open_] = np.minimum(bounds[open_], tighten(open_))
        tighter, share = [], 2 * share
    return best


def top_of_each_owner(owner: Ints, scores: Floats, count: int) -> Ints:
    """Indices of the `count` highest scores of each owner."""
    order = np.lexsort((-scores, owner))
    sorted_owner = owner[order]
    first = np.searchsorted(sorted_owner, sorted_owner)
    return np.asarray(order[np.arange(len(order)) - first < count])
