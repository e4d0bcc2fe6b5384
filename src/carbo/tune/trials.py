"""What a study holds, as rows: how each trial stands, which are counted, which is the best.

An evaluation is finished when its trial is COMPLETE, or FAIL with a reason. A trial that is FAIL without a reason was
never evaluated to its end: its worker died or was interrupted, and another trial took its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from carbo.tune.errors import StudyError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

REASON, RUN, RESULT, DEATHS = "carbo:reason", "carbo:run", "carbo:result", "carbo:deaths"
"""User attributes of trials: why it failed, who runs it under which mark, what the runs gave, how often it was lost."""
STANDINGS = ("done", "failed", "running", "waiting", "abandoned")
FINISHED, TAKEN = ("done", "failed"), ("done", "failed", "running", "waiting")
"""Standings that count against the budget for good, and until further notice."""


class Record(NamedTuple):
    """One trial."""

    number: int
    standing: str
    value: float | None
    params: Mapping[str, Any]
    seconds: float | None
    reason: str | None
    finished: str | None
    """When, in ISO format."""

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "params": dict(self.params)}


def standing(trial: FrozenTrial) -> str:
    """How a trial stands, one of STANDINGS."""
    name = trial.state.name
    if name == "FAIL":
        return "failed" if REASON in trial.user_attrs else "abandoned"
    return {"COMPLETE": "done", "PRUNED": "failed", "RUNNING": "running"}.get(name, "waiting")


def record(trial: FrozenTrial) -> Record:
    result = trial.user_attrs.get(RESULT, {})
    params = trial.params or trial.system_attrs.get("fixed_params", {})
    return Record(
        number=trial.number,
        standing=standing(trial),
        value=trial.value if trial.state.name == "COMPLETE" else None,
        params=params,
        seconds=result.get("seconds"),
        reason=trial.user_attrs.get(REASON),
        finished=trial.datetime_complete.isoformat(" ", "seconds") if trial.datetime_complete else None,
    )


def records(trials: Iterable[FrozenTrial]) -> list[Record]:
    return [record(trial) for trial in trials]


def best(rows: Sequence[Record], direction: str) -> Record | None:
    """The first with the best value; None while nothing is done."""
    done = [row for row in rows if row.value is not None]
    if not done:
        return None
    sign = 1 if direction == "minimize" else -1
    return min(done, key=lambda row: sign * (row.value or 0.0))


def count(rows: Iterable[Record], standings: Sequence[str] = FINISHED) -> int:
    return sum(row.standing in standings for row in rows)


def need_best(rows: Sequence[Record], direction: str, where: str) -> Record:
    """Like `best`; StudyError while nothing is done."""
    found = best(rows, direction)
    if found is None:
        raise StudyError(f"{where}: expected a finished evaluation, got {count(rows)} that all failed; "
                         "`carbo trials` shows why")  # fmt: skip
    return found
