"""What a study's trials say: values, failures, points under way, and claims on points not yet stored."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from carbo.integrations.optuna.space import Common
from carbo.numerics.types import Ints

CLAIM = "carbo:claim"
"""System attribute of a trial: the point it was given, written before its parameters are stored one by one, and how
many seconds that took. One attribute for both, because writing one takes longer than all else here."""
REPEAT = "carbo:repeat"
"""System attribute of a trial that got a point again because no new one was left."""
CONSTRAINTS = "constraints"
"""System attribute with the values of `constraints_func`; those of `set_constraint` follow this and a colon."""
LONGEST = 1_980
"""Characters of a claim's text: a relational storage takes 2,045 in one attribute, as JSON."""


class Verdict(NamedTuple):
    """A finished trial: its value as stored, NaN for a failure; of a pruned one the last intermediate value."""

    trial: FrozenTrial
    completed: datetime | None
    value: float
    pruned: bool


class Memory:
    """What has been read of a study: every finished trial once, for finished trials never change."""

    def __init__(self) -> None:
        self.common = Common()
        self.verdicts: dict[int, Verdict] = {}
        self.unfinished: list[FrozenTrial] = []
        self._retried: set[int] = set()
        """Numbers of failed trials that were taken up again: their retry speaks for them."""

    def knows(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether these can be later trials of the same study."""
        if len(trials) < len(self.verdicts):
            return False
        pairs = ((self.verdicts.get(t.number), t) for t in trials)
        return all(known is None or known.completed == t.datetime_complete for known, t in pairs)

    def read(self, trials: Iterable[FrozenTrial]) -> None:
        """Take in all trials of a study, except the one that is being sampled."""
        self.unfinished = []
        for trial in trials:
            if trial.number in self.verdicts:
                continue
            self._retried.update(trial.system_attrs.get("retry_history", ()))
            if trial.state.is_finished():
                self.verdicts[trial.number] = verdict(trial)
                self.common.add(trial)
            else:
                self.unfinished.append(trial)

    def finished(self) -> list[Verdict]:
        """By number, without failures that were retried and failures of points given again."""
        return [
            v
            for number, v in sorted(self.verdicts.items())
            if not (math.isnan(v.value) and (number in self._retried or REPEAT in v.trial.system_attrs))
        ]


def verdict(trial: FrozenTrial) -> Verdict:
    """Failures: FAIL, pruned without an intermediate value, a violated constraint, an infinite value."""
    pruned = trial.state == TrialState.PRUNED
    value = None if trial.state == TrialState.FAIL or infeasible(trial.system_attrs) else _value(trial)
    usable = value is not None and math.isfinite(value)
    return Verdict(trial, trial.datetime_complete, float(value) if usable and value is not None else math.nan, pruned)


def _value(trial: FrozenTrial) -> float | None:
    if trial.values is not None:
        return float(trial.values[0])
    return None if trial.last_step is None else trial.intermediate_values[trial.last_step]


def infeasible(attributes: Mapping[str, Any]) -> bool:
    """Whether a constraint of either spelling is violated, that is above zero, or could not be computed."""
    listed = attributes.get(CONSTRAINTS, ())
    named = (value for key, value in attributes.items() if key.startswith(f"{CONSTRAINTS}:"))
    return listed is None or any(value > 0.0 for value in (*listed, *named))


def losses(verdicts: Sequence[Verdict], direction: StudyDirection, exclusive: bool) -> list[float]:
    """The values to minimise, NaN for a failure.

    A pruned trial says that it is not among the better half: its last intermediate value counts, but as no better
    than the median and no worse than the worst of the completed trials; without any it is a failure.
    exclusive: the trials' rows are all there is to them. If not, failures take the worst value instead: another trial
    with this row may well succeed.
    """
    sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
    completed = [sign * v.value for v in verdicts if not v.pruned and not math.isnan(v.value)]
    if not completed:
        return [math.nan] * len(verdicts)
    median, worst = float(np.median(completed)), max(completed)
    out = []
    for v in verdicts:
        if math.isnan(v.value):
            out.append(math.nan if exclusive else worst)
        else:
            out.append(min(max(sign * v.value, median), worst) if v.pruned else sign * v.value)
    return out


# ---------------------------------------------------------------- claims


def settled(trial: FrozenTrial) -> dict[str, Any]:
    """The parameters that a trial has already or, being enqueued with them, is sure to get."""
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}


def claim_text(space: str, row: Ints) -> str:
    """A claim on a row of the space with that key; a digest where the row would be too long to store."""
    listed = f"{space} {' '.join(map(str, row.tolist()))}"
    return listed if len(listed) <= LONGEST else _digest(space, row)


def claimed_row(trial: FrozenTrial, space: str) -> list[int] | None:
    """The row that a trial claims, where it is one of that space."""
    key, _, numbers = _claim(trial).partition(" ")
    return [int(n) for n in numbers.split()] if key == space and not numbers.startswith("#") else None


def claims_same(trial: FrozenTrial, space: str, row: Ints) -> bool:
    """Whether a trial claims exactly this row, listed or as a digest."""
    return _claim(trial) == claim_text(space, row)


def suggestion_seconds(trial: FrozenTrial) -> Any:
    """How long a trial's point took to suggest, as it was noted; None where it was not, as for a point given."""
    return _held(trial).get("seconds")


def write_claim(study: Study, trial: FrozenTrial, text: str, seconds: float) -> None:
    """Claim a point, and note how long it took to suggest."""
    study._storage.set_trial_system_attr(trial._trial_id, CLAIM, {"point": text, "seconds": round(seconds, 6)})


def withdraw(study: Study, trial: FrozenTrial) -> None:
    """Give a claim up."""
    study._storage.set_trial_system_attr(trial._trial_id, CLAIM, {})


def _held(trial: FrozenTrial) -> Mapping[str, Any]:
    held = trial.system_attrs.get(CLAIM)
    return held if isinstance(held, Mapping) else {}


def _claim(trial: FrozenTrial) -> str:
    return str(_held(trial).get("point", ""))


def _digest(space: str, row: Ints) -> str:
    return f"{space} #{hashlib.sha256(str(row.tolist()).encode()).hexdigest()}"
