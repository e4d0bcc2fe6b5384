"""The evaluations of a study, counted against its budget, and the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from carbo.integrations.optuna.evaluations import COUNTED, Evaluation
from carbo.tune.errors import StudyError

RUN, DEATHS = "carbo:run", "carbo:deaths"
"""User attributes of trials: who runs the trial, under which mark; how many workers died on its parameters."""
TAKEN = (*COUNTED, "running", "waiting")
"""Standings that take up a place in the budget, at least for now. COUNTED ones do so for good."""


def best(rows: Iterable[Evaluation], direction: str) -> Evaluation | None:
    """The first evaluation with the best value; None while no evaluation is done."""
    sign = 1 if direction == "minimize" else -1
    done = [(sign * row.value, row.number, row) for row in rows if row.value is not None]
    return min(done)[2] if done else None


def need_best(rows: Sequence[Evaluation], direction: str, where: str) -> Evaluation:
    """Like `best`; StudyError while no evaluation is done."""
    found = best(rows, direction)
    if found is None:
        raise StudyError(f"{where}: expected a finished evaluation, got {count(rows)} that all failed; "
                         "`carbo trials` shows why")  # fmt: skip
    return found


def count(rows: Iterable[Evaluation], standings: Sequence[str] = COUNTED) -> int:
    """How many of these evaluations have one of these standings."""
    return sum(row.standing in standings for row in rows)


def ended_at(row: Evaluation) -> str | None:
    """When an evaluation ended, in ISO format."""
    return None if row.ended is None else row.ended.isoformat(" ", "seconds")


def as_json(row: Evaluation) -> dict[str, Any]:
    """An evaluation as `carbo trials --json` prints it."""
    return {
        "number": row.number,
        "standing": row.standing,
        "value": row.value,
        "params": row.params,
        "seconds": row.seconds,
        "reason": row.reason,
        "finished": ended_at(row),
    }
