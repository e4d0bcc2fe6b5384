"""The sampler of a tuner: a trial says whose it is before the model is asked for its point, which may take seconds."""

from __future__ import annotations

from collections.abc import Callable

from optuna.study import Study
from optuna.trial import FrozenTrial

from carbo.integrations.optuna.sampler import CarboSampler


class SigningSampler(CarboSampler):
    """Calls `sign` with the trial's id when a trial has begun and has no params yet."""

    sign: Callable[[int], None] | None = None

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        if self.sign is not None:
            self.sign(trial._trial_id)
        super().before_trial(study, trial)
