"""Handing out trials and taking their values, so that the budget is kept and nothing is lost or done twice.

Between processes the sampler's claims keep points apart, and `_admitted` keeps the budget. Whatever touches the
database is tried again while the database does not answer.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from carbo.errors import CarboError
from carbo.space.space import Params
from carbo.tune.evaluate import Evaluated
from carbo.tune.requeue import run_attribute
from carbo.tune.rescue import Rescue
from carbo.tune.retry import Patience
from carbo.tune.session import Session
from carbo.tune.storage import sync
from carbo.tune.trials import FINISHED, REASON, RESULT, RUN, TAKEN, count, records

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, Trial


class Assignment(NamedTuple):
    """One evaluation to carry out; `mark` marks its processes."""

    number: int
    trial_id: int
    params: Params
    mark: str


class Desk:
    """Where the workers of one process get their trials, one after another, and bring their values."""

    def __init__(self, session: Session, patiently: Patience) -> None:
        self._session, self._patiently = session, patiently
        self._rescue = Rescue(session)
        self._lock = threading.Lock()
        self._out: dict[int, int] = {}
        """Trials under way here: number -> id."""
        self.over: str | None = None
        """Why there will be no more trials; None while there may be."""

    # ---- handing out

    def next(self) -> Assignment | None:
        """Something to evaluate; None when there is nothing now, or nothing any more."""
        with self._lock:
            if self._patiently.stopping:  # lest it take up what another worker has just handed back
                return None
            trials = self._patiently(self._trials)
            if self._patiently(lambda: self._rescue.look(trials, set(self._out))):
                trials = self._patiently(self._trials)
            self._judge(trials)
            if self.over is not None or self._is_full(trials):
                return None
            mark = uuid.uuid4().hex
            self._session.sampler.sign = partial(self._sign, mark)
            trial = self._patiently(self._session.study.ask)
            trial_id = self._out[trial.number] = self._patiently(lambda: self._session.trial_id(trial.number))
            if self._patiently(lambda: self._admitted(trial.number)):
                return self._filled(trial, trial_id, mark)
            self._drop(trial.number, requeue=True)
            return None

    def _sign(self, mark: str, trial_id: int) -> None:
        # In this order: see rescue about a trial that has the second without the first.
        self._session.storage.record_heartbeat(trial_id)
        self._session.storage.set_trial_user_attr(trial_id, RUN, run_attribute(mark))

    def _trials(self) -> list[FrozenTrial]:
        return self._session.study.get_trials(deepcopy=False)

    def _judge(self, trials: Sequence[FrozenTrial]) -> None:
        budget, rows = self._session.file.plan.budget, records(trials)
        if budget is not None and count(rows) >= budget:
            self.over = "the budget is used up"
        elif self._session.file.space.cardinality == 1 and count(rows, TAKEN):
            self.over = self._session.file.space.rows.exhaustion

    def _is_full(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether as many evaluations are finished or under way as the budget has."""
        budget = self._session.file.plan.budget
        return budget is not None and count(records(trials), (*FINISHED, "running")) >= budget

    def _admitted(self, number: int) -> bool:
        """Of tuners that asked at the same moment, the lower numbers get what is left of the budget.

        Numbers are given out one after another by the storage, so that every trial sees all those below it.
        """
        budget = self._session.file.plan.budget
        if budget is None or number < budget:  # there are no more below it than its number
            return True
        return count((row for row in records(self._trials()) if row.number < number), TAKEN) < budget

    def _filled(self, trial: Trial, trial_id: int, mark: str) -> Assignment | None:
        """The trial with its params; None, and no trial any more, when nothing new is left or they are not permitted.

        Params that were queued may not be permitted any more, after an extension of the study.
        """
        from carbo.integrations.optuna.trials import REPEAT

        for name, distribution in (self._session.sampler.distributions or {}).items():
            self._patiently(lambda n=name, d=distribution: _suggest(trial, n, d))  # type: ignore[misc]
        frozen = self._patiently(lambda: self._session.storage.get_trial(trial_id))
        if REPEAT in frozen.system_attrs:
            self.over = self._session.file.space.rows.exhaustion
        elif self._permitted(frozen.params):
            return Assignment(trial.number, trial_id, frozen.params, mark)
        self._drop(trial.number, requeue=False)
        return None

    def _permitted(self, params: Params) -> bool:
        space = self._session.file.space
        try:
            return bool(space.feasible(space.encode(params)[None])[0])
        except CarboError:
            return False

    # ---- taking back

    def finish(self, done: Assignment, result: Evaluated) -> bool:
        """Record a value; False if the trial is no longer ours, because we were held to be dead."""
        kept = {RESULT: {"value": result.value, "values": result.values, "seconds": round(result.seconds, 6)}}
        told = self._patiently(lambda: self._tell(done, kept, result.value))
        self._patiently(lambda: sync(self._session.storage))
        return told

    def fail(self, done: Assignment, reason: str, seconds: float) -> bool:
        """Record a failure and its reason; False as above."""
        kept = {RESULT: {"seconds": round(seconds, 6)}, REASON: reason}
        return self._patiently(lambda: self._tell(done, kept, None))

    def _tell(self, done: Assignment, attributes: Mapping[str, object], value: float | None) -> bool:
        import optuna

        state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
        try:
            for name, content in attributes.items():
                self._session.storage.set_trial_user_attr(done.trial_id, name, content)
            self._session.study.tell(done.number, value, state)
            ours = True
        except (optuna.exceptions.UpdateFinishedTrialError, ValueError):
            # Finished already: by the rescue of another tuner, or by us, when the database's answer was lost.
            ours = self._session.storage.get_trial(done.trial_id).state == state
        self._out.pop(done.number, None)
        return ours

    def hand_back(self, undone: Assignment) -> None:
        """Queue the params of an evaluation that was stopped, for whoever goes on."""
        self._drop(undone.number, requeue=True)

    def _drop(self, number: int, requeue: bool) -> None:
        trial_id = self._out.pop(number)
        trial = self._patiently(lambda: self._session.storage.get_trial(trial_id))
        self._patiently(lambda: self._rescue.end(trial, death=False, again=requeue))

    def beat(self) -> None:
        """A sign of life for every trial under way here."""
        for trial_id in list(self._out.values()):
            self._session.storage.record_heartbeat(trial_id)


def _suggest(trial: Trial, name: str, distribution: BaseDistribution) -> None:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        trial.suggest_categorical(name, distribution.choices)
    elif isinstance(distribution, IntDistribution):
        trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)
    else:
        assert isinstance(distribution, FloatDistribution)
        trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)
