"""The page: all panels in one HTML document that asks for nothing else."""

from __future__ import annotations

from importlib.resources import files

from carbo.report.charts import symbols
from carbo.report.markup import Markup, join, tag
from carbo.report.page_file import GENERATOR
from carbo.report.panels.findings import convergence, headline, settings
from carbo.report.panels.model import predictions, relevance
from carbo.report.panels.run import definition, times, versions
from carbo.report.report_data import Report

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The browser is told to load nothing and to run nothing, whatever may stand in the page."""


def render(report: Report) -> str:
    """The page's HTML."""
    style = files("carbo.report").joinpath("style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="generator", content=f"{GENERATOR} {report.versions['carbo']}"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{report.name} – carbo report"),
        tag("style", Markup(style)),
    )
    main = tag("main", convergence(report), settings(report), relevance(report), predictions(report), times(report),
               definition(report))  # fmt: skip
    body = tag("body", symbols(), headline(report), main, versions(report))
    return join(Markup("<!DOCTYPE html>\n"), tag("html", head, Markup("\n"), body, lang="en"), Markup("\n"))
