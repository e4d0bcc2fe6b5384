"""What is tried when a model is doubted: points two changes away from the best one, where it is least sure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import carbo
from carbo import Binary, Categorical, Ordinal, Space, doubt
from carbo.graph import Floats, Ints
from carbo.optimizer import Optimizer
from tests.test_acquisition import ensemble, some_rows

MIXED = Space(
    {"a": Binary(), "b": Categorical(["x", "y", "z"]), "c": Ordinal([1, 2, 3, 4]), "d": Categorical(["only"])}
)


def test_rows_two_away_are_all_that_one_change_of_two_variables_leads_to() -> None:
    for row in MIXED.all_rows(24):
        beside = MIXED.neighbours_many(row[None])[0]
        expected = {
            tuple(np.where(one != row, one, two).tolist())
            for one, two in itertools.combinations(beside, 2)
            if not ((one != row) & (two != row)).any()
        }
        got = doubt.two_away(np.random.default_rng(0), MIXED, row)
        assert sorted(map(tuple, got.tolist())) == sorted(expected)


@pytest.mark.parametrize("sizes", [(2,) * 100, (3_000, 3_000, 2), (100_000, 5)])
def test_of_very_many_rows_two_away_some_are_drawn(sizes: tuple[int, ...]) -> None:
    space = Space({f"v{i}": Categorical(list(range(size))) for i, size in enumerate(sizes)})
    row = space.random_rows(np.random.default_rng(1), 1)[0]
    got = doubt.two_away(np.random.default_rng(0), space, row)
    assert len(got) == len(np.unique(got, axis=0)) == doubt.PAIRS
    assert set(np.count_nonzero(got != row, axis=1).tolist()) == {2}


def test_the_least_known_row_has_the_largest_variance_of_the_mixture() -> None:
    model, rows = ensemble(samples=2), some_rows(12)
    moments = [model.joint(s, rows) for s in range(2)]
    mean = np.array([m for m, _ in moments])
    variance = np.mean([np.diagonal(cov) for _, cov in moments], axis=0) + ((mean - mean.mean(axis=0)) ** 2).mean(
        axis=0
    )
    assert doubt.least_known(model, rows, None).tolist() == rows[np.argmax(variance)].tolist()
    success = np.random.default_rng(0).uniform(0.01, 1.0, len(rows))

    def log_success(asked: Ints) -> Floats:
        assert asked is rows
        return np.log(success)

    expected = rows[np.argmax(variance * success)]
    assert doubt.least_known(model, rows, log_success).tolist() == expected.tolist()


def stalled(vain: int, settings: dict[str, int], space: Space | None = None) -> tuple[Optimizer, Ints]:
    """An optimiser whose best point was followed by `vain` worse ones, and that point."""
    space = space or Space({f"x{i}": Binary() for i in range(14)})
    changes = {"samples": 3, "burn_in": 5, "initial": 1, "exhaustive": 0, **settings}
    opt = Optimizer(space, seed=0, settings=changes)
    rows = space.random_rows(np.random.default_rng(vain), 6 + vain)
    opt.tell(space.decode_many(rows), [5.0, 4.0, 6.0, 5.5, 4.5, 0.0, *(1.0 + np.arange(vain) % 3)])
    return opt, rows[5]


def away(opt: Optimizer, centre: Ints, n: int = 1) -> list[int]:
    return [int(np.count_nonzero(opt.space.encode(p) != centre)) for p in opt.ask(n)]


@pytest.mark.parametrize("vain", [9, 12, 15])
def test_every_third_suggestion_of_a_stalled_run_is_two_changes_away(vain: int) -> None:
    assert away(*stalled(vain, {"doubt": 8})) == [2]


def test_other_turns_and_pending_points_go_on_as_they_did() -> None:
    turns = away(*stalled(8, {"doubt": 8}), n=6)
    assert [turns[1], turns[4]] == [2, 2]  # 9 and 12
    assert [turns[0], turns[2]] == [1, 1]  # patience: 8 and 10
    assert away(*stalled(6, {"doubt": 8, "patience": 0}))[0] > 0


def test_it_is_left_to_the_acquisition_where_no_such_point_is_permitted() -> None:
    centre = dict.fromkeys((f"x{i}" for i in range(14)), False)
    space = Space({name: Binary() for name in centre}, constraint=lambda p: sum(p.values()) != 2)
    opt = Optimizer(space, seed=0, settings={"samples": 3, "burn_in": 5, "initial": 1, "exhaustive": 0, "doubt": 8})
    opt.tell(centre, 0.0)
    rows = space.random_rows(np.random.default_rng(0), 9)
    opt.tell(space.decode_many(rows), list(range(1, 10)))
    assert away(opt, space.encode(centre)) != [2]


def test_what_two_variables_do_together_is_found_out() -> None:
    """Each of two changes is bad, and both are in all data; together, at the best point, they are the optimum. Expected
    improvement and the neighbours of the best point, the broken twin, never lead there.
    """
    space = Space({f"x{i}": Binary() for i in range(8)})

    def cost(row: Ints) -> float:
        if row[0] and row[1] and row[2:].sum() == 0:
            return -1.0
        return float(6 * row[0] + 5 * row[1] + row[2:].sum())

    def found(doubted: int) -> float:
        changes = {"samples": 2, "burn_in": 5, "initial": 1, "exhaustive": 0, "doubt": doubted}
        opt = Optimizer(space, seed=0, settings=changes)
        rows = space.random_rows(np.random.default_rng(0), 30)
        rows[0] = 0
        opt.tell(space.decode_many(rows), [cost(row) for row in rows])
        for _ in range(8 + 3 * 28):  # all 28 pairs had their turn
            params = opt.ask()
            opt.tell(params, cost(space.encode(params)))
            if cost(space.encode(params)) < 0.0:
                break
        assert opt.best is not None
        return opt.best.value

    assert found(8) == -1.0
    assert found(0) == 0.0


def test_it_is_off_unless_asked_for() -> None:
    assert carbo.Settings().doubt == carbo.PAPER.doubt == 0
