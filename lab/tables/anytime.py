"""How quickly methods approach the optimum: the area under the curve of what is left.

What is left after an evaluation is the distance of the best value so far from the best possible, as a share of that
after the initial points. Its mean over all later evaluations tells a quick method from a slow one, even where both
reach the optimum. It also varies less between runs than the value at the end.
"""

from __future__ import annotations

import math

from lab.runs.record import Record
from lab.tables.formats import Cell, Table
from lab.tables.number_cells import all_columns, grid, mean_cell
from lab.tables.paper import Column
from lab.tables.results import REFERENCE, Case, Results, Version, optimum
from lab.tables.statistics import paired_differences, summary

ALL = Column("", "all problems", short="all")
NOTE = (
    "left after an evaluation: the distance of the best value so far from the best possible, as a share of that after "
    "the initial points; here its mean over the later evaluations. The default preset's row is its own; the others are "
    "differences to it on shared runs, above 0 where the default preset came down more quickly"
)


def area(record: Record) -> float | None:
    """Mean of what is left; None where the best possible is not known, or is among the initial points."""
    least = optimum(record)
    if least is None or len(record.best) == record.initial:
        return None
    left = (record.best - least).tolist()
    first, later = left[record.initial - 1], left[record.initial :]
    return math.fsum(later) / len(later) / first if first > 0 else None


def areas(results: Results, form: str) -> Table:
    """The areas of the default preset, and the differences of other methods to it: over all problems, and for each."""
    reference = results.newest(REFERENCE)
    if reference is None:
        return Table("left", form, "", (), ())
    every = all_columns(results, form)
    known = {version: {c.problem: _of(results, form, c, version) for c in every} for version in results.versions}
    columns = [column for column in every if known[reference][column.problem]]

    def runs(column: Column, version: Version) -> dict[tuple[str, Case], float]:
        of = columns if column is ALL else [column]
        return {(c.problem, case): value for c in of for case, value in known[version][c.problem].items()}

    def cell(column: Column, version: Version) -> Cell:
        own = runs(column, reference)
        if version == reference:
            return mean_cell(summary(list(own.values())))
        return mean_cell(paired_differences(runs(column, version), own), signed=True)

    shown = [ALL, *columns] if columns else []
    return Table("left", form, f"What is left, mean over the run, {form}", tuple(column.short for column in shown),
                 grid(results, shown, cell), (NOTE,), tuple(column.problem or "all" for column in shown))  # fmt: skip


def _of(results: Results, form: str, column: Column, version: Version) -> dict[Case, float]:
    found = {case: area(record) for case, record in results.of(column.problem, form, version).items()}
    return {case: value for case, value in found.items() if value is not None}
