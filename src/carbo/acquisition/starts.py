"""Where the search starts: random rows, rows near the best one, and in narrow spaces whatever is left."""

from __future__ import annotations

from collections.abc import Set
from itertools import chain

import numpy as np

from carbo.acquisition.search import top_of_each_owner
from carbo.acquisition.stall import doubles
from carbo.errors import SpaceExhausted
from carbo.numerics.types import Ints
from carbo.space.row_space import ENUMERABLE, RowSet, RowSpace, row_keys
from carbo.surrogate.ensemble import Recombined

HALVES = 50
"""Half rows on each side of a block of recombined random starts."""
SPRAY = 2
"""Edges that a row near the best one is away from it, at most (supplement C)."""
WITHIN_TWO = 100_000
"""Rows looked at where random rows that are permitted have all been evaluated."""


def recombined(rng: np.random.Generator, space: RowSpace, count: int) -> Recombined:
    """At least `count` uniform random rows (the constraint is checked later, on the promising ones alone)."""
    blocks = -(-count // HALVES**2)
    left, right = (space.hold(rng.integers(0, space.sizes, size=(blocks, HALVES, space.dim))) for _ in range(2))
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


def exhausted(space: RowSpace) -> SpaceExhausted:
    return SpaceExhausted(
        f"space of {space.cardinality} combinations: looked for a permitted point not yet evaluated or pending and "
        "found none; stop here, widen the space, or allow repeats with replicate=True"
    )


def unseen(rng: np.random.Generator, space: RowSpace, excluded: Set[bytes]) -> Ints:
    """A random feasible row that is not excluded. Raises SpaceExhausted when none turns up."""
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
    raise exhausted(space)


def _within_two(space: RowSpace, rows: Ints, excluded: Set[bytes]) -> Ints | None:
    """The first feasible row, not excluded, within two changes of one of the rows, of WITHIN_TWO looked at; or None.

    Where a constraint permits few of very many combinations, random rows may miss the last ones.
    """
    barred, left = RowSet(excluded, space.sizes), WITHIN_TWO
    for centre in np.unique(rows, axis=0):
        _, column, value = space.moves(centre[None])
        for block in chain([space.neighbours(centre[None])[0]], doubles(centre, column, value, np.zeros(len(column)))):
            if left <= 0:
                return None
            fresh = block[~barred.contains(block)]
            found = fresh[space.feasible(fresh)]
            if len(found):
                return np.asarray(found[0])
            left -= len(block)
    return None
