"""A study that revision 41dd473 began goes on. tests/frozen/tuned_study.json holds its file, its script and its trials.

They are of a tuner that was interrupted once, went on, and was killed while it ran its ninth trial.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import json_to_distribution
from optuna.trial import TrialState, create_trial

import carbo
from carbo import cli
from carbo.integrations.optuna.evaluations import evaluations
from carbo.tune.processes import Owner
from carbo.tune.reading import open_study
from carbo.tune.session import open_session
from carbo.tune.study_file import load
from tests.tuning import tuned

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "frozen" / "tuned_study.json").read_text("utf-8"))
STANDINGS = ["done", "failed", "abandoned", "done", "done", "done", "done", "failed", "running"]


def recorded(trial: dict[str, Any]) -> optuna.trial.FrozenTrial:
    return create_trial(
        state=TrialState[trial["state"]],
        value=trial["value"],
        params=trial["params"],
        distributions={name: json_to_distribution(text) for name, text in trial["distributions"].items()},
        user_attrs=trial["user_attrs"],
        system_attrs=trial["system_attrs"],
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The study file, its script, and the database as the old tuner left it."""
    (tmp_path / "study.toml").write_text(RECORDED["file"])
    (tmp_path / "run.sh").write_text(RECORDED["script"])
    (tmp_path / "go").touch()  # without it the script would hang at a = 8
    about = RECORDED["study"]
    study = optuna.create_study(
        study_name=about["name"], direction=about["direction"], storage=f"sqlite:///{tmp_path / 'study.db'}"
    )
    for name, value in about["user_attrs"].items():
        study.set_user_attr(name, value)
    for trial in RECORDED["trials"]:
        study.add_trial(recorded(trial))
    study._storage.remove_session()
    return tmp_path / "study.toml"


def test_its_trials_stand_as_they_did(path: Path) -> None:
    with open_study(str(path)) as opened:
        found = opened.evaluations()
    assert [row.standing for row in found] == STANDINGS
    assert [row.value for row in found] == [trial["value"] for trial in RECORDED["trials"]]
    assert found[1].reason == "exit code 3; stderr ends: no x"


def test_the_commands_read_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("best", "trials", "relevance"):
        assert cli.main([command, str(path), "--json"]) == 0
    assert cli.main(["report", str(path), "--no-model", "--out", str(path.with_name("page.html"))]) == 0
    assert '"value": 8.0' in capsys.readouterr().out


def test_it_goes_on_to_its_budget_and_evaluates_nothing_twice(path: Path) -> None:
    """The killed trial's owner is made a dead process of this machine: what the next tuner there would find."""
    with contextlib.closing(open_session(load(path))) as session:
        last = len(RECORDED["trials"]) - 1
        run = RECORDED["trials"][last]["user_attrs"]["carbo:run"]
        session.storage.set_trial_user_attr(
            session.trial_id(last), "carbo:run", {**run, "owner": list(Owner.this()._replace(started="1"))}
        )
    over, found = tuned(path)
    assert over == "the budget is used up"
    counted = [row for row in found if row.counts]
    assert len(counted) == 8
    assert len({json.dumps(row.params, sort_keys=True) for row in counted}) == 8
    assert [row.standing for row in found] == [*STANDINGS[:-1], "abandoned", "done"]
    assert found[-1].params == found[-2].params


def test_its_claims_are_still_understood(path: Path) -> None:
    """The trial under way is pending by its claim alone, as if none of its parameters had been stored yet."""
    with contextlib.closing(open_session(load(path))) as session:
        trials = session.study.get_trials()
        assert evaluations(trials, tuned=True)[-1].standing == "running"
        params, trials[-1].params, trials[-1].distributions = trials[-1].params, {}, {}
        bare = optuna.create_study()
        for trial in trials:
            bare.add_trial(trial)
        optimizer = carbo.CarboSampler(search_space=session.file.space, seed=0).optimizer(bare)
    assert optimizer.pending == [params]
