"""Templates with {name} placeholders, and the command line of one point.

The text of a placeholder stays inside its argument, whatever characters it has. An argument that consists of one
placeholder, of a flag, is left out when the flag is off and its text is empty.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from carbo.tune.formatting import as_text
from carbo.tune.keyed_table import suggest_word

BUILT_IN = {
    "trial": "the number of the evaluation",
    "repeat": "the number of the run within the evaluation, from 0",
    "tmp": "a directory of this run's own, removed after it",
    "params": "all variables as one JSON object",
}
"""Placeholders that are no variables."""

TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Hole(NamedTuple):
    """A placeholder."""

    name: str


@dataclass(frozen=True)
class Template:
    """A text with placeholders."""

    text: str
    parts: tuple[str | Hole, ...]

    @property
    def names(self) -> set[str]:
        return {part.name for part in self.parts if isinstance(part, Hole)}

    def fill(self, words: Mapping[str, str]) -> str:
        return "".join(words[part.name] if isinstance(part, Hole) else part for part in self.parts)

    def is_left_out(self, words: Mapping[str, str], flags: Collection[str]) -> bool:
        """Whether this is only a flag, and the text of the flag is empty."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return isinstance(only, Hole) and only.name in flags and not words[only.name]


def template(text: str, known: Collection[str]) -> Template:
    """The template of a text. ValueError if the text is wrong."""
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
                             f"{suggest_word(token.group(1), known)} ({{{{ and }}}} for the characters)")  # fmt: skip
        else:
            parts.append(Hole(token.group(1)))
    parts.append(text[at:])
    return Template(text, tuple(part for part in parts if part != ""))


def hole_in_quotes(line: Template) -> str | None:
    """The first placeholder inside quotes of a shell line; its own quotes would end those. None if there is none."""
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
"""The texts of each binary variable, when it is off and when it is on."""


def words(point: Point, flags: Flags) -> dict[str, str]:
    """The text of every placeholder."""
    own = {name: flags[name][bool(value)] if name in flags else as_text(value) for name, value in point.params.items()}
    built_in = {"trial": str(point.trial), "repeat": str(point.repeat), "tmp": point.tmp}
    return own | built_in | {"params": json.dumps(dict(point.params))}


def arguments(run: tuple[Template, ...], point: Point, flags: Flags) -> list[str]:
    """The argument list of one point."""
    texts = words(point, flags)
    return [each.fill(texts) for each in run if not each.is_left_out(texts, flags)]


def shell_line(line: Template, point: Point, flags: Flags) -> str:
    """The line for a shell. Each placeholder becomes one quoted word; a flag with an empty text becomes nothing."""
    texts = words(point, flags)
    return line.fill({name: shlex.quote(text) if text or name not in flags else "" for name, text in texts.items()})
