"""The panels on what was found: headline, convergence, best settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from carbo.integrations.optuna.evaluations import Evaluation
from carbo.report import charts
from carbo.report.components import command, exact_number, fold, missing, remark_list, section, table
from carbo.report.findings import Progress, Setting, duration, progress, reasons, top, trail, with_values
from carbo.report.markup import Markup, breakable, join, tag
from carbo.report.model_data import Fitted
from carbo.report.numbers import MINUS, choice, column, exact, figure
from carbo.report.report_data import Report
from carbo.tune.formatting import clock

MOST_REASONS = 5
MANY, FIRST = 24, 15
"""A table of settings with more than MANY variables shows the FIRST ones only."""
NOTHING = "No evaluation has given a value yet."


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def count(rows: Sequence[Evaluation], *standings: str) -> int:
    return sum(row.standing in standings for row in rows)


# ---------------------------------------------------------------- headline


def headline(report: Report) -> Markup:
    """Name, best value, improvement, evaluations, duration."""
    rows = report.evaluations
    what = f"{report.direction} · {plural(len(report.definition.variables), 'variable')}"
    made = tag("time", f"{report.made:%Y-%m-%d %H:%M}", datetime=report.made.isoformat(timespec="seconds"))
    found = progress(rows, report.direction)
    cards = [_best(report), _improvement(found, report.direction), _evaluations(report), _duration(rows)]
    return tag(
        "header",
        tag("p", "carbo report", class_="kicker"),
        tag("h1", report.name),
        tag("p", join(what, join("as of ", made), by=" · "), class_="quiet"),
        tag("dl", *cards, class_="cards"),
        id="headline",
    )


def _card(name: str, large: Any, note: Any, style: str | None = None) -> Markup:
    return tag("div", tag("dt", name), tag("dd", large, class_="large"), tag("dd", note, class_="note"), class_=style)


def _best(report: Report) -> Markup:
    found = trail(report.evaluations, report.direction)
    if not found:
        return _card("Best value", "–", NOTHING, "first")
    best, value = found[-1]
    where = tag("data", str(best.number), value=best.number, id="best-trial")
    lower = "lower" if report.direction == "minimize" else "higher"
    note = join("at trial ", where, f"; {lower} is better")
    return _card("Best value", exact_number(value, name="best-value"), note, "first")


def _improvement(found: Progress | None, direction: str) -> Markup:
    if found is None:
        return _card("Improvement", "–", "over the first evaluation")
    start = exact_number(found.start, name="start-value")
    if found.difference == 0:
        return _card("Improvement", "none yet", join(f"the {found.what} is the best: ", start))
    sign = MINUS if direction == "minimize" else "+"
    size = abs(found.difference)
    relative = None if found.relative is None else abs(found.relative)
    large = figure(size, 4) if relative is None or relative >= 10 else f"{100 * relative:.3g} %"
    number = exact_number(found.difference, f"{sign}{large}", "improvement")
    return _card("Improvement", number, join(f"over the {found.what}, ", start))


def _evaluations(report: Report) -> Markup:
    rows = report.evaluations
    counted = sum(row.counts for row in rows)
    budget = report.definition.budget
    failed, pruned = count(rows, "failed"), count(rows, "pruned")
    ahead, queued = count(rows, "running"), count(rows, "waiting")
    notes = [
        join(tag("data", f"{failed:,}", value=failed, id="failed"), " failed"),
        f"{pruned:,} stopped early" if pruned else None,
        f"{ahead:,} running" if ahead else None,
        f"{queued:,} waiting" if queued else None,
        f"budget {budget:,}" if budget else None,
    ]
    number = tag("data", f"{counted:,}", value=counted, id="evaluations")
    return _card("Evaluations", number, join(*notes, by=", "))


def _duration(rows: Sequence[Evaluation]) -> Markup:
    seconds = duration(rows)
    if seconds is None:
        return _card("Duration", "–", "nothing has ended yet")
    return _card("Duration", tag("data", clock(seconds), value=seconds, id="duration"), "first start to last end")


# ---------------------------------------------------------------- convergence


def convergence(report: Report) -> Markup:
    """Every evaluation, failures, and the best so far."""
    rows, direction = report.evaluations, report.direction
    lower = "Lower" if direction == "minimize" else "Higher"
    about = f"Every evaluation in the order it was started, and the best value so far. {lower} is better."
    failed = count(rows, "failed", "pruned")
    if not with_values(rows):
        return section("convergence", "Convergence", about, missing(NOTHING), _why(rows), _all(report))
    chart, beyond = charts.convergence(rows, direction)
    edge = "up" if direction == "minimize" else "down"
    legend = charts.key(
        ("line", "best", "best so far"),
        ("ring", "new", "a new best"),
        ("dot", "value", "evaluation"),
        (edge, "value", f"beyond the axis ({beyond:,})") if beyond else None,
        ("cross", "failure", f"failed or stopped early ({failed:,})") if failed else None,
    )
    return section("convergence", "Convergence", about, legend, chart, _why(rows), _all(report))


def _why(rows: Sequence[Evaluation]) -> Markup | None:
    found = reasons(rows)
    if not found:
        return None
    shown = [f"{number:,} × {said}" for said, number in found[:MOST_REASONS]]
    rest = sum(number for _, number in found[MOST_REASONS:])
    return join(tag("h3", "Why evaluations failed"), remark_list(*shown, f"{rest:,} × other reasons" if rest else None))


def _all(report: Report) -> Markup | None:
    rows = [row for row in report.evaluations if row.counts]
    if not rows:
        return None
    values = iter(column([value for _, value in with_values(rows)]))
    bests = {row.number: value for row, value in trail(rows, report.direction)}
    cells, so_far = [], None
    for row in rows:
        so_far = bests.get(row.number, so_far)
        shown = "–" if row.value is None else exact_number(row.value, next(values))
        note = row.reason or ("new best" if row.number in bests else "")
        cells.append([row.number, row.standing, shown, "–" if so_far is None else figure(so_far), note])
    heads = ["trial", "standing", "value", "best so far", "remark"]
    return fold(f"{plural(len(rows), 'evaluation')} as a table", table(heads, cells, numbers=(0, 2, 3), class_="wide"))


# ---------------------------------------------------------------- best settings


def settings(report: Report) -> Markup:
    """The best distinct settings beside each other."""
    best = top(report.evaluations, report.direction)
    title = "Best settings"
    if not best:
        return section("settings", title, None, missing(NOTHING))
    about = "The best setting and the next best ones. What differs from the best is marked."
    if len(best) == 1:
        about = "The best setting. There is no other yet."
    line = None
    if report.best_command is not None:
        line = join(tag("h3", "The best command"), command(report.best_command))
    return section("settings", title, about, _side_by_side(report, best), line, long=True)


def _side_by_side(report: Report, best: Sequence[Setting]) -> Markup:
    names = [row.name for row in report.definition.variables]
    names += [name for name in best[0].best.params if name not in names]
    if len(names) <= MANY:
        return _beside(names, best)
    if isinstance(report.model, Fitted):
        order = list(report.model.relevance.variables)
        names = [*order, *(name for name in names if name not in order)]
    words = f"{len(names) - FIRST} more variables" + (", less relevant" if isinstance(report.model, Fitted) else "")
    return join(_beside(names[:FIRST], best), fold(words, _beside(names[FIRST:], best)))


def _beside(names: Sequence[str], best: Sequence[Setting]) -> Markup:
    """The values of these variables, a column for each setting."""
    values = column([each.value for each in best])
    heads = [
        tag("th", join("#", i + 1), tag("small", f"trial {each.best.number}"), scope="col",
            class_="number lead" if i == 0 else "number")
        for i, each in enumerate(best)
    ]  # fmt: skip
    rows = [_values(best, values), *(_setting(name, best) for name in names)]
    if any(len(each.values) > 1 for each in best):
        rows.insert(1, _repeats(best))
    made = tag("table", tag("thead", tag("tr", tag("td"), *heads)), tag("tbody", *rows), class_="settings")
    return tag("div", made, class_="box", tabindex="0")


def _values(best: Sequence[Setting], texts: Sequence[str]) -> Markup:
    cells = [
        tag("td", exact_number(each.value, text), class_="number lead" if i == 0 else "number")
        for i, (each, text) in enumerate(zip(best, texts, strict=True))
    ]
    return tag("tr", tag("th", "value", scope="row"), *cells, class_="value-row")


def _repeats(best: Sequence[Setting]) -> Markup:
    """The row of means, for settings that were evaluated more than once."""
    cells = []
    for each in best:
        mean = sum(value / len(each.values) for value in each.values)
        text = f"{figure(mean, 5)} ({len(each.values)})" if len(each.values) > 1 else "–"
        cells.append(tag("td", text, class_="number same"))
    return tag("tr", tag("th", "mean of repeats", scope="row"), *cells)


def _setting(name: str, best: Sequence[Setting]) -> Markup:
    lead = best[0].best.params
    cells = []
    for i, each in enumerate(best):
        params = each.best.params
        if name not in params:
            cells.append(tag("td", "–", class_="number same"))
            continue
        same = name in lead and exact(lead[name]) == exact(params[name])
        style = "lead" if i == 0 else "same" if same else "differs"
        shown = tag("data", choice(params[name]), value=exact(params[name]))
        cells.append(tag("td", shown if i == 0 or same else tag("mark", shown), class_=f"number {style}"))
    return tag("tr", tag("th", breakable(name), scope="row"), *cells)
