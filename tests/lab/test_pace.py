"""`python -m lab pace`: methods timed in turns on the same data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab import cli
from lab.measure import pace
from lab.methods import METHODS
from lab.methods.base import Method


class Watched:
    """Names random rows; remembers what happened, and reads a clock that it moves itself."""

    def __init__(self, space: Space, name: str, cost: float, events: list[Any], clock: list[float]) -> None:
        self._space, self._name, self._cost, self._events, self._clock = space, name, cost, events, clock
        self._rng = np.random.default_rng(0)

    def tell(self, row: Ints, value: float) -> None:
        self._events.append((self._name, "tell", tuple(row.tolist()), value))
        self._clock[0] += 100.0  # what is told costs, but not a suggestion's time

    def ask(self) -> Ints:
        self._events.append((self._name, "ask"))
        self._clock[0] += self._cost
        return np.asarray(self._space.random_rows(self._rng, 1)[0])


def test_all_get_the_same_data_take_turns_and_only_asking_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []
    clock = [0.0]

    def watched(name: str, cost: float) -> Method:
        return Method(name, name.title(), lambda space, _seed, _budget: Watched(space, name, cost, events, clock))

    for name, cost in (("one", 2.0), ("two", 3.0)):
        monkeypatch.setitem(METHODS, name, watched(name, cost))
    monkeypatch.setattr("time.process_time", lambda: clock[0])
    report = pace.measure(["one", "two"], variables=6, observations=12, repeats=3)
    told = {name: [e[2:] for e in events if e[:2] == (name, "tell")][:12] for name in ("one", "two")}
    assert told["one"] == told["two"]
    assert len(set(told["one"])) == 12
    assert [e[0] for e in events if e[1] == "ask"] == ["one", "two"] * 4  # the first of each is not counted
    assert {name: each["seconds"] for name, each in report["methods"].items()} == {"one": [2.0] * 3, "two": [3.0] * 3}
    assert report["methods"]["two"]["times_the_first"] == 1.5


def test_the_command_prints_it_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--variables", "5", "--observations", "8", "--repeats", "2"]
    assert cli.main(["pace", "--method", "random,annealing", *sizes]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["methods"]) == ["random", "annealing"]
    assert report["methods"]["random"]["times_the_first"] == 1.0
    assert all(len(each["seconds"]) == 2 for each in report["methods"].values())


def test_an_unknown_method_is_named_before_anything_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pace", "--method", "random,anealing"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "did you mean 'annealing'?" in line
