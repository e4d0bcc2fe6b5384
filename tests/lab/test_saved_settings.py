"""Settings that an earlier carbo wrote: in states, in records of the laboratory, and in the committed results."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from carbo import settings as module
from carbo.errors import SettingsError
from carbo.inference.priors import Priors
from carbo.settings import DEFAULT, GONE, PAPER, SINCE, Settings, flatten, is_implied
from lab.methods import METHODS
from lab.problems import problem
from lab.runs.grid import Task, settings_key
from lab.runs.record import LIMITS, LONGEST, Record, comparable, read
from lab.runs.store import Store
from lab.tables.results import RELOCATED, Selection, arrange
from lab.tables.tables import everything

RESULTS = Path(__file__).parents[2] / "results"
FOLDERS = (RESULTS, RESULTS / "experiments")
NOISY = ("pest-control", "pest-control-path")
FORMER = ("default-trust", "default:design=spread", "default:acquisition=mes")
"""Methods of the records that are gone, or will be."""


FOUND = {"random": 147, "annealing": 174, "evolution": 177, "genetic": 174, "tpe": 174, "tpe-hyperopt": 119,
         "gp-optuna": 65, "smac": 54, "bocs-sdp": 83, "paper": 76}  # fmt: skip
"""Committed runs of today's methods with today's settings, as revision 41dd473 finds them. A preset that changes on
purpose leaves its runs behind, and changes this count with them."""


def first_saved() -> dict[str, Any]:
    """The names that the first states held, with the default preset's values of today."""
    return {key: value for key, value in DEFAULT.to_dict().items() if key not in SINCE}


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("settings", [DEFAULT, PAPER, dataclasses.replace(DEFAULT, doubt=0.0, learn_from=7)])
def test_saved_settings_come_back_as_they_were(settings: Settings) -> None:
    assert Settings.from_saved(json.loads(json.dumps(settings.to_dict()))) == settings


def test_a_setting_that_is_absent_has_the_value_it_had_before_it_existed() -> None:
    found = Settings.from_saved(first_saved())
    assert found == DEFAULT.changed({name: value for name, value in SINCE.items() if "." not in name})
    assert (found.doubt, found.leaps) == (0.0, False) != (DEFAULT.doubt, True)


@pytest.mark.parametrize("name", ["kernel", "initial", "priors.beta_sd"])
def test_a_setting_that_has_always_been_there_must_be_there(name: str) -> None:
    saved = DEFAULT.to_dict()
    room, key = (saved["priors"], name[7:]) if name.startswith("priors.") else (saved, name)
    del room[key]
    with pytest.raises(SettingsError, match=f"expected '{name}' among them, got none"):
        Settings.from_saved(saved)


@pytest.mark.parametrize("saved", [None, [], {}, {"priors": 3}])
def test_values_that_are_no_settings_are_refused(saved: Any) -> None:
    with pytest.raises(SettingsError, match="expected an object with an object 'priors' in it"):
        Settings.from_saved(saved)


def test_an_acquisition_that_was_a_function_must_be_passed_again() -> None:
    saved = dataclasses.replace(DEFAULT, acquisition=lambda mu, sd, best: sd).to_dict()
    with pytest.raises(SettingsError, match="it was a function"):
        Settings.from_saved(saved)


@pytest.fixture
def two_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GONE", {"colour": "red", "priors.width": (0.0, 1.0)})


@pytest.mark.usefixtures("two_are_gone")
def test_a_setting_that_is_gone_is_dropped_where_it_had_the_value_that_is_left() -> None:
    saved = DEFAULT.to_dict()
    saved |= {"colour": "red", "priors": {**saved["priors"], "width": [0.0, 1.0]}}
    assert Settings.from_saved(saved) == DEFAULT
    assert comparable(saved) == comparable(DEFAULT.to_dict())


@pytest.mark.usefixtures("two_are_gone")
def test_a_setting_that_is_gone_is_refused_with_any_other_value() -> None:
    saved = {**DEFAULT.to_dict(), "colour": "blue"}
    with pytest.raises(
        SettingsError, match="setting 'colour': it is gone; expected 'red', the only value left, got 'blue'"
    ):
        Settings.from_saved(saved)
    assert comparable(saved) != comparable(DEFAULT.to_dict())


def test_every_value_before_is_one_that_a_setting_can_have() -> None:
    assert set(SINCE) <= flatten(DEFAULT.to_dict()).keys()
    assert all(is_implied(name, SINCE) for name in SINCE)


def test_no_setting_is_both_new_and_gone() -> None:
    assert not SINCE.keys() & GONE.keys()
    now = {field.name for field in dataclasses.fields(Settings)}
    now |= {f"priors.{field.name}" for field in dataclasses.fields(Priors)}
    assert not GONE.keys() & now


# ---------------------------------------------------------------- comparison


def test_settings_compare_by_what_they_change() -> None:
    said = DEFAULT.changed({name: value for name, value in SINCE.items() if "." not in name}).to_dict()
    assert comparable(said) == comparable(first_saved())
    assert comparable({**said, "doubt": 0}) == comparable(said) != comparable({**said, "doubt": 1.0})


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_counts_where_a_run_may_reach_it(limit: str) -> None:
    assert problem("pest-control", 1).budget <= LONGEST  # the longest that the paper has
    assert comparable({limit: LONGEST}) == comparable({limit: None}) == comparable({})
    assert comparable({limit: LONGEST - 1}) == {limit: LONGEST - 1}


# ---------------------------------------------------------------- the committed results


@pytest.fixture(scope="module")
def committed() -> list[Record]:
    """Every record of results/runs and of results/experiments/runs."""
    return [record for folder in FOLDERS for record in read(folder)]


def wanted(record: Record) -> Task:
    """The task that asks for a record's run today."""
    chosen = METHODS[record.method].version_for(noisy=record.problem in NOISY)
    return Task(record.problem, record.relocated, record.method, settings_key(chosen), record.run, len(record.values))


def test_every_record_is_a_run_of_its_own() -> None:
    for folder, count in zip(FOLDERS, (1441, 497), strict=True):
        store, files = Store(folder, warn=pytest.fail), list(folder.glob("runs/*.jsonl"))
        assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) == count
        assert sum(len(store.finished(file.stem)) for file in files) == count


def test_the_runs_of_todays_methods_are_found(committed: list[Record]) -> None:
    found = Counter(r.method for r in committed if r.method in METHODS and wanted(r).key == r.key)
    assert found == FOUND


def test_records_of_methods_that_are_gone_can_be_tabulated(committed: list[Record]) -> None:
    shown = arrange(committed, Selection(methods=FORMER, budget=150))
    assert {version.method for version in shown.versions} == set(FORMER)
    assert all(table.rows for table in everything(shown, [RELOCATED])[:1])
