"""A study opened to be looked at, by its file or by its storage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from carbo.tune.agreement import DESCRIPTION, Described, read_description
from carbo.tune.errors import StudyError
from carbo.tune.insight import relevance
from carbo.tune.records import Record, records
from carbo.tune.storage import close, explained, masked, need_optuna, open_storage
from carbo.tune.study_file import load, storage_url
from carbo.tune.table import meant

if TYPE_CHECKING:
    import optuna

    from carbo.influence import Relevance


@dataclass(frozen=True)
class Opened:
    """A study, and what its storage says of it."""

    name: str
    url: str
    study: optuna.Study
    described: Described

    def rows(self) -> list[Record]:
        with explained(self.url):
            return records(self.study.get_trials(deepcopy=False))

    def relevance(self) -> Relevance | None:
        """The engine's report, from settings as they are by default; None while too little is known."""
        from carbo.optuna_sampler import CarboSampler

        sampler = CarboSampler(search_space=self.described.variables.space, seed=0)
        with explained(self.url):
            return relevance(sampler, self.study)


def where(given: str, name: str | None, storage: str | None) -> tuple[str, str | None]:
    """The database URL, and the study's name as far as it is known, of a study file or a storage."""
    if given.endswith(".toml"):
        file = load(Path(given), storage)
        return file.storage, name or file.name
    return storage_url(given, Path.cwd()), name


@contextlib.contextmanager
def open_study(given: str, name: str | None = None, storage: str | None = None) -> Iterator[Opened]:
    """The study of a study file, or of a storage that holds one (or several: `name` says which)."""
    need_optuna()
    url, wanted = where(given, name, storage)
    kept = open_storage(url)
    try:
        yield _opened(url, kept, wanted)
    finally:
        close(kept)


def _opened(url: str, kept: optuna.storages.RDBStorage, wanted: str | None) -> Opened:
    import optuna

    with explained(url):
        names = [study.study_name for study in kept.get_all_studies()]
        if wanted is None and len(names) == 1:
            wanted = names[0]
        if wanted is None:
            got = ", ".join(names) or "none"
            raise StudyError(f"storage {masked(url)}: expected one study, got {got}; name one with --study")
        if wanted not in names:
            raise StudyError(f"storage {masked(url)}: expected a study {wanted!r}, got {', '.join(names) or 'none'}; "
                             f"{meant(wanted, names)}")  # fmt: skip
        study = optuna.load_study(study_name=wanted, storage=kept)
        return Opened(wanted, url, study, read_description(wanted, study.user_attrs.get(DESCRIPTION)))
