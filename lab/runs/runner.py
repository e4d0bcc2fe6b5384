"""One run: initial points, then ask, evaluate and tell until the budget is used up."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from time import process_time

import numpy as np

from carbo.errors import DataError, SettingsError
from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab.methods import Method, Strategy, method
from lab.problems import Problem
from lab.runs.grid import Task, settings_key
from lab.runs.machine import machine, revision, versions
from lab.runs.record import Record

Progress = Callable[[int, float], None]
"""Called before each suggestion with the number of evaluations and the best value so far."""


def run_one(task: Task, progress: Progress) -> Record:
    """Run the task on a new problem; returns its record."""
    return perform(task, task.build(), progress)


def perform(task: Task, problem: Problem, progress: Progress) -> Record:
    """Run the task on its problem, of which nothing was evaluated yet. The method's seed is the run's number."""
    chosen = _method(task, problem.noisy)
    strategy = chosen.start(_space(chosen, problem), task.run, task.budget)
    trail = _Trail(problem)
    initial = _initial_rows(chosen, problem)
    for row in initial:
        trail.evaluate(row)
    seconds, first = [], 0
    while len(trail.values) < task.budget:
        progress(len(trail.values), float(np.fmin.reduce(trail.values)))
        began = process_time()
        first = _tell(strategy, trail, first, chosen.learns_failures)
        row = strategy.ask()
        seconds.append(process_time() - began)
        trail.evaluate(_valid_row(row, problem, task.method))
    return Record(
        problem=task.problem,
        instance=dict(problem.instance),
        relocated=task.relocated,
        method=task.method,
        settings=json.loads(task.settings),
        run=task.run,
        seed=task.run,
        initial=len(initial),
        sizes=tuple(problem.space.sizes.tolist()),
        rows=np.array(trail.rows, dtype=np.intp),
        values=np.array(trail.values),
        seconds=np.array(seconds),
        versions=versions((*chosen.packages, *problem.packages)),
        revision=revision(),
        machine=machine(),
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def _method(task: Task, noisy: bool) -> Method:
    """The task's method. DataError when its settings differ from the task's, because the code was changed since."""
    chosen = method(task.method).version_for(noisy)
    now = settings_key(chosen)
    if now != task.settings:
        raise DataError(f"method {task.method!r}: expected settings {task.settings}, got {now} in this process; "
                        "use the same version of carbo everywhere, and start again")  # fmt: skip
    return chosen


def _initial_rows(chosen: Method, problem: Problem) -> Ints:
    """(n, d): the problem's initial points, or as many of them as the method starts from."""
    rows = problem.design(problem.run)
    if chosen.initial is not None and chosen.initial > len(rows):
        raise SettingsError(f"initial: expected at most the {len(rows)} initial points of {problem.name}, "
                            f"got {chosen.initial}; give a smaller number")  # fmt: skip
    return rows[: chosen.initial]


def _space(chosen: Method, problem: Problem) -> Space:
    """The problem's space; for a method that takes valid rows only, with a constraint that says which are valid."""
    space, valid = problem.space, problem.valid
    if not chosen.valid_only or valid is None:
        return space
    return Space(space.variables, constraint=lambda params: valid(space.encode(params)))


class _Trail:
    """The evaluations so far, in order."""

    def __init__(self, problem: Problem) -> None:
        self.rows: list[Ints] = []
        self.values: list[float] = []
        self._problem = problem

    def evaluate(self, row: Ints) -> None:
        value = float(self._problem.objective(row))
        if not np.isfinite(value) and not (self._problem.fails and np.isnan(value)):
            raise DataError(f"{self._problem.name}: expected a finite value, got {value} at {row.tolist()}")
        self.rows.append(row)
        self.values.append(value)


def _tell(strategy: Strategy, trail: _Trail, first: int, learns_failures: bool) -> int:
    """Tell the strategy the evaluations from number `first` on; returns the number of the next one to tell.

    A failure is NaN or a penalty, the worst value so far. While there is no value, what needs a penalty waits.
    """
    worst = np.fmax.reduce(trail.values)
    if np.isnan(worst) and not learns_failures:
        return first
    for row, value in zip(trail.rows[first:], trail.values[first:], strict=True):
        strategy.tell(row.copy(), float(worst) if np.isnan(value) and not learns_failures else value)
    return len(trail.values)


def _valid_row(row: Ints, problem: Problem, name: str) -> Ints:
    """The row as integers. DataError for a row that the problem cannot take, so that it does not become a record."""
    integers = np.asarray(row)
    sizes = problem.space.sizes
    if (
        integers.shape != sizes.shape
        or not np.issubdtype(integers.dtype, np.integer)
        or np.any((integers < 0) | (integers >= sizes))
    ):
        raise DataError(f"method {name!r}: expected a row of {len(sizes)} whole numbers below the sizes, got {row!r}")
    if not problem.space.feasible(integers[None])[0]:
        raise DataError(f"method {name!r}: expected a row that the constraint of {problem.name} permits, got {row!r}")
    return np.array(integers, dtype=np.intp)
