"""One run: initial points, then ask, evaluate and tell until the budget is used up."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from time import process_time

import numpy as np

from carbo.errors import DataError
from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab.methods import Method, Strategy, method
from lab.problems import Problem
from lab.runs.grid import Task, plain
from lab.runs.machine import machine, revision, versions
from lab.runs.record import Record, canonical

Progress = Callable[[int, float], None]
"""Told before each suggestion: how many evaluations there were, and the best value so far."""


def run_one(task: Task, progress: Progress) -> Record:
    """The task done from beginning to end, on a fresh problem."""
    return perform(task, task.build(), progress)


def perform(task: Task, problem: Problem, progress: Progress) -> Record:
    """The task done on its problem, which must be fresh. The method's seed is the run's number."""
    chosen = _method(task, problem.noisy)
    strategy = chosen.start(_space(chosen, problem), task.run, task.budget)
    trail = _Trail(problem)
    initial = problem.design(task.run)
    if chosen.design is not None:
        initial = chosen.design(problem.space, initial, task.run)
    for row in initial:
        trail.evaluate(row)
    seconds, told = [], 0
    while len(trail.values) < task.budget:
        progress(len(trail.values), float(np.fmin.reduce(trail.values)))
        began = process_time()
        told = _tell(strategy, trail, told, chosen.learns_failures)
        row = strategy.ask()
        seconds.append(process_time() - began)
        trail.evaluate(_checked(row, problem, task.method))
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
    """The task's method, if it is still what it was when the task was made; code on a disk may change meanwhile."""
    chosen = method(task.method).where(noisy)
    here = canonical(plain(chosen))
    if here != task.settings:
        raise DataError(f"method {task.method!r}: expected settings {task.settings}, got {here} in this process; "
                        "use the same version of carbo everywhere, and start again")  # fmt: skip
    return chosen


def _space(chosen: Method, problem: Problem) -> Space:
    """The problem's, without the invalid rows where the method is to be spared them."""
    space, valid = problem.space, problem.valid
    if not chosen.valid_only or valid is None:
        return space
    return Space(space.variables, constraint=lambda params: valid(space.encode(params)))


class _Trail:
    """What was evaluated, in order."""

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


def _tell(strategy: Strategy, trail: _Trail, told: int, learns_failures: bool) -> int:
    """Tell what it has not been told: the initial points at first, then the last evaluation. Returns how many it knows.

    A failure is NaN or a penalty, the worst value so far. While there is none, what needs a penalty is told later.
    """
    worst = np.fmax.reduce(trail.values)
    if np.isnan(worst) and not learns_failures:
        return told
    for row, value in zip(trail.rows[told:], trail.values[told:], strict=True):
        strategy.tell(row.copy(), float(worst) if np.isnan(value) and not learns_failures else value)
    return len(trail.values)


def _checked(row: Ints, problem: Problem, name: str) -> Ints:
    """The row as the problem takes it, or DataError: a method's mistake must not become a record."""
    given = np.asarray(row)
    sizes = problem.space.sizes
    if (
        given.shape != sizes.shape
        or not np.issubdtype(given.dtype, np.integer)
        or np.any((given < 0) | (given >= sizes))
    ):
        raise DataError(f"method {name!r}: expected a row of {len(sizes)} whole numbers below the sizes, got {row!r}")
    if not problem.space.feasible(given[None])[0]:
        raise DataError(f"method {name!r}: expected a row that the constraint of {problem.name} permits, got {row!r}")
    return np.array(given, dtype=np.intp)
