"""The panels on how the study ran and what it was: times, definition, versions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from carbo.integrations.optuna.evaluations import Evaluation
from carbo.report import charts
from carbo.report.charts import Series
from carbo.report.components import command, fold, missing, pairs, remark_list, section, table
from carbo.report.markup import Markup, breakable, tag
from carbo.report.numbers import figure
from carbo.report.report_data import Report
from carbo.report.trials import Times, times_of
from carbo.tune.formatting import clock


def times(report: Report) -> Markup:
    """Seconds for a suggestion and for an evaluation, by trial."""
    rows = [row for row in report.evaluations if row.counts]
    series = [each for each in _series(rows) if each.seconds]
    about = (
        "How long each suggestion took, and how long each evaluation took. The scale is logarithmic: each line "
        "stands for ten times the one below it."
    )
    if not series:
        return section("time", "Time", about, missing("No times are known."))
    legend = charts.key(*((each.shape, each.style, each.words) for each in series))
    summary = table(["", "trials", "median", "longest", "total"], [_sums(each) for each in series],
                    numbers=(1, 2, 3, 4), class_="wide")  # fmt: skip
    return section("time", "Time", about, legend, charts.times(rows, series), summary, _remark(rows), _table(rows))


def _series(rows: Sequence[Evaluation]) -> list[Series]:
    def seconds(get: Callable[[Times], float | None]) -> tuple[tuple[int, float], ...]:
        return tuple((row.number, found) for row in rows if (found := get(times_of(row))) is not None)

    return [
        Series("suggestion", "diamond", "second", seconds(lambda t: t.suggestion)),
        Series("evaluation", "dot", "value", seconds(lambda t: t.evaluation)),
        Series("both together", "ring", "whole", seconds(_together)),
    ]


def _together(known: Times) -> float | None:
    return known.whole if known.suggestion is None and known.evaluation is None else None


def _sums(series: Series) -> list[str]:
    seconds = [each for _, each in series.seconds]
    shown = clock(statistics.median(seconds)), clock(max(seconds)), clock(sum(seconds))
    return [series.words, f"{len(seconds):,}", *shown]


def _remark(rows: Sequence[Evaluation]) -> Markup | None:
    unsplit = any(_together(times_of(row)) is not None for row in rows)
    return remark_list(
        "Of some trials only the time from start to end is known: suggestion and evaluation together."
        if unsplit else None,
    )  # fmt: skip


def _table(rows: Sequence[Evaluation]) -> Markup:
    def shown(seconds: float | None) -> str:
        return "–" if seconds is None else figure(seconds, 3)

    cells = [[row.number, *map(shown, times_of(row))] for row in rows]
    heads = ["trial", "suggestion, s", "evaluation, s", "start to end, s"]
    return fold("Times as a table", table(heads, cells, numbers=(0, 1, 2, 3), class_="wide"))


def definition(report: Report) -> Markup:
    """Variables, constraints, command."""
    what = report.definition
    rows = [
        [breakable(row.name), row.kind, row.values, "–" if row.size is None else f"{row.size:,}"]
        for row in what.variables
    ]
    variables = table(["variable", "kind", "values", "number"], rows, numbers=(3,), class_="wide")
    combinations = what.combinations
    constraints = tag("ul", *(tag("li", tag("code", each)) for each in what.constraints), class_="plain")
    facts = pairs(
        "facts",
        ("direction", what.direction),
        ("combinations", figure(combinations, 3)) if combinations is not None and rows else None,
        ("budget", f"{what.budget:,} evaluations") if what.budget else None,
        ("command", command(what.command)) if what.command else None,
        ("value", what.reading) if what.reading else None,
        ("constraints", constraints) if what.constraints else None,
        ("kept in", what.storage) if what.storage else None,
        ("made by", "carbo tune" if report.tuned else "a program"),
    )
    shown = variables if rows else missing("No parameter is known yet.")
    return section("definition", "The study", "What was tuned.", facts, shown, long=True)


def versions(report: Report) -> Markup:
    """The versions that made the page."""
    said = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return tag("footer", tag("p", f"Made with {said}. This page loads nothing: it can be kept, sent and printed."),
               id="versions")  # fmt: skip
