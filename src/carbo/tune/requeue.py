"""A lost trial's params, queued again: whose trial it was, and how often its worker may die."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from carbo.tune.processes import Owner
from carbo.tune.trials import DEATHS, REASON, RESULT, RUN

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

MAX_DEATHS = 3
"""Workers that may die on one evaluation before it is given up, lest it take down one machine after another."""


def run_attribute(mark: str) -> dict[str, object]:
    """What a trial keeps about who runs it."""
    return {"owner": list(Owner.this()), "mark": mark}


def owner_of(trial: FrozenTrial) -> Owner | None:
    run = trial.user_attrs.get(RUN)
    return Owner(*run["owner"]) if run else None


def requeue(study: optuna.Study, trial: FrozenTrial, death: bool = True) -> None:
    """Queue a lost trial's params again, by Optuna's own means; also the callback for stale trials.

    One that had not all its params has nothing worth keeping. One whose worker died between writing the outcome down
    and telling it is not run again. `death`: its worker died rather than handed it back.
    """
    from carbo.integrations.optuna.sampler import CarboSampler

    if REASON in trial.user_attrs:
        return
    if "value" in trial.user_attrs.get(RESULT, {}):
        _complete(study, trial, trial.user_attrs[RESULT]["value"])
        return

    assert isinstance(study.sampler, CarboSampler)
    names = study.sampler.distributions or {}
    deaths = int(trial.user_attrs.get(DEATHS, 0)) + int(death)
    if deaths > MAX_DEATHS or not (trial.params.keys() >= names.keys() or "fixed_params" in trial.system_attrs):
        return
    lost = copy.deepcopy(trial)
    lost.user_attrs = {DEATHS: deaths} if deaths else {}
    _retry(study, lost)


def _retry(study: optuna.Study, trial: FrozenTrial) -> None:
    import optuna

    new = getattr(optuna.storages, "RetryHeartbeatStaleTrialCallback", None)  # Optuna 4.9 renamed it
    callback = new() if new is not None else optuna.storages.RetryFailedTrialCallback()
    callback(study, trial)


def _complete(study: optuna.Study, trial: FrozenTrial, value: float) -> None:
    """A finished trial in the place of one that was ended without its value."""
    import optuna

    history = [*trial.system_attrs.get("retry_history", []), trial.number]
    study.add_trial(
        optuna.create_trial(
            value=value,
            params=trial.params,
            distributions=trial.distributions,
            user_attrs=trial.user_attrs,
            system_attrs={**trial.system_attrs, "retry_history": history},
        )
    )
