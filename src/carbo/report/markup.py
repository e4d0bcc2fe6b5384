"""HTML in which all other text is escaped."""

from __future__ import annotations

import html
import re
from typing import Any


class Markup(str):
    """Text that is HTML. All other text is escaped when it becomes part of HTML."""

    __slots__ = ()


VOID = frozenset({"meta", "wbr"})
BREAKS = re.compile(r"(?<=[_./:=-])(?=\w)")
"""Where a long name may be broken."""


def visible(text: str) -> str:
    """Text in which every character can be seen: control characters, direction marks and the like as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def escape(content: Any) -> Markup:
    """Content as HTML: Markup as it is, anything else as text."""
    return content if isinstance(content, Markup) else Markup(html.escape(visible(str(content))))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element. None among children or attributes is left out; True is an attribute without a value.

    class_ is written class; aria_label, aria-label.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Any, by: Any = "") -> Markup:
    """Children one after another; None is left out."""
    return Markup(escape(by).join(escape(child) for child in children if child is not None))


def breakable(name: str) -> Markup:
    """A name that may be broken where its parts meet."""
    return join(*BREAKS.split(visible(name)), by=tag("wbr"))


def _attribute(key: str, value: Any) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
