"""The warp that the values ask for."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from carbo import Binary, Categorical, Integer, Optimizer, Space
from carbo.graph import Floats, Ints
from carbo.warping import FEWEST, Warping, looked

SPACE = Space({**{f"b{i}": Binary() for i in range(6)}, "c": Categorical(list("pqr")), "n": Integer(0, 4)})


def told(n: int, seed: int) -> tuple[Ints, Floats]:
    """Rows, and a sum of one part a variable at each."""
    rng = np.random.default_rng(seed)
    rows = SPACE.random_rows(rng, n)
    parts = [rng.normal(size=size) for size in SPACE.sizes]
    return rows, np.array([sum(part[v] for part, v in zip(parts, row, strict=True)) for row in rows])


def choice(rows: Ints, values: Floats) -> Warping:
    return looked(Warping(), rows, values, Optimizer(SPACE)._beliefs.model)[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_sum_asks_for_no_warp_and_the_power_of_a_sum_for_one(seed: int) -> None:
    rows, values = told(50, seed)
    assert choice(rows, values).multiple is None
    assert choice(rows, np.exp(2.0 * values)).multiple is not None


def test_units_and_origin_of_the_values_do_not_matter() -> None:
    rows, values = told(50, 0)
    skewed = np.exp(2.0 * values)
    assert choice(rows, 1e-5 * skewed - 3.0) == choice(rows, skewed)


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_constant_values_ask_for_no_warp(value: float) -> None:
    rows, _ = told(20, 0)
    assert choice(rows, np.full(20, value)).multiple is None


def test_it_is_looked_at_again_only_when_the_data_have_grown() -> None:
    rows, values = told(50, 0)
    model = Optimizer(SPACE)._beliefs.model
    few = FEWEST - 1
    assert looked(Warping(), rows[:few], values[:few], model) == (Warping(), None)
    later, _ = looked(Warping(), rows, values, model)
    assert 50 < later.due <= 60
    wrong = Warping(0.5, later.due)
    assert looked(wrong, rows, values, model) == (wrong, None)
    put_right, mode = looked(wrong._replace(due=50), rows, values, model)
    assert put_right.multiple is None
    assert mode is not None
    assert math.isfinite(mode.mean)


def skewed_run() -> Optimizer:
    rows, values = told(40, 1)
    opt = Optimizer(SPACE, seed=3, settings={"samples": 3, "burn_in": 5})
    opt.tell(SPACE.decode_many(rows), np.exp(2.0 * values))
    opt.tell(opt.ask(), 0.01)
    assert opt._beliefs.warping.multiple is not None
    return opt


def test_predictions_of_a_warped_model_are_in_the_users_units() -> None:
    """Leave the warp out of the way back and the predicted values would be some standard deviations of y."""
    opt = skewed_run()
    points, values = opt.history()
    means, _ = opt.predict(points)
    assert stats.spearmanr(means, values).statistic > 0.9
    assert values.max() / 3 < means.max() < values.max() * 3


def test_looking_at_the_model_does_not_choose_for_the_next_suggestion() -> None:
    one, two = skewed_run(), skewed_run()
    points = one.history()[0]
    one.predict(points)
    one.relevance()
    assert one._beliefs.warping == two._beliefs.warping
    assert one.ask() == two.ask()


def test_a_restored_optimiser_keeps_its_warp() -> None:
    opt = skewed_run()
    restored = Optimizer.from_state(SPACE, json.loads(json.dumps(opt.state())))
    assert restored._beliefs.warping == opt._beliefs.warping
    assert restored.ask() == opt.ask()


def test_without_the_gradient_there_is_no_warp() -> None:
    rows, values = told(40, 1)
    for changes in ({"sampler": "slice"}, {"warp": "none"}, {"kernel": "product"}):
        opt = Optimizer(SPACE, seed=0, settings={"samples": 2, "burn_in": 2, **changes})
        opt.tell(SPACE.decode_many(rows), np.exp(2.0 * values))
        opt.ask()
        assert opt._beliefs.warping == Warping()
