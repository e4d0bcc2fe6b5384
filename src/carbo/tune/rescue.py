"""Evaluations whose worker died: what is left of them is ended, and another worker gets them.

A worker is known to be dead in three ways.
- Its heartbeat has stopped. Optuna sees that, from any machine.
- Its process is gone. A tuner on the same machine sees that at once.
- It died before its first heartbeat, and its trial has no owner yet. Then the first tuner that sees the trial beats
  once for it, so that the trial goes stale like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carbo.tune.processes import end_marked
from carbo.tune.requeue import is_lost, owner_of, requeue
from carbo.tune.session import Session
from carbo.tune.trials import RUN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optuna.trial import FrozenTrial


class Rescue:
    """Looks after the trials of other workers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._helped: set[int] = set()
        """Numbers of trials that got a heartbeat from here."""

    def look(self, trials: Sequence[FrozenTrial], mine: set[int]) -> bool:
        """Rescue the lost ones among running trials that are not ours; True if there were any."""
        import optuna

        session = self._session
        optuna.storages.fail_stale_trials(session.study)
        rescued = False
        for trial in trials:
            if trial.state != optuna.trial.TrialState.RUNNING or trial.number in mine:
                continue
            if is_lost(trial):
                end_marked(trial.user_attrs[RUN]["mark"])
                rescued = self.end(trial, death=True) or rescued
            elif owner_of(trial) is None and trial.number not in self._helped:
                self._helped.add(trial.number)
                session.storage.record_heartbeat(session.trial_id(trial.number))
        return rescued

    def end(self, trial: FrozenTrial, death: bool, again: bool = True) -> bool:
        """End a trial without a value, and queue its params again. False if another tuner was faster.

        death: its worker died; again: False drops the params.
        """
        import optuna

        session = self._session
        try:
            won = session.storage.set_trial_state_values(session.trial_id(trial.number), optuna.trial.TrialState.FAIL)
        except optuna.exceptions.UpdateFinishedTrialError:
            return False
        if won and again:
            requeue(session.study, trial, death)
        return won
