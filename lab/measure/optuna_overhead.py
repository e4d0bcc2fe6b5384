"""The time that `CarboSampler` adds to a suggestion of the engine, in a study with 250 finished trials.

The trials are those of `speed` at 60 binary variables. The time of a suggestion is that of Optuna's two calls of the
sampler. The engine's part is the time inside `Engine.ask` in the same suggestion, so that other work on the machine
affects both. Optuna's time outside of the sampler, such as storing the parameters, is left out.

    python -m lab.measure.optuna_overhead [suggestions]         prints JSON: median seconds, and the adapter's share
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution

from carbo.engine import Engine
from carbo.integrations.optuna.sampler import CarboSampler
from carbo.numerics.threads import limit_threads
from carbo.settings import PRESETS
from lab.measure.speed import Point, random_quadratic, trail

Function = Callable[[Any], Any]
POINT = Point(60, 2, 250)
STORAGES = ("memory", "sqlite")
SWITCH = CategoricalDistribution([0, 1])


class Watch:
    """Measures the seconds spent inside functions that it wraps, since the last reading."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self._seconds += time.perf_counter() - began

        return timed

    def read(self) -> float:
        seconds, self._seconds = self._seconds, 0.0
        return seconds


def measure(preset: str, where: str, repeats: int, point: Point = POINT) -> dict[str, Any]:
    """Medians over warm suggestions, in seconds, and the adapter's share of the engine's time."""
    sampler, engine = Watch(), Watch()
    rng = np.random.default_rng(0)
    function = random_quadratic(rng, point.variables, point.values)
    rows = trail(rng, function, point)
    with _storage(where) as storage, _watched(sampler, engine):
        study = optuna.create_study(storage=storage, sampler=CarboSampler(preset=preset, seed=0))
        study.add_trials([_finished(row, value) for row, value in zip(rows, function(rows).tolist(), strict=True)])
        times = [_suggestion(study, function, (sampler, engine)) for _ in range(repeats + 1)][
            1:
        ]  # the first suggestion burns the chain in
    own, added = (statistics.median(each) for each in zip(*times, strict=True))
    return {"preset": preset, "storage": where, "engine": own, "adapter": added, "share": added / own}


def _suggestion(study: optuna.Study, function: Function, watches: tuple[Watch, Watch]) -> tuple[float, float]:
    """Seconds of the engine and of the adapter for one more trial."""
    trial = study.ask(study.trials[0].distributions)
    whole, own = (watch.read() for watch in watches)
    study.tell(trial, float(function(np.array([list(trial.params.values())]))[0]))
    return own, whole - own


def _finished(row: Any, value: float) -> optuna.trial.FrozenTrial:
    params = {f"x{i:02}": int(level) for i, level in enumerate(row)}
    return optuna.create_trial(params=params, distributions=dict.fromkeys(params, SWITCH), value=value)


@contextmanager
def _storage(where: str) -> Iterator[str | None]:
    """Optuna's storage in memory, or the URL of a new SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/study.db" if where == "sqlite" else None


@contextmanager
def _watched(sampler: Watch, engine: Watch) -> Iterator[None]:
    with ExitStack() as patches:
        for name in ("infer_relative_search_space", "sample_relative"):
            patches.enter_context(mock.patch.object(CarboSampler, name, sampler.wrapped(getattr(CarboSampler, name))))
        patches.enter_context(mock.patch.object(Engine, "ask", engine.wrapped(Engine.ask)))
        yield


def report(repeats: int) -> list[dict[str, Any]]:
    """Both presets, with storage in memory and in a file, on one thread."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with limit_threads(POINT.observations, 1):
        return [measure(preset, where, repeats) for preset in sorted(PRESETS) for where in STORAGES]


if __name__ == "__main__":
    print(json.dumps(report(int(sys.argv[1]) if len(sys.argv) > 1 else 5), indent=2))
