"""A study file and its study in the storage: made or found, agreed upon, with its starting points queued."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from carbo.checks import begun, resolve
from carbo.tune.compatibility import DESCRIPTION, changes, description, disagreement
from carbo.tune.errors import StudyError
from carbo.tune.requeue import owner_of, requeue
from carbo.tune.retry import when_ready
from carbo.tune.storage import close, exclusive, explained, need_optuna, open_storage, quiet
from carbo.tune.study_file import StudyFile
from carbo.tune.trials import RUN, standing

if TYPE_CHECKING:
    import optuna

    from carbo.tune.owned_sampler import SigningSampler


@dataclass(frozen=True)
class Session:
    """What a tuner works with."""

    file: StudyFile
    study: optuna.Study
    storage: optuna.storages.RDBStorage
    sampler: SigningSampler
    fresh: bool
    """Whether evaluations of an earlier file were dropped, for none had succeeded."""

    def close(self) -> None:
        """Give the database connections back. Nothing is lost without it."""
        close(self.storage)

    @cached_property
    def study_id(self) -> int:
        return self.storage.get_study_id_from_name(self.study.study_name)

    def trial_id(self, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self.study_id, number)


def open_session(file: StudyFile, extend: bool = False) -> Session:
    """Open the study of a file, or make it. StudyError when file and study disagree (see `agreement`)."""
    need_optuna()
    from carbo.tune.owned_sampler import SigningSampler

    plan = file.plan
    settings = begun(resolve(plan.preset, plan.settings), plan.settings, plan.budget)
    sampler = SigningSampler(search_space=file.space, settings=settings, seed=plan.seed)
    return when_ready(lambda: _open(file, sampler, extend))


def _open(file: StudyFile, sampler: SigningSampler, extend: bool) -> Session:
    with exclusive(file.storage, file.path):
        storage = open_storage(file.storage, file.plan.heartbeat, requeue, create=True)
        try:
            with explained(file.storage), quiet():
                return _set_up(file, storage, sampler, extend)
        except BaseException:
            close(storage)
            raise


def _set_up(file: StudyFile, storage: optuna.storages.RDBStorage, sampler: SigningSampler, extend: bool) -> Session:
    study = _found_or_made(file, storage, sampler)
    fresh = _agreed(file, study, extend)
    if fresh:
        storage.delete_study(storage.get_study_id_from_name(file.name))
        study = _found_or_made(file, storage, sampler)
    study.set_user_attr(DESCRIPTION, description(file))
    for params in file.starts:
        study.enqueue_trial(params, skip_if_exists=True)
    return Session(file, study, storage, sampler, fresh)


def _found_or_made(file: StudyFile, storage: optuna.storages.RDBStorage, sampler: SigningSampler) -> optuna.Study:
    import optuna

    direction = optuna.study.StudyDirection[file.direction.upper()]
    return optuna.create_study(
        storage=storage, sampler=sampler, study_name=file.name, direction=direction, load_if_exists=True
    )


def _agreed(file: StudyFile, study: optuna.Study, extend: bool) -> bool:
    """Whether to begin afresh. StudyError when that would lose something and the file has changed."""
    trials = study.get_trials(deepcopy=False)
    held = study.user_attrs.get(DESCRIPTION)
    if held is None:
        if trials:
            raise StudyError(
                f"study {file.name!r}: expected one made by `carbo tune`, got one of another program; "
                "give the study another name"
            )
        return False
    found = changes(held, description(file))
    if found and not any(standing(t) == "done" or _alive(t) for t in trials):
        return bool(trials)
    disagreement(file.name, found, extend)
    return False


def _alive(trial: optuna.trial.FrozenTrial) -> bool:
    owner = owner_of(trial)
    return standing(trial) == "running" and RUN in trial.user_attrs and not (owner is not None and owner.is_dead())
