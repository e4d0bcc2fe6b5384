"""A study opened to be read: by its file, by its storage, or as a program has it. `session` opens one to work on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from carbo.integrations.optuna.evaluations import Evaluation, evaluations
from carbo.tune.compatibility import DESCRIPTION, Described, read_description
from carbo.tune.errors import StudyError
from carbo.tune.keyed_table import suggest_word
from carbo.tune.storage import close, explain_errors, mask_url, need_optuna, open_storage, public_name
from carbo.tune.study_file import StudyFile, load, storage_url

if TYPE_CHECKING:
    import optuna

    from carbo.integrations.optuna.sampler import CarboSampler


class OpenStudy(NamedTuple):
    """A study, and what else is known of it.

    sampler     is asked for the model
    described   what `carbo tune` wrote down; None for a study of another program
    storage     the database in words: no user, no password, no path
    """

    study: optuna.Study
    sampler: CarboSampler
    described: Described | None
    budget: int | None = None
    storage: str | None = None

    @property
    def name(self) -> str:
        return self.study.study_name

    def evaluations(self) -> list[Evaluation]:
        """All trials, by number."""
        return evaluations(self.study.get_trials(deepcopy=False), tuned=self.described is not None)

    def need_description(self) -> Described:
        """What `carbo tune` wrote down. StudyError for a study of another program."""
        return self.described or read_description(self.name, None)


class Place(NamedTuple):
    """Where a study is: its database; its name, if it is known; its file, if it was given."""

    url: str
    name: str | None
    file: StudyFile | None


def where(given: str, name: str | None, storage: str | None) -> Place:
    """The place of a study file or a storage."""
    if given.endswith(".toml"):
        file = load(Path(given), storage)
        return Place(file.storage, name or file.name, file)
    return Place(storage_url(given, Path.cwd()), name, None)


@contextlib.contextmanager
def open_study(given: str, name: str | None = None, storage: str | None = None) -> Iterator[OpenStudy]:
    """The study of a study file, an SQLite file or a database URL; `name` says which, if there are several.

    StudyError if there is no such study. Errors of its database become StudyError in the `with` block too.
    """
    need_optuna()
    import optuna

    place = where(given, name, storage)
    opened = open_storage(place.url)
    try:
        with explain_errors(place.url):
            names = [study.study_name for study in opened.get_all_studies()]
            study = optuna.load_study(study_name=_choose(place, names), storage=opened)
            yield of_study(study, place.file.plan.budget if place.file else None, public_name(place.url))
    finally:
        close(opened)


def of_study(study: optuna.Study, budget: int | None = None, storage: str | None = None) -> OpenStudy:
    """A study of Optuna, read. StudyError if it has several objectives, or a damaged description."""
    from carbo.integrations.optuna.sampler import CarboSampler

    if len(study.directions) != 1:
        raise StudyError(f"study {study.study_name!r}: expected one objective, got {len(study.directions)}; "
                         "Optuna's dashboard shows such studies")  # fmt: skip
    description = study.user_attrs.get(DESCRIPTION)
    described = None if description is None else read_description(study.study_name, description)
    if described is not None:
        sampler = CarboSampler(search_space=described.variables.space, seed=0)
    elif isinstance(study.sampler, CarboSampler):
        sampler = study.sampler
    else:
        sampler = CarboSampler(seed=0)
    return OpenStudy(study, sampler, described, budget, storage)


def _choose(place: Place, names: Sequence[str]) -> str:
    wanted = names[0] if place.name is None and len(names) == 1 else place.name
    got = f"got {', '.join(names) or 'none'}"
    if wanted is None:
        raise StudyError(f"storage {mask_url(place.url)}: expected one study, {got}; name one with --study")
    if wanted not in names:
        raise StudyError(
            f"storage {mask_url(place.url)}: expected a study {wanted!r}, {got}; {suggest_word(wanted, names)}"
        )
    return wanted
