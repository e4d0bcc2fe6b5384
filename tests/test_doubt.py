"""When a model has been refuted, and what is tried then."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from carbo import Binary, Categorical, Ordinal, Settings, SettingsError, Space, doubt
from carbo import graph as graphs
from carbo.conditional import Data, Hyper
from carbo.ensemble import Ensemble, build, telling
from carbo.graph import Floats, Ints, spectrum
from carbo.kernel import Scales
from carbo.optimizer import Optimizer
from carbo.orders import Orders
from tests.test_acquisition import ensemble

MIXED = Space(
    {"a": Binary(), "b": Categorical(["x", "y", "z"]), "c": Ordinal([1, 2, 3, 4]), "d": Categorical(["only"])}
)


# -- when improvements ended -----------------------------------------------------------------------------------------


def test_an_improvement_worth_the_name_is_a_hundredth_of_the_distance_to_the_median() -> None:
    y = np.array([5.0, 3.0, 4.0, 2.9, 2.899, 2.85, 4.5, 9.0, 9.0])  # median 4.5: 0.0165 is worth the name
    assert doubt.last_improvement(y[:5]) == 3
    assert doubt.last_improvement(y) == 5
    assert doubt.last_improvement(np.array([1.0])) == 0
    assert doubt.last_improvement(np.full(7, 2.0)) == 0


def test_many_small_steps_are_one_large_one() -> None:
    steps = 1.0 - 0.004 * np.arange(10)  # a step is not worth the name where the median is 0.964 + 1 or so away
    y = np.concatenate([[1.0], steps, np.full(30, 2.0)])
    worth = 0.01 * (2.0 - steps[-1])
    last = doubt.last_improvement(y)
    assert 1 < last < 11
    assert y[last] - steps[-1] <= worth < 1.0 - y[last] + 0.004


@given(st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=30), st.floats(1e-3, 1e3), st.floats(-10.0, 10.0))
def test_units_do_not_matter(values: list[float], unit: float, zero: float) -> None:
    y = np.round(values, 3)
    worth = 0.01 * (np.median(y) - y.min())
    gaps = np.abs(np.subtract.outer(y, y) - worth)
    if gaps.min() > 1e-6:  # a tie may fall either way once it is rounded
        assert doubt.last_improvement(zero + unit * y) == doubt.last_improvement(y)


# -- how many improvements the model expects -------------------------------------------------------------------------


@pytest.mark.parametrize("last", [2, 5, 7])
def test_expected_improvements_are_those_of_models_that_have_not_seen_the_value(last: int) -> None:
    model = ensemble(samples=3, n=9)
    order = np.random.default_rng(last).permutation(9)  # which of y each observation is
    y = np.empty(9)
    y[order] = model.values[0]
    worth, total = 0.01 * (np.median(y) - y.min()), 0.0
    for i in np.flatnonzero(order > last):
        rest = np.delete(np.arange(9), i)
        without = Ensemble(model.kernel, model.hypers, model.X[rest], model.values[:, rest])
        mu, sd = without.predict(model.X[i][None])
        noise = np.exp([h.log_noise for h in model.hypers])
        total += float(np.mean(stats.norm.cdf(y[last] - worth, mu[:, 0], np.sqrt(sd[:, 0] ** 2 + noise))))
    assert doubt.expected(model, order, y, last) == pytest.approx(total, rel=1e-8)


def test_values_that_the_model_has_not_seen_do_not_count() -> None:
    model = ensemble(samples=2, n=6)
    y = np.concatenate([[9.0], model.values[0], np.full(4, 9.0)])
    few = doubt.expected(model, np.arange(1, 7), y, 1)
    assert few == pytest.approx(doubt.expected(model, np.arange(6), y[1:7], 0), rel=0.2)  # the median differs
    assert doubt.expected(model, np.arange(1, 7), y, 8) == 0.0


DRAWS, TOLD = 200, 60


def promises(clipped: bool) -> Floats:
    """Improvements expected in vain by a model that knows the kernel, of DRAWS functions, some values of each told.

    clipped: the functions have a floor, at their 40 % quantile, which no model here knows.
    """
    kernel = Orders(tuple(spectrum(graphs.complete(2)) for _ in range(10)), 2, False)
    hyper = Hyper(0.0, np.log(1e-4), np.log([0.6, 0.4]), Scales(np.zeros(10), np.zeros(10)))
    rows = np.array(list(itertools.product([0, 1], repeat=10)))
    X = rows[np.random.default_rng(0).permutation(len(rows))[:TOLD]]
    K = np.einsum("q,qij->ij", np.exp(hyper.log_w), np.asarray(kernel.parts(hyper.scales, X)))
    L = np.linalg.cholesky(K + 1e-4 * np.eye(TOLD))
    rng, out = np.random.default_rng(1), []
    for _ in range(DRAWS):
        y = L @ rng.standard_normal(TOLD)
        if clipped:
            y = np.maximum(y, np.quantile(y, 0.4)) + 1e-3 * rng.standard_normal(TOLD)
        model, last = build(kernel, [hyper], Data(X, y)), doubt.last_improvement(y)
        out.append(doubt.expected(model, telling(Data(X, y)), y, last))
    return np.array(out)


def test_a_model_that_is_right_is_seldom_doubted_and_one_that_takes_a_floor_for_a_slope_is() -> None:
    """Expected in vain are 3 or more with a probability of at most exp(-3) where the model is right; a rate of 0.05 is
    rejected, if it is kept, in one of a million tests.
    """
    alarms = int((promises(clipped=False) >= 3.0).sum())
    assert stats.binom.sf(alarms - 1, DRAWS, np.exp(-3.0)) > 1e-6
    assert int((promises(clipped=True) >= 3.0).sum()) > 0.9 * DRAWS


# -- two changes at once ---------------------------------------------------------------------------------------------


def changes_of(space: Space, row: Ints) -> tuple[Ints, Ints]:
    _, column, value = space.moves(row[None])
    return column, value


def test_rows_two_changes_away_come_once_each_in_the_order_of_the_product() -> None:
    for number, row in enumerate(MIXED.all_rows(24)):
        column, value = changes_of(MIXED, row)
        rise = np.random.default_rng(number).uniform(0.1, 2.0, len(column))
        pairs = [(rise[i] * rise[j], i, j) for i, j in itertools.combinations(range(len(rise)), 2)
                 if column[i] != column[j]]  # fmt: skip
        expected = []
        for _, i, j in sorted(pairs, reverse=True):
            expected.append(row.copy())
            expected[-1][[column[i], column[j]]] = value[[i, j]]
        got = np.concatenate(list(doubt.doubles(row, column, value, rise)))
        assert got.tolist() == np.array(expected).tolist()


def test_changes_that_improve_or_do_nothing_come_last() -> None:
    space = Space({f"x{i}": Binary() for i in range(4)})
    row = np.zeros(4, dtype=np.intp)
    got = np.concatenate(list(doubt.doubles(row, *changes_of(space, row), np.array([-1.0, 3.0, 0.0, 2.0]))))
    assert got[0].tolist() == [0, 1, 0, 1]
    assert len(got) == 6
    assert got[-1].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("sizes", [(2,) * 300, (3_000, 3_000, 2), (100_000, 5)])
def test_of_very_many_changes_those_that_do_most_are_paired(sizes: tuple[int, ...]) -> None:
    space = Space({f"v{i}": Categorical(list(range(size))) for i, size in enumerate(sizes)})
    row = space.random_rows(np.random.default_rng(1), 1)[0]
    column, value = changes_of(space, row)
    rise = np.random.default_rng(0).random(len(column))
    first = next(doubt.doubles(row, column, value, rise), np.empty((0, len(sizes)), dtype=np.intp))
    assert len(first) == len(np.unique(first, axis=0))
    assert set(np.count_nonzero(first != row, axis=1).tolist()) <= {2}
    most = np.argsort(-rise)[: doubt.CHANGES]
    kept = set(zip(column[most].tolist(), value[most].tolist(), strict=True))
    assert {(int(c), int(one[c])) for one in first for c in np.flatnonzero(one != row)} <= kept


def test_a_row_with_a_single_change_or_none_has_no_two() -> None:
    space = Space({"a": Categorical(["x", "y"]), "b": Categorical(["only"])})
    row = np.zeros(2, dtype=np.intp)
    assert doubt.first_fresh(doubt.doubles(row, *changes_of(space, row), np.ones(1)), lambda r: r[:, 0] == 1) is None
    nothing = np.empty(0, dtype=np.intp)
    assert doubt.first_fresh(doubt.doubles(row, nothing, nothing, np.empty(0)), lambda r: r[:, 0] == 1) is None


# -- turns -----------------------------------------------------------------------------------------------------------

CHEAP: dict[str, Any] = {"samples": 2, "burn_in": 5, "initial": 1, "exhaustive": 0}


def hidden(row: Ints) -> float:
    """Each of the first two changes is bad; both are the optimum, but at the best point alone."""
    if row[0] and row[1] and row[2:].sum() == 0:
        return -1.0
    return float(6 * row[0] + 5 * row[1] + row[2:].sum())


def searched(threshold: float, **changes: Any) -> tuple[list[int], float]:
    """How far suggestions are from the best point, one after another, and the best value found."""
    space = Space({f"x{i}": Binary() for i in range(8)})
    opt = Optimizer(space, seed=0, settings={**CHEAP, "doubt": threshold, **changes})
    rows = space.random_rows(np.random.default_rng(0), 30)
    rows[0] = 0
    opt.tell(space.decode_many(rows), [hidden(row) for row in rows])
    away = []
    for _ in range(2 * 8 + 3):
        row = space.encode(opt.ask())
        opt.tell(space.decode(row), hidden(row))
        away.append(int(row.sum()))
    assert opt.best is not None
    return away, opt.best.value


def test_what_two_variables_do_together_is_found_out() -> None:
    """Once the model is doubted and the neighbours are known. Patience alone, the broken twin, does not lead there."""
    assert searched(1e-300)[1] == -1.0
    assert searched(0.0)[1] == 0.0


def test_a_model_that_is_not_doubted_goes_on_as_it_would() -> None:
    plain, _ = searched(0.0)
    assert searched(1e300)[0] == plain


def told(space: Space, threshold: float, **changes: Any) -> Optimizer:
    opt = Optimizer(space, seed=0, settings={**CHEAP, "doubt": threshold, **changes})
    rows = space.random_rows(np.random.default_rng(3), 12)
    opt.tell(space.decode_many(rows), [0.0, *range(1, 12)])
    return opt


def test_suggestions_under_way_take_turns_too_and_no_row_comes_twice() -> None:
    space = Space({f"x{i}": Binary() for i in range(12)})
    opt = told(space, 1e-300)
    best = opt.space.encode(opt.best.params)  # type: ignore[union-attr]
    points = opt.ask(9)
    away = [int(np.count_nonzero(space.encode(p) != best)) for p in points]
    kinds = [sorted({away[i], away[i + 3], away[i + 6]}) for i in range(3)]
    assert [1] in kinds
    assert len({tuple(p.values()) for p in points}) == 9


@pytest.mark.parametrize("changes", [{"replicate": True}, {"acquisition": "kg"}, {"acquisition": "thompson"}])
def test_a_pair_is_of_a_row_never_evaluated(changes: dict[str, Any]) -> None:
    space = Space({f"x{i}": Binary() for i in range(6)})
    opt = Optimizer(space, seed=0, settings={**CHEAP, "doubt": 1e-300, **changes})
    rows = np.concatenate([np.zeros((1, 6)), np.eye(6)]).astype(np.intp)
    opt.tell(space.decode_many(rows), [0.0, *range(1, 7)])
    seen = {tuple(row) for row in rows.tolist()}
    pairs = [row for p in opt.ask(6) if (row := space.encode(p)).sum() == 2]
    assert len(pairs) >= 4
    assert not {tuple(row.tolist()) for row in pairs} & seen
    assert pairs[0].tolist() == [0, 0, 0, 0, 1, 1]  # the two that do most by themselves


def test_no_pair_that_the_constraint_forbids() -> None:
    space = Space({f"x{i}": Binary() for i in range(6)}, constraint=lambda p: sum(p.values()) != 2)
    opt = Optimizer(space, seed=0, settings={**CHEAP, "doubt": 1e-300})
    rows = np.concatenate([np.zeros((1, 6)), np.eye(6)]).astype(np.intp)
    opt.tell(space.decode_many(rows), [0.0, *range(1, 7)])
    assert all(space.encode(p).sum() > 2 for p in opt.ask(5))


def test_failures_and_a_restored_state_change_nothing() -> None:
    space = Space({f"x{i}": Binary() for i in range(12)})
    opt = told(space, 1e-300)
    opt.tell(space.decode(np.ones(12, dtype=np.intp)), None)
    twin = Optimizer.from_state(space, opt.state())
    assert opt.ask(4) == twin.ask(4)


def test_a_state_saved_before_there_was_doubt_goes_on_without_it() -> None:
    space = Space({f"x{i}": Binary() for i in range(12)})
    state = told(space, 0.0).state()
    assert state["settings"].pop("doubt") == 0.0
    assert Optimizer.from_state(space, state).settings.doubt == 0.0
    assert Optimizer.from_state(space, told(space, 7.0).state()).settings.doubt == 7.0


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), True, "much", None])
def test_a_doubt_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(SettingsError, match=r"setting 'doubt': expected a number >= 0"):
        Settings(doubt=wrong)
