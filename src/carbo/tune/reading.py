"""A study opened to be looked at, by its file or by its storage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from carbo.tune.compatibility import DESCRIPTION, Described, read_description
from carbo.tune.errors import StudyError
from carbo.tune.keyed_table import meant
from carbo.tune.live_relevance import relevance
from carbo.tune.storage import close, explained, masked, need_optuna, open_storage
from carbo.tune.study_file import StudyFile, load, storage_url
from carbo.tune.trials import Record, records

if TYPE_CHECKING:
    import optuna

    from carbo.surrogate.relevance import Relevance


@dataclass(frozen=True)
class Opened:
    """A study, and what its storage says of it."""

    name: str
    study: optuna.Study
    described: Described

    def rows(self) -> list[Record]:
        return records(self.study.get_trials(deepcopy=False))

    def relevance(self) -> Relevance | None:
        """The engine's report, from settings as they are by default; None while no two values differ."""
        from carbo.integrations.optuna.sampler import CarboSampler

        sampler = CarboSampler(search_space=self.described.variables.space, seed=0)
        return relevance(sampler, self.study)


class Place(NamedTuple):
    """Where a study is: its database, its name as far as it is known, and its file where one was given."""

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
def stored(place: Place) -> Iterator[optuna.Study]:
    """The study at a place; errors of its database are one line, also inside. StudyError where it cannot be found."""
    need_optuna()
    import optuna

    kept = open_storage(place.url)
    try:
        with explained(place.url):
            names = [study.study_name for study in kept.get_all_studies()]
            yield optuna.load_study(study_name=_chosen(place, names), storage=kept)
    finally:
        close(kept)


def _chosen(place: Place, names: Sequence[str]) -> str:
    wanted = names[0] if place.name is None and len(names) == 1 else place.name
    got = f"got {', '.join(names) or 'none'}"
    if wanted is None:
        raise StudyError(f"storage {masked(place.url)}: expected one study, {got}; name one with --study")
    if wanted not in names:
        raise StudyError(f"storage {masked(place.url)}: expected a study {wanted!r}, {got}; {meant(wanted, names)}")
    return wanted


@contextlib.contextmanager
def open_study(given: str, name: str | None = None, storage: str | None = None) -> Iterator[Opened]:
    """The study of a study file, or of a storage that holds one (or several: `name` says which)."""
    with stored(where(given, name, storage)) as study:
        yield Opened(study.study_name, study, read_description(study.study_name, study.user_attrs.get(DESCRIPTION)))
