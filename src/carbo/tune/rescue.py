"""Evaluations whose worker died: handed to another, after what is left of them has been ended.

Three ways tell that a worker is dead. Its heartbeat stopped (Optuna's mechanism, works from any machine). Its process
is gone, seen by a tuner under the same kernel, which need not wait for the heartbeat. Or it died before its first
heartbeat, when the trial does not say either whose it is: then the first tuner that sees such a trial beats once for
it, so that it can go stale like any other.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from carbo.tune.processes import Owner, end_marked
from carbo.tune.records import DEATHS, REASON, RESULT, RUN, standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import optuna
    from optuna.trial import FrozenTrial

    from carbo.tune.session import Session

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
    from carbo.optuna_sampler import CarboSampler

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


class Rescue:
    """Looks after the trials of other workers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: set[int] = set()
        """Trials beaten for once."""

    def look(self, trials: Sequence[FrozenTrial], mine: set[int]) -> bool:
        """Rescue what is lost among running trials that are not ours; True if something was."""
        import optuna

        session = self._session
        optuna.storages.fail_stale_trials(session.study)
        rescued = False
        for trial in trials:
            if standing(trial) != "running" or trial.number in mine:
                continue
            owner = owner_of(trial)
            if owner is not None and owner.is_dead():
                end_marked(trial.user_attrs[RUN]["mark"])
                rescued = self.end(trial, death=True) or rescued
            elif owner is None and trial.number not in self._seen:
                self._seen.add(trial.number)
                session.storage.record_heartbeat(session.trial_id(trial.number))
        return rescued

    def end(self, trial: FrozenTrial, death: bool, again: bool = True) -> bool:
        """End a trial without a value and queue its params again; False if somebody else was faster."""
        import optuna

        session = self._session
        try:
            won = session.storage.set_trial_state_values(session.trial_id(trial.number), optuna.trial.TrialState.FAIL)
        except optuna.exceptions.UpdateFinishedTrialError:
            return False
        if won and again:
            requeue(session.study, trial, death)
        return won
