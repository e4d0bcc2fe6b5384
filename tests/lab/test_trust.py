"""The trust region of the laboratory: where it may look, how it breathes, and that it starts again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from carbo import Binary, Space
from carbo.numerics.types import Ints
from lab.methods import method
from lab.methods.region import TrustRegion
from lab.methods.trust import FAILURES, FIRST, GROWTH, SUCCESSES

SPACE = Space({f"b{i}": Binary() for i in range(14)})


def started(values: list[float]) -> TrustRegion:
    run = TrustRegion(SPACE, 1, 100)
    for row, value in zip(SPACE.random_rows(np.random.default_rng(0), len(values)), values, strict=True):
        run.tell(row, value)
    return run


def apart(a: Ints, b: Ints) -> int:
    return int(np.count_nonzero(a != b))


def test_it_grows_with_success_shrinks_in_vain_and_begins_again() -> None:
    first = FIRST * SPACE.dim
    run = started([3.0, 2.0, 1.0, *[9.0] * FAILURES])
    assert run._radius == first  # what it did not suggest is neither success nor failure
    for k in range(SUCCESSES):
        run.tell(run.ask(), -float(k))
    assert run._radius == first * GROWTH
    radii = []
    for row in SPACE.random_rows(np.random.default_rng(1), 8 * FAILURES):
        run._proposed = row  # as if it had suggested it
        run.tell(row, 5.0)
        radii.append(run._radius)
    shrunk = [first * GROWTH / GROWTH**k for k in range(1, 7) if first * GROWTH / GROWTH**k >= 1.0]
    assert radii[FAILURES - 1 :: FAILURES][: len(shrunk)] == shrunk
    restarts = [k for k, (before, after) in enumerate(pairwise(radii)) if after > before]
    assert len(restarts) == 1
    assert radii[restarts[0] + 1] == first


def test_suggestions_stay_within_the_region_around_the_best_since_the_restart() -> None:
    values = [9.0, *np.random.default_rng(3).uniform(10.0, 20.0, 11).tolist()]
    run = started(values)
    run._radius = 2.0
    best = run._rows[0]
    for _ in range(4):
        row = run.ask()
        assert 1 <= apart(row, best) <= 2
        run.tell(row, 30.0)
    run._begin()
    fresh = run.ask()
    run.tell(fresh, 25.0)
    run._radius = 1.0
    assert apart(run.ask(), fresh) == 1  # although better points are known elsewhere


def test_nothing_is_asked_twice_when_a_region_is_used_up() -> None:
    space = Space({f"b{i}": Binary() for i in range(4)})
    run = method("default-trust").start(space, 1, 16)
    assert isinstance(run, TrustRegion)
    for row in space.random_rows(np.random.default_rng(0), 2):
        run.tell(row, float(row.sum()))
    seen = {tuple(row.tolist()) for row in run._rows}
    for _ in range(12):
        row = run.ask()
        assert tuple(row.tolist()) not in seen
        seen.add(tuple(row.tolist()))
        run.tell(row, float(row.sum()))
