"""The public Optimizer: no repeats, constraints, failures, saving, and predictions."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import math
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import carbo
from carbo import Binary, Categorical, Integer, Optimizer, Ordinal, Space
from carbo.numerics.types import Floats
from carbo.optimizer import STATE_VERSION
from carbo.space.space import Params
from carbo.surrogate.ensemble import Ensemble
from carbo.surrogate.surrogate import Surrogate
from tests.presets import CHEAP, PRESETS

LISTED, SEARCHED = 4_096, 0
"""Values of the setting `exhaustive`: small spaces are scored whole, or all are searched."""

both_presets = pytest.mark.parametrize("preset", PRESETS)
both_ways = pytest.mark.parametrize("exhaustive", [LISTED, SEARCHED], ids=["listed", "searched"])


def binary(d: int, constraint: Callable[[Params], bool] | None = None) -> Space:
    return Space({f"x{i}": Binary() for i in range(d)}, constraint)


def cheap(space: Space, preset: str = "default", *, seed: int = 0, **changes: Any) -> Optimizer:
    own = {key: changes.pop(key) for key in ("initial_points", "replicate") if key in changes}
    return Optimizer(
        space,
        seed=seed,
        preset=preset,
        settings=CHEAP | changes,
        initial=own.get("initial_points", ()),
        replicate=own.get("replicate"),
    )


def key(params: Params) -> tuple[tuple[str, Any], ...]:
    return tuple(params.items())


def distinct(points: list[Params]) -> bool:
    return len({key(p) for p in points}) == len(points)


def smooth(params: Params) -> float:
    """An additive function with one interaction and hardly any ties."""
    x = [float(v) for v in params.values()]
    return sum(math.sin(3.7 * i + 1.0) * v for i, v in enumerate(x)) + 1.3 * x[0] * x[-1]


def rough(params: Params) -> float:
    """Values that no model can foresee."""
    return float(zlib.crc32(repr(key(params)).encode()) % 1_000)


def run(opt: Optimizer, fun: Callable[[Params], Any], steps: int) -> list[Params]:
    asked = []
    for _ in range(steps):
        params = opt.ask()
        opt.tell(params, fun(params))
        asked.append(params)
    return asked


def until_exhausted(opt: Optimizer, fun: Callable[[Params], Any], batch: int | None = None) -> list[Params]:
    """All points that the optimiser suggests before it raises SpaceExhausted."""
    asked: list[Params] = []
    while True:
        try:
            some = [opt.ask()] if batch is None else opt.ask(batch)
        except carbo.SpaceExhausted:
            return asked
        asked += some
        opt.tell(some, [fun(p) for p in some])
        assert len(asked) <= 1_000


# ---------------------------------------------------------------- no duplicates


@both_presets
@both_ways
def test_no_point_is_suggested_twice_one_at_a_time_or_in_batches(preset: str, exhaustive: int) -> None:
    opt = cheap(binary(6), preset, exhaustive=exhaustive)
    asked = run(opt, smooth, 12)
    for n in (8, 3, 1, 8):
        some = opt.ask(n)
        assert len(some) == n
        asked += some
        opt.tell(some, [smooth(p) for p in some])
    assert distinct(asked)


@both_presets
@both_ways
def test_no_point_is_suggested_twice_with_failures_own_points_and_pending_ones(preset: str, exhaustive: int) -> None:
    space = binary(5)
    opt = cheap(space, preset, exhaustive=exhaustive)
    own = space.decode_many(space.all_rows()[::5])  # 7 of the 32
    opt.tell(own, [None if i % 3 == 0 else smooth(p) for i, p in enumerate(own)])
    seen = list(own)
    for turn in range(8):
        some = opt.ask(3)
        seen += some
        opt.tell(some[0], math.nan)
        if turn % 2:
            opt.tell(some[1], smooth(some[1]))  # the others stay pending
    assert len(seen) == 7 + 24
    assert distinct(seen)


@both_presets
def test_a_told_point_that_is_told_again_stays_out(preset: str) -> None:
    opt = cheap(binary(3), preset)
    points = run(opt, smooth, 6)
    opt.tell(points[0], 99.0)
    opt.tell(points[1], None)
    left = until_exhausted(opt, smooth)
    assert len(left) == 2
    assert distinct(points + left)


@both_presets
def test_initial_points_are_suggested_first_and_in_order(preset: str) -> None:
    space = binary(6)
    wanted = space.decode_many(space.all_rows()[[3, 60, 17]])
    opt = cheap(space, preset, initial_points=wanted)
    asked = run(opt, smooth, 10)
    assert asked[:3] == wanted
    assert distinct(asked)


def test_an_initial_point_given_twice_is_suggested_once() -> None:
    point = binary(4).decode([1, 0, 0, 1])
    opt = cheap(binary(4), initial_points=[point, point])
    assert distinct(opt.ask(4))


def test_an_initial_point_told_before_it_was_asked_for_is_not_suggested() -> None:
    point = binary(4).decode([1, 0, 0, 1])
    opt = cheap(binary(4), initial_points=[point])
    opt.tell(point, 1.0)
    assert opt.ask() != point


def test_an_initial_point_that_the_constraint_forbids_is_refused() -> None:
    with pytest.raises(carbo.DataError, match=r"initial.*constraint"):
        cheap(binary(2, lambda p: p["x0"]), initial_points=[{"x0": False, "x1": True}])
    with pytest.raises(carbo.SpaceError, match="y"):
        cheap(binary(2), initial_points=[{"x0": False, "y": True}])


# ---------------------------------------------------------------- pending points


@both_presets
def test_eight_at_once_are_eight_different_sensible_points(preset: str) -> None:
    """On the Hamming distance to a target in {0,1}^16 a random point scores 8 with standard deviation 2, so the mean
    of four random batches of eight is 8 with standard deviation 2/sqrt(32) = 0.35: below 6.5 by chance in 1e-5 of
    all cases. The optimiser's batches, given 20 random evaluations, have a mean of about 5 (paper) and 3 (default).
    """
    target = np.random.default_rng(1).integers(0, 2, 16).astype(bool)
    values: list[float] = []
    for seed in range(4):
        opt = cheap(binary(16), preset, seed=seed, initial=20)

        def hamming(params: Params) -> float:
            return float(np.sum(target != np.array(list(params.values()))))

        first = opt.ask(20)
        opt.tell(first, [hamming(p) for p in first])
        batch = opt.ask(8)
        assert len(batch) == 8
        assert distinct(first + batch)
        values += [hamming(p) for p in batch]
    assert np.mean(values) < 6.5


def test_fantasies_keep_a_batch_from_crowding_where_the_first_point_already_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The upper half of a path of 40 is unknown and the bound wants its end, 39. A batch without fantasies takes 38
    next, a value that 39 will practically tell; one with fantasies goes elsewhere. The twin must fail, or this
    test says nothing. Over seeds 0 to 19 the counts were 0 and 20 of 20.
    """
    known = range(20)

    def adventurous(mu: Floats, sd: Floats, best: Floats) -> Floats:
        return np.asarray(np.mean(10.0 * sd - mu, axis=0))

    def crowded() -> int:
        count = 0
        for seed in range(6):
            opt = cheap(
                Space({"a": Integer(0, 39)}), "paper", seed=seed, samples=4, burn_in=20, acquisition=adventurous
            )
            opt.tell([{"a": a} for a in known], [0.1 * (a - 10.0) ** 2 for a in known])
            count += {38, 39} <= {p["a"] for p in opt.ask(3)}
        return count

    assert crowded() <= 1
    monkeypatch.setattr(Ensemble, "extend", lambda self, rng, rows: self)
    assert crowded() >= 5


@both_presets
@both_ways
def test_tells_may_come_in_any_order(preset: str, exhaustive: int) -> None:
    rng = np.random.default_rng(7)
    opt = cheap(binary(6), preset, exhaustive=exhaustive)
    waiting, seen = opt.ask(4), []
    for _ in range(20):
        seen.append(waiting.pop(int(rng.integers(len(waiting)))))
        opt.tell(seen[-1], None if rng.random() < 0.2 else smooth(seen[-1]))
        waiting.append(opt.ask())
        assert sorted(map(key, opt.pending)) == sorted(map(key, waiting))
        assert distinct(seen + waiting)
    assert len(opt) == 20
    assert opt.history()[0] == seen


@both_presets
def test_pending_points_are_those_asked_and_not_told(preset: str) -> None:
    opt = cheap(binary(4), preset)
    assert opt.pending == []
    a, b, c = opt.ask(3)
    assert opt.pending == [a, b, c]
    opt.tell(b, 1.0)
    assert opt.pending == [a, c]
    opt.forget(a)
    assert opt.pending == [c]


def test_ask_gives_one_dict_and_ask_n_a_list() -> None:
    opt = cheap(binary(4))
    assert isinstance(opt.ask(), dict)
    assert isinstance(opt.ask(1), list)
    many: Any = np.int64(2)
    assert len(opt.ask(many)) == 2


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "2"])
def test_a_count_that_is_none_is_refused(n: Any) -> None:
    opt = cheap(binary(4))
    with pytest.raises(carbo.DataError, match="whole number"):
        opt.ask(n)
    assert opt.pending == []


# ---------------------------------------------------------------- the end of a space

SMALL_SPACES: dict[str, Space] = {
    "eight": binary(3),
    "mixed": Space({"a": Ordinal([1, 2, 3]), "b": Categorical(["x", "y", "z"]), "c": Binary()}),
    "constrained": Space({"a": Integer(0, 4), "b": Integer(0, 4)}, lambda p: p["a"] < p["b"]),
    "one of many": binary(9, lambda p: sum(p.values()) == 1),
    "islands": binary(9, lambda p: len(set(p.values())) == 1),
    "one permitted": binary(4, lambda p: all(p.values())),
    "one point": Space({"a": Categorical(["only"]), "b": Integer(3, 3)}),
}


def permitted(space: Space) -> set[tuple[tuple[str, Any], ...]]:
    """Permitted points by brute force over the choices, without the space's methods."""
    points: list[Params] = [{}]
    for name, variable in space.variables.items():
        points = [p | {name: choice} for p in points for choice in variable.choices]
    return {key(p) for p in points if space.constraint is None or space.constraint(p)}


@both_presets
@both_ways
@pytest.mark.parametrize("name", SMALL_SPACES)
def test_every_permitted_point_is_visited_once_and_then_the_space_is_exhausted(
    preset: str, exhaustive: int, name: str
) -> None:
    space = SMALL_SPACES[name]
    asked = until_exhausted(cheap(space, preset, exhaustive=exhaustive, initial=4), rough)
    assert distinct(asked)
    assert {key(p) for p in asked} == permitted(space)


@both_presets
@both_ways
def test_pending_points_count_as_used_up(preset: str, exhaustive: int) -> None:
    opt = cheap(SMALL_SPACES["constrained"], preset, exhaustive=exhaustive)
    run(opt, smooth_of_two, 6)
    last = opt.ask(8)  # only four are left
    assert len(last) == 4
    for _ in range(2):
        with pytest.raises(carbo.SpaceExhausted, match="replicate"):
            opt.ask()
    assert opt.pending == last
    opt.forget(last[1])
    assert opt.ask() == last[1]
    opt.tell(last[2], None)
    with pytest.raises(carbo.SpaceExhausted):
        opt.ask(2)


def smooth_of_two(params: Params) -> float:
    return float((params["a"] - 1) ** 2 + params["b"])


@both_presets
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_failures_use_a_space_up_like_successes(preset: str, share: float) -> None:
    asked = until_exhausted(cheap(binary(4), preset), lambda p: None if rough(p) < 1_000 * share else rough(p), batch=3)
    assert len(asked) == 16
    assert distinct(asked)


@both_presets
def test_a_rare_constraint_in_a_huge_space_is_used_up_too(preset: str) -> None:
    """18 permitted points among a quarter million: neither listing nor plain rejection finds them."""
    asked = until_exhausted(cheap(binary(18, lambda p: sum(p.values()) == 1), preset), rough, batch=3)
    assert distinct(asked)
    assert len(asked) == 18


def test_exhaustion_is_an_error_of_carbo_and_no_value_error() -> None:
    assert issubclass(carbo.SpaceExhausted, carbo.CarboError)
    assert not issubclass(carbo.SpaceExhausted, ValueError)


# ---------------------------------------------------------------- replicates


@both_presets
@both_ways
def test_replicates_on_request_only(preset: str, exhaustive: int) -> None:
    rng = np.random.default_rng(0)
    opt = cheap(binary(2), preset, exhaustive=exhaustive, replicate=True, initial=2)
    asked = run(opt, lambda p: smooth(p) + float(rng.normal()), 14)
    assert len({key(p) for p in asked}) <= 4 < len(asked)
    assert distinct(opt.ask(4)), "a batch holds different points all the same"
    with pytest.raises(carbo.SpaceExhausted):  # all four are pending
        opt.ask()


@both_presets
@both_ways
def test_failed_points_are_not_replicated(preset: str, exhaustive: int) -> None:
    opt = cheap(binary(3), preset, exhaustive=exhaustive, replicate=True)
    asked = run(opt, lambda p: None if p["x0"] else smooth(p), 12)
    failed = [key(p) for p in asked if p["x0"]]
    assert len(failed) == len(set(failed))


@both_presets
def test_at_most_every_other_suggestion_is_a_replicate_while_others_are_left(preset: str) -> None:
    # Nothing beats the best of the first points, and the rest is noise: the model has no reason to leave it.
    rng = np.random.default_rng(3)
    opt = cheap(binary(6), preset, replicate=True, initial=4)
    asked = [key(p) for p in run(opt, lambda p: 10.0 * sum(p.values()) + float(rng.normal()), 40)]
    repeats = [p in asked[:i] for i, p in enumerate(asked)]
    assert any(repeats)
    assert not any(now and before for before, now in itertools.pairwise(repeats))


@both_presets
def test_replicates_are_counted_by_suggestions_whatever_is_under_way_or_told(preset: str) -> None:
    rng = np.random.default_rng(3)
    opt = cheap(binary(6), preset, replicate=True, initial=4)
    told, repeats = set(), []
    opt.ask()  # a slow worker holds on to this one
    for _ in range(24):
        (point,) = opt.ask(1)
        repeats.append(key(point) in told)
        told.add(key(point))
        opt.tell([point, point], (10.0 * sum(point.values()) + rng.normal(size=2)).tolist())  # two values each
    assert any(repeats)
    assert not any(now and before for before, now in itertools.pairwise(repeats))
    batch = [key(p) in told for p in opt.ask(4)]
    assert not any(now and before for before, now in itertools.pairwise([repeats[-1], *batch]))


def test_a_restored_optimizer_knows_whether_it_repeated_a_point() -> None:
    rng = np.random.default_rng(3)
    opt = cheap(binary(6), "default", replicate=True, initial=4)
    for _ in range(20):
        restored = Optimizer.from_state(binary(6), json.loads(json.dumps(opt.state())))
        point = opt.ask()
        assert restored.ask() == point
        opt.tell(point, 10.0 * sum(point.values()) + float(rng.normal()))


def test_initial_points_may_be_given_several_times() -> None:
    point = {f"x{i}": 0 for i in range(3)}
    opt = Optimizer(binary(3), seed=0, initial=[point] * 3, replicate=True)
    for _ in range(3):
        asked = opt.ask()
        assert asked == point
        opt.tell(asked, 1.0)


def test_replicate_may_be_set_in_the_settings_and_overridden() -> None:
    assert Optimizer(binary(2), settings={"replicate": True}).settings.replicate
    assert not Optimizer(binary(2), settings={"replicate": True}, replicate=False).settings.replicate
    assert not Optimizer(binary(2)).settings.replicate


# ---------------------------------------------------------------- constraints

CONSTRAINTS: dict[str, tuple[int, Callable[[Params], bool]]] = {
    "common, small": (6, lambda p: p["x0"] or p["x1"]),
    "common, large": (20, lambda p: p["x0"] != p["x1"] or p["x2"]),
    "half, large": (20, lambda p: sum(p.values()) % 2 == 0),
    "rare, listable": (14, lambda p: sum(p.values()) == 2),
    "rare, large": (20, lambda p: sum(p.values()) == 3),
}


@both_presets
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_no_suggestion_violates_the_constraint(preset: str, name: str) -> None:
    """Suggestions of the initial phase, by the model, near the best, in batches with fantasies, and after failures."""
    d, constraint = CONSTRAINTS[name]
    opt = cheap(binary(d, constraint), preset, initial=3)
    asked: list[Params] = []
    for n in (3, 1, 3, 2):
        some = opt.ask(n)
        assert len(some) == n
        asked += some
        opt.tell(some[1:], [None if p["x0"] else smooth(p) for p in some[1:]])
        opt.tell(some[0], smooth(some[0]))
    assert all(constraint(p) for p in asked)
    assert distinct(asked)


@both_presets
@pytest.mark.parametrize("acquisition", ["ucb"])
def test_no_acquisition_violates_the_constraint(preset: str, acquisition: str) -> None:
    d, constraint = CONSTRAINTS["rare, listable"]
    opt = cheap(binary(d, constraint), preset, acquisition=acquisition)
    first = opt.ask(5)
    opt.tell(first, [smooth(p) for p in first])
    assert all(constraint(p) for p in first + opt.ask(3))


@both_presets
@both_ways
def test_a_forbidden_point_may_be_told_and_even_be_the_best(preset: str, exhaustive: int) -> None:
    """The user measured the point before the constraint: it is data, and the search does not stay near it."""
    space = binary(8, lambda p: not p["x0"])
    opt = cheap(space, preset, exhaustive=exhaustive)
    some = opt.ask(6)
    opt.tell(some, [smooth(p) for p in some])
    opt.tell(dict.fromkeys(space.names, True), -100.0)
    assert not any(p["x0"] for p in opt.ask(4))


# ---------------------------------------------------------------- failures


FAILURES = [math.nan, math.inf, -math.inf, np.nan, np.float32("inf"), np.array(np.nan), np.array([-np.inf]), None]


@both_presets
def test_all_failures_are_the_same(preset: str) -> None:
    opt, twin = cheap(binary(6), preset), cheap(binary(6), preset)
    for i in range(2 * len(FAILURES)):
        params = opt.ask()
        assert twin.ask() == params
        opt.tell(params, FAILURES[i // 2] if i % 2 else smooth(params))
        twin.tell(params, None if i % 2 else smooth(params))
    assert np.isnan(opt.history()[1]).tolist() == [False, True] * len(FAILURES)
    assert opt.best == twin.best
    assert opt.best is not None
    assert math.isfinite(opt.best.value)


@pytest.mark.parametrize(("preset", "acquisition"), [("default", "ucb"), ("default", "ei")])
def test_the_model_learns_to_stay_away_from_failures(
    preset: str, acquisition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every point with x0 fails. Of 40 suggestions made by the model, few have x0; of a twin's that is blind to
    failures, about half.

    Over seeds 0 to 9 the shares were at most 1% and 52%. Were the first 3%, more than 6 of 40 would have probability
    2e-4; at 50% fewer than 10 of 40 have 3e-4, and a model as blind as the twin shows at most 6 of 40 in 4e-6.
    """

    def share() -> int:
        count = 0
        for seed in range(2):
            opt = cheap(binary(8), preset, seed=seed, initial=8, acquisition=acquisition, warp="auto")
            asked = run(opt, lambda p: None if p["x0"] else rough(p), 28)
            count += sum(p["x0"] for p in asked[8:])
        return count

    assert share() <= 6
    monkeypatch.setattr(
        Surrogate, "_fit_failures", lambda self, rng, chain, observations: (chain, None)
    )  # the model of failures is left out
    assert share() >= 10


@both_presets
def test_a_run_of_failures_only_goes_on(preset: str) -> None:
    opt = cheap(binary(5), preset)
    assert distinct(run(opt, lambda p: None, 12))
    assert opt.best is None
    assert np.isnan(opt.history()[1]).all()
    assert distinct(opt.ask(8))
    opt.tell(opt.pending[0], 3.0)  # the first success
    assert opt.best is not None
    assert opt.ask() in opt.pending


# ---------------------------------------------------------------- tell


@both_presets
@pytest.mark.parametrize(
    "value", [3, 3.0, np.float32(3), np.float64(3), np.int8(3), np.array(3.0), np.array([3.0])], ids=repr
)
def test_any_real_number_is_a_value(preset: str, value: Any) -> None:
    opt = cheap(binary(2), preset)
    opt.tell(opt.ask(), value)
    assert opt.best is not None
    assert opt.best.value == 3.0
    assert type(opt.best.value) is float


GOOD: Params = {"x0": True, "x1": False}


@pytest.mark.parametrize(
    "value", [True, False, np.True_, "1", "nan", b"1", 1j, [1.0], {}, Ellipsis, np.zeros(2)], ids=repr
)
def test_what_is_no_number_is_refused_and_changes_nothing(value: Any) -> None:
    opt = cheap(binary(2))
    pending = opt.ask()
    before = opt.state()
    with pytest.raises(carbo.DataError, match="number"):
        opt.tell(pending, value)
    with pytest.raises(carbo.DataError, match="number"):
        opt.tell([GOOD, pending], [1.0, value])
    assert opt.state() == before


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"x0": True}, "x1"),
        ({"x0": True, "x1": True, "y": 1}, "y"),
        ({"x0": True, "y": True}, "y"),
        ({"x0": True, "x1": 2}, "x1"),
        ({"x0": True, "x1": "False"}, "x1"),
        ({"x0": True, "x1": [False]}, "x1"),
        ({"x0": True, "x1": None}, "x1"),
        ({}, "x0"),
    ],
    ids=repr,
)
def test_unknown_names_and_values_are_refused_by_name_and_change_nothing(params: Params, named: str) -> None:
    opt = cheap(binary(2))
    opt.tell(opt.ask(), 1.0)
    opt.ask()
    before = opt.state()
    with pytest.raises(carbo.SpaceError, match=f"'{named}'"):
        opt.tell(params, 1.0)
    with pytest.raises(carbo.SpaceError, match=f"'{named}'"):
        opt.tell([GOOD, GOOD, params], [1.0, 2.0, 3.0])
    with pytest.raises(carbo.SpaceError, match=f"'{named}'"):
        opt.predict(params)
    assert opt.state() == before


@pytest.mark.parametrize("params", [None, 5, "x0", [5], ["x0"]], ids=repr)
def test_params_that_are_no_dict_are_refused(params: Any) -> None:
    opt = cheap(binary(2))
    with pytest.raises(carbo.CarboError, match="expected"):
        opt.tell(params, [1.0] if isinstance(params, list) else 1.0)
    assert len(opt) == 0


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0], [], 1.0, None], ids=repr)
def test_as_many_values_as_points(values: Any) -> None:
    opt = cheap(binary(2))
    some = opt.ask(2)
    with pytest.raises(carbo.DataError, match="values"):
        opt.tell(some, values)
    assert len(opt) == 0
    assert opt.pending == some


def test_an_integer_beyond_every_float_is_no_crash() -> None:
    """The value is refused as no number, or it is a failure like infinity."""
    opt = cheap(binary(2))
    try:
        opt.tell(GOOD, 10**400)
    except carbo.DataError:
        assert len(opt) == 0
    else:
        assert opt.best is None


def test_lists_arrays_and_tuples_are_told_like_single_points() -> None:
    one, many, arrays = cheap(binary(4)), cheap(binary(4)), cheap(binary(4))
    points = one.ask(6)
    assert many.ask(6) == arrays.ask(6) == points
    values = [1.0, None, 3.0, 0.5, math.inf, 2.0]
    for params, value in zip(points, values, strict=True):
        one.tell(params, value)
    many.tell(tuple(points), values)
    arrays.tell(points, np.array([np.nan if v is None else v for v in values]))
    assert one.state() == many.state() == arrays.state()
    assert one.ask(2) == many.ask(2) == arrays.ask(2)


def test_an_empty_tell_is_nothing() -> None:
    opt = cheap(binary(2))
    opt.tell([], [])
    assert len(opt) == 0


def test_numpy_and_equal_values_name_the_same_point() -> None:
    opt = cheap(Space({"n": Integer(0, 3), "f": carbo.Float(0.0, 1.0, points=11)}))
    opt.tell({"n": np.int64(2), "f": 0.1 + 0.2}, np.float64(1.0))
    assert opt.best == ({"n": 2, "f": opt.space.variables["f"].choices[3]}, 1.0)
    assert type(opt.history()[0][0]["n"]) is int


def test_told_and_returned_dicts_are_the_users_own() -> None:
    opt = cheap(binary(3))
    params = opt.ask()
    told = dict(params)
    opt.tell(told, 1.0)
    told["x0"] = params["x1"] = "changed"
    points, values = opt.history()
    points[0]["x0"] = "changed"
    values[:] = 7.0
    assert opt.best is not None
    assert opt.best.value == 1.0
    assert set(opt.best.params.values()) <= {False, True}


# ---------------------------------------------------------------- best


def test_best_is_the_smallest_value_and_where_it_was() -> None:
    opt = cheap(binary(3))
    assert opt.best is None
    points = opt.ask(5)
    opt.tell(points, [2.0, None, -1.0, 5.0, -math.inf])
    assert opt.best == carbo.Best(points[2], -1.0)
    opt.tell(points[0], -3)
    assert opt.best == (points[0], -3.0)
    assert len(opt) == 6


# ---------------------------------------------------------------- predict


def sine(params: Params) -> float:
    return 1_000.0 + 10.0 * math.sin(params["a"] / 4.0) + (5.0 if params["b"] == "y" else 0.0)


@both_presets
@pytest.mark.parametrize("seed", range(3))
def test_predictions_interpolate_on_the_users_scale_and_doubt_what_is_far(preset: str, seed: int) -> None:
    """24 noiseless values between 990 and 1015: within 0.1 of them and sure of it at the data, with a standard
    deviation of some units at the other end of `a` (noise is inferred, so the data are met roughly).
    """
    opt = cheap(
        Space({"a": Integer(0, 20), "b": Categorical(["x", "y", "z"])}), preset, seed=seed, samples=5, burn_in=20
    )
    known = [{"a": a, "b": b} for a in range(12) for b in "xy"]
    opt.tell(known, [sine(p) for p in known])
    mean, std = opt.predict(known)
    assert mean.shape == std.shape == (24,)
    np.testing.assert_allclose(mean, [sine(p) for p in known], atol=0.1)
    far_mean, far_std = opt.predict([{"a": 20, "b": "z"}, {"a": 19, "b": "x"}])
    assert np.all(std < 0.5)
    assert np.all(far_std > 1.0)
    assert np.all(np.abs(far_mean - 1_000.0) < 50.0)


def test_one_prediction_is_two_floats_and_the_same_as_in_a_list() -> None:
    opt = cheap(binary(4))
    points = run(opt, smooth, 7)
    mean, std = opt.predict(points[0])
    assert type(mean) is float
    assert type(std) is float
    means, stds = opt.predict(points)
    np.testing.assert_allclose((mean, std), (means[0], stds[0]), rtol=1e-9)
    assert [len(part) for part in opt.predict([])] == [0, 0]


def test_a_model_of_nothing_is_refused() -> None:
    opt = cheap(binary(3))
    opt.tell(opt.ask(), None)
    for question in (lambda: opt.predict(opt.ask()), opt.relevance):
        with pytest.raises(carbo.DataError, match="successful"):
            question()


@both_presets
@pytest.mark.parametrize("told", [1, 3, 9])
def test_looking_changes_nothing(preset: str, told: int) -> None:
    """Before the model has been asked, in the initial phase, and after."""
    opt, twin = cheap(binary(7), preset), cheap(binary(7), preset)
    for each in (opt, twin):
        run(each, lambda p: None if p["x0"] and p["x1"] and p["x2"] else smooth(p), told)
        each.tell(dict.fromkeys(each.space.names, False), 0.25)
    before = copy.deepcopy(opt.state())
    for _ in range(2):
        opt.predict(opt.history()[0])
        opt.predict(opt.history()[0][0])
        opt.relevance()
        assert opt.best is not None
        assert opt.state() == before
    assert opt.predict(GOOD_OF_SEVEN) == twin.predict(GOOD_OF_SEVEN)
    assert opt.ask(3) == twin.ask(3)


GOOD_OF_SEVEN: Params = {f"x{i}": i % 2 == 0 for i in range(7)}


# ---------------------------------------------------------------- relevance


@both_presets
@pytest.mark.parametrize("seed", range(3))
def test_relevance_finds_the_two_variables_of_ten(preset: str, seed: int) -> None:
    """3 a - 2 b + 4 a b over bits is 2.5 s + s t + a constant over signs s and t: the exact total effects are 1 for a
    and 1 / 7.25 for b. Estimated from 256 rows by Jansen's formula the first has a standard error of 0.087 and the
    second of 0.009; four of the former, and 0.1 for both errors of the latter, are allowed.
    """
    space = binary(10)
    opt = cheap(space, preset, seed=seed, samples=5, burn_in=20)
    known = space.decode_many(space.random_rows(np.random.default_rng(seed), 40))
    opt.tell(known, [3.0 * p["x3"] - 2.0 * p["x7"] + 4.0 * p["x3"] * p["x7"] for p in known])
    report = opt.relevance()
    assert set(report.variables) == set(space.names)
    assert list(report.variables)[:2] == ["x3", "x7"], "largest first"
    x3, x7 = report.variables["x3"], report.variables["x7"]
    assert x3.mean == pytest.approx(1.0, abs=0.35)
    assert x7.mean == pytest.approx(1 / 7.25, abs=0.1)
    assert all(share.mean < 0.02 for name, share in report.variables.items() if name not in ("x3", "x7"))
    assert all(0.0 <= s.low <= s.high for s in report.variables.values())
    if preset == "paper":
        assert report.orders is None
    else:
        assert report.orders is not None
        assert list(report.orders) == ["1", "2", "3"]
        assert sum(report.orders.values()) == pytest.approx(1.0)
        assert report.orders["3"] < 0.2 < report.orders["1"]
    assert "x3" in str(report)
    assert ("order" in str(report)) == (preset == "default")


@both_presets
@pytest.mark.parametrize("value", [0.0, 5.0])
def test_nothing_is_relevant_to_a_constant(preset: str, value: float) -> None:
    """Predictions are useless here, but they are numbers."""
    opt = cheap(Space({"a": Integer(0, 5), "b": Categorical(["only"]), "c": Binary()}), preset)
    run(opt, lambda p: value, 7)
    report = opt.relevance()
    assert report.variables["b"] == (0.0, 0.0, 0.0)
    for share in report.variables.values():
        assert 0.0 <= share.mean <= 3.0


# ---------------------------------------------------------------- state


def before_any_tell(opt: Optimizer) -> None:
    pass


def with_initial_points_left(opt: Optimizer) -> None:
    run(opt, smooth, 2)


def in_the_initial_phase(opt: Optimizer) -> None:
    run(opt, smooth, 4)


def at_the_end_of_the_initial_phase(opt: Optimizer) -> None:
    run(opt, smooth, 5)


def with_a_chain(opt: Optimizer) -> None:
    run(opt, smooth, 8)


def with_pending(opt: Optimizer) -> None:
    run(opt, smooth, 6)
    opt.ask(3)
    opt.tell(opt.pending[1], 0.1)


def pending_alone(opt: Optimizer) -> None:
    opt.ask(3)


def after_failures(opt: Optimizer) -> None:
    run(opt, lambda p: None if p["x1"] else smooth(p), 9)


def after_failures_alone(opt: Optimizer) -> None:
    run(opt, lambda p: math.nan, 7)


PHASES = [
    before_any_tell,
    with_initial_points_left,
    in_the_initial_phase,
    at_the_end_of_the_initial_phase,
    with_a_chain,
    with_pending,
    pending_alone,
    after_failures,
    after_failures_alone,
]


@both_presets
@pytest.mark.parametrize(
    ("phase", "exhaustive"),
    [(phase, SEARCHED) for phase in PHASES] + [(with_pending, LISTED), (after_failures, LISTED)],
)
def test_a_restored_optimiser_makes_the_same_suggestions(
    preset: str, phase: Callable[[Optimizer], None], exhaustive: int
) -> None:
    space = binary(7, lambda p: p["x5"] or not p["x6"])
    first = space.decode_many(space.all_rows()[[3, 40, 77]]) if phase is with_initial_points_left else ()
    opt = cheap(space, preset, exhaustive=exhaustive, initial_points=first, warp="auto")
    phase(opt)
    state = opt.state()
    text = json.dumps(state, allow_nan=False)
    assert opt.state() == state, "saving changes nothing"
    restored = Optimizer.from_state(binary(7, lambda p: p["x5"] or not p["x6"]), json.loads(text))
    assert json.dumps(restored.state()) == text
    assert restored.settings == opt.settings
    assert (restored.best, restored.pending, len(restored)) == (opt.best, opt.pending, len(opt))
    for turn in range(3):
        params = opt.ask()
        assert restored.ask() == params
        value = None if turn == 1 else smooth(params)
        opt.tell(params, value)
        restored.tell(params, value)
    assert restored.ask(2) == opt.ask(2)
    assert restored.state() == opt.state()


def test_a_state_is_a_snapshot() -> None:
    opt = cheap(binary(5))
    run(opt, smooth, 6)
    state = opt.state()
    kept = copy.deepcopy(state)
    run(opt, smooth, 3)
    opt.ask(2)
    assert state == kept


@both_presets
def test_a_state_written_by_one_process_goes_on_in_another(preset: str) -> None:
    opt = cheap(binary(7), preset)
    run(opt, lambda p: None if p["x1"] else smooth(p), 9)
    text = json.dumps(opt.state())
    code = (
        "import json, sys, carbo\n"
        "space = carbo.Space({f'x{i}': carbo.Binary() for i in range(7)})\n"
        "opt = carbo.Optimizer.from_state(space, json.load(sys.stdin))\n"
        "print(json.dumps(opt.ask(5)))\n"
    )
    assert json.loads(fresh_process(code, "3", text)) == opt.ask(5)


@functools.cache
def saved(preset: str = "default") -> dict[str, Any]:
    """A whole state, with pending points and failures; not to be changed."""
    opt = cheap(binary(4), preset)
    run(opt, lambda p: None if p["x1"] and p["x2"] else smooth(p), 8)
    opt.ask(2)
    state: dict[str, Any] = json.loads(json.dumps(opt.state()))
    return state


@pytest.mark.parametrize("version", [0, STATE_VERSION - 1, STATE_VERSION + 1, str(STATE_VERSION), None])
def test_a_state_of_another_version_is_refused(version: Any) -> None:
    with pytest.raises(carbo.StateError, match="version"):
        Optimizer.from_state(binary(4), saved() | {"version": version})


@pytest.mark.parametrize("state", [None, [], "state", {}, 3])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(carbo.StateError, match="version"):
        Optimizer.from_state(binary(4), state)


@pytest.mark.parametrize(
    "space",
    [
        binary(5),
        Space({f"y{i}": Binary() for i in range(4)}),
        Space({f"x{i}": Binary() for i in (1, 0, 2, 3)}),
        Space({f"x{i}": Integer(0, 1) for i in range(4)}),
        binary(4, lambda p: p["x0"] or p["x1"]),
    ],
    ids=["more", "other names", "other order", "other kinds", "a constraint more"],
)
def test_a_state_of_another_space_is_refused(space: Space) -> None:
    with pytest.raises(carbo.StateError, match="space"):
        Optimizer.from_state(space, saved())


@both_presets
def test_a_state_with_a_part_missing_is_refused(preset: str) -> None:
    whole = saved(preset)
    for part in whole:
        with pytest.raises(carbo.StateError):
            Optimizer.from_state(binary(4), {k: v for k, v in whole.items() if k != part})
    for part in whole["generator"]:
        damaged = whole | {"generator": {k: v for k, v in whole["generator"].items() if k != part}}
        with pytest.raises(carbo.StateError):
            Optimizer.from_state(binary(4), damaged)
    for part in whole["chain"]:
        damaged = whole | {"chain": {k: v for k, v in whole["chain"].items() if k != part}}
        with pytest.raises(carbo.StateError):
            Optimizer.from_state(binary(4), damaged)


def dig(state: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The state with another value at `path`."""
    state = copy.deepcopy(state)
    inner: Any = state
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return state


DAMAGES: list[tuple[tuple[Any, ...], Any]] = [
    (("rows",), None),
    (("rows",), []),
    (("rows", 0), []),
    (("rows", 0), [0, 1]),
    (("rows", 0), "0110"),
    (("rows", 0, 1), 2),
    (("rows", 0, 1), -1),
    (("rows", 0, 1), 0.5),
    (("rows", 0, 1), None),
    (("values",), []),
    (("values", 0), "one"),
    (("values",), [1.0]),
    (("pending", 0), [0]),
    (("pending", 0, 0), 7),
    (("queue",), [[0]]),
    (("queue",), [[0, 0, 0, 9]]),
    (("settings",), None),
    (("generator",), None),
    (("generator", "bit_generator"), "MT19937"),
    (("generator", "state"), None),
    (("generator", "state"), []),
    (("generator", "state", "state"), "x"),
    (("generator", "state", "state"), "-1"),
    (("chain",), 5),
    (("chain", "mean"), "x"),
    (("chain", "mean"), None),
    (("chain", "log_w"), []),
    (("chain", "log_beta"), [0.0]),
    (("failure_chain", "log_relevance"), [[0.0]]),
]


@both_presets
@pytest.mark.parametrize(("path", "value"), DAMAGES, ids=repr)
def test_a_damaged_state_is_refused(preset: str, path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(carbo.StateError):
        Optimizer.from_state(binary(4), dig(saved(preset), path, value))


@pytest.mark.parametrize(("name", "value"), [("kernel", "other"), ("kernels", "product"), ("samples", 0)])
def test_a_state_with_a_setting_that_is_none_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises((carbo.StateError, carbo.SettingsError), match=name):
        Optimizer.from_state(binary(4), dig(saved(), ("settings", name), value))


def test_an_optimiser_with_the_users_own_acquisition_can_be_saved_and_restored_with_it() -> None:
    """A function cannot be saved. Everything else can, and the user passes the function again."""

    def lowest(mu: Any, sd: Any, best: Any) -> Any:
        return -mu.mean(axis=0)

    opt = cheap(binary(6), acquisition=lowest)
    run(opt, smooth, 8)
    state = json.loads(json.dumps(opt.state()))
    restored = Optimizer.from_state(binary(6), state, settings=opt.settings)
    assert restored.ask(5) == opt.ask(5)


# ---------------------------------------------------------------- seeds

TRANSCRIPT = """
import json, sys, zlib
import carbo
from carbo.numerics.types import Floats

def transcript(preset):
    space = carbo.Space(
        {"a": carbo.Categorical(["p", "q", "r"]), "b": carbo.Ordinal([1, 2, 4]), "c": carbo.Integer(0, 9),
         "d": carbo.Binary(), "e": carbo.Float(0.0, 1.0, 7)},
        lambda p: p["d"] or p["c"] < 7,
    )
    settings = dict(samples=2, burn_in=5, random_starts=100, spray_starts=20, climbers=3, initial=5, exhaustive=0)
    opt = carbo.Optimizer(space, seed=11, preset=preset, settings=settings)
    asked = []
    for i in range(7):
        for params in opt.ask(1 + i % 2):
            asked.append(params)
            value = zlib.crc32(json.dumps(params).encode()) % 100
            opt.tell(params, None if value < 20 else value)
    return [asked, opt.predict(asked)[0].tolist(), list(opt.relevance().variables)]
"""


def fresh_process(code: str, hash_seed: str, text: str = "") -> str:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_same_seed_same_suggestions_in_any_process() -> None:
    scope: dict[str, Any] = {}
    exec(TRANSCRIPT, scope)
    here = json.loads(json.dumps([scope["transcript"](preset) for preset in PRESETS]))
    code = TRANSCRIPT + f"print(json.dumps([transcript(preset) for preset in {PRESETS}]))"
    for mine, (asked, means, order) in zip(here, json.loads(fresh_process(code, "1")), strict=True):
        assert asked == mine[0]
        np.testing.assert_allclose(means, mine[1], rtol=1e-9)
        assert order == mine[2]


@both_presets
def test_different_seeds_differ_and_equal_ones_do_not(preset: str) -> None:
    """Five random points of 2^12 agree between two seeds with probability 2^-60."""
    runs = [[key(p) for p in run(cheap(binary(12), preset, seed=seed), smooth, 7)] for seed in (0, 1, 2, 3, 3)]
    assert len(set(map(tuple, runs))) == 4
    assert runs[3] == runs[4]


def test_without_a_seed_every_run_is_its_own() -> None:
    settings = carbo.Settings(**CHEAP)
    runs = {tuple(map(key, Optimizer(binary(16), settings=settings).ask(4))) for _ in range(3)}
    assert len(runs) == 3


def test_numpys_global_generator_is_neither_used_nor_changed() -> None:
    runs = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
        runs.append(run(cheap(binary(6)), smooth, 8))
        assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002
    assert runs[0] == runs[1]


# ---------------------------------------------------------------- construction


def test_a_space_is_asked_for_by_name() -> None:
    not_a_space: Any = {"a": Binary()}
    with pytest.raises(carbo.DataError, match=r"carbo\.Space"):
        Optimizer(not_a_space)


def test_a_wrong_preset_or_setting_is_refused_by_name() -> None:
    wrong: Any = 3
    with pytest.raises(carbo.SettingsError, match="default, paper"):
        Optimizer(binary(2), preset="papre")
    with pytest.raises(carbo.SettingsError, match="sample'"):
        Optimizer(binary(2), settings={"sample": 3})
    with pytest.raises(carbo.SettingsError, match="settings"):
        Optimizer(binary(2), settings=wrong)


def test_settings_change_the_preset_they_are_given_with() -> None:
    assert Optimizer(binary(2), preset="paper").settings == carbo.PAPER
    assert Optimizer(binary(2)).settings == carbo.DEFAULT
    changed = Optimizer(binary(2), preset="paper", settings={"samples": 3}).settings
    assert (changed.samples, changed.kernel) == (3, "product")
    assert Optimizer(binary(2), settings=changed).settings is changed


# Recommended


def test_the_recommended_point_is_the_tried_one_with_the_smallest_predicted_value() -> None:
    space = binary(6)
    opt = cheap(space, samples=4, burn_in=10)
    rng = np.random.default_rng(4)
    rows = space.random_rows(rng, 30)
    opt.tell(space.decode_many(rows), [None if row[0] and row[1] else float(row.sum() + rng.normal()) for row in rows])
    tried = [p for p, value in zip(*opt.history(), strict=True) if math.isfinite(value)]
    means = [opt.predict(p)[0] for p in tried]
    point, value = opt.recommend()
    assert point == tried[int(np.argmin(means))]
    assert value == pytest.approx(min(means))


def test_noise_flatters_the_best_point_more_than_the_recommended_one() -> None:
    """A sum over ten bits with noise of standard deviation 3, sixty sets of 60 evaluations. The true value of the best
    draw is that of a point taken for its luck; the recommended one is better on average: by 0.5 with a standard error
    of 0.15, so that another stream of draws would fail here once in 2,000 times. Recommending the best draw fails.
    """
    space = binary(10)
    weights = np.arange(1.0, 11.0) / 4
    taken = np.empty((60, 2))
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = space.random_rows(rng, 60)
        opt = cheap(space, seed=seed, samples=4, burn_in=20)
        opt.tell(space.decode_many(rows), (rows @ weights + rng.normal(0, 3, 60)).tolist())
        assert opt.best is not None
        taken[seed] = [space.encode(p) @ weights for p in (opt.best.params, opt.recommend().params)]
    lucky, recommended = taken.mean(axis=0)
    assert recommended < lucky


def test_nothing_is_recommended_before_anything_succeeded() -> None:
    opt = cheap(binary(3))
    opt.tell(opt.ask(), None)
    with pytest.raises(carbo.DataError, match="recommend"):
        opt.recommend()


@pytest.mark.parametrize("penalty", [1e20, 1e300])
def test_a_huge_value_for_what_does_not_work_hides_nothing(penalty: float) -> None:
    """Everything with x0 = 1 gets it. All of 10 seeds find the optimum, -4; none does where it counts in full."""
    space = binary(15)
    weights = np.arange(15) % 3 - 1

    def found(seed: int) -> bool:
        opt = Optimizer(space, seed=seed, settings={"initial": 10, "samples": 5, "burn_in": 20})
        for _ in range(40):
            row = space.encode(opt.ask())
            opt.tell(space.decode(row), penalty if row[0] else float(row @ weights + 2 * row[1] * row[2]))
        assert opt.best is not None
        return opt.best.value == -4.0

    assert sum(found(seed) for seed in range(3)) >= 2


def test_the_last_of_few_permitted_points_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly 2 of 24: 276 of 16,777,216 combinations, more than may be listed, and chance brings one of them only."""
    space = binary(24, constraint=lambda p: sum(p.values()) == 2)
    one = space.random_rows(np.random.default_rng(0), 1)
    monkeypatch.setattr(Space, "random_rows", lambda self, rng, n: np.repeat(one, n, axis=0))
    opt = Optimizer(space, seed=0, settings={"initial": 300})
    asked = [space.encode(p) for p in opt.ask(40)]
    assert len({tuple(row) for row in asked}) == 40
    assert all(row.sum() == 2 for row in asked)


@pytest.mark.parametrize("value", [np.timedelta64(3, "s"), [1.0, 2.0], {"loss": 1.0}, "x" * 500])
def test_a_value_that_is_no_number_is_refused_in_a_line(value: Any) -> None:
    opt = cheap(binary(3))
    with pytest.raises(carbo.DataError, match=r"^value: expected a number, .*; make one number of it$") as caught:
        opt.tell(opt.ask(), value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("given", [None, 3])
def test_predictions_for_what_is_no_point_are_refused(given: Any) -> None:
    opt = cheap(binary(3))
    opt.tell(opt.ask(), 1.0)
    with pytest.raises(carbo.SpaceError, match="params: expected a dict"):
        opt.predict(given)


# Patience
