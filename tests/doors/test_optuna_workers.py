"""Several workers on one study: claims under every interleaving, real threads, real processes on a SQLite file."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, Trial

from carbo import CarboSampler
from carbo.errors import SpaceExhausted
from carbo.integrations.optuna.claims import CLAIM, REPEAT, claim_text, claims_same, write_claim
from carbo.integrations.optuna.engine import StudyEngine
from carbo.integrations.optuna.space import Distributions
from carbo.numerics.types import Ints
from carbo.space.row_space import row_keys
from tests.presets import CHEAP

CHEAPEST = CHEAP | {"samples": 1, "burn_in": 2, "random_starts": 20}
PAIR: Distributions = {"a": IntDistribution(0, 1), "b": IntDistribution(0, 1)}


pytestmark = pytest.mark.usefixtures("quiet_optuna")


# ---------------------------------------------------------------- every interleaving


class Turns:
    """Lets two threads do one storage operation at a time in the order of a schedule, and freely after its end."""

    def __init__(self, schedule: tuple[str, ...]) -> None:
        self._left, self._change = list(schedule), threading.Condition()

    def take(self, operation: Callable[[], Any]) -> Any:
        me = threading.current_thread().name
        with self._change:
            self._change.wait_for(lambda: not self._left or self._left[0] == me)
            result = operation()
            if self._left:
                self._left.pop(0)
            self._change.notify_all()
            return result

    def leave(self) -> None:
        me = threading.current_thread().name
        with self._change:
            self._left = [name for name in self._left if name != me]
            self._change.notify_all()


def first_free(engine: StudyEngine, seed: Any) -> Ints:
    """Two workers that know the same always want the same: the hardest case."""
    optimizer = engine.optimizer()
    excluded = set(row_keys(np.concatenate([optimizer.observations.X, engine.space.encode_many(optimizer.pending)])))
    for row in engine.space.all_rows():
        if row.tobytes() not in excluded:
            return np.asarray(row)
    raise SpaceExhausted("none left")


def race(schedule: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What two workers get when their storage operations come in that order; A has the lower trial number."""
    storage = InMemoryStorage()
    study = optuna.create_study(storage=storage)
    trials = [storage.get_trial(storage.create_new_trial(study._study_id)) for _ in "AB"]
    turns, got = Turns(schedule), {}
    plain = {name: getattr(InMemoryStorage, name) for name in ("get_all_trials", "set_trial_system_attr")}

    def work(trial: FrozenTrial) -> None:
        sampler = CarboSampler(search_space=PAIR, seed=0, settings=CHEAPEST)
        got[trial.number] = sampler.sample_relative(study, trial, PAIR)
        turns.leave()

    with monkeypatch.context() as patch:
        for name, operation in plain.items():
            patch.setattr(InMemoryStorage, name,
                          lambda *a, _do=operation, **k: turns.take(lambda: _do(*a, **k)))  # fmt: skip
        threads = [threading.Thread(target=work, args=(t,), name=n) for t, n in zip(trials, "AB", strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return [got[0], got[1]]


@pytest.fixture
def _same_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StudyEngine, "suggest", first_free)
    monkeypatch.setattr("carbo.integrations.optuna.sampler.PAUSES", (0.0,) * 4)


SCHEDULES = list(product("AB", repeat=7))
"""A suggestion without a rival is three operations: read, claim, read again."""


@pytest.mark.usefixtures("_same_wish")
def test_no_interleaving_gives_two_workers_the_same_point(monkeypatch: pytest.MonkeyPatch) -> None:
    for schedule in SCHEDULES:
        one, two = race(schedule, monkeypatch)
        assert one != two, schedule


def never_looks_again(sampler: CarboSampler, study: Any, trial: Any, engine: StudyEngine, row: Ints) -> bool:
    return True


def lower_number_keeps(sampler: CarboSampler, study: Any, trial: Any, engine: StudyEngine, row: Ints) -> bool:
    return all(r.number > trial.number for r in engine.rivals(sampler._read(study, trial), row))


@pytest.mark.usefixtures("_same_wish")
@pytest.mark.parametrize("rule", [never_looks_again, lower_number_keeps])
def test_weaker_rules_fail_under_some_interleaving(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CarboSampler, "_keeps", rule)
    results = [race(schedule, monkeypatch) for schedule in SCHEDULES]
    assert any(one == two for one, two in results)


@pytest.mark.usefixtures("_same_wish")
def test_a_dead_workers_claim_is_respected() -> None:
    study = optuna.create_study(sampler=CarboSampler(search_space=PAIR, seed=0, settings=CHEAPEST))
    dead = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    claimed = study.sampler.sample_relative(study, dead, PAIR)  # and nothing more was stored
    assert study.ask(PAIR).params != claimed


# ---------------------------------------------------------------- what a claim is


def test_a_claim_fits_into_an_attribute_however_many_parameters() -> None:
    for count in (60, 600, 3_000):
        row = np.arange(count, dtype=np.intp) % 2
        study = optuna.create_study()
        trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
        write_claim(study, trial, claim_text("0123456789ab", row), 123456.789123)
        trial = study.trials[0]
        assert len(json.dumps(trial.system_attrs[CLAIM])) <= 2_045  # of a relational storage
        assert claims_same(trial, "0123456789ab", row)
        assert not claims_same(trial, "0123456789ab", 1 - row)
        assert not claims_same(trial, "ba9876543210", row)


def test_a_claim_too_long_to_list_still_wards_off_others() -> None:
    space: Distributions = {f"x{i}": CategoricalDistribution([0, 1]) for i in range(1_200)}
    sampler = CarboSampler(search_space=space, seed=0, settings=CHEAPEST)
    study = optuna.create_study(sampler=sampler)
    first = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    wanted = sampler.sample_relative(study, first, space)
    engine = sampler._engine_for(space)
    row = engine.space.encode(wanted)
    holder = study._storage.get_trial(first._trial_id)
    assert holder.system_attrs[CLAIM]["point"].split()[1].startswith("#")
    assert [t.number for t in engine.rivals([holder], row)] == [0]
    assert engine.rivals([holder], 1 - row) == []


def test_claims_are_pending_points_before_any_parameter_is_stored() -> None:
    sampler = CarboSampler(search_space=PAIR, seed=0, settings=CHEAPEST)
    study = optuna.create_study(sampler=sampler)
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    claimed = sampler.sample_relative(study, trial, PAIR)
    another = CarboSampler(search_space=PAIR, settings=CHEAPEST)
    assert another.optimizer(study).pending == [claimed]
    study._storage.set_trial_param(trial._trial_id, "a", 1 - claimed["a"], PAIR["a"])  # what is stored counts more
    assert another.optimizer(study).pending == [claimed | {"a": 1 - claimed["a"]}]


# ---------------------------------------------------------------- real threads and processes

GRID: dict[str, list[Any]] = {"a": [0, 1, 2, 3], "b": ["x", "y", "z"], "c": [False, True]}


def objective(trial: Trial) -> float:
    params = {name: trial.suggest_categorical(name, choices) for name, choices in GRID.items()}
    return float(sum(map(len, map(str, params.values()))))


def evaluated(study: optuna.Study) -> Counter[tuple[Any, ...]]:
    """How often each point was evaluated, the marked repeats at the end aside."""
    new = [t for t in study.trials if REPEAT not in t.system_attrs]
    return Counter(tuple(t.params[name] for name in GRID) for t in new)


def test_threads_share_a_sampler_and_evaluate_every_point_once() -> None:
    space: Distributions = {name: CategoricalDistribution(c) for name, c in GRID.items()}
    study = optuna.create_study(sampler=CarboSampler(search_space=space, settings=CHEAPEST))
    study.optimize(objective, n_trials=100, n_jobs=4)
    assert evaluated(study) == Counter(product(*GRID.values()))
    assert len(study.trials) <= 24 + 2 * 4


WORKER = """
import sys
import optuna
import carbo

optuna.logging.set_verbosity(optuna.logging.ERROR)
grid = {grid!r}
space = {{name: optuna.distributions.CategoricalDistribution(choices) for name, choices in grid.items()}}
sampler = carbo.CarboSampler(search_space=space, settings={settings!r}, seed=0)
study = optuna.load_study(study_name="shared", storage=sys.argv[1], sampler=sampler)
print("ready", flush=True)
sys.stdin.readline()
study.optimize(lambda t: float(len(str([t.suggest_categorical(name, grid[name]) for name in grid]))))
"""


def test_processes_with_the_same_seed_share_a_sqlite_file_and_evaluate_every_point_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(study_name="shared", storage=url)
    code = WORKER.format(grid=GRID, settings=CHEAPEST)
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(subprocess.Popen([sys.executable, "-c", code, url], text=True,
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)) for _ in range(2)]  # fmt: skip
        assert [worker.stdout.readline() for worker in workers if worker.stdout] == ["ready\n"] * 2
        for worker in workers:  # the end of its input sends a worker off
            assert worker.stdin is not None
            worker.stdin.close()
    assert [worker.returncode for worker in workers] == [0, 0]
    assert evaluated(study) == Counter(product(*GRID.values()))
