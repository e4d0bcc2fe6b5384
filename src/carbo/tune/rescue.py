"""Evaluations whose worker died: handed to another, after what is left of them has been ended.

Three ways tell that a worker is dead. Its heartbeat stopped (Optuna's mechanism, works from any machine). Its process
is gone, seen by a tuner under the same kernel, which need not wait for the heartbeat. Or it died before its first
heartbeat, when the trial does not say either whose it is: then the first tuner that sees such a trial beats once for
it, so that it can go stale like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carbo.tune.processes import end_marked
from carbo.tune.requeue import owner_of, requeue
from carbo.tune.session import Session
from carbo.tune.trials import RUN, standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optuna.trial import FrozenTrial


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
