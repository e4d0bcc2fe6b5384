"""How a trial stands: one rule for the sampler, the tuner and the report."""

from __future__ import annotations

import math
from typing import Any

import pytest
from optuna.study import StudyDirection
from optuna.trial import TrialState

from carbo.integrations.optuna.evaluations import REASON, RESULT, evaluation, evaluations
from carbo.integrations.optuna.memory import Memory, losses
from tests.reports import binary, trial

SPACE = binary(1)
PRUNED = {"state": TrialState.PRUNED}
BROKEN = {"system_attrs": {"constraints": [0.1]}}
NAMED = {"system_attrs": {"constraints:memory": 0.1}}
UNKNOWN = {"system_attrs": {"constraints": None}}
KEPT = {"system_attrs": {"constraints": [0.0], "constraints:memory": -1.0}}
REPEATED = {"system_attrs": {"carbo:repeat": True}}


def made(value: float | None = None, number: int = 0, **changes: Any) -> Any:
    return trial(number, {"v0": True}, SPACE, value, **changes)


@pytest.mark.parametrize(
    ("changes", "standing", "loss"),
    [
        ({"value": 2.0}, "done", 2.0),
        ({"value": 2.0, **KEPT}, "done", 2.0),
        ({"value": 2.0, **REPEATED}, "done", 2.0),
        ({"value": 2.0, **BROKEN}, "failed", math.nan),
        ({"value": 2.0, **NAMED}, "failed", math.nan),
        ({"value": 2.0, **UNKNOWN}, "failed", math.nan),
        ({"value": math.inf}, "failed", math.nan),
        ({}, "failed", math.nan),
        ({**REPEATED}, "failed", None),
        ({**PRUNED}, "pruned", math.nan),
        ({**PRUNED, "intermediate_values": {0: 9.0, 1: 4.0}}, "pruned", 4.0),
        ({**PRUNED, "intermediate_values": {0: 9.0}}, "pruned", 5.0),
        ({**PRUNED, "intermediate_values": {0: 1.0}}, "pruned", 3.0),
        ({**PRUNED, "intermediate_values": {0: 4.0}, **BROKEN}, "pruned", math.nan),
        ({"state": TrialState.RUNNING, "datetime_complete": None}, "running", None),
        ({"state": TrialState.WAITING, "datetime_complete": None}, "waiting", None),
    ],
)
def test_how_a_trial_stands_and_what_the_model_learns(
    changes: dict[str, Any], standing: str, loss: float | None
) -> None:
    """Beside two trials with the values 1 and 5, whose median with most values here is 3."""
    each = made(number=2, **changes)
    assert evaluation(each).standing == standing
    memory = Memory()
    memory.read([made(1.0), made(5.0, number=1), each])
    observations = memory.observations()
    found = losses(observations, StudyDirection.MINIMIZE, exclusive=True)
    if loss is None:
        assert [row.number for row in observations] == [0, 1]
    else:
        assert found == pytest.approx([1.0, 5.0, loss], nan_ok=True)


def test_a_failure_is_abandoned_when_another_trial_takes_it_up() -> None:
    lost, retry = made(), made(2.0, number=1, system_attrs={"retry_history": [0]})
    for tuned in (False, True):
        assert [row.standing for row in evaluations([retry, lost], tuned)] == ["abandoned", "done"]
    memory = Memory()
    memory.read([lost])
    assert [row.number for row in memory.observations()] == [0]
    memory.read([lost, retry])
    assert [row.number for row in memory.observations()] == [1]


def test_the_tuner_gives_every_failure_a_reason_so_that_one_without_is_abandoned() -> None:
    bare, explained = made(), made(user_attrs={REASON: "exit code 1"})
    assert [evaluation(each, tuned=True).standing for each in (bare, explained)] == ["abandoned", "failed"]
    assert [evaluation(each, tuned=False).standing for each in (bare, explained)] == ["failed", "failed"]
    assert evaluation(explained).reason == "exit code 1"


def test_what_an_evaluation_says_of_its_trial() -> None:
    row = evaluation(made(2.0, user_attrs={RESULT: {"seconds": 7.5}}, system_attrs={"fixed_params": {"v1": False}}))
    assert (row.number, row.value, row.params, row.seconds, row.queued) == (
        0, 2.0, {"v0": True, "v1": False}, 7.5, True)  # fmt: skip
    for odd in ("soon", None, -1.0, math.nan):
        assert evaluation(made(2.0, user_attrs={RESULT: {"seconds": odd}})).seconds is None
