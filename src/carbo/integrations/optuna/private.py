"""What a sampler needs of Optuna's storages, and Optuna offers no public way to. Other files use public names only."""

from __future__ import annotations

from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial


def read_trials(study: Study) -> list[FrozenTrial]:
    """All trials as the storage has them now. `study.get_trials` may answer from what it read before."""
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def write_attribute(study: Study, trial: FrozenTrial, name: str, value: Any) -> None:
    """Set a system attribute of a trial that is being sampled. Samplers get copies of trials, without setters."""
    study._storage.set_trial_system_attr(trial._trial_id, name, value)


def trial_id(trial: FrozenTrial) -> int:
    """The number that storages know a trial by."""
    return trial._trial_id
