"""The study that a page is about, opened by its file, by its storage, or in a program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from carbo.tune.compatibility import DESCRIPTION, Described, read_description
from carbo.tune.errors import StudyError
from carbo.tune.reading import stored, where

if TYPE_CHECKING:
    import optuna

    from carbo.integrations.optuna.sampler import CarboSampler

DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB"}


class Source(NamedTuple):
    """A study and what else is known of it."""

    study: optuna.Study
    sampler: CarboSampler
    """Asked for the model."""
    described: Described | None
    """What `carbo tune` wrote down; None for a study of another program."""
    held: Mapping[str, Any]
    """The same as stored."""
    budget: int | None
    storage: str | None
    """The database, for people: no user, no password, no path."""


def of_study(study: optuna.Study, budget: int | None = None, storage: str | None = None) -> Source:
    """The source of an open study. StudyError when it has several objectives, or a damaged description."""
    from carbo.integrations.optuna.sampler import CarboSampler

    if len(study.directions) != 1:
        raise StudyError(f"study {study.study_name!r}: expected one objective, got {len(study.directions)}; "
                         "Optuna's dashboard shows such studies")  # fmt: skip
    held = study.user_attrs.get(DESCRIPTION)
    described = None if held is None else read_description(study.study_name, held)
    if described is not None:
        sampler = CarboSampler(search_space=described.variables.space, seed=0)
    elif isinstance(study.sampler, CarboSampler):
        sampler = study.sampler
    else:
        sampler = CarboSampler(seed=0)
    return Source(study, sampler, described, held or {}, budget, storage)


@contextlib.contextmanager
def opened(given: str, name: str | None = None, storage: str | None = None) -> Iterator[Source]:
    """The study of a study file, an SQLite file or a database URL; `name` says which, where there are several."""
    place = where(given, name, storage)
    with stored(place) as study:
        yield of_study(study, place.file.plan.budget if place.file else None, described_storage(place.url))


def described_storage(url: str) -> str:
    """The kind and the name of a database: what is needed to tell it from others, and nothing that is private."""
    import sqlalchemy

    try:
        parsed = sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        return "a database"
    backend = parsed.get_backend_name().removesuffix("+psycopg")
    kind = DATABASES.get("postgresql" if backend == "postgres" else backend, backend)
    database = Path(parsed.database).name if parsed.database else None
    return f"{kind}, {database}" if database else kind
