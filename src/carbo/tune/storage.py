"""The database of a study: how to open it, lock it, name it without its password, and explain its errors.

Optuna is imported inside functions, so that the rest of the command line works without it.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carbo.tune.errors import StudyError

if TYPE_CHECKING:
    import optuna
    from sqlalchemy.engine import URL

INSTALL = "pip install 'carbo[tune]'"
LOCK = 0x6361_7262_6F  # "carbo"
"""The advisory lock that tuners on one PostgreSQL server take while they set up a study."""
BUSY = 20.0
"""Seconds that SQLite waits for another process's transaction."""
GRACE = 3
"""Number of heartbeats that may be missing before a worker counts as dead."""
DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "postgresql": "PostgreSQL", "mysql": "MySQL",
             "mariadb": "MariaDB"}  # fmt: skip
SECRET = re.compile(r"pass|secret|token|key", re.IGNORECASE)


def need_optuna() -> None:
    """StudyError if the package optuna is not installed."""
    try:
        import optuna
    except ImportError:
        raise StudyError(f"tuning: expected the package optuna, got none; {INSTALL}") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@contextlib.contextmanager
def silence_warnings() -> Iterator[None]:
    """Without Optuna's warnings that heartbeats are experimental and meant for Study.optimize."""
    import optuna

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Heartbeat of storage is supposed to be used with")
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        yield


def mask_url(url: str) -> str:
    """The URL with its secrets replaced by stars."""
    try:
        parsed = _parse(url)
    except StudyError:
        return re.sub(r"//[^@/]*@", "//***@", url)
    query = {name: "***" if SECRET.search(name) else value for name, value in parsed.query.items()}
    return parsed.set(query=query).render_as_string(hide_password=True).replace("%2A%2A%2A", "***")


def public_name(url: str) -> str:
    """The kind and the name of a database, as in "SQLite, study.db": no user, no password, no path."""
    import sqlalchemy

    try:
        parsed = sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        return "a database"
    backend = parsed.get_backend_name().removesuffix("+psycopg")
    kind = DATABASES.get(backend, backend)
    database = Path(parsed.database).name if parsed.database else None
    return f"{kind}, {database}" if database else kind


def _parse(url: str) -> URL:
    need_optuna()
    import sqlalchemy

    try:
        parsed = sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        hidden = re.sub(r"//[^@/]*@", "//***@", url)
        raise StudyError(
            f"storage {hidden!r}: expected a database URL or the path of an SQLite file, got neither; "
            "as in postgresql://user@host/database or sqlite:///study.db"
        ) from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL; None for other databases."""
    parsed = _parse(url)
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None


StaleTrial = Callable[["optuna.Study", "optuna.trial.FrozenTrial"], None]


def open_storage(
    url: str, heartbeat: int | None = None, stale: StaleTrial | None = None, create: bool = False
) -> optuna.storages.RDBStorage:
    """The storage of a URL.

    heartbeat   seconds between signs of life of workers; stale is called with each trial that lacks them
    create      whether to make the database if there is none
    StudyError if the database cannot be reached, is locked, is damaged, or (unless `create`) does not exist.
    """
    need_optuna()
    import optuna

    file = sqlite_file(url)
    if file is not None and not create and not file.is_file():
        raise StudyError(f"storage {mask_url(url)}: expected a database, got no such file; `carbo tune` makes it")
    options: dict[str, Any] = {
        "skip_table_creation": not create,
        "engine_kwargs": _engine_options(file is not None, create),
    }
    if heartbeat is not None:
        options |= {"heartbeat_interval": heartbeat, "grace_period": GRACE * heartbeat}
        new = hasattr(optuna.storages, "RetryHeartbeatStaleTrialCallback")  # Optuna 4.9 renamed it
        options["heartbeat_stale_trial_callback" if new else "failed_trial_callback"] = stale
    with explain_errors(url, RuntimeError), silence_warnings():  # RuntimeError: tables of another version of Optuna
        if file is not None and create:
            _use_write_ahead_log(file)
        # Optuna formats the URL as a template.
        text = _parse(url).render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}")
        storage = optuna.storages.RDBStorage(text, **options)
        if file is not None and create:
            _lock_early(storage)
        storage.get_all_studies()
    return storage


def close(storage: optuna.storages.RDBStorage) -> None:
    """Close all connections of a storage."""
    storage.remove_session()
    storage.engine.dispose()


def _use_write_ahead_log(file: Path) -> None:
    """Set the journal mode in the file: Optuna stores a trial in dozens of small transactions."""
    with contextlib.closing(sqlite3.connect(file, timeout=BUSY)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def _lock_early(storage: optuna.storages.RDBStorage) -> None:
    """Let transactions of SQLite lock from their first statement on, and not wait for the disk.

    Python's sqlite3 locks at the first write. Optuna reads that a trial is free before it takes the trial, and another
    process could do the same in between. Committed data survive the end of any process; `sync` waits for the disk.
    """
    import sqlalchemy

    def set_up(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # leave BEGIN to us
        connection.execute("PRAGMA synchronous = NORMAL")

    def begin(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    sqlalchemy.event.listen(storage.engine, "connect", set_up)
    sqlalchemy.event.listen(storage.engine, "begin", begin)
    storage.engine.dispose()


def sync(storage: optuna.storages.RDBStorage) -> None:
    """Write committed data to the disk, against a loss of power. Other databases do that at every commit."""
    if storage.engine.dialect.name == "sqlite":
        with contextlib.closing(storage.engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")


def _engine_options(sqlite: bool, stay: bool) -> dict[str, Any]:
    """Options of SQLAlchemy. stay: keep connections open between uses."""
    import sqlalchemy

    options: dict[str, Any] = {"connect_args": {"timeout": BUSY}} if sqlite else {}
    if not stay:
        return options | {"poolclass": sqlalchemy.pool.NullPool}
    return options | {"pool_pre_ping": True}  # the server may have been restarted since


@contextlib.contextmanager
def explain_errors(url: str, *more: type[Exception]) -> Iterator[None]:
    """Turn errors of the database, and of some more types, into a StudyError: one line, without secrets."""
    import optuna
    import sqlalchemy

    kinds: tuple[type[Exception], ...] = (
        sqlite3.Error,
        sqlalchemy.exc.SQLAlchemyError,
        optuna.exceptions.OptunaError,
        *more,
    )
    try:
        yield
    except ImportError:
        driver = "postgres" if "postgres" in url.partition("://")[0] else "tune"
        raise StudyError(
            f"storage {mask_url(url)}: expected its database driver, got none; pip install 'carbo[{driver}]'"
        ) from None
    except kinds as error:
        raise StudyError(f"storage {mask_url(url)}: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    """The error in words, with the way out."""
    while error.__cause__ is not None:
        error = error.__cause__
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    first = next((line for line in said if line.strip()), type(error).__name__)
    known = {
        "no such table": ("a database with a study, got one without", "`carbo tune` makes the study"),
        "does not exist": ("a database with a study, got one without", "check the name, or `carbo tune` first"),
        "not a database": ("an SQLite database, got a file that is none", "name another file, or move it away"),
        "malformed": ("a sound database, got a damaged one", "restore it from a copy, or move it away"),
        "locked": ("a free database, got one locked by another program", "end that program and try again"),
        "unable to open": ("a file that can be opened, got an error", "check the directory and its permissions"),
        "readonly": ("a database that can be written, got a read-only one", "check the permissions"),
    }
    for sign, (expected, way_out) in known.items():
        if sign in first:
            return f"expected {expected} ({first}); {way_out}"
    return f"expected a database that can be used, got: {first}; check that it runs and that the URL is right"


@contextlib.contextmanager
def lock_others_out(url: str, file: Path) -> Iterator[None]:
    """Let one tuner in at a time: on PostgreSQL by an advisory lock, otherwise by a lock of the study file."""
    import fcntl

    import sqlalchemy

    parsed = _parse(url)
    if parsed.get_backend_name() != "postgresql":
        with file.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        return
    with explain_errors(url):
        database = sqlalchemy.create_engine(parsed, poolclass=sqlalchemy.pool.NullPool)
        connection = database.connect()
        connection.execute(sqlalchemy.text("SELECT pg_advisory_lock(:key)"), {"key": LOCK})
    try:
        yield
    finally:
        with contextlib.suppress(sqlalchemy.exc.SQLAlchemyError):
            connection.close()
