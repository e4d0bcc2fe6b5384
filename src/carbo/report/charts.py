"""Charts as SVG. Coordinates are percentages, so that a chart fits any width and its text keeps its size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from carbo.integrations.optuna.evaluations import Evaluation
from carbo.report.axis import Axis, counting, linear, logarithmic, range_to_draw
from carbo.report.findings import trail, with_values
from carbo.report.markup import Markup, join, tag
from carbo.report.model_data import WIDTH, Check
from carbo.report.numbers import figure
from carbo.tune.formatting import clock

SHAPES = {
    "cross": "M-4,-4L4,4M-4,4L4,-4",
    "up": "M-4.5,3L0,-5L4.5,3Z",
    "down": "M-4.5,-3L0,5L4.5,-3Z",
    "diamond": "M0,-4.5L4.5,0L0,4.5L-4.5,0Z",
}
ROOM = 32
"""Room for labels below a chart on a phone, in characters."""
SHORTEST = 1e-6
"""Shorter times, in seconds, are drawn as this."""


class Chart(NamedTuple):
    """What all charts have.

    description     for readers who cannot see the chart
    unit    of the horizontal axis
    rug     whether there are marks below the plot
    """

    name: str
    title: str
    description: str
    x: Axis
    y: Axis
    unit: str
    rug: bool = False


def symbols() -> Markup:
    """The shapes that charts refer to by name. A page needs them once."""
    paths = [tag("path", id=f"shape-{name}", d=d) for name, d in SHAPES.items()]
    return tag("svg", tag("defs", *paths), width="0", height="0", class_="symbols", aria_hidden="true")


def _at(place: float) -> str:
    return f"{place:.2f}".rstrip("0").rstrip(".") + "%"


def _frame(chart: Chart, *marks: Markup) -> Markup:
    """A plot with its grid, its ticks and its marks."""
    below = 36 if chart.rug else 20
    grid = [_rule(100 - chart.y.place(tick)) for tick in chart.y.ticks]
    vertical = [
        tag("text", label, x="0", y=_at(100 - chart.y.place(tick)), dx="-8", dy="4", class_="end")
        for tick, label in zip(chart.y.ticks, chart.y.labels, strict=True)
    ]
    horizontal = [
        tag("text", label, x=_at(chart.x.place(tick)), y="100%", dy=below, class_=_anchor(chart.x.place(tick), label))
        for tick, label in zip(chart.x.ticks, chart.x.labels, strict=True)
    ]
    unit = tag("text", chart.unit, x="100%", y="100%", dy=below + 18, class_="end unit")
    ids = f"{chart.name}-title", f"{chart.name}-told"
    drawn = tag(
        "svg",
        tag("title", chart.title, id=ids[0]),
        tag("desc", chart.description, id=ids[1]),
        tag("g", *grid, class_="grid"),
        tag("g", *vertical, *horizontal, unit, class_="ticks"),
        *marks,
        class_="plot",
        role="img",
        aria_labelledby=" ".join(ids),
    )
    gutter = max(map(len, chart.y.labels)) + 2
    return tag("div", drawn, class_=f"chart {chart.name}" + (" rug" if chart.rug else ""), style=f"--gutter:{gutter}ch")


def _anchor(place: float, label: str) -> str:
    """A long label at the right end would leave the page of a phone."""
    return "end" if place > 99 and len(label) > 4 else "middle"


def _rule(height: float) -> Markup:
    return tag("line", x1="0", x2="100%", y1=_at(height), y2=_at(height))


def _line(start: tuple[float, float], end: tuple[float, float], style: str) -> Markup:
    (x1, y1), (x2, y2) = start, end
    return tag("line", x1=_at(x1), y1=_at(100 - y1), x2=_at(x2), y2=_at(100 - y2), class_=style)


def _dot(x: float, y: float, style: str, said: str) -> Markup:
    return tag("circle", tag("title", said), cx=_at(x), cy=_at(100 - y), r="5" if "new" in style else "3", class_=style)


def _shape(name: str, place: tuple[float, float], style: str, said: str, down: int = 0) -> Markup:
    moved = f"translate(0,{down})" if down else None
    x, y = place
    return tag(
        "use", tag("title", said), href=f"#shape-{name}", x=_at(x), y=_at(100 - y), class_=style, transform=moved
    )


def key(*entries: tuple[str, str, str] | None) -> Markup:
    """The legend: shape ("dot", "ring", "line" or one of SHAPES), style and words of each."""
    return tag("ul", *(tag("li", _sample(e[0], e[1]), e[2]) for e in entries if e is not None), class_="key")


def _sample(shape: str, style: str) -> Markup:
    if shape in ("dot", "ring"):
        drawn = tag("circle", cx="8", cy="8", r="5" if style == "new" else "3.5", class_=style)
    elif shape == "line":
        drawn = tag("line", x1="0", x2="16", y1="8", y2="8", class_=style)
    else:
        drawn = tag("use", href=f"#shape-{shape}", x="8", y="8", class_=style)
    return tag("svg", drawn, width="16", height="16", aria_hidden="true")


# ---------------------------------------------------------------- the charts


def span(rows: Sequence[Evaluation]) -> Axis:
    """The axis of trials that count."""
    numbers = [row.number for row in rows if row.counts]
    return counting(min(numbers), max(numbers))


def convergence(rows: Sequence[Evaluation], direction: str) -> tuple[Markup, int]:
    """The chart of all values, failures, and the best so far; and the number of values beyond the axis."""
    values, found, x = with_values(rows), trail(rows, direction), span(rows)
    y = linear(*range_to_draw([value for _, value in values], direction))
    failed = [row for row in rows if row.standing in ("failed", "pruned")]
    beyond = [row for row, value in values if not y.holds(value)]
    best, steps = found[-1], {row.number for row, _ in found}
    about = (f"{len(values)} values by trial, and the best so far, from {figure(found[0][1])} at trial "
            f"{found[0][0].number} to {figure(best[1])} at trial {best[0].number}; {len(failed)} failed.")  # fmt: skip
    chart = Chart("convergence", "Convergence", about, x, y, "trial", bool(failed))
    edge = "up" if direction == "minimize" else "down"
    dots = [
        _dot(x.place(row.number), y.place(value), "value", _said(row, value))
        if y.holds(value)
        else _shape(edge, (x.place(row.number), y.place(value)), "value", f"{_said(row, value)}, beyond the axis")
        for row, value in values
        if row.number not in steps
    ]
    new = [_dot(x.place(row.number), y.place(value), "new", f"{_said(row, value)}, best so far")
           for row, value in found if y.holds(value)]  # fmt: skip
    crosses = [_shape("cross", (x.place(row.number), 0), "failure", f"trial {row.number}: {row.reason or row.standing}",
                      down=14) for row in failed]  # fmt: skip
    return _frame(chart, *_steps(found, x, y), *dots, *new, *crosses), len(beyond)


def _said(row: Evaluation, value: float) -> str:
    return f"trial {row.number}: {figure(value)}"


def _steps(found: Sequence[tuple[Evaluation, float]], x: Axis, y: Axis) -> list[Markup]:
    """The best so far, as a step function."""
    places = [(x.place(row.number), y.place(value)) for row, value in found]
    lines = [_line(places[-1], (100.0, places[-1][1]), "best")]
    for (x1, y1), (x2, y2) in pairwise(places):
        lines += [_line((x1, y1), (x2, y1), "best"), _line((x2, y1), (x2, y2), "best")]
    return lines


def predictions(checks: Sequence[Check], direction: str, best: int | None) -> tuple[Markup, int]:
    """The chart of predicted against observed, with intervals of 80 %; and the number of points beyond the axes."""
    low, high = range_to_draw([check.observed for check in checks], direction)
    usual = [check for check in checks if low <= check.observed <= high]
    predicted = [check.predicted for check in usual]
    axis = linear(min(low, *predicted), max(high, *predicted), most=5)
    shown = [check for check in checks if axis.holds(check.observed) and axis.holds(check.predicted)]
    about = f"{len(shown)} evaluations; on the diagonal, prediction and observation agree."
    chart = Chart("predictions", "Predicted against observed", about, axis.thinned(ROOM), axis, "observed")
    marks: list[Any] = [_line((0, 0), (100, 100), "diagonal")]
    for check in shown:
        x = axis.place(check.observed)
        ends = (axis.place(check.predicted - WIDTH * check.sd), axis.place(check.predicted + WIDTH * check.sd))
        marks.append(_line((x, ends[0]), (x, ends[1]), "interval"))
    for check in sorted(shown, key=lambda check: check.number == best):
        said = (f"trial {check.number}: observed {figure(check.observed)}, predicted {figure(check.predicted, 4)} "
                f"± {figure(WIDTH * check.sd, 2)}")  # fmt: skip
        place = axis.place(check.observed), axis.place(check.predicted)
        marks.append(_dot(*place, "new" if check.number == best else "value", said))
    return _frame(chart, *marks), len(checks) - len(shown)


class Series(NamedTuple):
    """Seconds by trial, and how they are drawn."""

    words: str
    shape: str
    style: str
    seconds: tuple[tuple[int, float], ...]


def times(rows: Sequence[Evaluation], series: Sequence[Series]) -> Markup:
    """Seconds of every trial, on a logarithmic axis."""
    known = [max(seconds, SHORTEST) for each in series for _, seconds in each.seconds]
    x, y = span(rows), logarithmic(min(known), max(known))
    about = "Seconds by trial: " + ", ".join(each.words for each in series) + "."
    marks = []
    for each in series:
        for number, seconds in each.seconds:
            place, said = (x.place(number), y.place(max(seconds, SHORTEST))), f"trial {number}: {clock(seconds)}"
            dot = each.shape in ("dot", "ring")
            marks.append(_dot(*place, each.style, said) if dot else _shape(each.shape, place, each.style, said))
    return _frame(Chart("times", "Time of each trial", about, x, y, "trial"), *marks)


def bar(mean: float, low: float | None = None, high: float | None = None) -> Markup:
    """A share of one as a bar in a table, with an interval."""
    marks = [tag("rect", x="0", y="2", width=_at(100 * min(mean, 1.0)), height="10", class_="share")]
    if low is not None and high is not None:
        ends = _at(100 * low), _at(100 * min(high, 1.0))
        marks.append(tag("line", x1=ends[0], x2=ends[1], y1="7", y2="7", class_="whisker"))
        marks += [tag("line", x1=end, x2=end, y1="4", y2="10", class_="whisker") for end in ends]
    return tag("svg", join(*marks), class_="bar", aria_hidden="true")
