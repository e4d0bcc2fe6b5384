"""Runs in processes of this machine.

A worker appends its finished runs itself: however this process ends, they are on the disk. Workers are new processes
(spawn) with one thread each for the linear algebra, and end when this process ends.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from lab.runs.events import Advanced, Elsewhere, Event, Failed, Finished, Note, Started, Tick, reason
from lab.runs.grid import Task
from lab.runs.machine import REPEATABLE, machine, revision
from lab.runs.runner import run_one
from lab.runs.store import Store, outcome

REFRESH = 0.2
"""Seconds between two reports of a run under way."""
MOMENT = 0.5
"""Seconds without an event after which a Tick is reported."""
# Python's resource tracker removes the semaphores of killed workers, and would print a warning about each.
CHILDREN = {**REPEATABLE, "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning"}


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    task: Task | None = None


def work(tasks: Sequence[Task], folder: Path, jobs: int) -> Generator[Event]:
    """Run the tasks in `jobs` processes; closing the iterator ends them at once.

    A run that another process has claimed is tried again after the last one, and then left to that process.
    """
    waiting, again = deque(tasks), deque[Task]()
    workers: list[_Worker] = []
    try:
        while True:
            _hand_out(workers, waiting or again, folder, jobs)
            busy = {worker.connection: worker for worker in workers if worker.task is not None}
            if not busy:
                return
            spoke = wait(list(busy), timeout=MOMENT)
            for worker in (worker for connection, worker in busy.items() if connection in spoke):
                event = _report(worker, workers)
                if isinstance(event, Elsewhere) and waiting:
                    again.append(event.task)
                else:
                    yield event
            yield Tick()
    finally:
        _end(workers, Store(folder, lambda _text: None))


def _hand_out(workers: list[_Worker], waiting: deque[Task], folder: Path, jobs: int) -> None:
    while waiting:
        idle = next((worker for worker in workers if worker.task is None), None)
        if idle is None:
            if len(workers) >= jobs:
                return
            idle = _start(folder)
            workers.append(idle)
        idle.task = waiting.popleft()
        with contextlib.suppress(OSError):  # the worker died, which closed its end of the pipe
            idle.connection.send(idle.task)


def _report(worker: _Worker, workers: list[_Worker]) -> Event:
    """The event that the worker sent; if it died, Failed."""
    assert worker.task is not None
    try:
        event: Event = worker.connection.recv()
    except (EOFError, OSError):
        workers.remove(worker)
        worker.process.join()
        return Failed(worker.task, f"its process ended ({_how(worker.process.exitcode)})")
    if not isinstance(event, Started | Advanced | Note):
        worker.task = None
    return event


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _start(folder: Path) -> _Worker:
    context = multiprocessing.get_context("spawn")
    own_end, worker_end = context.Pipe()
    process = context.Process(target=serve, args=(worker_end, folder), daemon=True)
    # Ctrl-C reaches all processes of a terminal. This process handles it; the child ignores it from its start.
    with _environment(CHILDREN), _blocked(signal.SIGINT):
        process.start()
    worker_end.close()
    return _Worker(process, own_end)


def _end(workers: list[_Worker], store: Store) -> None:
    for worker in workers:
        worker.process.kill() if worker.task is not None else worker.connection.close()
    for worker in workers:
        worker.process.join()
        worker.connection.close()
        if worker.task is not None:
            with store.claim(worker.task.key):
                pass  # removes the file that a killed worker left


@contextlib.contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    """Within: new processes have these environment variables, too."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _blocked(which: signal.Signals) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {which})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(connection: Connection, folder: Path) -> None:
    """The loop of a worker: run tasks and report on them, until there are no more or the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_follow_parent, daemon=True).start()
    revision(), machine()  # the revision of the loaded code; the files may change later
    store = Store(folder, lambda text: connection.send(Note(text)))
    with contextlib.suppress(EOFError, OSError):
        while True:
            task = connection.recv()
            connection.send(_attempt(task, store, connection))


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _attempt(task: Task, store: Store, connection: Connection) -> Event:
    try:
        with store.claim(task.key) as is_ours:
            if not is_ours:
                return Elsewhere(task)
            recorded = store.finished(task.problem).get(task.key)
            if recorded is not None:  # since this process was told to do it
                return Finished(task, recorded, fresh=False)
            connection.send(Started(task))
            record = run_one(task, _Reporter(task, connection))
            store.append(record)
            return Finished(task, outcome(record))
    except Exception as error:  # noqa: BLE001 - whatever a method raises, the other runs go on
        return Failed(task, reason(error))


class _Reporter:
    """Sends progress to the parent, at most once in a while."""

    def __init__(self, task: Task, connection: Connection) -> None:
        self._task = task
        self._connection = connection
        self._last = -REFRESH

    def __call__(self, evaluations: int, best: float) -> None:
        now = time.monotonic()
        if now - self._last >= REFRESH:
            self._last = now
            self._connection.send(Advanced(self._task, evaluations, best))
