"""Templates with {name} placeholders, and the command line and environment that they make of one point.

Every placeholder's text stays inside the one argument it stands in, whatever it contains. Only an argument that is
nothing but the placeholder of a flag vanishes, when the flag is spelled as nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from carbo.tune.formatting import spelled
from carbo.tune.keyed_table import meant

BUILT_IN = {
    "trial": "the number of the evaluation",
    "repeat": "the number of the run within the evaluation, from 0",
    "tmp": "a directory of this run's own, removed after it",
    "params": "all variables as one JSON object",
}
"""Placeholders beside the variables."""

TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Hole(NamedTuple):
    """A placeholder."""

    name: str


@dataclass(frozen=True)
class Template:
    """A text with holes."""

    text: str
    parts: tuple[str | Hole, ...]

    @property
    def names(self) -> set[str]:
        return {part.name for part in self.parts if isinstance(part, Hole)}

    def fill(self, words: Mapping[str, str]) -> str:
        return "".join(words[part.name] if isinstance(part, Hole) else part for part in self.parts)

    def vanishes(self, words: Mapping[str, str], flags: Collection[str]) -> bool:
        """Is this nothing but a flag, spelled as nothing?"""
        only = self.parts[0] if len(self.parts) == 1 else None
        return isinstance(only, Hole) and only.name in flags and not words[only.name]


def template(text: str, known: Collection[str]) -> Template:
    """The template of a text; ValueError, of the form "expected ..., got ...; way out", for a wrong one."""
    parts: list[str | Hole] = []
    at = 0
    for token in TOKEN.finditer(text):
        parts.append(text[at : token.start()])
        at = token.end()
        if token.group() in ("{{", "}}"):
            parts.append(token.group()[0])
        elif token.group(1) is None:
            raise ValueError(f"expected {{name}} or doubled braces, got a single {token.group()!r} in {text!r}; "
                             f"write {token.group() * 2} for the character itself")  # fmt: skip
        elif token.group(1) not in known:
            raise ValueError(f"expected a placeholder out of {', '.join(known)}, got {token.group()} in {text!r}; "
                             f"{meant(token.group(1), known)} ({{{{ and }}}} for the characters)")  # fmt: skip
        else:
            parts.append(Hole(token.group(1)))
    parts.append(text[at:])
    return Template(text, tuple(part for part in parts if part != ""))


def quoted_hole(line: Template) -> str | None:
    """The first placeholder inside quotes of a shell line, where quoting its value would undo them; None if none is."""
    quote = ""
    for part in line.parts:
        if isinstance(part, Hole):
            if quote:
                return part.name
            continue
        for character in re.sub(r"\\.", "", part) if quote != "'" else part:
            if character == quote:
                quote = ""
            elif not quote and character in "'\"":
                quote = character
    return None


class Point(NamedTuple):
    """One run of the command."""

    params: Mapping[str, Any]
    trial: int
    repeat: int
    tmp: str


Flags = Mapping[str, tuple[str, str]]
"""How a binary variable is spelled when it is off and when it is on."""


def words(point: Point, flags: Flags) -> dict[str, str]:
    """The text of every placeholder."""
    own = {name: flags[name][bool(value)] if name in flags else spelled(value) for name, value in point.params.items()}
    built_in = {"trial": str(point.trial), "repeat": str(point.repeat), "tmp": point.tmp}
    return own | built_in | {"params": json.dumps(dict(point.params))}


def arguments(run: tuple[Template, ...], point: Point, flags: Flags) -> list[str]:
    """The argument list of one point."""
    texts = words(point, flags)
    return [each.fill(texts) for each in run if not each.vanishes(texts, flags)]


def shell_line(line: Template, point: Point, flags: Flags) -> str:
    """The line for a shell, every placeholder one quoted word (or nothing, for a flag spelled as nothing)."""
    texts = words(point, flags)
    return line.fill({name: shlex.quote(text) if text or name not in flags else "" for name, text in texts.items()})
