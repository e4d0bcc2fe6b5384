"""Where the acquisition is largest: starts, breadth-first local search. It knows no model.

Notation
    rows        (N, d) integer rows; scores (N,), larger is better, -inf is forbidden
    parents     (V, d) the vertices where the climbers stand; owner (N,) the parent a neighbour belongs to

Bounds save exact scores: a row whose upper bound does not beat what is known already is never scored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from carbo.numerics.types import Floats, Ints

FIRST = 2
"""Neighbours of each climber that are scored before the bounds of the others are looked at more closely."""
AS_GOOD = 1e-3
"""Relative difference of scores at which one start is as good as another."""


class Objective(Protocol):
    """What is maximised."""

    def score(self, rows: Ints) -> Floats:
        """Exact scores."""

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Neighbours:
        """Of rows that each differ in one variable from parents[owner]."""


class Neighbours(Protocol):
    """Scores of given rows, by index, and what bounds them from above."""

    def bounds(self) -> Floats:
        """Of all rows, cheap."""

    @property
    def closer(self) -> Sequence[Callable[[Ints], Floats]]:
        """Closer and closer bounds of some rows, dearer and dearer, but still cheaper than scores."""

    def score(self, index: Ints) -> Floats:
        """Exact scores of some rows."""


class Domain(NamedTuple):
    """Where the search may go: neighbours(rows) -> (rows, owner); permitted(rows) -> bool mask (N,)."""

    neighbours: Callable[[Ints], tuple[Ints, Ints]]
    permitted: Callable[[Ints], NDArray[np.bool_]]


class Found(NamedTuple):
    """Rows and their exact scores, best first."""

    rows: Ints
    scores: Floats


def best_of(found: Found, count: int) -> Found:
    """The best `count`, without repeats."""
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
    """The `count` best permitted rows of a long list, scoring only those whose bound demands it.

    `rows(index)` gives the list's rows; bounds (N,) are upper bounds of their scores. Rows are scored in order of
    their bounds, in growing batches, until `count` scores stand above every bound that is left.
    most: only so many rows, those of the highest bounds, are considered.
    """
    order = np.argsort(-bounds, kind="stable")[:most]
    best, done, batch = Found(rows(order[:0]), np.empty(0)), 0, max(2 * count, 32)
    while done < len(order):
        bound = bounds[order[done]]
        enough = len(best.scores) >= count and np.isfinite(bound)
        if enough and best.scores[count - 1] + AS_GOOD * (1.0 + abs(bound)) >= bound:
            break
        some = rows(order[done : done + batch])
        some = some[domain.permitted(some)]
        found = Found(np.concatenate([best.rows, some]), np.append(best.scores, objective.score(some)))
        best = best_of(found, count)
        done, batch = done + batch, min(2 * batch, 2048)
    return best


def climb(objective: Objective, domain: Domain, starts: Found, hasty: bool = False) -> Found:
    """Breadth-first local search (paper section 2.4) from all starts in lockstep, to where no neighbour is better.

    hasty: see `step`.
    """
    summits: list[Found] = []
    current = starts
    while len(current.scores):
        moved = step(objective, domain, current, hasty)
        stays = ~(moved.scores > current.scores)
        summits.append(Found(current.rows[stays], current.scores[stays]))
        current = best_of(Found(moved.rows[~stays], moved.scores[~stays]), len(moved.scores))  # climbers that met merge
    if not summits:
        return starts
    found = Found(np.concatenate([s.rows for s in summits]), np.concatenate([s.scores for s in summits]))
    return best_of(found, len(found.scores))


def step(objective: Objective, domain: Domain, current: Found, hasty: bool = False) -> Found:
    """Each climber's best neighbour, or itself with its own score where none is better.

    hasty: the best of the first few, in order of their bounds, among which there is a better one than itself. Where
    scores are dear and bounds loose that saves most of the scores, and a summit is still one.
    """
    rows, owner = domain.neighbours(current.rows)
    keep = domain.permitted(rows)
    rows, owner = rows[keep], owner[keep]
    best = Found(current.rows.copy(), current.scores.copy())
    if not len(rows):
        return best
    near = objective.around(current.rows, rows, owner)
    bounds = near.bounds()
    closer, share = list(near.closer), FIRST
    open_ = np.arange(len(rows))
    while len(open_ := open_[bounds[open_] > best.scores[owner[open_]]]):
        chosen = open_[leading(owner[open_], bounds[open_], share)]
        scores = near.score(chosen)
        for j in np.argsort(scores, kind="stable"):
            v = owner[chosen[j]]
            if scores[j] > best.scores[v]:
                best.scores[v], best.rows[v] = scores[j], rows[chosen[j]]
        bounds[chosen] = -np.inf
        if hasty:
            open_ = open_[best.scores[owner[open_]] == current.scores[owner[open_]]]
        for sharpen in closer:
            open_ = open_[bounds[open_] > best.scores[owner[open_]]]
            bounds[open_] = np.minimum(bounds[open_], sharpen(open_))
        closer, share = [], 2 * share
    return best


def leading(owner: Ints, bounds: Floats, share: int) -> Ints:
    """Positions of each owner's `share` highest bounds."""
    order = np.lexsort((-bounds, owner))
    sorted_owner = owner[order]
    first = np.searchsorted(sorted_owner, sorted_owner)
    return np.asarray(order[np.arange(len(order)) - first < share])
