"""The sampler of a tuner: every trial says whose it is before the model is asked for its point.

The model may take seconds. A worker that dies in that time leaves a trial whose owner is known, so that another tuner
need not wait for a missing heartbeat.
"""

from __future__ import annotations

import uuid
from typing import Any

from optuna.storages import RDBStorage
from optuna.study import Study
from optuna.trial import FrozenTrial

from carbo.integrations.optuna.private import trial_id
from carbo.integrations.optuna.sampler import CarboSampler
from carbo.tune.requeue import run_attribute
from carbo.tune.trials import RUN


class OwnedSampler(CarboSampler):
    """Writes into each new trial that this process runs it, and a new mark for its processes."""

    def __init__(self, storage: RDBStorage, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._storage = storage

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        # The heartbeat first: a trial with an owner and no heartbeat would never go stale.
        self._storage.record_heartbeat(trial_id(trial))
        self._storage.set_trial_user_attr(trial_id(trial), RUN, run_attribute(uuid.uuid4().hex))
        super().before_trial(study, trial)
