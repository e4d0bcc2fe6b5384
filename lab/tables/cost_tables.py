"""Tables of costs: evaluations to the paper's value, seconds of a suggestion, runs that were made."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from lab.runs.record import Record
from lab.tables.formats import Cell, Row, Table
from lab.tables.number_cells import all_columns, count_text, grid, number, printed_optimum, spans
from lab.tables.paper import COMBO, Column
from lab.tables.results import Results, Version, optimum, title
from lab.tables.statistics import median_steps, steps_to_reach

TARGET = (
    "where the best possible differs between runs (contamination, Ising), a run's target is its own best possible plus "
    "the paper's mean distance from it"
)


def targets(results: Results, column: Column, records: Sequence[Record]) -> list[float]:
    """A target for each run: the paper's COMBO mean, shifted with the optimum where that differs between runs."""
    printed, theirs = column.printed[COMBO].mean, printed_optimum(results, column)
    least = [optimum(record) for record in records]
    return [printed if ours is None or theirs is None else printed + (ours - theirs) for ours in least]


def steps(results: Results, form: str) -> Table:
    """Median number of evaluations to the paper's COMBO value, and the number of runs that reached it."""

    def cell(column: Column, version: Version) -> Cell:
        found = list(results.of(column.problem, form, version).values())
        if not found:
            return Cell()
        wanted = targets(results, column, found)
        taken = [steps_to_reach(record.best, value) for record, value in zip(found, wanted, strict=True)]
        middle, reached = median_steps(taken), sum(step is not None for step in taken)
        return Cell(f"{_steps(results, column, middle)} ({reached}/{len(found)})", middle, None, len(found))

    columns = _with_target(results, form)
    reached = "in brackets: how many of the runs got there; one that did not counts as more than the budget"
    return Table("evaluations", form, f"Evaluations to the paper's COMBO mean, {form}: median over runs",
                 tuple(column.short for column in columns), _under_target(columns, grid(results, columns, cell)),
                 (reached, TARGET), _keys(columns))  # fmt: skip


def steps_of_mean(results: Results, form: str) -> Table:
    """Number of evaluations after which the mean over runs is the paper's COMBO mean."""

    def cell(column: Column, version: Version) -> Cell:
        found = list(results.of(column.problem, form, version).values())
        if not found:
            return Cell()
        wanted = targets(results, column, found)
        above = [record.best - value for record, value in zip(found, wanted, strict=True)]
        taken = steps_to_reach(np.mean(above, axis=0), 0.0)
        return Cell(f"{_steps(results, column, taken)} ({len(found)})", taken, None, len(found))

    columns = _with_target(results, form)
    return Table("evaluations-of-mean", form, f"Evaluations to the paper's COMBO mean, {form}: of the mean over runs",
                 tuple(column.short for column in columns), _under_target(columns, grid(results, columns, cell)),
                 (TARGET,), _keys(columns))  # fmt: skip


def seconds(results: Results, form: str) -> Table:
    """Median processor time of a suggestion, over all suggestions of all runs."""

    def cell(column: Column, version: Version) -> Cell:
        found = list(results.of(column.problem, form, version).values())
        times = [time for record in found for time in record.seconds.tolist()]
        if not times:
            return Cell()
        middle = statistics.median(times)
        return Cell(f"{middle:.2g}" if middle >= 1e-3 else "<0.001", middle, None, len(found))

    columns = all_columns(results, form)
    title = f"Seconds of processor time a suggestion, {form}: median"
    return Table("seconds", form, title, tuple(c.short for c in columns),
                 grid(results, columns, cell), (), _keys(columns))  # fmt: skip


def runs(results: Results, form: str) -> Table:
    """Which of the paper's 25 runs were made."""

    def cell(column: Column, version: Version) -> Cell:
        found = [case.run for case in results.of(column.problem, form, version)]
        return Cell(spans(found), len(found), None, len(found)) if found else Cell()

    columns = all_columns(results, form)
    notes = [f"{title(method)} on {name}: left out "
             f"{count_text(count)} with another budget than {results.budgets[name]} "
             "evaluations"
             for (name, where, method), count in results.left_out.items() if where == form]  # fmt: skip
    notes += [f"{title(m)}: {count_text(count)} with older settings not shown" for m, count in results.hidden.items()]
    return Table("runs", form, f"Runs, {form}", tuple(column.short for column in columns),
                 grid(results, columns, cell), tuple(notes), _keys(columns))  # fmt: skip


def _with_target(results: Results, form: str) -> tuple[Column, ...]:
    return tuple(column for column in all_columns(results, form) if COMBO in column.printed)


def _keys(columns: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(column.problem for column in columns)


def _under_target(columns: tuple[Column, ...], rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """A table with the paper's values in its first row."""
    means = [column.printed[COMBO].mean for column in columns]
    first = Row(f"{COMBO}, printed mean", tuple(Cell(number(mean), mean) for mean in means), "paper")
    return (first, *rows) if rows else ()


def _steps(results: Results, column: Column, taken: float | None) -> str:
    return f">{results.budgets[column.problem]}" if taken is None else f"{taken:g}"
