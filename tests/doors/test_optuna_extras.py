"""What surrounds the sampler: its documents and examples run, the OptunaHub package loads, the optimiser's hooks."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import math
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import carbo
from carbo import Binary, DataError, Optimizer, Ordinal, Space, SpaceError
from carbo.engine import Engine, Suggestions
from carbo.surrogate.surrogate import Belief
from lab.measure import optuna_overhead as adapter
from lab.measure.speed import Point
from tests.presets import CHEAP, PRESETS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "optunahub" / "package" / "samplers" / "carbo"

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def blocks(document: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)


# ---------------------------------------------------------------- documents and examples


def test_the_page_on_optuna_runs_in_order() -> None:
    names: dict[str, Any] = {}
    for block in blocks(ROOT / "docs" / "optuna.md"):
        exec(compile(block, "optuna.md", "exec"), names)
    study = names["study"]
    assert len(study.trials) == 22  # the 21 permitted points, and the repeat
    assert len({tuple(t.params.values()) for t in study.trials}) == 21
    assert names["sampler"].exhausted


# ---------------------------------------------------------------- OptunaHub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stand-in for optunahub that loads the package from this repository."""

    def load_module(package: str) -> ModuleType:
        assert package == "samplers/carbo"
        spec = importlib.util.spec_from_file_location("optunahub_registry.package.carbo", PACKAGE / "__init__.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    stand_in = ModuleType("optunahub")
    stand_in.load_module = load_module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "optunahub", stand_in)
    return stand_in


def test_the_hub_package_hands_out_the_sampler(hub: ModuleType) -> None:
    module = hub.load_module(package="samplers/carbo")
    assert module.__all__ == ["CarboSampler"]
    assert module.CarboSampler is carbo.CarboSampler


def test_the_hub_example_runs(hub: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    params, value = re.fullmatch(r"(\{.*\}) (\S+)\n", capsys.readouterr().out, re.DOTALL).groups()  # type: ignore[union-attr]
    best = ast.literal_eval(params)
    assert best["level"] > 0 or not best["unroll"]
    assert -0.5 <= float(value) <= 4.0


def test_the_hub_readme_runs(hub: ModuleType) -> None:
    (block,) = blocks(PACKAGE / "README.md")
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert names["study"].best_value == 0


def test_the_hub_readme_has_what_the_registry_asks_for() -> None:
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    entries = dict(line.split(": ", 1) for line in head.splitlines())
    assert list(entries) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert entries["license"] == "MIT License"
    assert entries["tags"].startswith("[sampler,")
    sections = re.findall(r"^## (.*)$", body, re.MULTILINE)
    assert sections == ["Abstract", "Class or Function Names", "Installation", "APIs", "Example", "Others"]
    assert (PACKAGE / "LICENSE").read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")


# ---------------------------------------------------------------- hooks of the optimiser


def trio() -> Space:
    return Space({"a": Binary(), "b": Ordinal([1, 2, 3]), "c": Binary(), "d": Ordinal(list("wxyz"))})


@pytest.mark.parametrize("preset", PRESETS)
def test_replaced_data_are_as_good_as_told_ones(preset: str) -> None:
    space = trio()
    told, replaced = (Optimizer(space, seed=0, preset=preset, settings=CHEAP) for _ in range(2))
    rows = space.random_rows(np.random.default_rng(1), 8)
    values = [3.0, None, 1.0, 2.0, math.inf, 5.0, 4.0, 0.5]
    told.tell(space.decode_many(rows), values)
    replaced.tell(space.decode(rows[0]), 99.0)  # is gone afterwards
    replaced.replace_data(rows, values)
    np.testing.assert_equal(replaced.history(), told.history())
    assert [told.ask() for _ in range(3)] == [replaced.ask() for _ in range(3)]


def test_replaced_pending_points_are_not_suggested() -> None:
    space = Space({"a": Binary(), "b": Binary()})
    optimizer = Optimizer(space, seed=0, settings=CHEAP)
    optimizer.ask()
    optimizer.replace_data([[0, 0]], [1.0], [[0, 1], [1, 0]])
    assert optimizer.pending == [{"a": False, "b": True}, {"a": True, "b": False}]
    assert optimizer.ask() == {"a": True, "b": True}


def test_replacing_leaves_the_callers_array_alone() -> None:
    rows = np.array([[0, 0, 1, 1]])
    optimizer = Optimizer(trio(), seed=0, settings=CHEAP)
    optimizer.replace_data(rows, [1.0], rows)
    rows[:] = 1
    assert optimizer.history()[0] == optimizer.pending == [trio().decode([0, 0, 1, 1])]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([[0, 0, 0, 0]], []), DataError),
        (([[0, 0, 0, 9]], [1.0]), SpaceError),
        (([[0, 0]], [1.0]), SpaceError),
        (([[0, 0, 0, 0]], ["best"]), DataError),
        (([[0, 0, 0, 0]], [1.0], [[0, 3, 0, 0]]), SpaceError),
    ],
)
def test_data_that_do_not_fit_change_nothing(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    optimizer = Optimizer(trio(), seed=0, settings=CHEAP)
    optimizer.tell(trio().decode([1, 1, 1, 1]), 2.0)
    with pytest.raises(error):
        optimizer.replace_data(*arguments)
    assert optimizer.best == carbo.Best(trio().decode([1, 1, 1, 1]), 2.0)
    assert optimizer.pending == []


def test_predictions_follow_replaced_data() -> None:
    optimizer = Optimizer(trio(), seed=0, settings=CHEAP)
    rows = trio().random_rows(np.random.default_rng(1), 6)
    optimizer.replace_data(rows, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    low, _ = optimizer.predict(trio().decode(rows[0]))
    optimizer.replace_data(rows, [101.0, 102.0, 103.0, 104.0, 105.0, 106.0])
    high, _ = optimizer.predict(trio().decode(rows[0]))
    assert high == pytest.approx(low + 100.0)


# ---------------------------------------------------------------- what the adapter costs


@pytest.mark.parametrize("where", adapter.STORAGES)
def test_the_adapters_share_is_its_time_beside_the_engines_in_the_same_suggestions(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count(0.0)  # a clock on which every look is a second later
    monkeypatch.setattr(adapter, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    answer = Suggestions([np.zeros(3, dtype=np.intp)], Belief(), False)
    monkeypatch.setattr(Engine, "ask", lambda *_, **__: answer)
    found = adapter.measure("default", where, 3, Point(3, 2, 8))
    # the search space, 1; the suggestion, 3, of which the engine has 1 in the middle
    assert found == {"preset": "default", "storage": where, "engine": 1.0, "adapter": 3.0, "share": 3.0}
