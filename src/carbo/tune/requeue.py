"""Who runs a trial, and what becomes of its params when that worker is lost: they are queued again."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from carbo.integrations.optuna.evaluations import REASON, RESULT, retry_history
from carbo.tune.processes import Owner
from carbo.tune.trials import DEATHS, RUN

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

MAX_DEATHS = 3
"""Workers that may die on one evaluation. After that it is given up: it may be what kills the machines."""


def run_attribute(mark: str) -> dict[str, object]:
    """The RUN attribute of a trial that this process runs."""
    return {"owner": list(Owner.this()), "mark": mark}


def owner_of(trial: FrozenTrial) -> Owner | None:
    """The process that runs a trial; None if the trial does not say."""
    run = trial.user_attrs.get(RUN)
    return Owner(*run["owner"]) if run else None


def is_lost(trial: FrozenTrial) -> bool:
    """Whether the process that runs a trial is certainly dead."""
    owner = owner_of(trial)
    return owner is not None and owner.is_dead()


def requeue(study: optuna.Study, trial: FrozenTrial, death: bool = True) -> None:
    """Queue a lost trial's params again, by Optuna's own means. Also the callback for stale trials.

    A trial that has not all of its params yet is dropped. A trial whose value was already written down is completed
    with that value, and not run again.
    death: its worker died; False if the worker handed the trial back.
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

    history = [*retry_history(trial), trial.number]
    study.add_trial(
        optuna.create_trial(
            value=value,
            params=trial.params,
            distributions=trial.distributions,
            user_attrs=trial.user_attrs,
            system_attrs={**trial.system_attrs, "retry_history": history},
        )
    )
