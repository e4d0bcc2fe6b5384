"""One reading of a trial, for the sampler, the tuner and the report: how the trial stands, and what it gave.

Standings
    done        complete, with a finite value, and no constraint is violated
    failed      finished without such a value
    pruned      stopped early
    abandoned   a FAIL that is no evaluation: its parameters were queued again; or, in a study of `carbo tune`, which
                gives every failure a reason, it has none: its worker died, or was stopped
    running     under way
    waiting     queued, with parameters that were given

Optuna is not imported here, so that commands can say in one line that it is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from optuna.trial import FrozenTrial

COUNTED = ("done", "failed", "pruned")
"""Standings of evaluations that have ended."""
CONSTRAINTS = "constraints"
"""System attribute with the values of `constraints_func`; those of `set_constraint` follow this and a colon."""
REASON, RESULT = "carbo:reason", "carbo:result"
"""User attributes of a trial of `carbo tune`: why it failed, and the values and seconds of its runs."""


class Evaluation(NamedTuple):
    """A trial and how it stands.

    value   of a trial that is done, as the objective returned it; None for all others
    last    the last intermediate value of a pruned trial, if it has one; None for all others
    reason  why a trial failed or was pruned, as far as it is known
    """

    trial: FrozenTrial
    standing: str
    value: float | None = None
    last: float | None = None
    reason: str | None = None

    @property
    def number(self) -> int:
        return self.trial.number

    @property
    def params(self) -> dict[str, Any]:
        return fixed_params(self.trial)

    @property
    def started(self) -> datetime | None:
        return self.trial.datetime_start

    @property
    def ended(self) -> datetime | None:
        return self.trial.datetime_complete

    @property
    def seconds(self) -> float | None:
        """Wall time of the command, as `carbo tune` noted it."""
        result = self.trial.user_attrs.get(RESULT)
        return as_seconds(result.get("seconds")) if isinstance(result, Mapping) else None

    @property
    def counts(self) -> bool:
        """Whether this is an evaluation that has ended."""
        return self.standing in COUNTED

    @property
    def queued(self) -> bool:
        """Whether its params were given rather than suggested: a starting configuration, or a retry."""
        return "fixed_params" in self.trial.system_attrs


def evaluations(trials: Iterable[FrozenTrial], tuned: bool) -> list[Evaluation]:
    """All trials of a study, by number. tuned: `carbo tune` made them."""
    known = sorted(trials, key=lambda trial: trial.number)
    retried = {number for trial in known for number in retry_history(trial)}
    return [evaluation(trial, trial.number in retried, tuned) for trial in known]


def evaluation(trial: FrozenTrial, retried: bool = False, tuned: bool = False) -> Evaluation:
    """The reading of one trial. retried: another trial has taken up its parameters."""
    said = trial.user_attrs.get(REASON)
    reason = None if said is None else str(said)
    if trial.state.name == "COMPLETE":
        return _complete(trial)
    if trial.state.name == "PRUNED":
        return Evaluation(trial, "pruned", last=_last_value(trial), reason=reason or "stopped early")
    if trial.state.name == "FAIL":
        abandoned = retried or (tuned and reason is None)
        return Evaluation(trial, "abandoned" if abandoned else "failed", reason=reason)
    return Evaluation(trial, trial.state.name.lower())


def _complete(trial: FrozenTrial) -> Evaluation:
    value = float(trial.values[0])
    if is_infeasible(trial.system_attrs):
        return Evaluation(trial, "failed", reason="a constraint was violated")
    if not math.isfinite(value):
        return Evaluation(trial, "failed", reason="the value was not finite")
    return Evaluation(trial, "done", value)


def _last_value(trial: FrozenTrial) -> float | None:
    """The value that Optuna gave a pruned trial, or its last intermediate value; None if neither says anything."""
    if trial.values is not None:
        value = trial.values[0]
    else:
        value = math.nan if trial.last_step is None else trial.intermediate_values[trial.last_step]
    return float(value) if math.isfinite(value) and not is_infeasible(trial.system_attrs) else None


def is_infeasible(attributes: Mapping[str, Any]) -> bool:
    """Whether a constraint of either spelling is violated, that is above zero, or could not be computed."""
    listed = attributes.get(CONSTRAINTS, ())
    named = (value for key, value in attributes.items() if key.startswith(f"{CONSTRAINTS}:"))
    return listed is None or any(value > 0.0 for value in (*listed, *named))


def fixed_params(trial: FrozenTrial) -> dict[str, Any]:
    """The parameters that a trial has already or, being enqueued with them, is sure to get."""
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}


def retry_history(trial: FrozenTrial) -> Iterable[int]:
    """Numbers of the trials whose parameters this one has taken up again."""
    history: Iterable[int] = trial.system_attrs.get("retry_history", ())
    return history


def as_seconds(value: Any) -> float | None:
    """A duration as it was noted; None for anything else that may stand in an attribute."""
    usable = isinstance(value, int | float) and math.isfinite(value) and value >= 0
    return float(value) if usable else None
