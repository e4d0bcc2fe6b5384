"""Progress of a grid: finished runs, failures, time left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

from lab.runs.events import Advanced, Elsewhere, Event, Failed, Finished, Note, Started
from lab.runs.grid import Task
from lab.runs.record import Key
from lab.runs.store import Outcome


@dataclass
class Running:
    """A run under way."""

    task: Task
    since: float
    evaluations: int = 0
    best: float = float("inf")


class Left(NamedTuple):
    """Estimated seconds to the end. `is_all` is False where runs are left out because no like run has been timed."""

    seconds: float
    is_all: bool

    def __str__(self) -> str:
        if self.seconds == 0:
            return ""
        return f"{'about' if self.is_all else 'more than'} {duration(self.seconds)} left"


@dataclass
class Board:
    """The state of a grid; `update` changes it with each event."""

    tasks: Sequence[Task]
    done: dict[Key, Outcome]
    """Finished runs, earlier ones included."""
    at_once: int
    began: float = field(default_factory=monotonic)
    fresh: int = 0
    """Number of runs that this command finished."""
    failed: list[Failed] = field(default_factory=list)
    elsewhere: list[Task] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    running: dict[Task, Running] = field(default_factory=dict)

    def update(self, event: Event) -> None:
        """Update the state with an event."""
        match event:
            case Started(task):
                self.running[task] = Running(task, monotonic())
            case Advanced(task, evaluations, best):
                self.running[task].evaluations = evaluations
                self.running[task].best = best
            case Note(text):
                self.notes.append(text)
            case Finished(task, outcome, fresh):
                self.running.pop(task, None)
                self.done[task.key] = outcome
                self.fresh += fresh
            case Failed(task):
                self.running.pop(task, None)
                self.failed.append(event)
            case Elsewhere(task):
                self.elsewhere.append(task)

    @property
    def elapsed(self) -> float:
        """Seconds since the command began."""
        return monotonic() - self.began

    def finished(self) -> int:
        """Number of tasks that are recorded."""
        return sum(task.key in self.done for task in self.tasks)

    def time_left(self) -> Left:
        """Estimated time to the end, from finished runs of the same problem and method, or else of the same method, or
        else from the runs under way.
        """
        guess = self._guess()
        ended = {event.task.key for event in self.failed} | {task.key for task in self.elsewhere}
        total, is_all = 0.0, True
        for task in self.tasks:
            if task.key in self.done or task.key in ended:
                continue
            seconds = guess(task)
            running = self.running.get(task)
            total += (seconds or 0.0) * (1 - (running.evaluations / task.budget if running else 0))
            is_all = is_all and seconds is not None
        return Left(total / max(1, self.at_once), is_all)

    def _guess(self) -> _Guess:
        sure, rough = _Means(), _Means()
        for task in self.tasks:
            if task.key in self.done:
                sure.add(task, self.done[task.key].seconds)
        for run in self.running.values():
            if run.evaluations:
                rough.add(run.task, (monotonic() - run.since) / run.evaluations * run.task.budget)
        return lambda task: next(
            (means[group] for group in _groups(task) for means in (sure, rough) if group in means), None
        )


_Guess = Callable[[Task], float | None]
"""A function from a task to the seconds that it may take."""


class _Means(dict[tuple[str, ...], float]):
    """Mean seconds of each group of runs."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[tuple[str, ...]] = Counter()

    def add(self, task: Task, seconds: float) -> None:
        """Add a run to all of its groups."""
        for group in _groups(task):
            self._counts[group] += 1
            self[group] = self.get(group, 0.0) + (seconds - self.get(group, 0.0)) / self._counts[group]


def _groups(task: Task) -> tuple[tuple[str, ...], ...]:
    """The groups that a task belongs to, the most similar runs first."""
    return (task.problem, task.method), (task.method,)


def duration(seconds: float) -> str:
    """Seconds as text: 0.3 s, 42 s, 12 min, 3 h 05."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d}"
