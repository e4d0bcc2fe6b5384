"""The components of panels: sections, tables, exact numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from carbo.report.markup import Markup, join, tag
from carbo.report.numbers import figure


def section(name: str, title: str, about: Any, *children: Any, long: bool = False) -> Markup:
    """A panel: a heading, a sentence on how to read it, the content. long: in print it may take several pages."""
    head = tag("h2", title, id=f"{name}-heading")
    said = tag("p", about, class_="about") if about else None
    style = "long" if long else None
    return tag("section", head, said, *children, id=name, class_=style, aria_labelledby=f"{name}-heading")


def missing(why: str) -> Markup:
    """The text of a panel that has nothing to show."""
    return tag("p", why, class_="missing")


def exact_number(value: float, text: str | None = None, name: str | None = None) -> Markup:
    """A number for people that holds all its digits for machines."""
    return tag("data", text or figure(value), value=repr(float(value)), id=name)


def table(
    heads: Sequence[Any], rows: Sequence[Sequence[Any]], numbers: Sequence[int] = (), **attributes: Any
) -> Markup:
    """A table in a box that scrolls if the table is too wide. `numbers` are the columns with figures.

    The first cell of each row is its heading.
    """
    style = ["number" if i in numbers else None for i in range(len(heads))]
    head = tag("tr", *(tag("th", text, scope="col", class_=s) for text, s in zip(heads, style, strict=True)))
    body = [
        tag("tr", tag("th", row[0], scope="row", class_=style[0]),
            *(tag("td", cell, class_=s) for cell, s in zip(row[1:], style[1:], strict=True)))
        for row in rows
    ]  # fmt: skip
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body), **attributes), class_="box", tabindex="0")


def fold(words: str, content: Markup) -> Markup:
    """Content that a reader can unfold."""
    return tag("details", tag("summary", words), tag("div", content, class_="folded"))


def remark_list(*sentences: str | None) -> Markup | None:
    """Remarks below a chart; None if there are none."""
    said = [tag("li", sentence) for sentence in sentences if sentence]
    return tag("ul", *said, class_="plain quiet") if said else None


def pairs(style: str, *entries: tuple[Any, Any] | None) -> Markup:
    """A list of terms, each with its description."""
    each = (join(tag("dt", entry[0]), tag("dd", entry[1])) for entry in entries if entry is not None)
    return tag("dl", *each, class_=style)


def command(line: str) -> Markup:
    """A command line that is broken between its words rather than at hyphens."""
    return tag("pre", tag("code", join(*(tag("span", word, class_="word") for word in line.split(" ")), by=" ")))
