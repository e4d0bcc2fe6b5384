"""Numbers as tables write them, and the notes below tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lab.problems.seeds import GROUP
from lab.runs.record import Record
from lab.tables.formats import Cell, Row
from lab.tables.paper import DECIMALS, Column
from lab.tables.results import Case, Results, Version, optimum, paper_optima, title
from lab.tables.statistics import Summary

CellOf = Callable[[Column, Version], Cell]


def number(value: float, signed: bool = False) -> str:
    """A number with four decimals; with one from 1,000 on."""
    decimals = DECIMALS if abs(value) < 1000 else 1
    return f"{round(value, decimals) + 0.0:{'+' if signed else ''}.{decimals}f}"


def mean_cell(found: Summary | None, bold: bool = False, signed: bool = False) -> Cell:
    """The text `mean ± standard error (runs)`; without an error for a single run."""
    if found is None:
        return Cell()
    error = "" if found.error is None else f" ± {number(found.error)}"
    return Cell(f"{number(found.mean, signed)}{error} ({found.runs})", found.mean, found.error, found.runs, bold)


def spans(numbers: Sequence[int]) -> str:
    """Numbers as ranges: "1–3, 5" for 1, 2, 3, 5."""
    found: list[list[int]] = []
    for n in sorted(set(numbers)):
        if found and n == found[-1][-1] + 1:
            found[-1].append(n)
        else:
            found.append([n])
    return ", ".join(str(span[0]) if len(span) == 1 else f"{span[0]}–{span[-1]}" for span in found)


def count_text(n: int, what: str = "run") -> str:
    """A number with its noun: 1 run, 2 runs."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def grid(results: Results, columns: Sequence[Column], cell: CellOf) -> tuple[Row, ...]:
    """A row for each version, unless all of its cells are empty."""
    rows = [Row(results.labels[v], tuple(cell(column, v) for column in columns)) for v in results.versions]
    return tuple(row for row in rows if any(each.text for each in row.cells))


def all_columns(results: Results, form: str) -> tuple[Column, ...]:
    """The columns of all blocks."""
    return tuple(column for block in results.blocks(form) for column in block.columns)


def any_runs(results: Results, column: Column, form: str) -> dict[Case, Record]:
    """For each run that any version has, one of its records."""
    found: dict[Case, Record] = {}
    for version in results.versions:
        found |= results.of(column.problem, form, version)
    return found


def column_notes(results: Results, form: str, columns: Sequence[Column]) -> list[str]:
    """Notes that a reader needs to compare these columns with the paper."""
    own = [f"{c.title}: {c.note}" for c in columns if c.note]
    return own + case_notes(results, form, columns) + version_notes(results, form, columns)


def version_notes(results: Results, form: str, columns: Sequence[Column]) -> list[str]:
    """Notes on problems where the runs of a method have older settings, because its newest have no runs there."""
    titles = {column.problem: column.title for column in columns}
    found: dict[tuple[str, str], list[str]] = {}
    for (name, form_there, method), revision in results.stand_ins.items():
        if form_there == form and name in titles:
            found.setdefault((method, revision), []).append(titles[name])
    return [f"{title(method)} on {', '.join(names)}: runs with the settings before its newest, revision {revision}"
            for (method, revision), names in found.items()]  # fmt: skip


def case_notes(results: Results, form: str, columns: Sequence[Column]) -> list[str]:
    """Notes on problems whose runs are of fewer cases than the paper's."""
    few: dict[int, list[str]] = {}
    for column in columns:
        cases = {r.instance.get("case_seed") for r in any_runs(results, column, form).values()} - {None}
        if column.printed and 0 < len(cases) < GROUP:
            few.setdefault(len(cases), []).append(column.title)
    return [f"{', '.join(titles)}: the runs are of {n} of the {GROUP} cases that the paper's means cover; see the "
            "distance from the best possible" for n, titles in few.items()]  # fmt: skip


def printed_optimum(results: Results, column: Column) -> float | None:
    """Mean of the least values of the paper's runs; None where it is not known."""
    optima = paper_optima(column.problem)
    if optima is None:  # the problem needs a file that may be missing; the records name their instance
        least = {optimum(record) for record in results.records() if record.problem == column.problem}
        return least.pop() if len(least) == 1 else None
    return math.fsum(optima) / len(optima)
