"""A subspace, in which some variables have a fixed position, against the filtered whole space."""

from __future__ import annotations

import numpy as np
import pytest

from carbo import Binary, Categorical, Ordinal, Space, SpaceError
from carbo.numerics.types import Ints
from carbo.space.space import Params

WHOLE = {"a": Categorical(["p", "q", "r"]), "b": Binary(), "c": Ordinal([1, 2, 3, 4]), "d": Categorical(list("xyz"))}


def some(params: Params) -> bool:
    return bool((params["c"] > 2) == (params["a"] == "q") or params["b"])


@pytest.fixture(params=[None, some])
def whole(request: pytest.FixtureRequest) -> Space:
    return Space(WHOLE, request.param)


def as_set(rows: Ints) -> set[tuple[int, ...]]:
    return set(map(tuple, rows.tolist()))


@pytest.mark.parametrize("positions", [{}, {0: 1}, {1: 0, 2: 3}, {3: 2, 0: 0, 1: 1, 2: 0}])
def test_its_rows_are_those_of_the_whole_that_stand_there(whole: Space, positions: dict[int, int]) -> None:
    pinned = whole.rows.within(positions)
    every = whole.all_rows()
    there = every[np.all([every[:, i] == at for i, at in positions.items()], axis=0)] if positions else every
    assert as_set(pinned.all_rows()) == as_set(there)
    assert as_set(pinned.random_rows(np.random.default_rng(0), 2_000)) == as_set(there)
    free = [size for i, size in enumerate(whole.sizes.tolist()) if i not in positions]
    assert pinned.cardinality == np.prod(free, dtype=int)
    for row in there[:10]:
        assert as_set(pinned.neighbours(row[None])[0]) == as_set(whole.neighbours(row)) & as_set(there)
    assert len(as_set(whole.all_rows())) == len(every), "the whole space is left as it was"


def test_a_large_one_is_walked() -> None:
    """Exactly 3 of 30 switches, two of which are on: 28 of 2^28 combinations."""
    space = Space({f"x{i}": Binary() for i in range(30)}, lambda p: sum(p.values()) == 3)
    rows = space.rows.within({4: 1, 7: 1}).random_rows(np.random.default_rng(0), 400)
    assert np.all(rows[:, [4, 7]] == 1)
    assert np.all(rows.sum(axis=1) == 3)
    assert len(as_set(rows)) > 14


def test_what_the_constraint_forbids_altogether_is_refused() -> None:
    space = Space({f"x{i}": Binary() for i in range(30)}, lambda p: not p["x0"])
    with pytest.raises(SpaceError, match="constraint: expected True for some points"):
        space.rows.within({0: 1})
