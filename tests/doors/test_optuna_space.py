"""Optuna's distributions as levels: which there are, what is nearest, and what a carbo.Space says to Optuna."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

import carbo
from carbo import CarboSampler, SpaceError
from carbo.integrations.columns import STEPS
from carbo.integrations.optuna.space import Distributions, Wishes, column, distributions, natural
from tests.presets import CHEAP


def levels(distribution: BaseDistribution, **wishes: Any) -> tuple[Any, ...]:
    return column("x", distribution, Wishes(**wishes)).values


@pytest.mark.parametrize(
    ("distribution", "wishes", "expected"),
    [
        (FloatDistribution(0.0, 1.0), {"points": 5}, (0.0, 0.25, 0.5, 0.75, 1.0)),
        (FloatDistribution(0.0, 1.0), {"points": {"x": 3}}, (0.0, 0.5, 1.0)),
        (FloatDistribution(0.0, 1.0), {"points": {"y": 3}}, tuple(np.linspace(0.0, 1.0, 51).tolist())),
        (FloatDistribution(1.0, 10_000.0, log=True), {"points": 5}, (1.0, 10.0, 100.0, 1_000.0, 10_000.0)),
        (FloatDistribution(0.0, 1.0, step=0.1), {}, (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        (FloatDistribution(-10.2, -9.9, step=0.1), {"points": 2}, (-10.2, -10.1, -10.0, -9.9)),
        (FloatDistribution(-10.2, -9.9, step=0.1), {"points": {"x": 2}}, (-10.2, -9.9)),
        (FloatDistribution(2.5, 2.5), {}, (2.5,)),
        (FloatDistribution(2.5, 3.5), {"points": 1}, (2.5,)),
        (IntDistribution(-2, 3), {}, (-2, -1, 0, 1, 2, 3)),
        (IntDistribution(0, 9, step=3), {"points": 2}, (0, 3, 6, 9)),
        (IntDistribution(0, 12, step=3), {"points": {"x": 3}}, (0, 6, 12)),
        (IntDistribution(1, 1000, log=True), {"points": 4}, (1, 10, 100, 1000)),
        (IntDistribution(1, 3, log=True), {}, (1, 2, 3)),
        (IntDistribution(1, 1000, log=True), {"points": 1}, (1,)),
        (IntDistribution(7, 7), {}, (7,)),
        (CategoricalDistribution(["b", None, 1.5, "a"]), {}, ("b", None, 1.5, "a")),
        (CategoricalDistribution([1, True, "a", "a"]), {}, (1, "a")),  # as Optuna tells them apart
    ],
)
def test_levels(distribution: BaseDistribution, wishes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = levels(distribution, **wishes)
    exact = not isinstance(distribution, FloatDistribution)
    assert found == (expected if exact else pytest.approx(expected, rel=1e-12))
    assert [type(v) for v in found] == [type(v) for v in expected]


def test_steps_are_written_as_the_user_would() -> None:
    assert levels(FloatDistribution(0.0, 1.0, step=0.1))[3] == 0.3  # and not 0.30000000000000004


@pytest.mark.parametrize(
    "distribution",
    [
        IntDistribution(0, 10**15),
        IntDistribution(-(10**6), 10**6, step=10),
        IntDistribution(1, 10**15, log=True),
        FloatDistribution(0.0, 1e6, step=0.25),
        FloatDistribution(-1.7e308, 1.7e308),
        FloatDistribution(5e-324, 1.7e308, log=True),
        FloatDistribution(1.0, np.nextafter(1.0, 2.0)),
    ],
    ids=repr,
)
def test_extreme_ranges_get_a_grid_inside_them_with_both_ends(
    distribution: IntDistribution | FloatDistribution,
) -> None:
    found = levels(distribution)
    assert found[0] == distribution.low
    assert found[-1] == distribution.high
    assert all(math.isfinite(v) and distribution._contains(distribution.to_internal_repr(v)) for v in found)
    assert 2 <= len(found) <= STEPS
    assert list(found) == sorted(set(found))


ranges = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda p: (p[0], p[0] + p[1]))


@given(ranges, st.integers(1, 60), st.floats(0, 1))
def test_a_number_counts_as_the_nearest_level(low_high: tuple[float, float], points: int, share: float) -> None:
    low, high = low_high
    each = column("x", FloatDistribution(low, high), Wishes(points=points))
    value = min(max(low + share * (high - low), low), high)
    position = each.position(value)
    assert position is not None
    assert abs(each.values[position] - value) == min(abs(v - value) for v in each.values)


@given(st.floats(0, 1))
def test_nearest_is_meant_in_the_logarithm_where_the_distribution_is(share: float) -> None:
    each = column("x", FloatDistribution(1e-6, 1.0, log=True), Wishes(points=13))
    value = min(max(10 ** (-6 * share), 1e-6), 1.0)
    position = each.position(value)
    assert position is not None
    distance = [abs(math.log(v) - math.log(value)) for v in each.values]
    assert distance[position] == min(distance)


def test_every_level_is_its_own_nearest() -> None:
    for distribution in (FloatDistribution(-3.0, 7.1), IntDistribution(1, 500, log=True), IntDistribution(0, 999)):
        each = column("x", distribution, Wishes())
        assert [each.position(v) for v in each.values] == list(range(len(each.values)))


def test_what_lies_outside_has_no_level() -> None:
    assert column("x", FloatDistribution(0.0, 1.0), Wishes()).position(1.5) is None
    assert column("x", IntDistribution(0, 5), Wishes()).position(-1) is None
    assert column("x", CategoricalDistribution(["a"]), Wishes()).position("b") is None


def test_choices_that_are_no_labels_are_found_and_given_back() -> None:
    nan = float("nan")
    with pytest.warns(UserWarning, match="persistent storage"):
        distribution = CategoricalDistribution(["a", nan, [1, 2]])  # type: ignore[list-item]
    each = column("x", distribution, Wishes())
    assert [each.position(v) for v in ("a", float("nan"), [1, 2], [2])] == [0, 1, 2, None]
    assert each.values[1:] == (nan, [1, 2])
    assert each.variable.size == 3


def test_the_constraint_sees_such_choices_themselves() -> None:
    space: Distributions = {
        "x": CategoricalDistribution([math.nan, "a", "b"]),
        "y": IntDistribution(0, 3),
    }
    seen: list[Any] = []

    def constraint(params: dict[str, Any]) -> bool:
        seen.append(params["x"])
        return bool(params["x"] != "a")

    sampler = CarboSampler(search_space=space, constraint=constraint, settings=CHEAP, seed=0)
    study = optuna.create_study(sampler=sampler)
    asked = [study.ask(space).params["x"] for _ in range(8)]
    assert sum(value == "b" for value in asked) == 4
    assert sum(isinstance(value, float) and math.isnan(value) for value in asked) == 4
    assert {str(value) for value in seen} == {"nan", "a", "b"}


def test_a_distribution_of_another_kind_is_refused() -> None:
    class Own(FloatDistribution):
        pass

    class Other(BaseDistribution):
        single = to_internal_repr = _contains = None  # type: ignore[assignment]

    assert column("x", Own(0.0, 1.0), Wishes()).values[0] == 0.0
    with pytest.raises(SpaceError, match="parameter 'x': expected a categorical, integer or float distribution"):
        column("x", Other(), Wishes())


# ---------------------------------------------------------------- orders and graphs

WEIGHTS = [[0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]]


def test_orders_and_graphs_reach_the_engine() -> None:
    space: Distributions = {
        "compiler": CategoricalDistribution(["gcc", "g++", "icc"]),
        "angle": IntDistribution(0, 350, step=10),
        "size": CategoricalDistribution(["S", "M", "L"]),
        "plain": CategoricalDistribution(["S", "M", "L"]),
        "rate": FloatDistribution(0.0, 1.0),
    }
    sampler = CarboSampler(
        search_space=space, ordinal=["size"], graphs={"compiler": WEIGHTS, "angle": "cycle"}, points=11
    )
    assert sampler.optimizer(optuna.create_study(sampler=sampler)).space == carbo.Space(
        {
            "compiler": carbo.Categorical(["gcc", "g++", "icc"], graph=WEIGHTS),
            "angle": carbo.Categorical(range(0, 360, 10), graph="cycle"),
            "size": carbo.Ordinal(["S", "M", "L"]),
            "plain": carbo.Categorical(["S", "M", "L"]),
            "rate": carbo.Ordinal(np.linspace(0.0, 1.0, 11)),
        }
    )


def test_a_space_of_carbo_is_said_in_distributions_and_used_as_it_is() -> None:
    space = carbo.Space(
        {
            "flag": carbo.Binary(),
            "compiler": carbo.Categorical(["gcc", "g++", "icc"], graph=WEIGHTS),
            "size": carbo.Ordinal(["S", "M", "L"]),
            "threads": carbo.Integer(1, 9, step=3),
            "depth": carbo.Integer(1, 1_000, log=True),
            "rate": carbo.Float(1e-3, 1.0, points=7, log=True),
        },
        lambda p: p["flag"] or p["size"] != "L",
    )
    sampler = CarboSampler(search_space=space, settings=CHEAP, seed=0)
    assert sampler.distributions == {
        "flag": CategoricalDistribution([False, True]),
        "compiler": CategoricalDistribution(["gcc", "g++", "icc"]),
        "size": CategoricalDistribution(["S", "M", "L"]),
        "threads": IntDistribution(1, 7, step=3),
        "depth": IntDistribution(1, 1_000, log=True),
        "rate": FloatDistribution(1e-3, 1.0, log=True),
    }
    assert distributions(space) == sampler.distributions
    study = optuna.create_study(sampler=sampler)
    for i in range(10):
        study.tell(study.ask(sampler.distributions), float(i))
    points = [t.params for t in study.trials]
    assert space.feasible(space.encode_many(points)).all()  # on its grid, as it is
    assert sampler.optimizer(study).space == space
    assert sampler.optimizer(study).history()[0] == points


def test_trials_off_the_grid_are_used_at_the_nearest_level() -> None:
    space: Distributions = {"rate": FloatDistribution(0.0, 1.0), "n": IntDistribution(0, 3)}
    sampler = CarboSampler(points={"rate": 5}, settings=CHEAP, seed=0)
    study = optuna.create_study(sampler=sampler)
    for rate, n in ((0.1, 0), (0.13, 1), (0.99, 2)):
        study.enqueue_trial({"rate": rate, "n": n})
        study.tell(study.ask(space), rate)
    engine = sampler.optimizer(study)
    assert engine.history()[0] == [{"rate": 0.0, "n": 0}, {"rate": 0.25, "n": 1}, {"rate": 1.0, "n": 2}]
    assert engine.history()[1].tolist() == [0.1, 0.13, 0.99]


def test_numbers_in_names_are_sorted_by_what_they_are_worth() -> None:
    """Variables next to each other may belong together: stage 2 stands before stage 10."""
    names = ["b", "stage 10", "stage 2", "stage 2b", "a2x10", "a2x9", "7", "", "stage 1"]
    expected = ["", "7", "a2x9", "a2x10", "b", "stage 1", "stage 2", "stage 2b", "stage 10"]
    assert sorted(names, key=natural) == expected
