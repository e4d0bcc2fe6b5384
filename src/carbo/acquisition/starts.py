"""Starts of the search: random rows, rows near the best one, and the last unseen rows of a nearly exhausted space."""

from __future__ import annotations

from collections.abc import Set
from itertools import chain

import numpy as np

from carbo.acquisition.search import top_of_each_owner
from carbo.acquisition.stall import double_changes
from carbo.errors import SpaceExhausted
from carbo.numerics.types import Ints
from carbo.space.row_space import ENUMERABLE, RowSet, RowSpace, row_keys
from carbo.surrogate.ensemble import Recombined

HALVES = 50
"""Number of left halves, and of right halves, in a block of random starts: each left joins each right."""
SPRAY = 2
"""Largest number of edges between the best row and a start near it (the paper's supplement C)."""
WITHIN_TWO = 100_000
"""Most rows that `_within_two` checks."""


def random_starts(rng: np.random.Generator, space: RowSpace, count: int) -> Recombined:
    """At least `count` uniform random rows. The constraint is checked later, on the promising rows only."""
    blocks = -(-count // HALVES**2)
    left, right = (space.project(rng.integers(0, space.sizes, size=(blocks, HALVES, space.dim))) for _ in range(2))
    cut = rng.permuted(np.tile(np.arange(space.dim) < space.dim // 2, (blocks, 1)), axis=1)
    return Recombined(left, right, cut)


def spray(rng: np.random.Generator, space: RowSpace, centre: Ints, count: int, distance: int = SPRAY) -> Ints:
    """`count` random rows at one to `distance` edges from the centre."""
    if count == 0:
        return np.empty((0, space.dim), dtype=np.intp)
    rows = np.tile(centre, (count, 1))
    steps = rng.integers(1, distance + 1, size=count)
    for k in range(distance):
        walkers = np.flatnonzero(steps > k)
        moves = space.moves(rows[walkers])
        chosen = top_of_each_owner(moves.owner, rng.random(len(moves.owner)), 1)
        rows[walkers[moves.owner[chosen]], moves.column[chosen]] = moves.value[chosen]
    return rows


def exhaustion_error(space: RowSpace) -> SpaceExhausted:
    """The error for a space without an unseen permitted row."""
    return SpaceExhausted(
        f"space of {space.cardinality} combinations: looked for a permitted point not yet evaluated or pending and "
        "found none; stop here, widen the space, or allow repeats with replicate=True"
    )


def unseen_row(rng: np.random.Generator, space: RowSpace, excluded: Set[bytes]) -> Ints:
    """A random feasible row that is not excluded. Raises SpaceExhausted if none was found."""
    for count in (16, 256, 4_096):
        rows = space.random_rows(rng, count)
        for row, key in zip(rows, row_keys(rows), strict=True):
            if key not in excluded:
                return np.asarray(row)
    if space.cardinality <= ENUMERABLE:
        rows = space.all_rows(ENUMERABLE)
        fresh = [row for row, key in zip(rows, row_keys(rows), strict=True) if key not in excluded]
        if fresh:
            return np.asarray(fresh[int(rng.integers(len(fresh)))])
    elif space.constrained and (row := _within_two(space, rows, excluded)) is not None:
        return row
    raise exhaustion_error(space)


def _within_two(space: RowSpace, rows: Ints, excluded: Set[bytes]) -> Ints | None:
    """A feasible row, not excluded, at most two changes away from one of `rows`; None if WITHIN_TWO rows have none.

    If a constraint permits few of very many combinations, random rows may miss the last permitted ones.
    """
    barred, left = RowSet(excluded, space.sizes), WITHIN_TWO
    for centre in np.unique(rows, axis=0):
        _, column, value = space.moves(centre[None])
        pairs = double_changes(centre, column, value, np.zeros(len(column)))
        for block in chain([space.neighbours(centre[None])[0]], pairs):
            if left <= 0:
                return None
            fresh = block[~barred.contains(block)]
            found = fresh[space.feasible(fresh)]
            if len(found):
                return np.asarray(found[0])
            left -= len(block)
    return None
