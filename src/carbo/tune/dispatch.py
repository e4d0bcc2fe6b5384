"""Trials handed out to workers, and their values taken back, so that the budget is kept and nothing is done twice.

Between processes the sampler's claims keep points apart, and `_is_admitted` keeps the budget. Every call to the
database is repeated while the database does not answer.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from carbo.errors import CarboError
from carbo.integrations.optuna.evaluations import COUNTED, REASON, RESULT, evaluations
from carbo.space.space import Params
from carbo.tune.evaluate import Evaluated
from carbo.tune.rescue import Rescue
from carbo.tune.retry import Patience
from carbo.tune.session import Session
from carbo.tune.storage import sync
from carbo.tune.trials import RUN, TAKEN, count

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, Trial


class Assignment(NamedTuple):
    """One evaluation to carry out. `mark` is in the environment of its processes."""

    number: int
    trial_id: int
    params: Params
    mark: str


class Desk:
    """Gives the workers of one process their trials, one after another, and takes their values."""

    def __init__(self, session: Session, patiently: Patience) -> None:
        self._session, self._patiently = session, patiently
        self._rescue = Rescue(session)
        self._lock = threading.Lock()
        self._out: dict[int, int] = {}
        """Trials under way in this process: number -> id."""
        self.over: str | None = None
        """Why there will be no more trials; None while there may be more."""

    # ---- handing out

    def next(self) -> Assignment | None:
        """Something to evaluate; None if there is nothing now. `over` says whether there may be something later."""
        with self._lock:
            if self._patiently.stopping:  # what another worker has just handed back is for the next tuner
                return None
            trials = self._patiently(self._trials)
            if self._patiently(lambda: self._rescue.look(trials, set(self._out))):
                trials = self._patiently(self._trials)
            self._judge(trials)
            if self.over is not None or self._is_full(trials):
                return None
            trial = self._patiently(self._session.study.ask)
            trial_id = self._out[trial.number] = self._patiently(lambda: self._session.trial_id(trial.number))
            if self._patiently(lambda: self._is_admitted(trial.number)):
                return self._fill(trial, trial_id)
            self._drop(trial.number, requeue=True)
            return None

    def _trials(self) -> list[FrozenTrial]:
        return self._session.study.get_trials(deepcopy=False)

    def _judge(self, trials: Sequence[FrozenTrial]) -> None:
        """Set `over` if the study has ended."""
        budget, rows = self._session.file.plan.budget, evaluations(trials, tuned=True)
        if budget is not None and count(rows) >= budget:
            self.over = "the budget is used up"
        elif self._session.file.space.cardinality == 1 and count(rows, TAKEN):
            self.over = self._session.file.space.rows.exhaustion

    def _is_full(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether as many evaluations are finished or under way as the budget has."""
        budget = self._session.file.plan.budget
        return budget is not None and count(evaluations(trials, tuned=True), (*COUNTED, "running")) >= budget

    def _is_admitted(self, number: int) -> bool:
        """Whether a trial has a place in the budget. If several tuners ask at once, the lower numbers get the places.

        The storage gives numbers one after another, so that every trial sees all trials with lower numbers.
        """
        budget = self._session.file.plan.budget
        if budget is None or number < budget:  # at most that many trials have lower numbers
            return True
        rows = evaluations(self._trials(), tuned=True)
        return count((row for row in rows if row.number < number), TAKEN) < budget

    def _fill(self, trial: Trial, trial_id: int) -> Assignment | None:
        """The trial with its params; None if nothing new is left or the params are forbidden, and the trial is dropped.

        Params that were queued may be forbidden since the study was extended.
        """
        from carbo.integrations.optuna.claims import REPEAT

        for name, distribution in (self._session.sampler.distributions or {}).items():
            self._patiently(lambda n=name, d=distribution: _suggest(trial, n, d))  # type: ignore[misc]
        frozen = self._patiently(lambda: self._session.storage.get_trial(trial_id))
        if REPEAT in frozen.system_attrs:
            self.over = self._session.file.space.rows.exhaustion
        elif self._is_permitted(frozen.params):
            return Assignment(trial.number, trial_id, frozen.params, frozen.user_attrs[RUN]["mark"])
        self._drop(trial.number, requeue=False)
        return None

    def _is_permitted(self, params: Params) -> bool:
        space = self._session.file.space
        try:
            return bool(space.feasible(space.encode(params)[None])[0])
        except CarboError:
            return False

    # ---- taking back

    def finish(self, done: Assignment, result: Evaluated) -> bool:
        """Record a value. False if the trial is no longer ours, because another tuner took us for dead."""
        attributes = {RESULT: {"value": result.value, "values": result.values, "seconds": round(result.seconds, 6)}}
        ours = self._patiently(lambda: self._tell(done, attributes, result.value))
        self._patiently(lambda: sync(self._session.storage))
        return ours

    def fail(self, done: Assignment, reason: str, seconds: float) -> bool:
        """Record a failure and its reason; False as above."""
        attributes = {RESULT: {"seconds": round(seconds, 6)}, REASON: reason}
        return self._patiently(lambda: self._tell(done, attributes, None))

    def _tell(self, done: Assignment, attributes: Mapping[str, object], value: float | None) -> bool:
        import optuna

        state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
        try:
            for name, content in attributes.items():
                self._session.storage.set_trial_user_attr(done.trial_id, name, content)
            self._session.study.tell(done.number, value, state)
            ours = True
        except (optuna.exceptions.UpdateFinishedTrialError, ValueError):
            # Finished already: by another tuner's rescue, or by us, and only the database's answer was lost.
            ours = self._session.storage.get_trial(done.trial_id).state == state
        self._out.pop(done.number, None)
        return ours

    def hand_back(self, undone: Assignment) -> None:
        """Queue the params of an evaluation that was stopped. Whoever goes on with the study gets them."""
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
