"""Suggestions, states and claims are those that were recorded, to the last row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frozen import cases

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "frozen" / "recorded.json").read_text(encoding="utf-8"))

same_rounding = pytest.mark.skipif(
    cases.numerics() != RECORDED["numerics"], reason="this machine rounds otherwise than the recording one"
)


@same_rounding
@pytest.mark.parametrize("key", list(RECORDED["runs"]))
def test_a_run_is_the_recorded_one_row_by_row(key: str) -> None:
    name, preset, seed = key.split(" / ")
    now, then = cases.run(name, preset, int(seed)), RECORDED["runs"][key]
    assert now["rows"] == then["rows"]
    assert now["values"] == then["values"]
    np.testing.assert_allclose(now["means"], then["means"], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(now["sds"], then["sds"], rtol=1e-6, atol=1e-8)
    assert now["relevance"] == pytest.approx(then["relevance"], rel=1e-6, abs=1e-9)


@same_rounding
@pytest.mark.parametrize("name", list(RECORDED["states"]))
def test_a_saved_state_goes_on_with_the_recorded_suggestions(name: str) -> None:
    recorded = RECORDED["states"][name]
    assert cases.continued(name, recorded["state"]) == recorded["next"]


@pytest.mark.parametrize("name", list(RECORDED["states"]))
def test_a_saved_state_is_read_and_written_again_unchanged(name: str) -> None:
    import carbo

    saved = RECORDED["states"][name]["state"]
    again = carbo.Optimizer.from_state(cases.CASES[cases.STATES[name][0]].space(), saved).state()
    assert {k: v for k, v in again.items() if k != "settings"} == {k: v for k, v in saved.items() if k != "settings"}


@same_rounding
def test_the_claims_of_an_optuna_study_are_the_recorded_ones() -> None:
    assert cases.claims() == RECORDED["claims"]
