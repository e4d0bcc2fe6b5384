"""Several tuners on one PostgreSQL server, a real one: nothing twice, nothing lost, whoever dies.

The server comes from Debian's packages (or any other) and runs in a directory of its own, on the loopback interface.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from carbo import cli
from carbo.tune.dispatch import Desk
from carbo.tune.reading import open_study
from carbo.tune.retry import Patience
from carbo.tune.session import open_session
from carbo.tune.storage import close, open_storage, silence_warnings
from carbo.tune.study_file import load
from carbo.tune.trials import RUN
from tests.tuning import SLOW_VALUE as VALUE
from tests.tuning import checked, ended, killed_at_random, log, start, write

PASSWORD = "s3cret{}word"
"""With braces, which Optuna takes for a template's."""


def binaries() -> Path | None:
    """Where the server's programs are: on PATH, or where Debian puts them."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class Server:
    """A PostgreSQL cluster of our own."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._user = self._unprivileged()
        if self._user is not None:
            shutil.chown(folder, self._user)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        data = ["--pgdata", str(folder / "data")]
        self._run("initdb", *data, "--username=me", f"--pwfile={secret}", "--auth=scram-sha-256", "--no-sync")
        for _ in range(5):  # another program may take the port first
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self._port = free.getsockname()[1]
            try:
                self.start()
                break
            except subprocess.CalledProcessError:
                continue
        else:
            raise AssertionError((folder / "server.log").read_text())

    @staticmethod
    def _unprivileged() -> str | None:
        """PostgreSQL refuses to run as root; then it runs as another user."""
        if os.geteuid() != 0:
            return None
        names = {entry.pw_name for entry in pwd.getpwall()}
        return "postgres" if "postgres" in names else "nobody"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._programs / program, *arguments],
            check=True,
            user=self._user,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start(self) -> None:
        options = f"-c listen_addresses=127.0.0.1 -p {self._port} -k '' -c fsync=off"
        data, journal = str(self._folder / "data"), str(self._folder / "server.log")
        self._run("pg_ctl", "-D", data, "-l", journal, "-w", "-t", "60", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-m", "immediate", "stop")

    def restart(self) -> None:
        self.stop()
        self.start()

    def url(self, database: str) -> str:
        from urllib.parse import quote

        return f"postgresql://me:{quote(PASSWORD)}@127.0.0.1:{self._port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    programs = binaries()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: install the package postgresql (Debian, Ubuntu)")
    pytest.importorskip("psycopg")
    with tempfile.TemporaryDirectory(prefix="carbo-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        made = Server(programs, Path(folder))
        yield made
        made.stop()


@pytest.fixture
def url(server: Server, request: pytest.FixtureRequest) -> str:
    """A database of the test's own."""
    name = f"test_{abs(hash(request.node.name))}"
    server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    server.execute(f"CREATE DATABASE {name}")
    return server.url(name)


def test_two_tuners_share_a_budget_and_never_a_point(
    tmp_path: Path, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, VALUE, f'budget = 24\nworkers = 3\nstorage = "{url.replace(PASSWORD, "")}"')
    path.write_text(path.read_text().replace("s3cret%7B%7Dword", "${TUNE_PASSWORD}"))
    starts = "".join(f"\n[[start]]\na = {a}\nb = 'y'\nc = true\nd = 9\n" for a in (1, 2, 3, 4))
    path.write_text(path.read_text() + starts)
    tuners = [start(["tune", "study.toml"], tmp_path, TUNE_PASSWORD="s3cret%7B%7Dword") for _ in range(2)]
    printed = [ended(tuner) for tuner in tuners]
    assert [tuner.returncode for tuner in tuners] == [0, 0], printed
    os.environ["TUNE_PASSWORD"] = "s3cret%7B%7Dword"
    try:
        checked(path, url, 24)
        assert max(log(tmp_path).values()) == 1
        assert all(" of them now" in text and "24 evaluations" in text for text in printed)
        assert cli.main(["best", str(path)]) == 0
        assert cli.main(["trials", url, "--csv"]) == 0
        assert cli.main(["best", url.replace("127.0.0.1", "127.0.0.1:1/x?")]) == 2
    finally:
        del os.environ["TUNE_PASSWORD"]
    out, err = capfd.readouterr()
    with open_study(url) as opened:
        held = [(trial.user_attrs, trial.system_attrs) for trial in opened.study.get_trials()]
        held.append((opened.study.user_attrs, {}))
    assert "s3cret" not in "".join([*printed, out, err, str(held)])
    assert "me:***@127.0.0.1" in err


def test_eight_workers_200_evaluations_kills_and_a_restart_nothing_twice_and_nothing_lost(
    server: Server, tmp_path: Path, url: str
) -> None:
    path = write(tmp_path, VALUE, 'budget = 200\nheartbeat = "5s"')
    deaths = killed_at_random(path, 0, url, server.restart, tuners=2, kills=2)
    checked(path, url, 200, repeated=4 * deaths)


def test_a_stopped_heartbeat_is_noticed_by_the_servers_clock(server: Server, tmp_path: Path, url: str) -> None:
    with contextlib.closing(open_session(load(write(tmp_path, VALUE), storage=url))) as session, silence_warnings():

        def desk() -> Desk:
            return Desk(session, Patience(url, threading.Event(), lambda _: None))

        lost = desk().next()
        assert lost is not None
        session.storage.set_trial_user_attr(lost.trial_id, RUN, {"owner": ["another machine", 1, "1"], "mark": "none"})
        other = desk().next()
        assert other is not None
        assert other.params != lost.params
        seconds = 3 * session.file.plan.heartbeat + 5
        database = url.rpartition("/")[2]
        late = f"UPDATE trial_heartbeats SET heartbeat = heartbeat - interval '{seconds} seconds' WHERE trial_id = "
        server.execute(f"{late}{lost.trial_id}", database)
        again = desk().next()
        assert again is not None
        assert again.params == lost.params


def test_an_empty_database_and_an_unknown_study_are_one_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["best", url]) == 2
    assert "expected a database with a study, got one without" in capsys.readouterr().err
    close(open_storage(url, create=True))
    assert cli.main(["best", url, "--study", "x"]) == 2
    said = capsys.readouterr().err
    assert "expected a study 'x', got none" in said
    assert "s3cret" not in said
    assert len(said.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_eight_workers_killed_at_random_on_a_server_that_restarts(
    server: Server, tmp_path: Path, url: str, seed: int
) -> None:
    deaths = killed_at_random(write(tmp_path, VALUE, "budget = 200"), seed, url, server.restart)
    checked(tmp_path / "study.toml", url, 200, repeated=2 * deaths)
