"""Lists of problems and methods, and of the runs that a command would make, as lines of text."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Iterable

from carbo.errors import DataError
from lab.methods import METHODS, Method
from lab.problems import PROBLEMS, problem
from lab.runs.grid import METHOD_GROUPS, PROBLEM_GROUPS, Task
from lab.runs.progress import Board


def listing(data: str | None) -> list[str]:
    """One line for each problem, method and group."""
    lines = ["problems"]
    lines += [f"  {name:32} {_about_problem(name, data)}" for name in PROBLEMS]
    lines += ["", "methods"]
    lines += [f"  {name:20} {_about_method(each)}" for name, each in METHODS.items()]
    for title, groups, known in (("problems", PROBLEM_GROUPS, PROBLEMS), ("methods", METHOD_GROUPS, METHODS)):
        lines += ["", f"groups of {title}"]
        lines += [
            f"  {name:20} {', '.join(members) if len(members) < len(known) else 'all of them'}"
            for name, members in groups.items()
        ]
    return lines


def _about_problem(name: str, data: str | None) -> str:
    try:
        built = problem(name, 1, data)
    except DataError:
        what = "CIFAR-10" if name.startswith("nas") else "a table" if name.startswith("table-") else "a .wcnf file"
        return f"needs {what}; name its folder with --data"
    sizes = built.space.sizes
    least, most = int(sizes.min()), int(sizes.max())
    kind = "binary" if most == 2 else f"of {most} values" if least == most else f"of {least} to {most} values"
    notes = ", noisy" * built.noisy + ", with a constraint" * (built.space.constraint is not None)
    notes += ", some fail" * built.fails
    return f"{len(sizes)} variables {kind}, {built.budget} evaluations, {len(built.design(1))} of them initial{notes}"


def _about_method(one: Method) -> str:
    notes = ["binary variables only"] * one.binary_only + ["no constraint"] * one.unconstrained_only
    if one.packages:
        notes.append(", ".join(f"{name} {_version(name)}" for name in one.packages))
    return one.title + (f" ({'; '.join(notes)})" if notes else "")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"


def plan(board: Board) -> list[str]:
    """For each problem and method a line: how many runs are recorded, and which are to do."""
    groups: dict[tuple[str, str, int], list[Task]] = {}
    for task in board.tasks:
        groups.setdefault((task.row, task.method, task.budget), []).append(task)
    lines = [f"  {row:22} {name:16} {budget:4} evaluations  {_share(tasks, board.done)}"
             for (row, name, budget), tasks in groups.items()]  # fmt: skip
    time_left = str(board.time_left())
    estimate = time_left and f", {time_left} with {board.at_once} at once"
    todo = len(board.tasks) - board.finished()
    return [*lines, f"{len(board.tasks)} runs wanted, {board.finished()} recorded, {todo} to do{estimate}"]


def _share(tasks: list[Task], done: Collection[object]) -> str:
    todo = [task.run for task in tasks if task.key not in done]
    recorded = f"{len(tasks) - len(todo)}/{len(tasks)} recorded"
    return recorded + (f", to do: run {spans(todo)}" if todo else "")


def spans(numbers: Iterable[int]) -> str:
    """Numbers as ranges: 1-3,5 for 1, 2, 3, 5."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
