"""Problems x forms x methods x runs: which runs are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from carbo.errors import SettingsError
from lab.methods import METHODS, Method, method, require
from lab.problems import FILES, PROBLEMS, RUNS, SHAPES, TABLES, Problem, problem
from lab.runs.record import Key, canonical, comparable

PAPER = (
    *(f"contamination-{weight}" for weight in ("0", "1e-4", "1e-2")),
    *(f"ising-{weight}" for weight in ("0", "1e-4", "1e-2")),
    "branin",
    "pest-control",
    *FILES,
)
"""The columns of the paper's table."""
PROBLEM_GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(PROBLEMS),
    "paper": PAPER,
    "ising": tuple(name for name in PROBLEMS if name.startswith("ising-")),
    "contamination": tuple(name for name in PROBLEMS if name.startswith("contamination-")),
    "maxsat": tuple(FILES),
    "random": ("maxcut-random", "maxsat-random"),
    "sparse": tuple(name for name in PROBLEMS if name.startswith("sparse-")),
    "families": ("nk", "labs", "assignment", "mixed", "knapsack"),
    "tables": tuple(name for name in TABLES if name != "table-config-sql"),
    "new": (
        "sparse-categories",
        "flags",
        "quantised",
        *(shape.name for shape in SHAPES),
        "ackley53",
        "feature-selection",
        "rna",
        "third-order",
        "graph-colouring",
    ),
    "nas": ("nas-digits",),
}
BY_NAME = ("default-told", "default-penalty")
"""Methods that are no rivals, and run only when asked for by name: one knows the kernel, one is told penalties."""
OWN = ("paper", "default", *BY_NAME)
METHOD_GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(name for name in METHODS if name not in BY_NAME),
    "rivals": tuple(name for name in METHODS if name not in OWN),
}


@dataclass(frozen=True)
class Task:
    """One run that is wanted; a small value that can be sent to other processes."""

    problem: str
    relocated: int | None
    method: str
    settings: str
    """JSON of the settings that are compared, as `compared` writes it."""
    run: int
    budget: int
    """Number of evaluations, the initial ones included."""
    data: str | None = None
    """The folder of downloaded files."""
    trained: str | None = None
    """The folder where architecture searches keep accuracies."""

    @property
    def key(self) -> Key:
        """The key that the record of this run will have."""
        return (self.problem, self.relocated, self.method, self.settings, self.run, self.budget)

    @property
    def row(self) -> str:
        """The problem and its form, as displays name them."""
        return self.problem + "*" * (self.relocated is not None)

    def __str__(self) -> str:
        return f"{self.row} {self.method} run {self.run}"

    def build(self) -> Problem:
        """A new problem, with nothing evaluated yet."""
        built = problem(self.problem, self.run, self.data, self.trained)
        return built if self.relocated is None else built.relocated(self.relocated)


@dataclass(frozen=True)
class Wanted:
    """What a command line asks for."""

    problems: Sequence[str]
    methods: Sequence[str]
    runs: Sequence[int]
    relocated: Sequence[bool] = (False,)
    budget: int | None = None
    """At most so many evaluations; None: each problem's own."""
    data: str | None = None
    trained: str | None = None


@dataclass(frozen=True)
class Grid:
    """Tasks in the order of work: run 1 of every problem and method, then run 2, so that all methods progress."""

    tasks: tuple[Task, ...]
    skipped: tuple[str, ...]
    """For each method that cannot take a problem, a line that says why."""


def grid(wanted: Wanted) -> Grid:
    """All runs wanted. CarboError when a name, a package or a file is missing, or the budget is too small."""
    methods = [method(name) for name in wanted.methods]
    problems = [problem(name, wanted.runs[0], wanted.data) for name in wanted.problems]
    for each in problems:
        require(f"problem {each.name!r}", each.packages, "nas")
    budgets = {each.name: _budget(each, wanted.budget) for each in problems}
    objections = {(p.name, m.name): m.objection(p.space) for p in problems for m in methods}
    folders = (wanted.data, wanted.trained)
    settings = {(p.name, m.name): settings_key(m.version_for(p.noisy)) for p in problems for m in methods}
    tasks = tuple(
        Task(p.name, run if relocated else None, m.name, settings[p.name, m.name], run, budgets[p.name], *folders)
        for run in wanted.runs
        for relocated in wanted.relocated
        for p in problems
        for m in methods
        if not objections[p.name, m.name]
    )
    skipped = (f"{m} is left out of {p}: {why}" for (p, m), why in objections.items() if why)
    return Grid(tasks, tuple(skipped))


def settings_key(method: Method) -> str:
    """A method's settings as a task names them, by which its runs are found again."""
    return canonical(comparable(method.settings))


def _budget(of: Problem, at_most: int | None) -> int:
    budget = of.budget if at_most is None else min(of.budget, at_most)
    initial = len(of.design(of.run))
    if budget <= initial:
        raise SettingsError(f"budget: expected more than the {initial} initial evaluations of {of.name}, got {budget}; "
                            f"the problem's own is {of.budget}")  # fmt: skip
    return budget


def names(text: str, known: Iterable[str], groups: dict[str, tuple[str, ...]]) -> list[str]:
    """The names in a list with commas, each once. A group stands for its members. Unknown names are kept."""
    singles = set(known)
    found: list[str] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        found += groups[word] if word in groups and word not in singles else [word]
    if not found:
        raise SettingsError(f"expected names with commas between, or one of {', '.join(groups)}, got {text!r}")
    return list(dict.fromkeys(found))


def run_numbers(text: str) -> list[int]:
    """1-5 or 1,3,5-7 as numbers, each once. SettingsError when it is no such list within the paper's runs."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last if dash else first)
        if not all(end.isdecimal() and 1 <= int(end) <= RUNS for end in ends) or int(ends[0]) > int(ends[1]):
            raise SettingsError(f"runs: expected numbers from 1 to {RUNS} such as 1-5 or 1,3,5-7, "
                                f"got {text!r}")  # fmt: skip
        found += range(int(ends[0]), int(ends[1]) + 1)
    return list(dict.fromkeys(found))
