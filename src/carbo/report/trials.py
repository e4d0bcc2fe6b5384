"""A study's trials as plain values.

An evaluation is `done` when it gave a finite value that no constraint forbids; `failed` when it gave none; `pruned`
when it was stopped early. `abandoned` ones were cut short and tried again, or nobody's: they do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from optuna.trial import FrozenTrial, TrialState

from carbo.integrations.optuna.trials import infeasible, settled, suggestion_seconds, verdict
from carbo.report.secrets import masked_text
from carbo.tune.trials import REASON, RESULT, standing

COUNTED = ("done", "failed", "pruned")


class Times(NamedTuple):
    """Seconds; None where not known. `whole` is from a trial's start to its end."""

    suggestion: float | None
    evaluation: float | None
    whole: float | None


class Evaluation(NamedTuple):
    """One trial."""

    number: int
    standing: str
    value: float | None
    params: Mapping[str, Any]
    reason: str | None
    started: datetime | None
    ended: datetime | None
    times: Times
    queued: bool
    """Whether its params were given rather than suggested: a starting configuration, or a retry."""

    @property
    def counts(self) -> bool:
        return self.standing in COUNTED


def evaluations(trials: Iterable[FrozenTrial], tuned: bool) -> tuple[Evaluation, ...]:
    """All trials by number. tuned: they are of `carbo tune`, where a FAIL without a reason was no evaluation."""
    known = sorted(trials, key=lambda trial: trial.number)
    retried = {number for trial in known for number in trial.system_attrs.get("retry_history", ())}
    return tuple(_evaluation(trial, tuned, trial.number in retried) for trial in known)


def _evaluation(trial: FrozenTrial, tuned: bool, retried: bool) -> Evaluation:
    stands = _standing(trial, tuned, retried)
    return Evaluation(
        number=trial.number,
        standing=stands,
        value=trial.value if stands == "done" else None,
        params=settled(trial),
        reason=_reason(trial) if stands in ("failed", "pruned") else None,
        started=trial.datetime_start,
        ended=trial.datetime_complete,
        times=_times(trial),
        queued="fixed_params" in trial.system_attrs,
    )


def _standing(trial: FrozenTrial, tuned: bool, retried: bool) -> str:
    if trial.state == TrialState.COMPLETE:
        return "failed" if math.isnan(verdict(trial).value) else "done"
    if trial.state == TrialState.PRUNED:
        return "pruned"
    if trial.state == TrialState.FAIL:
        return "abandoned" if retried or (tuned and standing(trial) == "abandoned") else "failed"
    return standing(trial)


def _reason(trial: FrozenTrial) -> str | None:
    said = trial.user_attrs.get(REASON)
    if said is not None:
        return masked_text(" ".join(str(said).split()))
    if trial.state == TrialState.PRUNED:
        return "stopped early"
    if trial.state == TrialState.COMPLETE:
        return "a constraint was violated" if infeasible(trial.system_attrs) else "the value was not finite"
    return None


def _times(trial: FrozenTrial) -> Times:
    whole = _whole(trial)
    suggestion = _seconds(suggestion_seconds(trial))
    result = trial.user_attrs.get(RESULT)
    evaluation = _seconds(result.get("seconds")) if isinstance(result, Mapping) else None
    if evaluation is None and suggestion is not None and whole is not None:
        evaluation = max(0.0, whole - suggestion)
    return Times(suggestion, evaluation, whole)


def _whole(trial: FrozenTrial) -> float | None:
    """None also where it is negative, by clocks that differ, or zero, as for trials that were added and never ran."""
    if trial.datetime_start is None or trial.datetime_complete is None:
        return None
    return _seconds((trial.datetime_complete - trial.datetime_start).total_seconds()) or None


def _seconds(value: Any) -> float | None:
    usable = isinstance(value, int | float) and math.isfinite(value) and value >= 0
    return float(value) if usable else None
