"""The tuner on SQLite: budgets, failures, resuming, rescue; counted by what the commands themselves write down."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial

from carbo import CarboSampler
from carbo.integrations.optuna.evaluations import Evaluation
from carbo.tune import dispatch as desk_module
from carbo.tune import requeue as requeue_module
from carbo.tune import retry as patience_module
from carbo.tune import storage as storage_module
from carbo.tune.dispatch import Assignment, Desk
from carbo.tune.errors import StudyError
from carbo.tune.evaluate import Evaluated
from carbo.tune.processes import Owner, find_marked
from carbo.tune.retry import Patience
from carbo.tune.session import Session, open_session
from carbo.tune.storage import mask_url, silence_warnings
from carbo.tune.study_file import load
from carbo.tune.trials import RUN, count
from carbo.tune.tuner import Tuner
from tests.tuning import LOG, SLOW_VALUE, checked, ended, killed_at_random, line, log, rows, start, tuned, until, write

VALUE = LOG + "echo value $(( $1 * $3 ))\n"


def standings(found: list[Evaluation]) -> list[str]:
    return [row.standing for row in found]


# ---------------------------------------------------------------- to the end


def test_a_study_runs_to_its_budget_and_every_value_is_the_commands_own(tmp_path: Path) -> None:
    why, found = tuned(write(tmp_path, VALUE, "budget = 12\nworkers = 3"))
    assert why == "the budget is used up"
    assert [row.standing for row in found] == ["done"] * 12
    assert all(row.value == row.params["a"] * row.params["d"] for row in found)
    assert log(tmp_path) == dict.fromkeys(map(line, found), 1)
    assert [row.number for row in found] == list(range(12))


def test_constraints_hold_and_known_points_come_first(tmp_path: Path) -> None:
    starts = "".join(f"[[start]]\na = {a}\nb = 'y'\nc = true\nd = 9\n" for a in (7, 3, 7))
    path = write(tmp_path, VALUE, 'budget = 15\nconstraints = ["a < d", "c or b != \'x\'"]', starts)
    _, found = tuned(path)
    assert [row.params["a"] for row in found[:2]] == [7, 3]
    assert all(row.params["a"] < row.params["d"] for row in found)
    assert all(row.params["c"] or row.params["b"] != "x" for row in found)
    assert max(log(tmp_path).values()) == 1


def test_starting_again_goes_on_where_it_stood(tmp_path: Path) -> None:
    starts = "[[start]]\na = 1\nb = 'y'\nc = true\nd = 9\n"
    path = write(tmp_path, VALUE, "budget = 4", starts)
    tuned(path)
    before = log(tmp_path)
    why, found = tuned(path)
    assert (why, log(tmp_path)) == ("the budget is used up", before)
    path.write_text(path.read_text().replace("budget = 4", "budget = 7"))
    _, found = tuned(path)
    assert len(log(tmp_path)) == sum(log(tmp_path).values()) == 7
    assert standings(found) == ["done"] * 7


def test_the_model_is_asked_and_finds_the_best_of_a_small_space(tmp_path: Path) -> None:
    path = write(tmp_path, VALUE, "budget = 20\nseed = 0")
    path.write_text(path.read_text().replace("initial = 1000000", "initial = 6"))
    _, found = tuned(path)
    values = [row.value for row in found if row.value is not None]
    assert min(values[6:]) < min(values[:6])


@pytest.mark.parametrize(
    ("limit", "setting", "initial"),
    [("budget = 18", "", 6), ("budget = 2", "", 1), ("budget = 600", "", 20), ("deadline = '1h'", "", 20),
     ("budget = 18", "initial = 9", 9)],
)  # fmt: skip
def test_at_most_a_third_of_a_budget_is_spent_at_random(limit: str, setting: str, initial: int, tmp_path: Path) -> None:
    path = write(tmp_path, VALUE, limit)
    path.write_text(path.read_text().replace("initial = 1000000", setting))
    with contextlib.closing(open_session(load(path))) as session:
        assert session.sampler._settings.initial == initial


def test_failures_count_are_told_with_their_reason_and_not_repeated(tmp_path: Path) -> None:
    script = (
        LOG + 'if [ "$2" = x ]; then echo broken >&2; exit 4; fi\nif [ "$2" = y ]; then echo none; else echo 1; fi\n'
    )
    _, found = tuned(write(tmp_path, script, "budget = 12\ngive_up = 0"))
    assert len(found) == 12
    assert max(log(tmp_path).values()) == 1
    for row in found:
        if row.params["b"] == "x":
            assert (row.standing, row.reason) == ("failed", "exit code 4; stderr ends: broken")
        elif row.params["b"] == "y":
            assert (row.standing, row.reason) == ("failed", "expected a number in the output, got 'none'")
        else:
            assert (row.standing, row.value) == ("done", 1.0)


def test_a_run_that_takes_too_long_is_a_failure(tmp_path: Path) -> None:
    _, found = tuned(write(tmp_path, "exec sleep 600\n", 'budget = 1\ntimeout = "200ms"\ngive_up = 0'))
    assert [(row.standing, row.reason) for row in found] == [("failed", "timed out after 0.2 s")]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo hello\n", "expected a number in the output, got 'hello'"),
        ("echo loss nan\n", "expected a finite value, got nan"),
        ("exit 9\n", "exit code 9"),
    ],
)
def test_when_nothing_succeeds_the_reason_is_told_and_nothing_more_is_tried(
    tmp_path: Path, script: str, said: str
) -> None:
    path = write(tmp_path, LOG + script, "budget = 50\ngive_up = 3")
    with pytest.raises(StudyError) as refused:
        tuned(path)
    assert said in str(refused.value)
    assert "try it by hand: /bin/sh run.sh" in str(refused.value)
    assert sum(log(tmp_path).values()) == 3


def test_a_space_that_is_used_up_ends_the_study(tmp_path: Path) -> None:
    path = write(tmp_path, VALUE, 'budget = 50\nworkers = 2\nconstraints = ["a == 2", "d < 3"]')
    why, found = tuned(path)
    assert why == "every permitted point has been evaluated"
    assert count(found) == len(log(tmp_path)) == sum(log(tmp_path).values()) == 2 * 3 * 2


def test_a_space_of_one_point_is_evaluated_once(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        '[study]\nbudget = 9\n[command]\nrun = ["/bin/sh", "-c", "echo x >>log; echo {a}"]\n'
        '[variables.a]\nkind = "ordinal"\nchoices = [3]\n'
    )
    why, found = tuned(path)
    assert why == "every permitted point has been evaluated"
    assert log(tmp_path) == {"x": 1}
    assert [row.value for row in found] == [3.0]


def test_no_evaluation_begins_after_the_deadline(tmp_path: Path) -> None:
    why, _ = tuned(write(tmp_path, VALUE, "deadline = 2020-01-01T00:00:00Z"))
    assert why == "the deadline has come"
    assert not log(tmp_path)


def test_workers_evaluate_at_the_same_time(tmp_path: Path) -> None:
    """Each run waits until three others are there: with fewer than four at a time none would ever end."""
    script = 'touch "here-$$"\nwhile [ "$(ls | grep -c here-)" -lt 4 ]; do sleep 0.01; done\necho 1\n'
    _, found = tuned(write(tmp_path, script, 'budget = 4\nworkers = 4\ntimeout = "60s"'))
    assert standings(found) == ["done"] * 4


def test_repeats_and_times_are_kept(tmp_path: Path) -> None:
    script = "echo 1 >>count\nwc -l <count\n"
    _, found = tuned(write(tmp_path, script, "budget = 1\nrepeats = 3\naggregate = 'max'"))
    (row,) = found
    assert row.value == 3.0
    assert row.seconds is not None
    assert row.seconds > 0


# ---------------------------------------------------------------- interruptions

HANG = LOG + 'touch "up-$$"\nwhile [ ! -e gate ]; do sleep 0.02; done\necho $(( $1 * $3 ))\n'
"""Ends only when the gate is open; log lines are written when it begins."""


def up(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("up-")) for path in folder.glob("up-*")]


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_all_runs_hands_their_points_back_and_tells(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, HANG, "budget = 3\nworkers = 2")
    process = start(["tune", "study.toml", "--json"], tmp_path)
    until(lambda: len(up(tmp_path)) == 2)
    pids = up(tmp_path)
    process.send_signal(number)
    printed = ended(process)
    assert process.returncode == 130, printed
    summary = json.loads(printed[printed.index("{") :])
    assert (summary["interrupted"], summary["evaluations"], summary["best"]) == (True, 0, None)
    assert gone(pids)
    assert "Traceback" not in printed

    before = log(tmp_path)
    (tmp_path / "gate").touch()
    _, found = tuned(tmp_path / "study.toml")
    assert sorted(row.standing for row in found) == ["abandoned"] * 2 + ["done"] * 3
    assert {line(row) for row in found if row.standing == "abandoned"} == set(before)
    assert log(tmp_path) == {line(row): 2 if line(row) in before else 1 for row in found}  # begun again, not lost


def test_a_second_interruption_does_not_wait_for_a_suggestion(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, before = threading.Event(), threading.enumerate()
    said: list[str] = []
    monkeypatch.setattr(Desk, "next", lambda _: released.wait(300) and None)
    tuner = Tuner(session, said.append)

    def again() -> None:
        tuner._stopping.wait(300)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def watch() -> None:
        if not said:
            threading.Thread(target=again, daemon=True).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuner.run(watch)
    assert said == ["stopping; interrupt once more to leave at once"]
    assert not released.is_set()
    assert all(thread.daemon for thread in threading.enumerate() if thread not in before)  # so that Python can leave
    released.set()


def test_kill_9_loses_no_finished_evaluation_and_repeats_none(tmp_path: Path) -> None:
    """Six evaluations end, two hang; the tuner is killed; what goes on runs the two again and the six never."""
    script = 'n=$(ls | grep -c begun-)\ntouch "begun-$$"\n' + LOG
    script += 'if [ "$n" -ge 6 ]; then touch "up-$$"; while [ ! -e gate ]; do sleep 0.02; done; fi\n'
    script += 'echo "$1 $2 $3 $4" >>ends\necho $(( $1 * $3 ))\n'
    path = write(tmp_path, script, "budget = 10\nworkers = 2")
    process = start(["tune", "study.toml"], tmp_path)
    until(lambda: len(up(tmp_path)) == 2)
    pids = up(tmp_path)
    hanging = set((tmp_path / "log").read_text().splitlines()) - set((tmp_path / "ends").read_text().splitlines())
    with contextlib.closing(Onlooker(path)) as reader:
        until(lambda: reader.finished() == 6)
    process.kill()
    process.communicate(timeout=60)
    assert not gone(pids)  # kill -9 leaves them behind

    begun = log(tmp_path)
    opened = threading.Event()

    def watch() -> None:
        if gone(pids) and not opened.is_set():  # what was left has been ended before its point is tried again
            opened.set()
            (tmp_path / "gate").touch()

    with contextlib.closing(open_session(load(path))) as session:
        assert Tuner(session, lambda _: None).run(watch, every=0.05) == "the budget is used up"
        done = [row for row in rows(session) if row.standing == "done"]
    assert opened.is_set()
    assert len(done) == 10
    assert (tmp_path / "ends").read_text().splitlines().__len__() == 10
    assert len(set((tmp_path / "ends").read_text().splitlines())) == 10
    assert {text: n for text, n in log(tmp_path).items() if n > 1} == dict.fromkeys(hanging, 2)
    assert hanging <= {line(row) for row in done}
    assert len(begun) == 8


class Onlooker:
    """A second connection to the database of a study, as an onlooker has it."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"file:{path.with_suffix('.db')}?mode=ro", uri=True)

    def finished(self) -> int:
        (number,) = self._connection.execute("SELECT count(*) FROM trials WHERE state = 'COMPLETE'").fetchone()
        return int(number)

    def close(self) -> None:
        self._connection.close()


# ---------------------------------------------------------------- rescue


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with contextlib.closing(open_session(load(write(tmp_path, VALUE, "budget = 3")))) as opened, silence_warnings():
        yield opened


def desk_of(session: Session) -> Desk:
    return Desk(session, Patience(session.file.storage, threading.Event(), lambda _: None))


def age(session: Session, seconds: int) -> None:
    """Make all heartbeats so much older."""
    with contextlib.closing(sqlite3.connect(session.file.path.with_suffix(".db"))) as connection, connection:
        connection.execute("UPDATE trial_heartbeats SET heartbeat = datetime(heartbeat, ?)", (f"-{seconds} seconds",))


def elsewhere(session: Session, number: int) -> None:
    """Let a trial have been started on another machine."""
    trial_id = session.trial_id(number)
    owner = ["another machine", 1, "1"]
    session.storage.set_trial_user_attr(trial_id, RUN, {"owner": owner, "mark": "none"})


def test_a_worker_of_another_machine_is_dead_when_its_heartbeat_stops(session: Session) -> None:
    lost = desk_of(session).next()
    assert lost is not None
    elsewhere(session, lost.number)
    mine = desk_of(session)
    other = mine.next()
    assert other is not None
    assert other.params != lost.params  # it may still be alive
    age(session, 3 * session.file.plan.heartbeat + 5)
    mine.beat()  # mine goes on beating
    again = mine.next()
    assert again is not None
    assert again.params == lost.params
    assert standings(rows(session)) == ["abandoned", "running", "running"]


def test_a_worker_that_dies_while_the_model_is_asked_is_known_to_be_dead_at_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):  # so that another suggestion is not the first of all
        assert desk_of(session).next() is not None
    asked = CarboSampler.sample_relative

    def die(sampler: CarboSampler, study: optuna.Study, trial: FrozenTrial, *space: Any) -> Any:
        signed = session.storage.get_trial(trial._trial_id).user_attrs[RUN]
        machine, pid, _ = signed["owner"]
        assert (machine, pid) == Owner.this()[:2]
        session.storage.set_trial_user_attr(trial._trial_id, RUN, {**signed, "owner": [machine, pid, "long ago"]})
        raise KeyboardInterrupt

    monkeypatch.setattr(CarboSampler, "sample_relative", die)
    with pytest.raises(KeyboardInterrupt):
        desk_of(session).next()
    monkeypatch.setattr(CarboSampler, "sample_relative", asked)
    assert standings(rows(session)) == ["running"] * 3
    assert desk_of(session).next() is not None  # there is a place in the budget of three again
    assert standings(rows(session)) == ["running", "running", "abandoned", "running"]


def test_a_value_that_comes_after_its_trial_was_taken_over_is_left_out(session: Session) -> None:
    slow = desk_of(session)
    lost = slow.next()
    assert lost is not None
    elsewhere(session, lost.number)
    age(session, 1000)
    again = desk_of(session).next()
    assert again is not None
    assert again.params == lost.params
    assert slow.finish(lost, Evaluated(1.0, [1.0], 0.1)) is False
    assert standings(rows(session)) == ["abandoned", "running"]


def test_a_value_whose_receipt_was_lost_may_be_told_again(session: Session) -> None:
    desk = desk_of(session)
    done = desk.next()
    assert done is not None
    assert desk.finish(done, Evaluated(1.5, [1.5], 0.1)) is True
    assert desk.finish(done, Evaluated(1.5, [1.5], 0.1)) is True
    assert desk.fail(done, "no", 0.1) is False
    assert [(row.standing, row.value) for row in rows(session)] == [("done", 1.5)]


def test_a_worker_that_died_before_its_first_heartbeat_is_found_too(session: Session) -> None:
    session.storage.create_new_trial(session.study_id)  # and dies here
    desk = desk_of(session)
    assert desk.next() is not None  # it may be alive and slow
    age(session, 1000)
    desk.beat()
    assert desk.next() is not None
    assert standings(rows(session)) == ["abandoned", "running", "running"]


def test_a_dead_process_of_this_machine_is_known_at_once(session: Session) -> None:
    lost = desk_of(session).next()
    assert lost is not None
    dead = Owner.this()._replace(started="1")
    session.storage.set_trial_user_attr(lost.trial_id, RUN, {"owner": list(dead), "mark": lost.mark})
    again = desk_of(session).next()
    assert again is not None
    assert again.params == lost.params
    assert find_marked(lost.mark) == []


def lost(session: Session, monkeypatch: pytest.MonkeyPatch, tell: Callable[[Desk, Assignment], bool]) -> None:
    """A worker that wrote its outcome down and died before it could tell."""

    class Died(BaseException): ...

    def die(*_: object) -> None:
        raise Died

    desk = desk_of(session)
    done = desk.next()
    assert done is not None
    with monkeypatch.context() as patch:
        patch.setattr(session.study, "tell", die)
        with pytest.raises(Died):
            tell(desk, done)
    dead = Owner.this()._replace(started="1")
    session.storage.set_trial_user_attr(done.trial_id, RUN, {"owner": list(dead), "mark": "none"})


def test_an_outcome_that_was_written_down_but_not_told_is_kept(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost(session, monkeypatch, lambda desk, done: desk.finish(done, Evaluated(7.5, [7.0, 8.0], 0.1)))
    lost(session, monkeypatch, lambda desk, done: desk.fail(done, "why", 0.1))
    assert desk_of(session).next() is not None
    found = rows(session)
    assert [(row.standing, row.value, row.reason) for row in found] == [
        ("abandoned", None, None),
        ("done", 7.5, None),
        ("failed", None, "why"),
        ("running", None, None),
    ]
    assert found[1].params == found[0].params
    assert len({line(row) for row in found}) == 3
    assert count(found) == 2


def test_a_point_that_takes_down_its_workers_is_given_up(session: Session) -> None:
    first = None
    for death in range(requeue_module.MAX_DEATHS + 2):
        desk = desk_of(session)
        given = desk.next()
        assert given is not None
        first = first or given.params
        assert (given.params == first) == (death <= requeue_module.MAX_DEATHS)
        dead = Owner.this()._replace(started="1")
        session.storage.set_trial_user_attr(given.trial_id, RUN, {"owner": list(dead), "mark": "none"})


def test_handing_back_is_no_death(session: Session) -> None:
    desk = desk_of(session)
    params = []
    for _ in range(requeue_module.MAX_DEATHS + 3):
        given = desk.next()
        assert given is not None
        params.append(given.params)
        desk.hand_back(given)
    assert all(each == params[0] for each in params)


def test_a_tuner_that_stops_takes_nothing_up_again(session: Session) -> None:
    stopping = threading.Event()
    desk = Desk(session, Patience(session.file.storage, stopping, lambda _: None))
    given = desk.next()
    assert given is not None
    stopping.set()
    desk.hand_back(given)
    assert desk.next() is None
    assert [row.standing for row in rows(session)] == ["abandoned", "waiting"]


def test_tuners_that_ask_at_the_same_moment_keep_the_budget(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """All believe that there is room, as when each looked before any had asked."""
    monkeypatch.setattr(Desk, "_is_full", lambda *_: False)
    given = [desk_of(session).next() for _ in range(6)]
    assert [each is not None for each in given] == [True] * 3 + [False] * 3
    assert count(rows(session), ("running",)) == 3


def test_without_the_check_the_budget_would_be_overrun(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Desk, "_is_full", lambda *_: False)
    monkeypatch.setattr(Desk, "_is_admitted", lambda *_: True)
    assert sum(desk_of(session).next() is not None for _ in range(6)) == 6


def test_while_the_budget_is_under_way_elsewhere_there_is_nothing_to_do(session: Session) -> None:
    first, second = desk_of(session), desk_of(session)
    given = [first.next() for _ in range(3)]
    assert None not in given
    assert second.next() is None
    assert second.over is None


# ---------------------------------------------------------------- storages


def test_between_reading_and_writing_a_trial_nobody_else_writes(session: Session) -> None:
    import sqlalchemy

    rival = sqlite3.connect(session.file.path.with_suffix(".db"), timeout=0.0)
    with contextlib.closing(rival), session.storage.engine.begin() as transaction:
        transaction.execute(sqlalchemy.text("SELECT count(*) FROM trials")).scalar()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            rival.execute("BEGIN IMMEDIATE")


def test_a_database_that_comes_back_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import optuna

    monkeypatch.setattr(patience_module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(patience_module, "SILENCE", 0.002)
    said: list[str] = []
    answers: list[Any] = [
        optuna.exceptions.StorageInternalError("away"),
        optuna.exceptions.StorageInternalError("away"),
        7,
    ]

    def ask() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    assert Patience("sqlite:///x.db", threading.Event(), said.append)(ask) == 7
    assert len(said) == 1
    assert "waiting for it" in said[0]


def test_a_database_that_is_damaged_under_way_is_not_waited_for() -> None:
    import sqlalchemy

    def ask() -> int:
        raise sqlalchemy.exc.DatabaseError("SELECT 1", {}, sqlite3.DatabaseError("database disk image is malformed"))

    with pytest.raises(StudyError, match="expected a sound database, got a damaged one"):
        Patience("sqlite:///x.db", threading.Event(), lambda _: None)(ask)


def test_a_server_that_is_about_to_start_is_waited_for_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience_module, "FIRST_PAUSE", 0.001)
    answers: list[Any] = [StudyError("the database system is starting up"), StudyError("Connection refused"), 7]

    def start() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, StudyError):
            raise answer
        return answer

    assert patience_module.when_ready(start) == 7
    answers[:] = [StudyError("password authentication failed"), 7]
    with pytest.raises(StudyError, match="password"):
        patience_module.when_ready(start)
    monkeypatch.setattr(patience_module, "AWAY", 0.0)
    answers[:] = [StudyError("Connection refused")] * 9
    with pytest.raises(StudyError, match="refused"):
        patience_module.when_ready(start)
    answers[:] = [StudyError("the database system is not yet accepting connections"), 7]
    assert patience_module.when_ready(start) == 7
    monkeypatch.setattr(patience_module, "START", 0.0)
    answers[:] = [StudyError("the database system is not yet accepting connections")] * 9
    with pytest.raises(StudyError, match="not yet accepting"):
        patience_module.when_ready(start)


def test_a_database_that_stays_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import optuna

    monkeypatch.setattr(patience_module, "LIMIT", 0.0)

    def ask() -> int:
        raise optuna.exceptions.StorageInternalError("away")

    with pytest.raises(StudyError, match=r"storage sqlite:///x\.db: expected a database that can be used, got: away"):
        Patience("sqlite:///x.db", threading.Event(), lambda _: None)(ask)


def test_a_file_that_is_no_database_a_locked_one_and_a_missing_folder_are_one_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, VALUE)
    (tmp_path / "study.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(StudyError, match=r"study\.db: expected an SQLite database, got a file that is none"):
        open_session(load(path))
    with pytest.raises(StudyError, match="unable to open"):
        open_session(load(path, storage=str(tmp_path / "no" / "x.db")))
    (tmp_path / "study.db").unlink()
    open_session(load(path)).close()
    monkeypatch.setattr(storage_module, "BUSY", 0.01)
    with contextlib.closing(sqlite3.connect(tmp_path / "study.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StudyError, match="expected a free database, got one locked by another program"):
            open_session(load(path))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hunter2@host/db", "postgresql+psycopg://me:***@host/db"),
        ("postgresql://host/db?user=me&password=hunter2", "postgresql+psycopg://host/db?password=***&user=me"),
        ("mysql://me:hunter2@host:3/db", "mysql://me:***@host:3/db"),
        ("nonsense://me:hunter2@host:port/db", "nonsense://***@host:port/db"),
        ("sqlite:////data/x.db", "sqlite:////data/x.db"),
    ],
)
def test_no_password_is_ever_shown(url: str, shown: str) -> None:
    assert mask_url(url) == shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:hunter2@127.0.0.1:1/db", "expected a database that can be used"),
        ("nonsense://me:hunter2@host/db", "expected a database"),
        ("postgresql://me:hunter2@host:port/db", "expected a database URL"),
    ],
)
def test_a_database_that_is_not_there_is_one_line_without_its_password(
    tmp_path: Path, url: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience_module, "AWAY", 0.0)
    with pytest.raises(StudyError) as refused:
        open_session(load(write(tmp_path, VALUE), storage=url))
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_study_of_another_program_is_left_alone(tmp_path: Path) -> None:
    import optuna

    path = write(tmp_path, VALUE)
    study = optuna.create_study(storage=load(path).storage, study_name="study")
    study.add_trial(optuna.create_trial(value=1.0))
    study._storage._backend.engine.dispose()  # type: ignore[attr-defined]
    with pytest.raises(StudyError, match="expected one made by `carbo tune`, got one of another program"):
        open_session(load(path))


# ---------------------------------------------------------------- changed study files


def test_a_changed_file_is_refused_and_extended_when_meant(tmp_path: Path) -> None:
    path = write(tmp_path, VALUE, "budget = 3")
    tuned(path)
    path.write_text(path.read_text().replace("high = 9", "high = 12").replace("budget = 3", "budget = 6"))
    with pytest.raises(StudyError, match=r"variables\.d\.high: was 9, is 12; undo that, or pass --extend"):
        tuned(path)
    _, found = tuned(path, extend=True)
    assert standings(found) == ["done"] * 6
    _, found = tuned(path)  # agreed upon from now on
    path.write_text(path.read_text().replace('"x", "y", "z"', '"x", "y"'))
    with pytest.raises(StudyError, match=r"variables\.b\.choices: was \[.*\], is \[.*\]; undo that, or give the study"):
        tuned(path, extend=True)


def test_points_queued_before_a_new_constraint_are_dropped(tmp_path: Path) -> None:
    starts = "[[start]]\na = 8\nb = 'y'\nc = true\nd = 9\n[[start]]\na = 2\nb = 'y'\nc = true\nd = 9\n"
    path = write(tmp_path, VALUE, "budget = 1", starts)
    path.write_text(path.read_text().replace("budget = 1", "budget = 1\nconstraints = ['a > 1']"))
    tuned(path)
    text = (
        path.read_text().replace("budget = 1", "budget = 4").replace("'a > 1'", "'a > 3'").replace("a = 2\n", "a = 4\n")
    )
    path.write_text(text)
    _, found = tuned(path, extend=True)
    done = [row for row in found if row.standing == "done"]
    assert len(done) == 4
    assert all(row.params["a"] > 3 for row in done)
    assert standings(found).count("abandoned") == 1


def test_a_study_without_a_success_may_be_corrected_and_begins_anew(tmp_path: Path) -> None:
    path = write(tmp_path, "echo no\n", "budget = 4\ngive_up = 2")
    with pytest.raises(StudyError, match="got none of 2"):
        tuned(path)
    path.write_text(path.read_text().replace('"{c}"]', '"{c}", "--"]'))
    (tmp_path / "run.sh").write_text("echo 1\n")
    _, found = tuned(path)
    assert standings(found) == ["done"] * 4


def test_an_error_in_one_thread_ends_all_and_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, VALUE, "budget = 9\nworkers = 3")

    def fails(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(desk_module, "_suggest", fails)
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="a fault of ours"):
        tuned(path)
    assert threading.active_count() == before


def test_a_study_that_is_deleted_under_way_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, VALUE, "budget = 200")
    with contextlib.closing(open_session(load(path))) as session:

        def watch() -> None:
            if log(tmp_path) and "study" in {study.study_name for study in session.storage.get_all_studies()}:
                session.storage.delete_study(session.study_id)

        with pytest.raises(StudyError, match="it was deleted meanwhile"):
            Tuner(session, lambda _: None).run(watch, every=0.01)


def test_the_same_seed_gives_the_same_study(tmp_path: Path) -> None:
    studies = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        _, found = tuned(write(tmp_path / folder, VALUE, "budget = 6\nseed = 3"))
        studies.append([row.params for row in found])
    assert studies[0] == studies[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_eight_workers_killed_at_random_on_one_file(tmp_path: Path, seed: int) -> None:
    path = write(tmp_path, SLOW_VALUE, "budget = 200")
    deaths = killed_at_random(path, seed, None, None)
    checked(path, None, 200, repeated=2 * deaths)
