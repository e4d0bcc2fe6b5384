"""The panels on what the model says: relevance, and predicted against observed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from carbo.report import charts
from carbo.report.components import exact_number, fold, missing, pairs, remark_list, section, table
from carbo.report.findings import trail
from carbo.report.markup import Markup, breakable, join, tag
from carbo.report.model_data import WIDTH, Check, Fitted
from carbo.report.numbers import column, figure, share
from carbo.report.report_data import Report
from carbo.surrogate.relevance import Influence
from carbo.tune.study_model import FEW

MOST = 15
"""Number of variables that are not folded."""
ORDERS = {"1": "one variable at a time", "2": "pairs of variables", "3": "three together", "all": "all together"}


def relevance(report: Report) -> Markup:
    """Each variable's share of the variation, and the orders of interaction."""
    title = "Relevance"
    if isinstance(report.model, str):
        return section("relevance", title, None, missing(report.model))
    about = (
        "How much of the variation each variable explains, according to the model. The effect of variables that act "
        "together counts for each of them, so the numbers may add up to more than 100 %. The thin line spans 10 % to "
        "90 % of the posterior samples."
    )
    shares = list(report.model.relevance.variables.items())
    rest = shares[MOST:]
    more = None
    if rest:
        more = fold(f"{len(rest)} more, each at {share(rest[0][1].mean)} or less", _shares(rest))
    return section("relevance", title, about, _shares(shares[:MOST]), more, _orders(report.model), _remarks(report))


def _shares(shares: Sequence[tuple[str, Influence]]) -> Markup:
    rows = [[breakable(name), charts.bar(*each), _interval(each)] for name, each in shares]
    return table(["variable", "", "share of variation"], rows, numbers=(2,), class_="bars")


def _interval(each: Influence) -> Markup:
    mean = tag("data", share(each.mean), value=repr(each.mean))
    return join(mean, " ", tag("small", _range(each.low, each.high)))


def _range(low: float, high: float) -> str:
    """Both ends with the decimals of the upper one."""
    decimals = 1 if high < 0.0995 else 0
    return f"{100 * low:.{decimals}f} – {100 * high:.{decimals}f} %"


def _orders(model: Fitted) -> Markup | None:
    orders, adjacent = model.relevance.orders, model.relevance.adjacent
    if orders is None:
        return None
    rows = [[ORDERS.get(order, f"{order} together"), charts.bar(part), share(part)] for order, part in orders.items()]
    head = tag("h3", "How variables act", id="orders")
    shares = table(["order of interaction", "", "share of the model"], rows, numbers=(2,), class_="bars")
    beside = f"Of this, {share(adjacent)} between variables next to each other." if adjacent is not None else None
    return join(head, shares, tag("p", beside) if beside else None)


def _remarks(report: Report) -> Markup | None:
    assert isinstance(report.model, Fitted)
    outside = report.model.outside
    named = ", ".join(outside[:5]) + (f" and {len(outside) - 5} more" if len(outside) > 5 else "")
    few = len(report.model.checks)
    return remark_list(
        f"From {few} evaluations only: mostly what the model assumes before it has seen any." if few < FEW else None,
        f"Not in the model, because not every trial had them: {named}." if outside else None,
        None
        if report.tuned
        else "Made by a program: constraints, and which categories are alike, may not be known here.",
    )


def predictions(report: Report) -> Markup:
    """Leave-one-out predictions against observations."""
    title = "Predicted against observed"
    if isinstance(report.model, str):
        return section("predictions", title, None, missing(report.model))
    checks = report.model.checks
    if not checks:
        return section("predictions", title, None, missing("No evaluation that the model knows has run to its end."))
    about = (
        "Each evaluation as the model would have predicted it from all the others (leave-one-out, in closed form; the "
        "model's hyperparameters are those of all evaluations). The closer to the diagonal, the better the model knows "
        "this problem. Bars are intervals of 80 %, noise included."
    )
    found = trail(report.evaluations, report.direction)
    chart, beyond = charts.predictions(checks, report.direction, found[-1][0].number if found else None)
    legend = charts.key(
        ("dot", "value", "evaluation"), ("ring", "new", "the best"), ("line", "diagonal", "prediction = observation")
    )
    drawn = tag("div", tag("p", "predicted", class_="axis-name"), chart)
    note = remark_list(f"Beyond the axes, and in the table only: {beyond:,}." if beyond else None)
    return section("predictions", title, about, legend, tag("div", drawn, _quality(checks), class_="beside"), note,
                   _table(checks))  # fmt: skip


def _quality(checks: Sequence[Check]) -> Markup:
    inside = sum(check.inside for check in checks)
    unit = max(max(abs(check.observed), abs(check.predicted)) for check in checks) or 1.0  # squares may overflow
    errors = np.array([check.predicted / unit - check.observed / unit for check in checks])
    observed = np.array([check.observed / unit for check in checks])
    error, spread = float(np.sqrt(np.mean(errors**2))), float(np.std(observed))
    explained = 1 - (error / spread) ** 2 if spread > 1e-12 else math.nan
    return pairs(
        "quality",
        ("Typical error", join(exact_number(error * unit, figure(error * unit, 3), "typical-error"),
                                 tag("small", f"root mean square; the values themselves vary by "
                                              f"{figure(spread * unit, 3)}"))),
        None if math.isnan(explained) else
        ("Explained", join(tag("data", _explained(explained), value=repr(explained), id="explained"),
                             tag("small", "of the variation, by prediction from the others"))),
        ("Intervals of 80 % that held", join(tag("data", share(inside / len(checks)), value=inside, id="inside"),
                                               tag("small", f"{inside:,} of {len(checks):,}"))),
    )  # fmt: skip


def _explained(value: float) -> str:
    return "nothing yet" if value <= 0 else share(value)


def _table(checks: Sequence[Check]) -> Markup:
    observed, predicted = (column([getattr(check, key) for check in checks]) for key in ("observed", "predicted"))
    rows = [
        [check.number, exact_number(check.observed, o), exact_number(check.predicted, p),
         f"± {figure(WIDTH * check.sd, 3)}", "yes" if check.inside else "no"]
        for check, o, p in zip(checks, observed, predicted, strict=True)
    ]  # fmt: skip
    heads = ["trial", "observed", "predicted", "interval of 80 %", "held"]
    return fold("Predictions as a table", table(heads, rows, numbers=(0, 1, 2, 3), class_="wide"))
