"""The workers: threads that take a trial, run its command and report its value, until the study is over."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from carbo.integrations.optuna.evaluations import Evaluation, evaluations
from carbo.tune.command import Runner
from carbo.tune.dispatch import Assignment, Desk
from carbo.tune.errors import EvaluationFailed, Interrupted, StudyError
from carbo.tune.evaluate import Evaluator, command_text
from carbo.tune.formatting import plain
from carbo.tune.retry import Patience
from carbo.tune.session import Session
from carbo.tune.storage import silence_warnings
from carbo.tune.trials import best, count

POLL = 0.5
"""Seconds between looks at the storage when there is nothing to do but wait for others."""


class Snapshot(NamedTuple):
    """How the study stands.

    rows    all trials
    mine    evaluations that this tuner finished, in the order they ended
    before  number of evaluations that were finished when this tuner began
    seconds     time since this tuner began
    left    seconds to the deadline; None without one
    """

    rows: list[Evaluation]
    mine: list[Evaluation]
    before: int
    seconds: float
    left: float | None


class Tuner:
    """Runs a study in this process."""

    def __init__(self, session: Session, say: Callable[[str], None]) -> None:
        self._session, self._say = session, say
        self._runner = Runner()
        self._evaluate = Evaluator(session.file, self._runner)
        self._stopping = threading.Event()
        self._patiently = Patience(session.file.storage, self._stopping, say)
        self._desk = Desk(session, self._patiently)
        self._changed = threading.Condition()
        self._mine: list[int] = []
        """Numbers of the evaluations that ended here, in that order."""
        self._succeeded = False
        """Whether one of them gave a value."""
        self._before: int | None = None
        self._error: BaseException | None = None
        self._began = time.monotonic()
        self._deadline = self._last_moment()

    def _last_moment(self) -> float | None:
        deadline = self._session.file.plan.deadline
        if isinstance(deadline, datetime.datetime):
            return self._began + (deadline - datetime.datetime.now().astimezone()).total_seconds()
        return None if deadline is None else self._began + deadline

    def snapshot(self) -> Snapshot:
        mine = list(self._mine)  # before the trials are read, so that these are all finished there
        rows = evaluations(self._session.study.get_trials(deepcopy=False), tuned=True)
        by_number = {row.number: row for row in rows}
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        if self._before is None:
            self._before = count(rows)
        return Snapshot(rows, [by_number[n] for n in mine], self._before, time.monotonic() - self._began, left)

    def run(self, watch: Callable[[], None], every: float = 0.5) -> str:
        """Work until the end, and call `watch` from this thread every so many seconds. Returns why the work ended.

        StudyError if no evaluation has succeeded at the end, or when the study file says to give up.

        An exception in this thread, such as KeyboardInterrupt, ends all runs, hands their points back, and is raised
        again. A second exception in the meantime is raised at once: the threads end with the process, as by kill -9.
        """
        workers = [self._thread(self._work) for _ in range(self._workers())]
        heart = self._thread(self._beat)
        with silence_warnings():
            for thread in (heart, *workers):
                thread.start()
            try:
                while any(worker.is_alive() for worker in workers):
                    watch()
                    with self._changed:
                        self._changed.wait(every)
            except KeyboardInterrupt:
                self._say("stopping; interrupt once more to leave at once")
                watch()
                raise
            finally:
                self._stop()
                for thread in (*workers, heart):
                    while thread.is_alive():
                        thread.join(every)  # with a limit: Python may miss a signal just before it begins to wait
        if self._error is not None:
            raise self._explained(self._error)
        self._check_success()
        return self._desk.over or "stopped"

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=self._guard, args=(work,), daemon=True)

    def _explained(self, error: BaseException) -> BaseException:
        """The error itself; if the study was deleted meanwhile, an error that says so."""
        name = self._session.file.name
        if isinstance(error, KeyError) and name not in {s.study_name for s in self._session.storage.get_all_studies()}:
            return StudyError(f"study {name!r}: expected it in its storage, got none; it was deleted meanwhile")
        return error

    def _workers(self) -> int:
        plan = self._session.file.plan
        return plan.workers if plan.budget is None else min(plan.workers, plan.budget)

    def _stop(self) -> None:
        self._stopping.set()
        self._runner.stop()

    def _guard(self, work: Callable[[], None]) -> None:
        """Run one thread. An error in it ends all threads, and is raised in the main thread."""
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            self._error = self._error or error
            self._stop()
        finally:
            self._session.storage.remove_session()
            self._tell_main()

    def _tell_main(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _beat(self) -> None:
        """Send signs of life. If one fails, the next one is enough."""
        import optuna
        import sqlalchemy

        while not self._stopping.wait(self._session.file.plan.heartbeat):
            try:
                self._desk.beat()
            except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError):
                continue

    # ---- a worker

    def _work(self) -> None:
        while not self._stopping.is_set() and self._desk.over is None:
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._desk.over = "the deadline has come"
                break
            self._check_hope()
            assignment = self._desk.next()
            if assignment is not None:
                self._carry_out(assignment)
            elif self._desk.over is None:
                self._stopping.wait(POLL)

    def _carry_out(self, todo: Assignment) -> None:
        began = time.monotonic()
        try:
            result = self._evaluate(todo.params, todo.number, todo.mark)
        except EvaluationFailed as failure:
            seconds = time.monotonic() - began
            ours, succeeded = self._desk.fail(todo, str(failure), seconds), False
        except BaseException as error:
            self._desk.hand_back(todo)
            if isinstance(error, Interrupted):
                return
            raise
        else:
            ours, succeeded = self._desk.finish(todo, result), True
        if ours:
            self._succeeded = self._succeeded or succeeded
            self._mine.append(todo.number)
        else:
            self._say(f"trial {todo.number} ended here after another tuner had taken it over; its value is left out")
        self._tell_main()

    def _check_hope(self) -> None:
        """StudyError if the first evaluations all failed: the fault is then the command's, not the settings'."""
        if len(self._mine) >= self._session.file.plan.give_up and not self._succeeded:
            self._check_success()

    def _check_success(self) -> None:
        """StudyError if evaluations have failed and none has succeeded, unless the file says `give_up = 0`."""
        file, rows = self._session.file, self._patiently(self.snapshot).rows
        failed = [row for row in rows if row.standing == "failed"]
        if not file.plan.give_up or not failed or best(rows, file.direction) is not None:
            return
        last = failed[-1]
        raise StudyError(plain(
            f"study {file.name!r}: expected some evaluations to succeed, got none of {len(failed)}: "
            f"the last failed with: {last.reason}; try it by hand: "
            f"{command_text(file.command, file.flags, last.params, last.number)} "
            "(give_up = 0 in [study] goes on all the same)"
        ))  # fmt: skip
