"""Runs on a Ray cluster: a local one, or one of many machines.

Every machine needs this version of carbo and of the laboratory, and the packages of the methods. Problems are sent with
their tasks. Records come back to this process, which appends them.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from carbo.errors import CarboError, SettingsError
from lab.problems import Problem
from lab.runs.events import Elsewhere, Event, Failed, Finished, Started, Tick, reason
from lab.runs.grid import Task
from lab.runs.local import MOMENT
from lab.runs.machine import REPEATABLE
from lab.runs.record import line, parse
from lab.runs.runner import perform
from lab.runs.store import Store, outcome

PATIENCE = 10.0
"""Seconds in which a cluster must answer."""


@dataclass
class Cluster:
    """A connection to Ray. `jobs` is the number of runs at once; None: one for each processor."""

    ray: Any
    jobs: int | None

    @property
    def at_once(self) -> int:
        """The number of runs at once; it grows with the cluster."""
        return self.jobs or max(1, int(self.ray.cluster_resources().get("CPU", 1)))


@contextlib.contextmanager
def connection(address: str | None, jobs: int | None) -> Generator[Cluster]:
    """Within: a connection to the Ray cluster at an address, or to a new local one of `jobs` processors.

    SettingsError when Ray is not installed or nothing answers at the address.
    """
    try:
        import ray
    except ImportError:
        raise SettingsError("--engine ray: expected the package ray, got none; pip install 'carbo[ray]'") from None
    options: dict[str, Any] = {"address": address}
    if address is None:
        options = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
    try:
        _check_address(address)
        ray.init(**options, runtime_env={"env_vars": REPEATABLE}, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        if address is None:
            raise SettingsError(f"--engine ray: expected Ray to start here, got {reason(error)}") from None
        raise SettingsError(f"--ray-address: expected the address of a Ray cluster, got {address!r}, where none "
                            "answers or which asks for another RAY_AUTH_TOKEN; leave the option out for a local "
                            "one") from None  # fmt: skip
    try:
        yield Cluster(ray, jobs)
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Raise OSError when nothing answers at an address with a port. Ray itself would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def work(tasks: Sequence[Task], store: Store, cluster: Cluster) -> Generator[Event]:
    """Run the tasks on the cluster; closing the iterator cancels the runs that have not finished."""
    remote = cluster.ray.remote(num_cpus=1)(run_remotely)
    waiting = deque(tasks)
    under_way: dict[Any, _RemoteRun] = {}
    try:
        while waiting or under_way:
            while waiting and len(under_way) < cluster.at_once:
                sent = _RemoteRun(waiting.popleft(), store)
                event = sent.begin()
                if isinstance(event, Started):
                    under_way[remote.remote(sent.task, sent.task.build())] = sent
                yield event
            if not under_way:
                continue
            ready, _ = cluster.ray.wait(list(under_way), timeout=MOMENT)
            for reference in ready:
                yield under_way.pop(reference).end(cluster, reference)
            yield Tick()
    finally:
        for reference, sent in under_way.items():
            cluster.ray.cancel(reference, force=True)
            sent.release()


class _RemoteRun:
    """A task that another machine runs; this process claims it and records it."""

    def __init__(self, task: Task, store: Store) -> None:
        self.task = task
        self._store = store
        self._held = contextlib.ExitStack()

    def begin(self) -> Event:
        """Claim the task. Started means that it can be sent; any other event, that another process has it."""
        if not self._held.enter_context(self._store.claim(self.task.key)):
            return Elsewhere(self.task)
        recorded = self._store.finished(self.task.problem).get(self.task.key)
        if recorded is not None:
            self.release()
            return Finished(self.task, recorded, fresh=False)
        return Started(self.task)

    def end(self, cluster: Cluster, reference: Any) -> Event:
        """Append the record that came back."""
        try:
            record = parse(cluster.ray.get(reference))
            self._store.append(record)
            return Finished(self.task, outcome(record))
        except cluster.ray.exceptions.RayTaskError as error:
            return Failed(self.task, reason(error.cause))
        except (cluster.ray.exceptions.RayError, CarboError, OSError) as error:
            return Failed(self.task, reason(error))
        finally:
            self.release()

    def release(self) -> None:
        """Give up the claim."""
        self._held.close()


def run_remotely(task: Task, problem: Problem) -> str:
    """Run the task on another machine; returns its record as a line."""
    return line(perform(task, problem, lambda _evaluations, _best: None))
