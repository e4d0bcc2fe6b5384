"""The records of a folder, sorted for comparison: by problem, form, and version of a method.

Only runs of a problem's whole budget are compared; a shorter or longer run may have spent its evaluations otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from carbo.errors import CarboError, DataError
from lab.methods import METHODS, method
from lab.problems import PROBLEMS, problem
from lab.problems.maxsat import BUDGET as MAXSAT_BUDGET
from lab.problems.maxsat import OPTIMA as MAXSAT_OPTIMA
from lab.problems.nas import BUDGET as NAS_BUDGET
from lab.problems.seeds import RUNS
from lab.runs.record import Record, canonical, read
from lab.tables.paper import BLOCKS, COLUMNS, Block, Column

ORIGINAL, RELOCATED = "original", "relocated"
FORMS = (ORIGINAL, RELOCATED)
REFERENCE, PUBLISHED = "default", "paper"
"""Our two presets, by their names as methods."""


class Case(NamedTuple):
    """What two methods must share to be compared run by run."""

    run: int
    relocated: int | None


class Version(NamedTuple):
    """A method with its settings."""

    method: str
    settings: str
    """As JSON."""


Runs = dict[Case, Record]


@dataclass(frozen=True)
class Results:
    """Runs to be compared. `budgets` and `versions` are in the order of tables."""

    runs: dict[tuple[str, str, Version], Runs]
    """(problem, form, version) -> runs of the whole budget."""
    budgets: dict[str, int]
    """Of the problems that have runs."""
    versions: tuple[Version, ...]
    labels: dict[Version, str]
    left_out: dict[tuple[str, str, str], int]
    """(problem, form, method) -> number of runs with another budget."""
    older: dict[str, int]
    """Method -> number of runs of versions that are not shown."""
    before: dict[tuple[str, str, str], str]
    """(problem, form, method) -> revision, where the newest settings have no runs and older ones stand in."""

    def of(self, name: str, form: str, version: Version) -> Runs:
        """Runs of the whole budget, {} where there is none."""
        return self.runs.get((name, form, version), {})

    def ends(self, name: str, form: str, version: Version) -> dict[Case, float]:
        """The best value of each of these runs."""
        return {case: float(record.best[-1]) for case, record in self.of(name, form, version).items()}

    def versions_on(self, name: str, form: str) -> list[Version]:
        """Versions that have runs on a problem."""
        return [version for version in self.versions if self.of(name, form, version)]

    def problems(self, form: str) -> list[str]:
        """Problems that have runs in that form."""
        return [name for name in self.budgets if self.versions_on(name, form)]

    def blocks(self, form: str) -> list[Block]:
        """Tables' columns that have runs in that form; the paper's blocks first, what it does not have after them."""
        present = self.problems(form)
        further = tuple(Column(name, name, short=name) for name in present if name not in COLUMNS)
        blocks = [*BLOCKS, Block("further", "Further problems", further)]
        kept = [b._replace(columns=tuple(c for c in b.columns if c.problem in present)) for b in blocks]
        return [block for block in kept if block.columns]

    def newest(self, method: str) -> Version | None:
        """The version of a method that is shown; None where it has no runs."""
        return next((version for version in self.versions if version.method == method), None)

    def records(self) -> list[Record]:
        """All that is compared."""
        return [record for runs in self.runs.values() for record in runs.values()]


class Selection(NamedTuple):
    """What to compare; () means all."""

    problems: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    all_versions: bool = False
    budget: int | None = None
    """None: each problem's own."""


def load(folder: str | Path, selection: Selection | None = None) -> Results:
    """The results of a folder. DataError when there are none, or none of what is selected."""
    return arrange(read(folder), selection)


def arrange(records: Iterable[Record], selection: Selection | None = None) -> Results:
    """Records sorted for comparison. DataError when none is left."""
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
        here = runs.setdefault((record.problem, form_of(record), version_of(record)), {})
        here.setdefault(Case(record.run, record.relocated), record)
    before = {} if chosen.all_versions else _stand_in(runs, latest, shown)
    kept = {key: found for key, found in runs.items() if key[2] in shown}
    filled = {id(record) for found in kept.values() for record in found.values()}
    return Results(
        kept,
        budgets,
        tuple(shown),
        _labels(shown, latest),
        dict(other),
        dict(Counter(r.method for r in whole if version_of(r) not in shown and id(r) not in filled)),
        before,
    )


def _stand_in(
    runs: dict[tuple[str, str, Version], Runs], latest: dict[Version, Record], shown: dict[Version, Record]
) -> dict[tuple[str, str, str], str]:
    """Puts runs of a method's older settings where its newest have none; says where, and of which revision."""
    newest = {version.method: version for version in shown}
    before: dict[tuple[str, str, str], str] = {}
    for version in latest:  # of a method the newer first
        for name, form, _ in [key for key in runs if key[2] == version]:
            place = (name, form, newest[version.method])
            if place not in runs:
                found = runs[place] = runs[name, form, version]
                before[name, form, version.method] = max(found.values(), key=lambda r: r.finished).revision
    return before


def version_of(record: Record) -> Version:
    """The version that a record belongs to.

    Where a method may evaluate points again on noisy problems alone, its records of these say so, and belong to the
    version whose others do not; one that might not, to a version of its own.
    """
    settings = record.settings
    if "replicate" in settings and _replicates(record.method) and _noisy(record.problem):
        settings = {**settings, "replicate": not settings["replicate"]}
    return Version(record.method, canonical(settings))


@cache
def _replicates(name: str) -> bool:
    try:
        return method(name).noisy is not None
    except CarboError:
        return False


@cache
def _noisy(name: str) -> bool:
    try:
        return problem(name, 1).noisy
    except CarboError:  # not one of this laboratory's, or it needs a file
        return False


def form_of(record: Record) -> str:
    """ORIGINAL or RELOCATED."""
    return ORIGINAL if record.relocated is None else RELOCATED


def title(method: str) -> str:
    """As tables print a method; its name where it is not one of this laboratory's."""
    if method in METHODS:
        return METHODS[method].title
    preset, colon, changes = method.partition(":")
    if colon and preset in METHODS:
        return f"{METHODS[preset].title}, {changes.replace('+', ', ')}"
    return method


def budget(name: str, records: Sequence[Record] = ()) -> int:
    """Evaluations of a whole run; of a problem that only the records know, those of the longest."""
    if name in PROBLEMS:
        return _known_budget(name)
    return max(len(record.values) for record in records if record.problem == name)


def optimum(record: Record) -> float | None:
    """The least value of the record's instance, or the best known; None where it is not known."""
    if "formula" in record.instance:
        known = MAXSAT_OPTIMA.get(record.instance["formula"], {})
        return known.get(record.instance.get("weights", ""), (None, ""))[0]
    if "table" in record.instance:
        return float(record.instance["best"])
    return run_optimum(record.problem, record.run) if record.problem in PROBLEMS else None


@cache
def run_optimum(name: str, run: int) -> float | None:
    """The least value in a run of the paper; None where it is not known, or only with a downloaded file."""
    try:
        return problem(name, run).optimum
    except CarboError:
        return None


def paper_optima(name: str) -> list[float] | None:
    """The least value in each of the paper's runs; None unless all are known."""
    optima = [run_optimum(name, run) for run in range(1, RUNS + 1)]
    known = [value for value in optima if value is not None]
    return known if len(known) == RUNS else None


@cache
def _known_budget(name: str) -> int:
    try:
        return problem(name, 1).budget
    except DataError:  # needs a file, as MaxSAT problems and one architecture search do
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
    """Titles; versions of one method apart by their revision, and by a number where that is the same too."""
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
