"""CarboSearcher as Ray Tune meets it: the Searcher interface, search spaces, failures, saving; and a real cluster."""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import carbo
from carbo import CarboError, DataError, SettingsError, SpaceError, StateError
from tests.presets import CHEAP

pytest.importorskip("ray.tune", reason="Ray Tune is not installed: pip install 'carbo[ray]'")

from carbo.integrations.ray.searcher import CarboSearcher, Searcher
from carbo.integrations.ray.space import of_config, parameter

tune: Any = import_module("ray.tune")  # Any: types are checked without Ray too
CHEAPEST = CHEAP | {"samples": 1, "burn_in": 2, "random_starts": 20, "exhaustive": 100}
SMALL = carbo.Space({"a": carbo.Integer(0, 3), "b": carbo.Categorical(["x", "y", "z"])})
RAY_SMALL = {"a": tune.randint(0, 4), "b": tune.choice(["x", "y", "z"])}


def searcher(space: Any = SMALL, **arguments: Any) -> CarboSearcher:
    usual: dict[str, Any] = {"metric": "loss", "mode": "min", "settings": CHEAPEST, "seed": 0}
    return CarboSearcher(space, **usual | arguments)


def loss(config: dict[str, Any]) -> float:
    return float((config["a"] - 2) ** 2 + {"x": 0.0, "y": 0.5, "z": 0.2}[config["b"]])


def run(search: CarboSearcher, trials: int, first: int = 0) -> list[dict[str, Any]]:
    """Trials one after another; what was suggested."""
    configs = []
    for number in range(first, first + trials):
        config = search.suggest(f"t{number}")
        search.on_trial_complete(f"t{number}", {"loss": loss(config), "done": True})
        configs.append(config)
    return configs


def distinct(configs: list[dict[str, Any]]) -> bool:
    return len({json.dumps(c, sort_keys=True) for c in configs}) == len(configs)


# ---------------------------------------------------------------- suggestions


def test_it_is_reachable_from_the_package_and_is_a_searcher() -> None:
    assert carbo.CarboSearcher is CarboSearcher
    assert isinstance(searcher(), Searcher)


def test_importing_carbo_does_not_import_ray() -> None:
    code = "import sys, carbo; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_ray_the_error_is_one_line_that_says_what_to_install() -> None:
    code = "import sys; sys.modules['ray'] = None; sys.modules['ray.tune'] = None; import carbo; carbo.CarboSearcher"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("carbo.errors.CarboError")
    assert "pip install 'carbo[ray]'" in last


def test_all_points_are_suggested_once_and_then_it_is_finished() -> None:
    search = searcher()
    configs = run(search, 12)
    assert sorted((c["a"], c["b"]) for c in configs) == sorted(product(range(4), "xyz"))
    assert search.suggest("more") == Searcher.FINISHED
    assert search.suggest("more") == Searcher.FINISHED


def test_trials_under_way_are_never_suggested_again() -> None:
    search = searcher()
    configs = [search.suggest(str(i)) for i in range(12)]
    assert distinct(configs)
    assert search.suggest("more") == Searcher.FINISHED


def test_asking_twice_for_a_trial_gives_its_config_again() -> None:
    search = searcher()
    assert search.suggest("t") == search.suggest("t")
    assert len(search.optimizer.pending) == 1


def test_values_that_may_be_repeated_are_waited_for_and_not_ended() -> None:
    search = searcher(carbo.Space({"a": carbo.Binary()}), replicate=True)
    assert distinct([search.suggest("t0"), search.suggest("t1")])
    assert search.suggest("t2") is None
    search.on_trial_complete("t0", {"loss": 1.0})
    assert search.suggest("t2") in ({"a": False}, {"a": True})


def test_at_its_limit_of_trials_it_waits() -> None:
    search = searcher(max_concurrent=2)
    assert search.suggest("t0") is not None
    assert search.suggest("t1") is not None
    assert search.suggest("t2") is None
    search.on_trial_complete("t0", {"loss": 1.0})
    assert search.suggest("t2") is not None


def test_a_limiter_takes_over_the_limit_in_batches_too() -> None:
    limiter = tune.search.ConcurrencyLimiter(searcher(max_concurrent=1), max_concurrent=2, batch=True)
    assert limiter.suggest("t0") is not None
    assert limiter.suggest("t1") is not None
    limiter.on_trial_complete("t0", {"loss": 1.0})
    assert limiter.suggest("t2") is None
    limiter.on_trial_complete("t1", {"loss": 2.0})
    assert limiter.suggest("t2") is not None
    assert len(limiter.searcher.optimizer) == 2


def test_a_repeater_tells_the_mean() -> None:
    repeater = tune.search.Repeater(searcher(), repeat=2)
    for trial, value in (("t0", 1.0), ("t1", 3.0)):
        repeater.suggest(trial)
        repeater.on_trial_complete(trial, {"loss": value})
    assert repeater.searcher.optimizer.history()[1].tolist() == [2.0]


def test_the_same_seed_gives_the_same_suggestions_and_another_gives_others() -> None:
    assert run(searcher(), 8) == run(searcher(), 8)
    assert run(searcher(), 8) != run(searcher(seed=1), 8)


def test_points_to_evaluate_come_first() -> None:
    first = [{"a": 3, "b": "z"}, {"a": 1, "b": "y"}]
    assert run(searcher(points_to_evaluate=first), 3)[:2] == first


def test_the_constraint_of_a_space_is_kept() -> None:
    space = carbo.Space(SMALL.variables, constraint=lambda p: p["a"] > 0 or p["b"] == "x")
    configs = run(searcher(space), 10)
    assert all(c["a"] > 0 or c["b"] == "x" for c in configs)
    assert distinct(configs)


# ---------------------------------------------------------------- values


def test_min_and_max_are_each_others_mirror() -> None:
    low, high = searcher(), searcher(mode="max")
    for number in range(12):
        config = low.suggest(f"t{number}")
        assert high.suggest(f"t{number}") == config
        low.on_trial_complete(f"t{number}", {"loss": loss(config)})
        high.on_trial_complete(f"t{number}", {"loss": -loss(config)})


@pytest.mark.parametrize(
    ("result", "error"),
    [(None, True), ({"loss": 1.0}, True), ({"loss": math.nan}, False), ({"loss": math.inf}, False), ({}, False)],
)
def test_what_ends_without_a_value_is_a_failure_and_never_suggested_again(result: Any, error: bool) -> None:
    search = searcher()
    failed = search.suggest("t0")
    search.on_trial_complete("t0", result, error=error)
    assert math.isnan(search.optimizer.history()[1][0])
    assert failed not in run(search, 11, first=1)


def test_a_trial_stopped_before_it_ran_may_be_suggested_again() -> None:
    search = searcher()
    stopped = search.suggest("t0")
    search.on_trial_complete("t0")
    assert len(search.optimizer) == 0
    assert stopped in run(search, 12, first=1)


def test_results_on_the_way_and_ends_of_strangers_change_nothing() -> None:
    search = searcher()
    search.suggest("t0")
    before = search.optimizer.state()
    search.on_trial_result("t0", {"loss": 5.0})
    search.on_trial_complete("stranger", {"loss": 5.0})
    search.on_trial_complete("stranger", error=True)
    assert search.optimizer.state() == before


@pytest.mark.parametrize("trial", ["t0", "t0-restarted"])
def test_a_failure_that_is_run_again_with_success_has_its_value(trial: str) -> None:
    search = searcher()
    config = search.suggest("t0")
    search.on_trial_complete("t0", error=True)
    search.suggest("t1")
    flat = {f"config/{name}": value for name, value in config.items()}
    search.on_trial_complete(trial, {"loss": 2.5, **flat})
    points, values = search.optimizer.history()
    assert (points, values.tolist()) == ([config], [2.5])
    assert len(search.optimizer.pending) == 1


def test_a_metric_that_is_no_number_is_named_and_can_still_be_reported_as_an_error() -> None:
    search = searcher()
    search.suggest("t0")
    with pytest.raises(DataError, match="expected a number"):
        search.on_trial_complete("t0", {"loss": "low"})
    search.on_trial_complete("t0", error=True)
    assert len(search.optimizer) == 1


def test_without_a_name_the_metric_is_what_a_trainable_returns() -> None:
    search = searcher(metric=None)
    search.suggest("t0")
    search.on_trial_complete("t0", {"_metric": 4.0})
    assert search.optimizer.best is not None
    assert search.optimizer.best.value == 4.0


# ---------------------------------------------------------------- search spaces


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (tune.choice(["adam", "sgd", "adam"]), ["adam", "sgd"]),
        (tune.choice([[64, 64], [128], None]), [[64, 64], [128], None]),
        (tune.randint(2, 6), [2, 3, 4, 5]),
        (tune.qrandint(3, 10, 3), [3, 6, 9]),
        (tune.qrandint(2, 5, 1), [2, 3, 4]),
        (tune.quniform(0.1, 0.5, 0.1), [0.1, 0.2, 0.3, 0.4, 0.5]),
        (tune.quniform(-1, 1, 0.5), [-1.0, -0.5, 0.0, 0.5, 1.0]),
        (tune.lograndint(1, 9), [1, 2, 3, 4, 5, 6, 7, 8]),
        (tune.qloguniform(0.5, 2, 0.5), [0.5, 1.0, 1.5, 2.0]),
        (tune.qlograndint(4, 16, 4), [4, 8, 12, 16]),
    ],
)
def test_a_domain_of_ray_becomes_the_values_that_ray_could_draw(domain: Any, values: list[Any]) -> None:
    made = list(parameter("p", domain).values)
    assert made == values
    assert [type(v) for v in made] == [type(v) for v in values]
    drawn = [domain.sample() for _ in range(50)]
    near = [any(d == v or (isinstance(d, float) and math.isclose(d, v)) for v in made) for d in drawn]
    assert all(near)


def test_ranges_of_floats_are_grids_of_as_many_points_as_wished() -> None:
    plain, log = parameter("p", tune.uniform(0, 1)), parameter("p", tune.loguniform(1e-4, 1), 5)
    assert len(plain.values) == 51
    assert list(log.values) == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1])
    assert list(parameter("p", tune.uniform(0, 1), {"p": 3}).values) == [0.0, 0.5, 1.0]
    assert list(parameter("p", tune.randint(0, 11), {"p": 3}).values) == [0, 5, 10]


def test_long_ranges_keep_their_ends() -> None:
    values = list(parameter("p", tune.randint(0, 1_000_000)).values)
    assert len(values) == 201
    assert (values[0], values[-1]) == (0, 999_999)
    assert values == sorted(set(values))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"a": tune.grid_search([1, 2])}, "grid_search"),
        ({"a": tune.randn()}, "bounded range"),
        ({"a": tune.sample_from(lambda: 1)}, "bounded range"),
        ({"a": tune.randint(3, 3)}, "a range with a value in it"),
        ({"a": [tune.randint(0, 3)]}, "no lists around it"),
        ({"a/b": tune.randint(0, 3)}, "keys without '/'"),
        ({"a": tune.choice([tune.randint(0, 3), 7])}, "plain values as choices"),
    ],
)
def test_what_cannot_be_searched_is_named(config: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpaceError, match=expected) as caught:
        of_config(config)
    assert "variable 'a" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nested_spaces_give_nested_configs_and_constants_stay() -> None:
    space = {"model": {"depth": tune.randint(1, 3), "kind": "tree"}, "rate": tune.choice([0.1]), "epochs": 5}
    configs = [searcher(space, seed=seed).suggest("t") for seed in range(3)]
    for config in configs:
        assert config == {"model": {"depth": config["model"]["depth"], "kind": "tree"}, "rate": 0.1, "epochs": 5}
        assert config["model"]["depth"] in (1, 2)


def test_names_with_a_slash_nest_and_must_be_able_to() -> None:
    space = carbo.Space({"model/depth": carbo.Integer(1, 1), "rate": carbo.Ordinal([0.5])})
    assert searcher(space).suggest("t") == {"model": {"depth": 1}, "rate": 0.5}
    for names in (("a", "a/b"), ("a/b", "a")):
        with pytest.raises(SpaceError, match="can be nested"):
            searcher(carbo.Space({name: carbo.Binary() for name in names}))


def test_choices_that_cannot_be_labels_reach_the_config_as_they_are() -> None:
    layers: list[Any] = [[64, 64], {"width": 3}, math.nan]
    search = searcher({"layers": tune.choice(layers)})
    found = [search.suggest(str(i))["layers"] for i in range(3)]
    assert all(any(f == each or (f != f and each != each) for f in found) for each in layers)  # noqa: PLR0124
    search.add_evaluated_point({"layers": [64, 64]}, 1.0)
    assert len(search.optimizer) == 1


def test_the_tuners_space_metric_and_mode_are_taken_where_none_were_given() -> None:
    search = CarboSearcher(seed=0, settings=CHEAPEST)
    assert search.set_search_properties("loss", "min", RAY_SMALL | {"epochs": 3}, more="ignored")
    assert (search.metric, search.mode) == ("loss", "min")
    assert len(run(search, 12)) == 12
    assert search.set_search_properties("loss", "min", RAY_SMALL)  # a second run over the same space
    assert not search.set_search_properties("loss", "min", {"other": tune.randint(0, 4)})


def test_a_space_of_ones_own_leaves_no_room_for_another() -> None:
    search = searcher(metric=None, mode=None)
    assert search.set_search_properties("loss", "max", {"epochs": 3})
    assert (search.metric, search.mode) == ("loss", "max")
    assert not search.set_search_properties("loss", "max", {"other": tune.randint(0, 4)})


@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        ({"mode": "down"}, SettingsError, 'mode: expected "min" or "max"'),
        ({"metric": ["a", "b"]}, SettingsError, "one metric"),
        ({"space": {"a": 3}}, SpaceError, "expected a carbo.Space or a dict"),
        ({"space": 3}, SpaceError, "expected a carbo.Space or a dict"),
        ({"points": 5}, SpaceError, "points"),
        ({"space": RAY_SMALL, "points": 0}, DataError, "points: expected a whole number"),
        ({"space": RAY_SMALL, "points": {"c": 5}}, SpaceError, "got 'c'"),
        ({"max_concurrent": 0}, DataError, "max_concurrent"),
        ({"seed": -1}, DataError, "seed"),
        ({"points_to_evaluate": [{"a": 9, "b": "x"}]}, SpaceError, "variable 'a'"),
        ({"points_to_evaluate": [{"a": 1}]}, SpaceError, "variable 'b'"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: dict[str, Any], error: type[CarboError], expected: str) -> None:
    with pytest.raises(error) as caught:
        searcher(**arguments)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_a_space_or_a_mode_suggest_says_what_to_give() -> None:
    with pytest.raises(SpaceError, match="param_space"):
        searcher(None).suggest("t")
    with pytest.raises(SettingsError, match="mode="):
        searcher(mode=None).suggest("t")


def test_a_mode_against_the_tuners_is_refused() -> None:
    with pytest.raises(SettingsError, match="'min' and 'max'"):
        searcher().set_search_properties("loss", "max", {})


# ---------------------------------------------------------------- evaluations from elsewhere


def test_points_evaluated_elsewhere_are_learned_numbers_at_the_nearest_level() -> None:
    search = searcher({"rate": tune.loguniform(1e-4, 1), "a": tune.randint(0, 4)}, points=5, mode="max")
    search.add_evaluated_point({"rate": 2e-3, "a": 2, "epochs": 7}, 5.0)
    search.add_evaluated_point({"rate": 0.5, "a": 1}, 4.0, pruned=True)
    search.add_evaluated_point({"rate": 1e-4, "a": 1}, None, error=True)
    points, values = search.optimizer.history()
    assert [p["rate"] for p in points] == pytest.approx([1e-3, 1.0, 1e-4])
    assert values.tolist()[:2] == [-5.0, -4.0]
    assert math.isnan(values[2])


@pytest.mark.parametrize("config", [{"a": 4, "b": "x"}, {"a": True, "b": "x"}, {"b": "x"}, {"a": 1, "b": ["x"]}])
def test_points_outside_the_space_are_refused_and_change_nothing(config: dict[str, Any]) -> None:
    search = searcher()
    with pytest.raises(SpaceError, match="variable"):
        search.add_evaluated_point(config, 1.0)
    assert len(search.optimizer) == 0


def test_trials_of_another_run_are_learned_errors_included() -> None:
    search, trials = searcher(), []
    for status, config, result in (
        (tune.experiment.Trial.TERMINATED, {"a": 0, "b": "x"}, {"loss": 2.0, "done": True}),
        (tune.experiment.Trial.TERMINATED, {"a": 1, "b": "x"}, {"other": 1.0, "done": True}),
        (tune.experiment.Trial.ERROR, {"a": 2, "b": "x"}, {}),
        (tune.experiment.Trial.RUNNING, {"a": 3, "b": "x"}, {"loss": 9.0}),
    ):
        trial = tune.experiment.Trial("train", config=config, stub=True)
        trial.status = status
        trial.run_metadata.last_result = result
        trials.append(trial)
    search.add_evaluated_trials(trials, metric="loss")
    search.add_evaluated_trials(trials[0], metric="loss")
    points, values = search.optimizer.history()
    assert [p["a"] for p in points] == [0, 2, 0]
    assert values[[0, 2]].tolist() == [2.0, 2.0]
    assert math.isnan(values[1])


# ---------------------------------------------------------------- saving


def test_a_restored_searcher_goes_on_as_the_saved_one(tmp_path: Path) -> None:
    search = searcher()
    run(search, 6)
    pending = search.suggest("t6")
    search.save(str(tmp_path / "state"))
    again = searcher(seed=5)
    again.restore(str(tmp_path / "state"))
    for each in (search, again):
        each.on_trial_complete("t6", {"loss": loss(pending)})
    assert run(search, 5, first=7) == run(again, 5, first=7)
    assert again.suggest("more") == Searcher.FINISHED


def test_a_state_is_json_in_one_piece(tmp_path: Path) -> None:
    search = searcher()
    run(search, 3)
    search.save(str(tmp_path / "state"))
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert json.loads((tmp_path / "state").read_text())["finished"] == {"t0": 0, "t1": 1, "t2": 2}


def test_rays_own_saving_writes_json_and_no_pickle(tmp_path: Path) -> None:
    search = searcher()
    run(search, 3)
    search.save_to_dir(str(tmp_path), session_str="session")
    [file] = tmp_path.iterdir()
    assert file.name == "searcher-state-session.json"
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(file.read_bytes())
    again = searcher()
    again.restore_from_dir(str(tmp_path))
    assert run(again, 9, first=3) == run(search, 9, first=3)


def test_a_state_may_come_before_the_space(tmp_path: Path) -> None:
    search = searcher(RAY_SMALL)
    run(search, 6)
    search.save(str(tmp_path / "state"))
    again = CarboSearcher(settings=CHEAPEST)
    again.restore(str(tmp_path / "state"))
    again.save(str(tmp_path / "same"))
    assert (tmp_path / "same").read_text() == (tmp_path / "state").read_text()
    assert again.set_search_properties(None, None, RAY_SMALL)
    assert run(again, 6, first=6) == run(search, 6, first=6)


def test_a_searcher_without_a_space_saves_and_restores(tmp_path: Path) -> None:
    searcher(None).save(str(tmp_path / "state"))
    again = searcher()
    again.restore(str(tmp_path / "state"))
    assert len(run(again, 12)) == 12


def test_a_state_of_an_acquisition_that_is_a_function_takes_the_function_from_the_constructor(tmp_path: Path) -> None:
    settings = CHEAPEST | {"acquisition": lambda mean, deviation, best: -mean.mean(axis=0)}
    search = searcher(settings=settings)
    run(search, 7)
    search.save(str(tmp_path / "state"))
    again = searcher(settings=settings)
    again.restore(str(tmp_path / "state"))
    assert run(again, 5, first=7) == run(search, 5, first=7)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 0, "optimizer": null}', '{"version": 1, "opt', "\x80\x04"]
)
def test_another_file_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text(text)
    with pytest.raises(StateError) as caught:
        searcher().restore(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_a_damaged_one_and_one_of_another_space_are_refused(tmp_path: Path) -> None:
    search = searcher()
    run(search, 3)
    search.save(str(tmp_path / "state"))
    with pytest.raises(StateError, match="none"):
        searcher().restore(str(tmp_path / "none"))
    with pytest.raises(StateError, match="got the state of another"):
        searcher(carbo.Space({"c": carbo.Binary()})).restore(str(tmp_path / "state"))
    with pytest.raises(SettingsError, match="mode"):
        searcher(mode="max").restore(str(tmp_path / "state"))
    state = json.loads((tmp_path / "state").read_text())
    for key in ("running", "finished", "exhausted"):
        (tmp_path / "damaged").write_text(json.dumps({k: v for k, v in state.items() if k != key}))
        with pytest.raises(StateError, match="damaged"):
            searcher().restore(str(tmp_path / "damaged"))


# ---------------------------------------------------------------- a real cluster, in a process of its own

SETUP = """
import json, os, sys
from pathlib import Path
import ray
from ray import tune
import carbo

folder = Path(sys.argv[1])

def cluster():
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL",
             _temp_dir=sys.argv[2])

def table(results):
    return [[r.config, (r.metrics or {}).get("loss"), r.error is not None] for r in results]

def tuner(train, searcher, space, callbacks=(), **config):
    return tune.Tuner(train, param_space=space,
        tune_config=tune.TuneConfig(search_alg=searcher, reuse_actors=True, **config),
        run_config=tune.RunConfig(storage_path=str(folder), name="run", verbose=0, callbacks=list(callbacks)))

def newest():
    files = sorted(folder.glob("run/searcher-state-*"))
    return json.loads(files[-1].read_text())
"""

WHOLE = """
def train(config):
    if config["model"]["depth"] == 2:
        raise RuntimeError("too deep")
    tune.report({"loss": config["model"]["depth"] + config["x"] + config["shift"]})

cluster()
space = {"model": {"depth": tune.randint(0, 4)}, "x": tune.choice([0.25, 0.5]), "shift": 10}
search = carbo.CarboSearcher(seed=0, settings=SETTINGS)
found = tuner(train, search, space, metric="loss", mode="min", num_samples=20).fit()
other = carbo.CarboSearcher(space, metric="loss", mode="min")
other.add_evaluated_trials(found, metric="loss")
facts = {"trials": table(found), "best": search.optimizer.best.value, "pending": search.optimizer.pending,
         "state": newest(), "learned": len(other.optimizer), "rows": search.optimizer.state()["rows"]}
"""

INTERRUPTED = """
marker = folder / "restored"

def train(config):
    if config["a"] == 2 and not marker.exists():
        raise RuntimeError("not yet")
    tune.report({"loss": config["a"] + config["b"]})

class Interrupt(tune.Callback):
    ended = 0
    def on_trial_complete(self, iteration, trials, trial, **info):
        self.ended += 1
        if self.ended == 5 and not marker.exists():
            raise KeyboardInterrupt

space = {"a": tune.randint(0, 4), "b": tune.choice([0.0, 0.5, 0.75])}
cluster()
first = [{"a": 2, "b": 0.0}]  # it fails
search = carbo.CarboSearcher(seed=0, settings=SETTINGS, points_to_evaluate=first)
try:
    tuner(train, search, space, [Interrupt()], metric="loss", mode="max", num_samples=30).fit()
    facts = {"interrupted": False}
except KeyboardInterrupt:
    facts = {"interrupted": True, "before": newest()}
ray.shutdown()  # all that ran is gone, as after a crash
marker.touch()
cluster()
found = tune.Tuner.restore(str(folder / "run"), train, param_space=space, restart_errored=True).fit()
facts |= {"trials": table(found), "after": newest()}
"""


@pytest.fixture
def short_folder() -> Iterator[str]:
    """Ray's sockets need a path shorter than pytest's."""
    folder = tempfile.mkdtemp(prefix="carbo-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def on_a_cluster(script: str, folder: Path, short_folder: str) -> dict[str, Any]:
    """Run a script against a cluster of its own; what it found out."""
    settings = f"SETTINGS = {CHEAPEST!r}\n"
    (folder / "script.py").write_text(
        SETUP + settings + script + '\n(folder / "facts").write_text(json.dumps(facts))\n'
    )
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_worker_niceness": "0",  # else its workers starve on a busy machine
        "TUNE_GLOBAL_CHECKPOINT_S": "0",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, str(folder / "script.py"), str(folder), short_folder],
        env={key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"} | quiet,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    facts: dict[str, Any] = json.loads((folder / "facts").read_text())
    return facts


def test_on_a_cluster_concurrent_trials_never_coincide_failures_are_learned_and_it_ends_with_the_space(
    tmp_path: Path, short_folder: str
) -> None:
    facts = on_a_cluster(WHOLE, tmp_path, short_folder)
    configs = [config for config, _, _ in facts["trials"]]
    assert len(configs) == 8  # of the 20 wanted: the whole space
    assert distinct(configs)
    assert all(config["shift"] == 10 for config in configs)
    failed = [config["model"]["depth"] == 2 for config in configs]
    assert [error for _, _, error in facts["trials"]] == failed
    assert facts["state"]["optimizer"]["values"].count(None) == 2
    assert facts["state"]["optimizer"]["rows"] == facts["rows"]
    assert facts["best"] == 10.25
    assert (facts["pending"], facts["learned"]) == ([], 8)


@pytest.mark.slow
def test_on_a_cluster_a_run_that_was_interrupted_goes_on_and_repeats_nothing(tmp_path: Path, short_folder: str) -> None:
    facts = on_a_cluster(INTERRUPTED, tmp_path, short_folder)
    assert facts["interrupted"]
    before, after = facts["before"]["optimizer"], facts["after"]["optimizer"]
    assert None in before["values"]
    assert 4 <= len(before["rows"]) < 12
    configs = [config for config, _, _ in facts["trials"]]
    assert sorted((c["a"], c["b"]) for c in configs) == sorted(product(range(4), (0.0, 0.5, 0.75)))
    assert not any(error for _, _, error in facts["trials"])
    assert after["rows"][: len(before["rows"])] == before["rows"]
    assert sorted(after["values"]) == sorted(-(a + b) for a, b in product(range(4), (0.0, 0.5, 0.75)))
