"""A study's trials as the page shows them: secrets hidden in reasons, and the times of each."""

from __future__ import annotations

from typing import NamedTuple

from carbo.integrations.optuna.claims import suggestion_seconds
from carbo.integrations.optuna.evaluations import Evaluation, as_seconds
from carbo.report.secrets import mask_text


class Times(NamedTuple):
    """Seconds; None where not known. `whole` is from a trial's start to its end."""

    suggestion: float | None
    evaluation: float | None
    whole: float | None


def mask(row: Evaluation) -> Evaluation:
    """The evaluation, its reason on one line and without secrets."""
    return row if row.reason is None else row._replace(reason=mask_text(" ".join(row.reason.split())))


def times_of(row: Evaluation) -> Times:
    """How long a trial took. The evaluation is what is left of the whole time, if nobody noted it."""
    suggestion, evaluation, whole = suggestion_seconds(row.trial), row.seconds, _whole(row)
    if evaluation is None and suggestion is not None and whole is not None:
        evaluation = max(0.0, whole - suggestion)
    return Times(suggestion, evaluation, whole)


def _whole(row: Evaluation) -> float | None:
    """None also if it is negative, by clocks that differ, or zero, as for trials that were added and never ran."""
    if row.started is None or row.ended is None:
        return None
    return as_seconds((row.ended - row.started).total_seconds()) or None
