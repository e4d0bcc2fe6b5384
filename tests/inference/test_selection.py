"""Model selection: a warp of the values, and windows, which are kernel parts for variables next to each other."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from carbo import Binary, Categorical, Integer, Optimizer, Space, StateError
from carbo.errors import NumericalError
from carbo.inference import chain
from carbo.inference.priors import Priors
from carbo.inference.selection import FEWEST, Models, Shape, reselect
from carbo.numerics.types import Floats, Ints
from carbo.settings import DEFAULT
from carbo.state import belief_from
from carbo.surrogate.surrogate import Belief, Surrogate

SPACE = Space({**{f"b{i}": Binary() for i in range(6)}, "c": Categorical(list("pqr")), "n": Integer(0, 4)})


def told(n: int, seed: int) -> tuple[Ints, Floats]:
    """Rows, and at each row a sum with one term for each variable."""
    rng = np.random.default_rng(seed)
    rows = SPACE.random_rows(rng, n)
    parts = [rng.normal(size=size) for size in SPACE.sizes]
    return rows, np.array([sum(part[v] for part, v in zip(parts, row, strict=True)) for row in rows])


def models(space: Space = SPACE, **changes: object) -> Models:
    return Surrogate(space.rows, DEFAULT.changed(changes)).models


def belief(opt: Optimizer) -> Belief:
    """The shape that the optimiser uses now."""
    return belief_from(opt.state(), Surrogate(opt.space.rows, opt.settings))


def choice(rows: Ints, values: Floats) -> Shape:
    return reselect(Shape(), rows, values, models())[0]


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
    few = FEWEST - 1
    assert reselect(Shape(), rows[:few], values[:few], models()) == (Shape(), None)
    later, _ = reselect(Shape(), rows, values, models())
    assert 50 < later.due <= 60
    wrong = Shape(0.5, later.due)
    assert reselect(wrong, rows, values, models()) == (wrong, None)
    put_right, mode = reselect(wrong._replace(due=50), rows, values, models())
    assert put_right.multiple is None
    assert mode is not None
    assert math.isfinite(mode.mean)


def skewed_run() -> Optimizer:
    rows, values = told(40, 1)
    opt = Optimizer(SPACE, seed=3, settings={"samples": 3, "burn_in": 5})
    opt.tell(SPACE.decode_many(rows), np.exp(2.0 * values))
    opt.tell(opt.ask(), 0.01)
    assert belief(opt).shape.multiple is not None
    return opt


def test_predictions_of_a_warped_model_are_in_the_users_units() -> None:
    """Without the warp on the way back, predicted values would be a few standard deviations of y."""
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
    assert belief(one).shape == belief(two).shape
    assert one.ask() == two.ask()


def test_a_restored_optimiser_keeps_its_warp() -> None:
    opt = skewed_run()
    restored = Optimizer.from_state(SPACE, json.loads(json.dumps(opt.state())))
    assert belief(restored).shape == belief(opt).shape
    assert restored.ask() == opt.ask()


def test_without_the_gradient_or_where_settings_forbid_it_there_is_no_warp() -> None:
    rows, values = told(40, 1)
    for changes in ({"priors": Priors()}, {"warp": "none", "adjacent": "none"}, {"kernel": "product"}):
        opt = Optimizer(SPACE, seed=0, settings={"samples": 2, "burn_in": 2, **changes})
        opt.tell(SPACE.decode_many(rows), np.exp(2.0 * values))
        opt.ask()
        assert belief(opt).shape == Shape()


# -- variables next to each other ------------------------------------------------------------------------------------

STAGES = Space({f"stage{i}": Binary() for i in range(12)})


def in_a_row(seed: int, order: Ints | None = None) -> tuple[Ints, Floats]:
    """Rows, and sums of one term for each pair of consecutive stages; the stages are listed in their order."""
    rng = np.random.default_rng(seed)
    rows = STAGES.random_rows(rng, 60)
    effects = rng.normal(size=(11, 2, 2))
    values = sum(effects[i, rows[:, i], rows[:, i + 1]] for i in range(11))
    return (rows if order is None else rows[:, order]), np.asarray(values)


FAR_APART = np.array([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11])


def adjacent(rows: Ints, values: Floats, space: Space = STAGES) -> bool:
    return reselect(Shape(), rows, values, models(space))[0].adjacent


@pytest.mark.parametrize("seed", range(6))
def test_pairs_next_to_each_other_are_told_from_the_same_pairs_listed_far_apart(seed: int) -> None:
    """Over 200 other seeds every choice was right, with windows and without."""
    assert adjacent(*in_a_row(seed))
    assert not adjacent(*in_a_row(seed, FAR_APART))


def test_the_choice_does_not_hang_on_which_value_is_called_one() -> None:
    rows, values = in_a_row(0)
    flipped = rows ^ np.arange(12) % 2
    assert adjacent(flipped, values)
    assert adjacent(flipped[:, ::-1], values)


def test_sums_without_interactions_do_not_ask_for_it() -> None:
    rng = np.random.default_rng(0)
    rows = STAGES.random_rows(rng, 60)
    assert not adjacent(rows, rows @ rng.normal(size=12))
    assert not adjacent(rows, rng.normal(size=60))
    assert not adjacent(rows, np.ones(60))


def stages_run(**changes: object) -> Optimizer:
    rows, values = in_a_row(1)
    opt = Optimizer(STAGES, seed=3, settings={"samples": 3, "burn_in": 5, "exhaustive": 0, **changes})
    opt.tell(STAGES.decode_many(rows), values)
    opt.ask()
    return opt


def test_a_model_that_changes_its_kernel_on_the_way_goes_on_and_comes_back() -> None:
    rows, values = in_a_row(1)
    opt = Optimizer(STAGES, seed=3, settings={"samples": 3, "burn_in": 5, "initial": 1})
    points = STAGES.decode_many(rows)

    def weights() -> int:
        opt.ask()
        chain = belief(opt).chain
        assert chain is not None
        assert chain.tuning is not None
        return len(chain.hyper.log_w)

    def due_again() -> Belief:
        now = belief(opt)
        return now._replace(shape=now.shape._replace(due=60))

    opt.tell(points[:10], values[:10])
    assert weights() == 3
    opt.tell(points[10:], values[10:])
    assert weights() == 5
    opt.replace_data(rows[:, FAR_APART], values, belief=due_again())
    assert weights() == 3
    opt.replace_data(rows, values, belief=due_again())
    assert weights() == 5
    restored = Optimizer.from_state(STAGES, json.loads(json.dumps(opt.state())))
    assert belief(restored).shape == belief(opt).shape
    assert restored.ask() == opt.ask()


def test_an_interrupted_change_of_kernels_leaves_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise chain and shape would belong to two kernels, and neither ask nor a saved state would work again."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    rows, values = in_a_row(1)
    opt = Optimizer(STAGES, seed=3, settings={"samples": 3, "burn_in": 5, "initial": 1})
    opt.tell(STAGES.decode_many(rows[:9]), values[:9])
    opt.ask()
    opt.tell(STAGES.decode_many(rows[9:]), values[9:])
    with monkeypatch.context() as patched:
        patched.setattr(chain, "_burn_in", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opt.ask()
    assert not belief(opt).shape.adjacent
    restored = Optimizer.from_state(STAGES, json.loads(json.dumps(opt.state())))
    assert opt.ask() == restored.ask()
    assert belief(opt).shape.adjacent


def test_the_kernel_is_chosen_without_a_warp_and_under_one() -> None:
    rows, values = in_a_row(1)
    unwarped = models(STAGES, warp="none")
    assert reselect(Shape(), rows, values, unwarped)[0][::2] == (None, True)
    assert reselect(Shape(), rows, np.exp(0.7 * values), unwarped)[0].multiple is None
    shape, _ = reselect(Shape(), rows, np.exp(0.7 * values), models(STAGES))
    assert shape.multiple is not None
    assert shape.adjacent


def test_where_nothing_can_be_factored_the_shape_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise NumericalError("singular")

    rows, values = in_a_row(1)
    monkeypatch.setattr(chain, "mode", fails)
    shape, mode = reselect(Shape(2.0, 60, True), rows, values, models(STAGES))
    assert shape[::2] == (2.0, True)
    assert shape.due > 60
    assert mode is None


@pytest.mark.parametrize("damage", [[None, 10], [None, 10, "false"], [None, 10, [True]], [-1.0, 10, True]])
def test_a_damaged_shape_is_refused(damage: list[object]) -> None:
    state = json.loads(json.dumps(stages_run().state()))
    with pytest.raises(StateError):
        Optimizer.from_state(STAGES, {**state, "shape": damage})


def test_the_setting_decides_before_the_data_do() -> None:
    for name, size in (("auto", 5), ("always", 5), ("none", 3)):
        found = belief(stages_run(adjacent=name))
        assert found.chain is not None
        assert len(found.chain.hyper.log_w) == size
        assert found.shape.adjacent == (name == "auto")


def test_the_report_says_how_much_lies_between_neighbours() -> None:
    found, without = stages_run().relevance(), stages_run(adjacent="none").relevance()
    assert without.adjacent is None
    assert "next to each other" not in str(without)
    assert found.adjacent is not None
    assert found.orders is not None
    assert sum(found.orders.values()) == pytest.approx(1.0)
    assert 0.1 < found.adjacent <= found.orders["2"] + found.orders["3"]
    assert f"next to each other: {found.adjacent:.0%}" in str(found)


def test_spaces_without_categories_in_a_row_have_nothing_to_choose() -> None:
    levels = Space({"a": Integer(0, 5), "b": Binary(), "c": Integer(0, 5), "d": Binary(), "e": Integer(0, 9)})
    assert models(levels).adjacent is None
    assert models(STAGES).adjacent is not None
    assert models(STAGES, priors=Priors()).alone
    assert models(STAGES, kernel="product").alone
