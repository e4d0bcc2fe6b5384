"""A study opened to work on it: found or made, compared with its file, its starting points queued."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from carbo.checks import limit_initial, resolve
from carbo.integrations.optuna.evaluations import Evaluation, evaluations
from carbo.tune.compatibility import DESCRIPTION, changes, description, refuse_changes
from carbo.tune.errors import StudyError
from carbo.tune.requeue import is_lost, owner_of, requeue
from carbo.tune.retry import when_ready
from carbo.tune.storage import close, explain_errors, lock_others_out, need_optuna, open_storage, silence_warnings
from carbo.tune.study_file import StudyFile

if TYPE_CHECKING:
    import optuna

    from carbo.tune.owned_sampler import OwnedSampler


@dataclass(frozen=True)
class Session:
    """What a tuner works with.

    fresh   whether failed evaluations of an earlier version of the file were dropped
    """

    file: StudyFile
    study: optuna.Study
    storage: optuna.storages.RDBStorage
    sampler: OwnedSampler
    fresh: bool

    def close(self) -> None:
        """Close all connections to the database."""
        close(self.storage)

    @cached_property
    def study_id(self) -> int:
        return self.storage.get_study_id_from_name(self.study.study_name)

    def trial_id(self, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self.study_id, number)


def open_session(file: StudyFile, extend: bool = False) -> Session:
    """Open the study of a file, or make it. StudyError if file and study disagree (see `compatibility`)."""
    need_optuna()
    return when_ready(lambda: _open(file, extend))


def _open(file: StudyFile, extend: bool) -> Session:
    with lock_others_out(file.storage, file.path):
        storage = open_storage(file.storage, file.plan.heartbeat, requeue, create=True)
        try:
            with explain_errors(file.storage), silence_warnings():
                return _set_up(file, storage, _sampler(file, storage), extend)
        except BaseException:
            close(storage)
            raise


def _sampler(file: StudyFile, storage: optuna.storages.RDBStorage) -> OwnedSampler:
    from carbo.tune.owned_sampler import OwnedSampler

    plan = file.plan
    settings = limit_initial(resolve(plan.preset, plan.settings), plan.settings, plan.budget)
    return OwnedSampler(storage, search_space=file.space, settings=settings, seed=plan.seed)


def _set_up(file: StudyFile, storage: optuna.storages.RDBStorage, sampler: OwnedSampler, extend: bool) -> Session:
    study = _find_or_make(file, storage, sampler)
    fresh = _must_begin_again(file, study, extend)
    if fresh:
        storage.delete_study(storage.get_study_id_from_name(file.name))
        study = _find_or_make(file, storage, sampler)
    study.set_user_attr(DESCRIPTION, description(file))
    for params in file.starts:
        study.enqueue_trial(params, skip_if_exists=True)
    return Session(file, study, storage, sampler, fresh)


def _find_or_make(file: StudyFile, storage: optuna.storages.RDBStorage, sampler: OwnedSampler) -> optuna.Study:
    import optuna

    direction = optuna.study.StudyDirection[file.direction.upper()]
    return optuna.create_study(
        storage=storage, sampler=sampler, study_name=file.name, direction=direction, load_if_exists=True
    )


def _must_begin_again(file: StudyFile, study: optuna.Study, extend: bool) -> bool:
    """Whether to drop all trials, because the file has changed. StudyError if that would lose something."""
    trials = study.get_trials(deepcopy=False)
    old = study.user_attrs.get(DESCRIPTION)
    if old is None:
        if trials:
            raise StudyError(
                f"study {file.name!r}: expected one made by `carbo tune`, got one of another program; "
                "give the study another name"
            )
        return False
    found = changes(old, description(file))
    if found and not any(row.standing == "done" or _is_alive(row) for row in evaluations(trials, tuned=True)):
        return bool(trials)
    refuse_changes(file.name, found, extend)
    return False


def _is_alive(row: Evaluation) -> bool:
    """Whether some worker is at this trial, for all that is known."""
    return row.standing == "running" and owner_of(row.trial) is not None and not is_lost(row.trial)
