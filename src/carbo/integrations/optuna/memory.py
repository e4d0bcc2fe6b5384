"""What has been read of a study: its evaluations, as losses for the engine, and the trials under way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from carbo.integrations.optuna.claims import REPEAT
from carbo.integrations.optuna.evaluations import Evaluation, evaluation, retry_history
from carbo.integrations.optuna.space import Common


class Memory:
    """The trials of a study. Finished trials never change, so each of them is read once."""

    def __init__(self) -> None:
        self.common = Common()
        self.finished: dict[int, Evaluation] = {}
        """By number."""
        self.unfinished: list[FrozenTrial] = []
        self._retried: set[int] = set()

    def is_memory_of(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether these can be later trials of the same study."""
        if len(trials) < len(self.finished):
            return False
        pairs = ((self.finished.get(trial.number), trial) for trial in trials)
        return all(known is None or known.ended == trial.datetime_complete for known, trial in pairs)

    def read(self, trials: Iterable[FrozenTrial]) -> None:
        """Take in all trials of a study, except the one that is being sampled."""
        self.unfinished = []
        for trial in trials:
            if trial.number in self.finished:
                continue
            self._abandon(retry_history(trial))
            if trial.state.is_finished():
                self.finished[trial.number] = evaluation(trial, trial.number in self._retried)
                self.common.add(trial)
            else:
                self.unfinished.append(trial)

    def _abandon(self, numbers: Iterable[int]) -> None:
        """Note that other trials have taken up the parameters of these."""
        for number in set(numbers) - self._retried:
            self._retried.add(number)
            if number in self.finished:
                self.finished[number] = evaluation(self.finished[number].trial, retried=True)

    def observations(self) -> list[Evaluation]:
        """The evaluations that the model learns from, by number. A failure of an old point given again is none."""
        counted = (each for _, each in sorted(self.finished.items()) if each.counts)
        return [each for each in counted if not (_is_failure(each) and REPEAT in each.trial.system_attrs)]


def _is_failure(each: Evaluation) -> bool:
    """Whether the model has nothing to learn but that the point failed."""
    return each.value is None and each.last is None


def losses(observations: Sequence[Evaluation], direction: StudyDirection, exclusive: bool) -> list[float]:
    """The values to minimise, NaN for a failure.

    A pruned trial says that it is not among the better half: its last intermediate value counts, but as no better
    than the median and no worse than the worst of the completed trials. Without such a value it is a failure.
    exclusive: a trial's row is all there is to the trial. If not, failures take the worst value instead, because
    another trial with the same row may well succeed.
    """
    sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
    completed = [sign * each.value for each in observations if each.value is not None]
    if not completed:
        return [math.nan] * len(observations)
    median, worst = float(np.median(completed)), max(completed)

    def loss(each: Evaluation) -> float:
        if each.value is not None:
            return sign * each.value
        if each.last is not None:
            return min(max(sign * each.last, median), worst)
        return math.nan if exclusive else worst

    return [loss(each) for each in observations]
