"""The paper's tables with our rows next to its printed ones, and further comparisons of methods.

Rows are versions of methods, columns are problems. A number in brackets is the number of runs; the table `runs` says
which ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lab.runs.record import Record
from lab.tables.anytime import areas
from lab.tables.cost_tables import runs, seconds, steps, steps_of_mean
from lab.tables.formats import Cell, Row, Table
from lab.tables.number_cells import any_runs, column_notes, grid, mean_cell, number, printed_optimum
from lab.tables.paper import COLUMNS, COMBO, COUNTERPARTS, Column, Printed
from lab.tables.rankings import rankings
from lab.tables.results import ORIGINAL, REFERENCE, Case, Results, Version, optimum
from lab.tables.statistics import Summary, paired_differences, summary

BOLD = "**bold**: the best mean among the methods with the most runs, if they have the same ones"


class Measure(NamedTuple):
    """A function from a run to a number, and one from the paper's mean to the number that compares with it."""

    name: str
    title: str
    of: Callable[[Record], float | None]
    printed: Callable[[Column, Printed], float | None] | None
    notes: tuple[str, ...] = ()


def everything(results: Results, forms: Sequence[str], at: Sequence[int] = ()) -> list[Table]:
    """All tables of the forms. Values are those at the end of a run, or after each number of evaluations in `at`."""
    tables: list[Table] = []
    for form in forms:
        if not results.problems(form):
            continue
        for measure in [after(n) for n in at] or [at_the_end()]:
            tables += measure_tables(results, form, measure)
        tables += measure_tables(results, form, distance(results))
        tables += [*differences(results, form), areas(results, form)]
        tables += rankings(results, form)
        tables += [steps(results, form), steps_of_mean(results, form), seconds(results, form), runs(results, form)]
    return [table for table in tables if table.rows]


def at_the_end() -> Measure:
    """The best value of the whole run."""
    return Measure("value", "best value at the end", lambda record: float(record.best[-1]), lambda _, it: it.mean)


def after(n: int) -> Measure:
    """The best value of the first n evaluations; None where the run has fewer."""

    def value(record: Record) -> float | None:
        return float(record.best[n - 1]) if n <= len(record.values) else None

    return Measure(f"value@{n}", f"best value after {n} evaluations", value, None)


def distance(results: Results) -> Measure:
    """The best value minus the least possible one, so that runs on different cases can be compared."""

    def ours(record: Record) -> float | None:
        least = optimum(record)
        return None if least is None else float(record.best[-1]) - least

    def theirs(column: Column, number: Printed) -> float | None:
        least = printed_optimum(results, column)
        return None if least is None else number.mean - least

    note = "the paper's rows: its printed mean less the mean of the least values of its 25 runs"
    return Measure("distance", "distance from the best possible", ours, theirs, (note,))


def measure_tables(results: Results, form: str, measure: Measure) -> list[Table]:
    """Mean ± standard error of a measure, a table for each block; rows of the paper follow the same methods."""
    tables = []
    for block in results.blocks(form):
        values = {column.problem: _values(results, form, column, measure) for column in block.columns}
        columns = tuple(column for column in block.columns if any(values[column.problem].values()))
        if columns:
            related = _related_columns(columns) if measure.printed and measure.name == "value" else ()
            found = [values[column.problem] for column in columns] + [
                {v: {} for v in results.versions} for _ in related
            ]
            tables.append(_measure_table(View(results, form, (*columns, *related), measure, found), block.title))
    return tables


def _related_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Columns with numbers of the paper alone, which these columns are shown with."""
    return tuple(COLUMNS[c.shown_with] for c in columns if c.shown_with and COLUMNS[c.shown_with] not in columns)


class View(NamedTuple):
    """The content of a table of a measure."""

    results: Results
    form: str
    columns: tuple[Column, ...]
    measure: Measure
    values: list[dict[Version, dict[Case, float]]]
    """For each column: version -> run -> measure."""


def _measure_table(view: View, block: str) -> Table:
    best = [_best(values) for values in view.values]
    rows: list[Row] = []
    for version in view.results.versions:
        cells = [_cell(values[version], version in winners) for values, winners in zip(view.values, best, strict=True)]
        rows += [Row(view.results.labels[version], tuple(cells))] if any(cell.text for cell in cells) else []
        rows += _printed_rows(view, _counterparts(view.results, version))
    present = {version.method for version in view.results.versions}
    rows += _printed_rows(view, [name for name, method in COUNTERPARTS.items() if method not in present])
    if view.measure.name.startswith("value"):
        rows += _best_possible(view)
    notes = (BOLD * any(best), *view.measure.notes, *column_notes(view.results, view.form, view.columns))
    return Table(view.measure.name, view.form, f"{block}, {view.form}: {view.measure.title}",
                 tuple(column.title for column in view.columns), tuple(rows),
                 tuple(note for note in notes if note), tuple(column.problem for column in view.columns))  # fmt: skip


def differences(results: Results, form: str) -> list[Table]:
    """Each method minus our default preset, on the runs that both have."""
    reference = results.newest(REFERENCE)
    if reference is None:
        return []

    def cell(column: Column, version: Version) -> Cell:
        ends = [results.ends(column.problem, form, each) for each in (version, reference)]
        found = None if version == reference else paired_differences(*ends)
        return mean_cell(found, signed=True)

    return [
        Table("difference", form, f"{block.title}, {form}: difference to {results.labels[reference]} on shared runs",
              tuple(column.title for column in block.columns), grid(results, block.columns, cell),
              ("above 0 where the default preset found the better value",),
              tuple(column.problem for column in block.columns))
        for block in results.blocks(form)
    ]  # fmt: skip


def _values(results: Results, form: str, column: Column, measure: Measure) -> dict[Version, dict[Case, float]]:
    """Version -> run -> measure, for runs whose measure is known."""
    return {
        version: {
            case: value
            for case, record in results.of(column.problem, form, version).items()
            if (value := measure.of(record)) is not None
        }
        for version in results.versions
    }


def _cell(values: dict[Case, float], bold: bool) -> Cell:
    return mean_cell(summary(list(values.values())) if values else None, bold)


def _best(values: dict[Version, dict[Case, float]]) -> set[Version]:
    """The versions of smallest printed mean, among those with the largest set of runs; {} if all have it."""
    largest = max(map(set, values.values()), key=len)
    if not largest:
        return set()
    means = {
        version: number(summary(list(found.values())).mean)
        for version, found in values.items()
        if set(found) == largest
    }
    least = min(means.values(), key=float)
    winners = {version for version, mean in means.items() if mean == least}
    return winners if len(winners) < len(means) else set()


def _counterparts(results: Results, version: Version) -> list[str]:
    """The paper's names of a method, for its last version; [] for its other versions."""
    last = [each for each in results.versions if each.method == version.method][-1]
    return [name for name, method in COUNTERPARTS.items() if method == version.method and version == last]


def _printed_rows(view: View, names: Sequence[str]) -> list[Row]:
    """The paper's rows of these names. Among relocated runs, which the paper does not have, only COMBO is shown."""
    rows = []
    for name in names:
        if view.form == ORIGINAL or name == COMBO:
            cells = tuple(_printed_cell(view, column, name) for column in view.columns)
            label = f"{name}, printed" + ", original form" * (view.form != ORIGINAL)
            rows += [Row(label, cells, "paper")] if any(cell.text for cell in cells) else []
    return rows


def _printed_cell(view: View, column: Column, name: str) -> Cell:
    it = column.printed.get(name)
    if it is None or view.measure.printed is None:
        return Cell()
    value = view.measure.printed(column, it)
    return mean_cell(None if value is None else Summary(value, it.error, it.runs))


def _best_possible(view: View) -> list[Row]:
    cells = []
    for column in view.columns:
        least = [optimum(record) for record in any_runs(view.results, column, view.form).values()]
        known = [value for value in least if value is not None]
        mean = math.fsum(known) / len(known) if known and len(known) == len(least) else None
        cells.append(Cell() if mean is None else Cell(number(mean), mean, None, len(known)))
    return [Row("best possible", tuple(cells), "exact")] if any(cell.text for cell in cells) else []
