"""The records of a folder, sorted for comparison: by problem, form, and version of a method.

Only runs with a problem's whole budget are compared: with another budget a method may choose other points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from carbo.errors import CarboError, DataError
from lab.methods import METHODS
from lab.methods.presets import replicates
from lab.problems import PROBLEMS, problem
from lab.problems.maxsat import BUDGET as MAXSAT_BUDGET
from lab.problems.maxsat import OPTIMA as MAXSAT_OPTIMA
from lab.problems.nas import BUDGET as NAS_BUDGET
from lab.problems.seeds import RUNS
from lab.runs.record import Record, canonical, comparable, read
from lab.tables.paper import BLOCKS, COLUMNS, Block, Column

ORIGINAL, RELOCATED = "original", "relocated"
FORMS = (ORIGINAL, RELOCATED)
REFERENCE, PUBLISHED = "default", "paper"
"""The names of our two presets as methods."""


class Case(NamedTuple):
    """One run of a problem. Methods are compared on runs that they share."""

    run: int
    relocated: int | None


class Version(NamedTuple):
    """A method with its settings."""

    method: str
    settings: str
    """JSON of the settings that are compared."""


Runs = dict[Case, Record]


@dataclass(frozen=True)
class Results:
    """The runs that are compared. `budgets` and `versions` are in the order of tables."""

    runs: dict[tuple[str, str, Version], Runs]
    """(problem, form, version) -> runs of the whole budget."""
    budgets: dict[str, int]
    """Problem -> number of evaluations of a run."""
    versions: tuple[Version, ...]
    labels: dict[Version, str]
    left_out: dict[tuple[str, str, str], int]
    """(problem, form, method) -> number of runs with another budget."""
    hidden: dict[str, int]
    """Method -> number of runs of versions that are not shown."""
    stand_ins: dict[tuple[str, str, str], str]
    """(problem, form, method) -> revision of older runs, which are shown because the newest settings have none."""

    def of(self, name: str, form: str, version: Version) -> Runs:
        """The runs of a version on a problem; {} where it has none."""
        return self.runs.get((name, form, version), {})

    def ends(self, name: str, form: str, version: Version) -> dict[Case, float]:
        """The best value of each of these runs."""
        return {case: float(record.best[-1]) for case, record in self.of(name, form, version).items()}

    def versions_on(self, name: str, form: str) -> list[Version]:
        """The versions that have runs on a problem."""
        return [version for version in self.versions if self.of(name, form, version)]

    def problems(self, form: str) -> list[str]:
        """The problems that have runs in that form."""
        return [name for name in self.budgets if self.versions_on(name, form)]

    def blocks(self, form: str) -> list[Block]:
        """The columns of tables that have runs in that form: the paper's blocks, then a block of further problems."""
        present = self.problems(form)
        further = tuple(Column(name, name, short=name) for name in present if name not in COLUMNS)
        blocks = [*BLOCKS, Block("further", "Further problems", further)]
        kept = [b._replace(columns=tuple(c for c in b.columns if c.problem in present)) for b in blocks]
        return [block for block in kept if block.columns]

    def newest(self, method: str) -> Version | None:
        """The version of a method that is shown; None where it has no runs."""
        return next((version for version in self.versions if version.method == method), None)

    def records(self) -> list[Record]:
        """All records that are compared."""
        return [record for runs in self.runs.values() for record in runs.values()]


class Selection(NamedTuple):
    """Which records to compare; () means all."""

    problems: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    all_versions: bool = False
    budget: int | None = None
    """Number of evaluations; None: each problem's own."""


def load(folder: str | Path, selection: Selection | None = None) -> Results:
    """The results of a folder. DataError when there are none, or none that are selected."""
    return arrange(read(folder), selection)


def arrange(records: Iterable[Record], selection: Selection | None = None) -> Results:
    """Records sorted for comparison. DataError when none is selected."""
    chosen = selection or Selection()
    records = _only(list(records), "problem", chosen.problems, lambda record: record.problem)
    records = _only(records, "method", chosen.methods, lambda record: record.method)
    budgets = {name: chosen.budget or budget(name, records) for name in _in_order({r.problem for r in records})}
    whole = [record for record in records if len(record.values) == budgets[record.problem]]
    other = Counter((r.problem, form_of(r), r.method) for r in records if len(r.values) != budgets[r.problem])
    if not whole:
        lengths = ", ".join(map(str, sorted({len(record.values) for record in records})))
        raise DataError(f"results: expected runs with the problems' whole budget, got runs of {lengths} evaluations; "
                        "compare these with --budget")  # fmt: skip
    latest = _latest(whole)
    shown = latest if chosen.all_versions else _newest_of_each(latest)
    runs: dict[tuple[str, str, Version], Runs] = {}
    for record in sorted(whole, key=lambda record: record.run):
        same_version = runs.setdefault((record.problem, form_of(record), version_of(record)), {})
        same_version.setdefault(Case(record.run, record.relocated), record)
    stand_ins = {} if chosen.all_versions else _stand_in(runs, latest, shown)
    kept = {key: found for key, found in runs.items() if key[2] in shown}
    filled = {id(record) for found in kept.values() for record in found.values()}
    return Results(
        kept,
        budgets,
        tuple(shown),
        _labels(shown, latest),
        dict(other),
        dict(Counter(r.method for r in whole if version_of(r) not in shown and id(r) not in filled)),
        stand_ins,
    )


def _stand_in(
    runs: dict[tuple[str, str, Version], Runs], latest: dict[Version, Record], shown: dict[Version, Record]
) -> dict[tuple[str, str, str], str]:
    """Add runs with older settings where the newest have none; returns (problem, form, method) -> their revision."""
    newest = {version.method: version for version in shown}
    added: dict[tuple[str, str, str], str] = {}
    for version in latest:  # newer versions of a method come first
        for name, form, _ in [key for key in runs if key[2] == version]:
            place = (name, form, newest[version.method])
            if place not in runs:
                found = runs[place] = runs[name, form, version]
                added[name, form, version.method] = max(found.values(), key=lambda r: r.finished).revision
    return added


def version_of(record: Record) -> Version:
    """The version that a record belongs to.

    Some methods may evaluate a point again on noisy problems alone. Their records of noisy problems have "replicate":
    true and belong to the same version as the records of other problems, which have false.
    """
    settings = comparable(record.settings)
    if "replicate" in settings and replicates(record.method) and _noisy(record.problem):
        settings = {**settings, "replicate": not settings["replicate"]}
    return Version(record.method, canonical(settings))


@cache
def _noisy(name: str) -> bool:
    try:
        return problem(name, 1).noisy
    except CarboError:  # a problem that the laboratory does not have, or that needs a file
        return False


def form_of(record: Record) -> str:
    """ORIGINAL or RELOCATED."""
    return ORIGINAL if record.relocated is None else RELOCATED


def title(method: str) -> str:
    """The title of a method in tables; its name where the laboratory does not have the method."""
    if method in METHODS:
        return METHODS[method].title
    preset, colon, changes = method.partition(":")
    if colon and preset in METHODS:
        return f"{METHODS[preset].title}, {changes.replace('+', ', ')}"
    return method


def budget(name: str, records: Sequence[Record] = ()) -> int:
    """Number of evaluations of a whole run; for a problem that only the records name, that of its longest run."""
    if name in PROBLEMS:
        return _known_budget(name)
    return max(len(record.values) for record in records if record.problem == name)


def optimum(record: Record) -> float | None:
    """The least value of the record's instance, or the best one known; None where neither is known."""
    if "formula" in record.instance:
        known = MAXSAT_OPTIMA.get(record.instance["formula"], {})
        return known.get(record.instance.get("weights", ""), (None, ""))[0]
    if "table" in record.instance:
        return float(record.instance["best"])
    return run_optimum(record.problem, record.run) if record.problem in PROBLEMS else None


@cache
def run_optimum(name: str, run: int) -> float | None:
    """The least value in a run of the paper; None where it is not known, or where that needs a downloaded file."""
    try:
        return problem(name, run).optimum
    except CarboError:
        return None


def paper_optima(name: str) -> list[float] | None:
    """The least value in each of the paper's runs; None where one of them is not known."""
    optima = [run_optimum(name, run) for run in range(1, RUNS + 1)]
    known = [value for value in optima if value is not None]
    return known if len(known) == RUNS else None


@cache
def _known_budget(name: str) -> int:
    try:
        return problem(name, 1).budget
    except DataError:  # MaxSAT problems and the search on CIFAR-10 need a file
        return NAS_BUDGET if name.startswith("nas") else MAXSAT_BUDGET


def _only(records: list[Record], what: str, names: tuple[str, ...], name_of: Callable[[Record], str]) -> list[Record]:
    """Records whose name is one of `names`; all of them for ()."""
    present = sorted({name_of(record) for record in records})
    missing = [name for name in names if name not in present]
    if missing:
        raise DataError(f"{what}: expected some that have results, which are {', '.join(present) or 'none'}, "
                        f"got {missing[0]!r}")  # fmt: skip
    return [record for record in records if not names or name_of(record) in names]


def _in_order(problems: set[str]) -> list[str]:
    known = list(dict.fromkeys([*COLUMNS, *PROBLEMS]))
    return [name for name in known if name in problems] + sorted(problems - set(known))


def _latest(records: list[Record]) -> dict[Version, Record]:
    """Version -> its last finished run, in the order of tables: methods as listed, newest version first."""
    last: dict[Version, Record] = {}
    for record in records:
        version = version_of(record)
        if version not in last or record.finished > last[version].finished:
            last[version] = record
    newest_first = sorted(last, key=lambda version: (last[version].finished, version), reverse=True)
    listed = [REFERENCE, PUBLISHED, *METHODS]
    order = {method: place for place, method in reversed(list(enumerate(listed)))}
    ordered = sorted(newest_first, key=lambda v: (order.get(v.method, len(listed)), v.method))
    return {version: last[version] for version in ordered}


def _newest_of_each(latest: dict[Version, Record]) -> dict[Version, Record]:
    first: dict[str, Version] = {}
    for version in latest:
        first.setdefault(version.method, version)
    return {version: latest[version] for version in first.values()}


def _labels(shown: dict[Version, Record], latest: dict[Version, Record]) -> dict[Version, str]:
    """A label for each version: its title; for older versions with their revision, and a number where two share it."""
    newest = set(_newest_of_each(latest))
    labels: dict[Version, str] = {}
    for version, record in shown.items():
        label = title(version.method)
        if version not in newest:
            label += f" [{record.revision}]"
            same = sum(each.startswith(label) for each in labels.values())
            label += f" #{same + 1}" * bool(same)
        labels[version] = label
    return labels
