"""CarboSampler as an Optuna user meets it: Optuna's own contract, values, failures, constraints, seeds, exhaustion."""

from __future__ import annotations

import logging
import math
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

import carbo
from carbo import Binary, CarboError, CarboSampler, Categorical, Integer, SettingsError, Space, SpaceError
from carbo.acquisition.policy import Request, propose
from carbo.engine import Engine
from carbo.integrations.columns import Column
from carbo.integrations.optuna.claims import suggestion_seconds
from carbo.integrations.optuna.space import Distributions
from carbo.settings import preset as carbo_preset
from carbo.surrogate.surrogate import Belief, Observations
from tests.presets import CHEAP, PRESETS

CHEAPEST = CHEAP | {"samples": 1, "burn_in": 2, "random_starts": 20, "exhaustive": 100}
SWITCHES: Distributions = {f"x{i}": CategoricalDistribution([False, True]) for i in range(4)}

Objective = Callable[[Trial], float]
Direction = Literal["minimize", "maximize"]
needs_set_constraint = pytest.mark.skipif(
    not hasattr(Trial, "set_constraint"), reason="trial.set_constraint came with Optuna 5"
)


def sampler(**arguments: Any) -> CarboSampler:
    chosen: dict[str, Any] = {"settings": CHEAPEST, "seed": 0} | arguments
    return CarboSampler(**chosen)


pytestmark = pytest.mark.usefixtures("quiet_optuna")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What the sampler logs, as text."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("optuna.carbo")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def run(objective: Objective, n: int, *, direction: Direction = "minimize", **arguments: Any) -> optuna.Study:
    study = optuna.create_study(sampler=sampler(**arguments), direction=direction)
    study.optimize(objective, n_trials=n)
    return study


def own(study: optuna.Study) -> CarboSampler:
    assert isinstance(study.sampler, CarboSampler)
    return study.sampler


def points(study: optuna.Study) -> list[tuple[Any, ...]]:
    return [tuple(sorted(t.params.items())) for t in study.trials]


def rough(trial: Trial) -> float:
    """Values of four switches that no model can foresee."""
    chosen = [trial.suggest_categorical(name, [False, True]) for name in SWITCHES]
    return float(zlib.crc32(repr(chosen).encode()) % 1_000)


def finished(params: dict[str, Any], space: Distributions, value: float | None = None, **more: Any) -> FrozenTrial:
    return create_trial(params=params, distributions=space, value=value, **more)


# ---------------------------------------------------------------- Optuna's contract


class TestContract(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """replicate=True, because the contract runs ten trials over a parameter of three values."""

    @pytest.fixture
    def sampler(self) -> Callable[[], CarboSampler]:
        return lambda: sampler(replicate=True, n_startup_trials=0, seed=None)


class TestContractFromSettings(SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], CarboSampler]:
        return lambda: sampler(preset="paper", search_space=SWITCHES)


def test_several_objectives_are_refused_in_one_line() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler())
    with pytest.raises(ValueError, match=r"^CarboSampler: expected a study of one objective, got 2; .*\Z"):
        study.optimize(lambda t: (t.suggest_float("x", 0, 1), 0.0), n_trials=1)


# ---------------------------------------------------------------- the door


def test_importing_carbo_does_not_import_optuna() -> None:
    code = "import sys, carbo; assert 'optuna' not in sys.modules; carbo.CarboSampler; assert 'optuna' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_optuna_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['optuna'] = None; import carbo\n"
        "try: carbo.CarboSampler\n"
        "except carbo.CarboError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said == "carbo.CarboSampler needs optuna, which is not installed: pip install 'carbo[tune]'\n"


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Sampler'"):
        carbo.Sampler  # noqa: B018


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"points": 0}, "points: expected whole numbers >= 1, got 0"),
        ({"points": {"x": 1.5}}, "points: expected whole numbers >= 1, got 1.5"),
        ({"ordinal": "size"}, "ordinal: expected a list of parameter names, got 'size'"),
        ({"graphs": [1]}, "graphs: expected graphs by parameter name, got list"),
        ({"constraint": 3}, "constraint: expected a function"),
        ({"search_space": {}}, "search_space: expected a carbo.Space, or distributions by name"),
        ({"search_space": {"x": [1, 2]}}, "search_space: expected an Optuna distribution for 'x', got [1, 2]"),
        ({"search_space": SWITCHES, "ordinal": ["y"]}, "ordinal: expected names of parameters, got 'y'"),
        ({"search_space": SWITCHES, "graphs": {"x0": [[0]]}}, "x0"),
        ({"search_space": SWITCHES, "constraint": lambda p: False}, "constraint: expected True for some"),
        ({"search_space": SWITCHES, "constraint": lambda p: p["z"]}, "constraint: expected True or False"),
        ({"search_space": carbo.Space({"b": carbo.Binary()}), "points": 5}, "search_space: expected a carbo.Space"),
        ({"n_startup_trials": -1}, "n_startup_trials: expected a whole number >= 0, got -1"),
        ({"seed": -1}, "seed: expected a whole number >= 0"),
        ({"preset": "best"}, "'preset'"),
        ({"settings": {"sample": 3}}, "'sample'"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_one_line(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(CarboError) as error:
        CarboSampler(**arguments)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_space_and_a_second_constraint_are_refused() -> None:
    space = carbo.Space({"b": carbo.Binary()}, lambda p: True)
    with pytest.raises(SpaceError, match="constraint: expected one"):
        CarboSampler(search_space=space, constraint=lambda p: True)


# ---------------------------------------------------------------- never twice, until nothing is left


@pytest.mark.parametrize("given", [True, False])
def test_every_point_comes_once_and_then_the_study_stops(given: bool, logged: list[str]) -> None:
    study = run(rough, 100, search_space=SWITCHES if given else None)
    assert len(set(points(study)[:16])) == 16
    assert len(study.trials) == 17  # the last repeats: inside a trial, Optuna knows no way to give nothing
    assert study.trials[16].params == study.best_params
    assert own(study).exhausted
    assert [line for line in logged if "under way" in line] == [
        "Of 16 combinations every permitted point has been evaluated or is under way: the study stops, and trial 16 "
        "repeats a point. replicate=True goes on with repeats."
    ]


def test_replicates_on_request(logged: list[str]) -> None:
    study = run(rough, 20, replicate=True)
    assert len(study.trials) == 20
    assert not logged


def test_trials_under_way_are_never_given_again() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SWITCHES))
    asked = [study.ask(SWITCHES).params for _ in range(16)]
    assert len({tuple(p.items()) for p in asked}) == 16


def test_asking_beyond_the_last_point_repeats_and_says_so() -> None:
    study = optuna.create_study(sampler=sampler(search_space={"b": CategoricalDistribution([0, 1])}))
    values = {0: 3.0, 1: 2.0}
    for _ in range(2):
        trial = study.ask(own(study).distributions)
        study.tell(trial, values[trial.params["b"]])
        assert not own(study).exhausted
    repeats = [study.ask(own(study).distributions) for _ in range(2)]
    assert [t.params["b"] for t in repeats] == [1, 0]  # the best one first, but not while it is under way
    assert own(study).exhausted
    study.tell(repeats[0], state=TrialState.FAIL)  # a repeat thrown away is no failure of its point
    assert own(study).optimizer(study).best == carbo.Best({"b": 1}, 2.0)
    assert np.isfinite(own(study).optimizer(study).history()[1]).all()


def test_an_enqueued_point_is_not_given_to_another_trial() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SWITCHES))
    running = {tuple(study.ask(SWITCHES).params.values()) for _ in range(15)}
    (free,) = set(product([False, True], repeat=4)) - running
    study.enqueue_trial(dict(zip(SWITCHES, free, strict=True)))
    frozen = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    study.sampler.sample_relative(study, frozen, SWITCHES)
    assert own(study).exhausted


# ---------------------------------------------------------------- what trials say


def told(study: optuna.Study) -> list[float]:
    """The values the model sees, in the order of the trials."""
    return [float(v) for v in own(study).optimizer(study).history()[1]]


def test_maximising_is_minimising_the_negative() -> None:
    def falling(trial: Trial) -> float:
        return -rough(trial)

    assert points(run(rough, 14, direction="maximize")) == points(run(falling, 14))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_model_sees_what_the_trials_say(direction: Direction) -> None:
    study = optuna.create_study(sampler=sampler(), direction=direction)
    space: Distributions = {"a": IntDistribution(0, 9)}
    sign = 1.0 if direction == "minimize" else -1.0
    values = [3.0, 1.0, 7.0]
    for i, value in enumerate(values):
        study.add_trial(finished({"a": i}, space, value))
    study.add_trial(finished({"a": 3}, space, state=TrialState.FAIL))
    study.add_trial(finished({"a": 4}, space, math.inf))
    study.add_trial(finished({"a": 5}, space, -math.inf))
    study.add_trial(finished({"a": 6}, space, state=TrialState.PRUNED))
    told_values = told(study)
    assert told_values[:3] == [sign * v for v in values]
    assert all(math.isnan(v) for v in told_values[3:])
    assert len(told_values) == 7


@pytest.mark.parametrize(
    ("direction", "intermediate", "seen"),
    [
        ("minimize", 2.0, 3.0),  # better than the median of 1, 3, 7: the median
        ("minimize", 5.0, 5.0),
        ("minimize", 99.0, 7.0),  # worse than the worst: the worst
        ("maximize", 2.0, -2.0),
        ("maximize", 5.0, -3.0),
        ("maximize", -99.0, -1.0),
        ("minimize", math.nan, math.nan),
    ],
)  # fmt: skip
def test_a_pruned_trial_lies_between_the_median_and_the_worst(
    direction: Direction, intermediate: float, seen: float
) -> None:
    study = optuna.create_study(sampler=sampler(), direction=direction)
    space: Distributions = {"a": IntDistribution(0, 9)}
    for i, value in enumerate([1.0, 3.0, 7.0]):
        study.add_trial(finished({"a": i}, space, value))
    study.add_trial(finished({"a": 3}, space, state=TrialState.PRUNED, intermediate_values={1: 0.0, 4: intermediate}))
    np.testing.assert_equal(told(study)[3], seen)


def test_without_a_completed_trial_a_pruned_one_is_a_failure() -> None:
    study = optuna.create_study(sampler=sampler())
    study.add_trial(
        finished({"a": 1}, {"a": IntDistribution(0, 9)}, state=TrialState.PRUNED, intermediate_values={1: 1.0})
    )
    assert math.isnan(told(study)[0])


def test_the_values_told_are_known_by_their_trials() -> None:
    study = optuna.create_study(sampler=sampler())
    wide, narrow = IntDistribution(0, 99), IntDistribution(0, 9)
    for i, value in enumerate([3.0, 1.0, 4.0, 1.5]):
        study.add_trial(finished({"a": 30 * i}, {"a": wide}, value))  # all but the first outside the latest range
    study.add_trial(finished({"a": 1}, {"a": narrow}, state=TrialState.FAIL))
    study.add_trial(finished({"a": 2}, {"a": narrow}, 5.0))
    optimizer, numbers = own(study).told(study)
    _, values = optimizer.history()
    assert numbers == [0, 5]
    assert [study.trials[number].value for number in numbers] == values[np.isfinite(values)].tolist()
    assert len(optimizer.leave_one_out()[0]) == len(numbers)


def test_a_suggestion_is_timed_and_a_given_point_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    study = run(rough, 1)
    clock = SimpleNamespace(perf_counter=iter([5.0, 7.25]).__next__, sleep=lambda _: None)
    monkeypatch.setattr("carbo.integrations.optuna.sampler.time", clock)
    study.ask(study.trials[0].distributions)
    study.enqueue_trial(study.trials[0].params)
    study.ask(study.trials[0].distributions)
    assert [suggestion_seconds(trial) for trial in study.trials[1:]] == [2.25, None]


def test_a_failure_that_was_retried_is_not_counted() -> None:
    study = optuna.create_study(sampler=sampler())
    space: Distributions = {"a": IntDistribution(0, 9)}
    study.add_trial(finished({"a": 1}, space, state=TrialState.FAIL))
    study.add_trial(finished({"a": 2}, space, 5.0))
    assert len(told(study)) == 2
    retry = {"failed_trial": 0, "retry_history": [0], "fixed_params": {"a": 1}}
    study.add_trial(finished({"a": 1}, space, state=TrialState.WAITING, system_attrs=retry))
    engine = own(study).optimizer(study)
    assert engine.history()[1].tolist() == [5.0]
    assert engine.pending == [{"a": 1}]


def test_failed_points_never_come_back_and_are_told_as_failures() -> None:
    def objective(trial: Trial) -> float:
        value = rough(trial)
        if trial.params["x0"]:
            raise ArithmeticError
        return value

    study = optuna.create_study(sampler=sampler(search_space=SWITCHES))
    study.optimize(objective, n_trials=16, catch=ArithmeticError)
    assert len(set(points(study))) == 16
    np.testing.assert_equal(told(study), [math.nan if t.params["x0"] else t.value for t in study.trials])


# ---------------------------------------------------------------- constraints


def infeasible_seen(study: optuna.Study) -> list[bool]:
    return [math.isnan(v) for v in told(study)]


def test_constraints_func_marks_trials_as_failures() -> None:
    def above(trial: FrozenTrial) -> tuple[float, float]:
        return float(trial.params["x0"]) - 0.5, -1.0

    study = run(rough, 12, search_space=SWITCHES, constraints_func=above)
    assert [t.system_attrs["constraints"] for t in study.trials] == [[t.params["x0"] - 0.5, -1.0] for t in study.trials]
    assert infeasible_seen(study) == [t.params["x0"] for t in study.trials]


@needs_set_constraint
def test_set_constraint_marks_trials_as_failures() -> None:
    def objective(trial: Trial) -> float:
        value = rough(trial)
        trial.set_constraint("left", float(trial.params["x0"]) - 0.5)
        trial.set_constraint("right", 0.0)
        return value

    study = run(objective, 12, search_space=SWITCHES)
    assert infeasible_seen(study) == [t.params["x0"] for t in study.trials]
    assert not study.best_trial.params["x0"]


def test_a_constraints_func_that_raises_or_gives_nan_is_heard_and_the_trial_not_trusted() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SWITCHES, constraints_func=lambda t: [math.nan]))
    with pytest.raises(ValueError, match="constraints_func: expected numbers, got"):
        study.optimize(rough, n_trials=1)
    assert infeasible_seen(study) == [True]


def at_most_two(params: dict[str, Any]) -> bool:
    return bool(sum(params[name] for name in SWITCHES) <= 2)


def test_a_known_constraint_is_kept_from_the_first_trial_on() -> None:
    for seed in range(5):
        study = run(rough, 30, search_space=SWITCHES, constraint=at_most_two, seed=seed)
        assert all(at_most_two(t.params) for t in study.trials)
        assert len(study.trials) == 12  # 11 points are permitted, and one repeat


def test_a_known_constraint_without_a_known_space_holds_after_the_first_trial(logged: list[str]) -> None:
    for seed in range(5):
        study = run(rough, 8, constraint=at_most_two, seed=seed)
        assert all(at_most_two(t.params) for t in study.trials)  # the last switches can still keep it
    assert not logged


def test_a_first_trial_that_had_to_break_the_constraint_says_so(logged: list[str]) -> None:
    def objective(trial: Trial) -> float:
        return trial.suggest_int("a", 5, 9) + trial.suggest_int("b", 0, 9)

    study = run(objective, 6, constraint=lambda p: p["a"] + 2 < p["b"] if p["a"] < 6 else False, seed=3)
    broken = [t.number for t in study.trials if not (t.params["a"] == 5 and t.params["b"] > 7)]
    assert broken in ([], [0])
    assert len(logged) >= len(broken)
    assert all("breaks the constraint" in line or "under way" in line for line in logged)


def test_a_constraint_on_a_conditional_parameter_is_said_not_to_hold(logged: list[str]) -> None:
    def objective(trial: Trial) -> float:
        first = trial.suggest_int("a", 0, 9)
        return first + (trial.suggest_int("b", 0, 9) if trial.number % 2 else 0)

    run(objective, 6, constraint=lambda p: p["a"] < 5 or p["b"] < 5)
    assert sum("The constraint asks for the parameter 'b'" in line for line in logged) == 1


# ---------------------------------------------------------------- spaces that change


def test_conditional_parameters_are_sampled_independently_with_one_warning_each(logged: list[str]) -> None:
    def objective(trial: Trial) -> float:
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return trial.suggest_float("rate", 0.0, 1.0)
        return trial.suggest_int("depth", 1, 5)

    study = run(objective, 30)
    assert len(study.trials) == 30  # two values of `kind` do not exhaust the space
    assert {t.params["kind"] for t in study.trials} == {"a", "b"}
    assert sorted(line.split("'")[1] for line in logged) == ["depth", "rate"]


def test_a_branch_that_only_fails_is_learned_at_the_worst_value_and_not_ruled_out() -> None:
    kind, number = CategoricalDistribution(["a", "b"]), IntDistribution(0, 50)
    study = optuna.create_study(sampler=sampler())
    for x in range(3):
        study.add_trial(finished({"kind": "a", "x": x}, {"kind": kind, "x": number}, state=TrialState.FAIL))
    for y in (3, 5, 4):
        study.add_trial(finished({"kind": "b", "y": y}, {"kind": kind, "y": number}, float(y)))
    study.add_trial(finished({"kind": "b"}, {"kind": kind}, state=TrialState.FAIL))  # may just have ended early
    engine = own(study).optimizer(study)
    params, values = engine.history()
    assert [p["kind"] for p in params] == ["a", "a", "a", "b", "b", "b"]
    assert [p["y"] for p in params[3:]] == [3, 5, 4]
    assert values.tolist() == [5.0, 5.0, 5.0, 3.0, 5.0, 4.0]
    assert engine.settings.replicate


def test_failures_of_a_branch_that_also_succeeds_take_the_worst_value() -> None:
    kind, number = CategoricalDistribution(["a", "b"]), IntDistribution(0, 50)
    study = optuna.create_study(sampler=sampler())
    study.add_trial(finished({"kind": "a", "x": 1}, {"kind": kind, "x": number}, state=TrialState.FAIL))
    study.add_trial(finished({"kind": "a", "x": 2}, {"kind": kind, "x": number}, 2.0))
    study.add_trial(finished({"kind": "b", "y": 3}, {"kind": kind, "y": number}, 7.0))
    assert own(study).optimizer(study).space.names == ("kind",)
    assert told(study) == [7.0, 2.0, 7.0]


def test_a_parameter_outside_the_model_comes_from_the_given_sampler() -> None:
    class Seven(optuna.samplers.RandomSampler):
        def sample_independent(self, *arguments: Any) -> int:
            return 7

    def objective(trial: Trial) -> float:
        return trial.suggest_int("a", 0, 50) + (trial.suggest_int("b", 0, 50) if trial.number % 2 else 0)

    study = run(objective, 6, independent_sampler=Seven(), warn_independent_sampling=False)
    assert [t.params["b"] for t in study.trials[1::2]] == [7, 7, 7]
    assert study.trials[0].params["a"] == 7
    assert len({t.params["a"] for t in study.trials[1:]}) > 1


def test_where_a_range_was_edited_the_new_one_is_modelled_with_all_trials_inside_it() -> None:
    study = optuna.create_study(sampler=sampler(n_startup_trials=4))
    study.optimize(lambda t: t.suggest_int("a", 0, 100), n_trials=10)
    inside = [t.params["a"] for t in study.trials if 20 <= t.params["a"] <= 60]
    study.optimize(lambda t: t.suggest_int("a", 20, 60), n_trials=5)
    engine = own(study).optimizer(study)
    assert engine.space.variables["a"].choices == tuple(range(20, 61))
    assert [p["a"] for p in engine.history()[0]] == inside + [t.params["a"] for t in study.trials[10:]]


def test_a_range_that_keeps_changing_is_left_to_independent_sampling(logged: list[str]) -> None:
    def objective(trial: Trial) -> float:
        a = trial.suggest_int("a", 1, 30)
        return a + trial.suggest_int("b", 0, a)

    study = run(objective, 15)
    assert len(study.trials) == 15
    assert all(0 <= t.params["b"] <= t.params["a"] for t in study.trials)
    assert sum("'b'" in line for line in logged) == 1
    assert list(own(study).optimizer(study).space.names) == ["a"]


def test_partly_enqueued_trials_get_the_rest_from_the_model() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SWITCHES))
    for _ in range(3):
        study.enqueue_trial({"x0": True, "x1": True})
    study.optimize(rough, n_trials=10)
    assert all(t.params["x0"] and t.params["x1"] for t in study.trials[:3])
    assert len(told(study)) == 10


@pytest.mark.parametrize("startup", [3, 100])
def test_what_is_suggested_around_enqueued_values_keeps_the_constraint_and_is_new(startup: int) -> None:
    """Six points are permitted with c = "a"; once they are used up, one of them comes again."""
    space = Space(
        {"c": Categorical(["a", "b", "d"]), "i": Integer(0, 5), "x": Binary()},
        constraint=lambda p: p["i"] > 2 or p["c"] != "a",
    )

    def cost(trial: Trial) -> float:
        c, i = trial.suggest_categorical("c", ["a", "b", "d"]), trial.suggest_int("i", 0, 5)
        return float((c == "b") + i + trial.suggest_categorical("x", [False, True]))

    study = optuna.create_study(sampler=sampler(search_space=space, n_startup_trials=startup))
    study.optimize(cost, n_trials=5)
    free = 6 - len({p for p in points(study) if ("c", "a") in p})
    for _ in range(free):
        study.enqueue_trial({"c": "a"})
    study.optimize(cost, n_trials=free)
    assert all(t.params["c"] == "a" and t.params["i"] > 2 for t in study.trials[5:])
    assert len(set(points(study))) == 5 + free
    for _ in range(3):
        study.enqueue_trial({"c": "a"})
        study.optimize(cost, n_trials=1)
        assert study.trials[-1].params["i"] > 2
    study.enqueue_trial({"c": "a", "i": 0})  # the user has it so
    study.optimize(cost, n_trials=1)
    assert study.trials[-1].params["i"] == 0


def test_enqueued_trials_under_way_at_once_keep_the_constraint() -> None:
    """Three points are permitted with c = "a"; a parameter outside the common space tells trials apart."""

    def cost(trial: Trial) -> float:
        c, i = trial.suggest_categorical("c", ["a", "b"]), trial.suggest_int("i", 0, 5)
        return float(i + (trial.suggest_int("z", 0, 1) if c == "b" else 0))

    study = optuna.create_study(sampler=sampler(constraint=lambda p: p["i"] > 2 or p["c"] != "a", n_startup_trials=3))
    study.optimize(cost, n_trials=8)
    for _ in range(6):
        study.enqueue_trial({"c": "a"})
    asked = [study.ask() for _ in range(6)]
    assert all(t.suggest_categorical("c", ["a", "b"]) == "a" and t.suggest_int("i", 0, 5) > 2 for t in asked)


def test_the_model_chooses_what_goes_with_enqueued_values() -> None:
    """All is to be as the first switch, which is better off: what is best without it is the worst with it on."""

    def cost(trial: Trial) -> float:
        first, *rest = (trial.suggest_categorical(f"x{i}", [False, True]) for i in range(11))
        return float(10 * first + sum(each != first for each in rest))

    chosen = {"samples": 3, "burn_in": 20}
    study = optuna.create_study(sampler=sampler(n_startup_trials=50, settings=chosen))
    study.optimize(cost, n_trials=55)
    study.enqueue_trial({"x0": True})
    study.optimize(cost, n_trials=1)
    assert study.trials[-1].params["x0"]
    assert study.trials[-1].value is not None
    assert study.trials[-1].value < 10 + 7


@pytest.mark.parametrize("wrong", ["fast", None, [1]])
def test_an_enqueued_value_that_cannot_be_fails_its_own_trial_alone(wrong: Any) -> None:
    def cost(trial: Trial) -> float:
        return trial.suggest_int("i", 0, 5) + trial.suggest_float("x", 0, 1)

    study = run(cost, 3, n_startup_trials=2)
    study.enqueue_trial({"i": 2})
    study.enqueue_trial({"i": 2, "x": wrong})
    study.optimize(cost, n_trials=1)
    with pytest.raises((ValueError, TypeError)):
        study.optimize(cost, n_trials=1)
    study.optimize(cost, n_trials=1)
    assert [t.state.name for t in study.trials[3:]] == ["COMPLETE", "FAIL", "COMPLETE"]


@pytest.mark.parametrize("argument", ["independent_sampler", "constraints_func"])
def test_arguments_of_the_wrong_kind_are_refused_at_once(argument: str) -> None:
    with pytest.raises(SettingsError, match=f"^{argument}: expected an? [^\n]*, got 'tpe'"):
        CarboSampler(**dict[str, Any]({argument: "tpe"}))


def test_a_name_that_no_parameter_has_is_warned_of_once(logged: list[str]) -> None:
    run(rough, 5, ordinal=["x1", "typo"])
    assert logged == ["ordinal: expected names of parameters, got 'typo'; there are 'x0', 'x1', 'x2', 'x3'"]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_partial_fixed_sampler_and_a_given_space_go_together() -> None:
    inner = sampler(search_space=SWITCHES, ordinal=["x0"])
    study = optuna.create_study(sampler=optuna.samplers.PartialFixedSampler({"x0": True}, inner))
    study.optimize(rough, n_trials=12)
    assert len(study.trials) == 12
    assert all(t.params["x0"] for t in study.trials)


def test_hyperband_brackets_do_not_hide_trials() -> None:
    def objective(trial: Trial) -> float:
        value = rough(trial)
        for step in range(1, 10):
            trial.report(value / step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = optuna.create_study(sampler=sampler(search_space=SWITCHES), pruner=pruner)
    study.optimize(objective, n_trials=16)
    assert len(set(points(study))) == 16
    assert {t.state for t in study.trials} == {TrialState.COMPLETE, TrialState.PRUNED}


# ---------------------------------------------------------------- seeds and copies


def test_same_seed_same_trials() -> None:
    one, two, other = (run(rough, 14, seed=seed, search_space=SWITCHES) for seed in (1, 1, 2))
    assert points(one) == points(two) != points(other)


def test_a_study_taken_up_again_with_the_same_seed_does_not_replay_its_start() -> None:
    """Random points of 40 switches: that two of ten are equal has probability 4e-11."""
    space: Distributions = {f"x{i}": CategoricalDistribution([False, True]) for i in range(40)}
    study = optuna.create_study(sampler=sampler(search_space=space, n_startup_trials=50))
    for _ in range(5):
        study.tell(study.ask(space), 0.0)
    study.sampler = sampler(search_space=space, n_startup_trials=50)
    for _ in range(5):
        study.tell(study.ask(space), 0.0)
    drawn = np.array([list(t.params.values()) for t in study.trials])
    assert all((a != b).sum() > 0 for a, b in product(drawn[:5], drawn[5:]))
    fresh = optuna.create_study(sampler=sampler(search_space=space, n_startup_trials=50))
    assert list(fresh.ask(space).params.values()) == drawn[0].tolist()


def test_reseeding_gives_other_points() -> None:
    space: Distributions = {f"x{i}": CategoricalDistribution([False, True]) for i in range(60)}
    drawn = []
    for reseed in (False, False, True):
        study = optuna.create_study(sampler=sampler(search_space=space))
        if reseed:
            study.sampler.reseed_rng()
        drawn.append(study.ask(space).params)
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_pickled_sampler_goes_on_like_the_original() -> None:
    study = run(rough, 8, search_space=SWITCHES)
    copied = pickle.loads(pickle.dumps(study.sampler))
    frozen = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    expected = study.sampler.sample_relative(study, frozen, SWITCHES)
    study._storage.set_trial_system_attr(frozen._trial_id, "carbo:claim", "")
    assert copied.sample_relative(study, frozen, SWITCHES) == expected


def test_one_sampler_may_serve_two_studies() -> None:
    shared = sampler(search_space=SWITCHES)
    studies = [optuna.create_study(sampler=shared) for _ in range(2)]
    for _ in range(4):
        for study in studies:
            study.optimize(rough, n_trials=2)
    for study in studies:
        assert len(set(points(study))) == 8
        assert sorted(told(study)) == sorted(t.values[0] for t in study.trials)


def test_finished_trials_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the adapter cheap: a suggestion looks up the trials that are new to it, not all of them."""
    study = run(rough, 10, search_space=SWITCHES)
    looked_up: list[Any] = []
    whole = Column.position

    def counted(column: Column, value: Any) -> int | None:
        looked_up.append(value)
        return whole(column, value)

    monkeypatch.setattr(Column, "position", counted)
    study.ask(SWITCHES)
    assert len(looked_up) == len(SWITCHES)  # the tenth trial
    study.ask(SWITCHES)
    assert len(looked_up) <= 3 * len(SWITCHES)  # the trial under way, before and after the claim


def test_startup_trials_are_random_and_then_the_model_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(rng: np.random.Generator, request: Request) -> Any:
        asked.append(len(request.ensemble.X))
        return propose(rng, request)

    monkeypatch.setattr("carbo.engine.propose", counted)
    run(rough, 9, search_space=SWITCHES, n_startup_trials=6)
    assert asked == [6, 7, 8]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_suggestion_is_what_the_optimizer_suggests_from_the_same_data(preset: str) -> None:
    settings = CHEAP | {"exhaustive": 0}
    space: Distributions = {f"x{i}": CategoricalDistribution(["a", "b", "c"]) for i in range(8)}
    study = optuna.create_study(
        sampler=CarboSampler(search_space=space, seed=5, preset=preset, settings=settings), direction="maximize"
    )
    rng = np.random.default_rng(0)
    told_params = [{name: "abc"[rng.integers(3)] for name in space} for _ in range(12)]
    for i, params in enumerate(told_params):
        study.add_trial(finished(params, space, float(i % 5)))
    first, second = study.ask(space), study.ask(space)

    same = carbo.Space({name: carbo.Categorical("abc"[i] for i in range(3)) for name in space})
    twin, belief = Engine(same.rows, carbo_preset(preset).changed(settings)), Belief()
    told = Observations(same.encode_many(told_params), np.array([-float(i % 5) for i in range(12)]))
    pending = np.empty((0, same.dim), dtype=np.intp)
    for trial in (first, second):
        (row,), belief, _ = twin.ask(np.random.default_rng([5, trial.number, 0]), belief, told, pending)
        assert same.decode(row) == trial.params
        pending = np.concatenate([pending, row[None]])  # the first is pending for the second


def test_values_given_back_are_native_and_inside(  # every kind at once
) -> None:
    space: Distributions = {
        "float": FloatDistribution(-1.0, 2.0),
        "log": FloatDistribution(1e-5, 1.0, log=True),
        "step": FloatDistribution(0.0, 1.0, step=0.1),
        "int": IntDistribution(-3, 30, step=3),
        "logint": IntDistribution(1, 1000, log=True),
        "huge": IntDistribution(0, 10**12),
        "choice": CategoricalDistribution(["a", None, 1.5, True]),
    }
    study = optuna.create_study(sampler=sampler(search_space=space, points={"float": 7}))
    for _ in range(12):
        trial = study.ask(space)
        study.tell(trial, float(trial.params["int"]))
    for done in study.trials:
        for name, each in space.items():
            value = done.params[name]
            assert each._contains(each.to_internal_repr(value))
            assert type(value) in {"choice": (str, type(None), float, bool)}.get(name, (type(getattr(each, "low", 0)),))
    floats = sorted({t.params["float"] for t in study.trials})
    assert set(floats) <= {-1.0 + 0.5 * k for k in range(7)}
    assert all(b - a >= 0.5 - 1e-12 for a, b in pairwise(floats))
