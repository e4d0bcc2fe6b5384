"""Tables of TOML or JSON, read key by key. Errors name the place, the key, what was expected and what was got."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from carbo.tune.errors import StudyError

KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a table",
}


@dataclass(frozen=True)
class Source:
    """The text that tables come from. It says on which line a key is."""

    name: str
    text: str = ""

    def refuse(self, path: str, expected: str, got: str, way_out: str) -> NoReturn:
        """StudyError that names the place, the key, what was expected, what was got and the way out."""
        raise StudyError(f"{self.place(path)}: {path}: expected {expected}, got {got}; {way_out}")

    def place(self, path: str) -> str:
        line = locate(self.text, path)
        return f"{self.name}, line {line}" if line else self.name


@dataclass(frozen=True)
class Table:
    """One table of a source. `only` refuses unknown keys; the other methods read a key."""

    source: Source
    path: str
    values: Mapping[str, Any]

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def refuse(self, key: str, expected: str, got: Any, way_out: str) -> NoReturn:
        self.source.refuse(self.at(key), expected, reprlib.repr(got), way_out)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def take(self, key: str, kind: type, default: Any = None, way_out: str = "") -> Any:
        """The value of a key, which must be of that type (whole numbers are floats too). The default if absent."""
        if key not in self.values:
            return default
        value = self.values[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.refuse(key, KINDS[kind], self.values[key], way_out or f"correct {key}")
        return value

    def need(self, key: str, kind: type, way_out: str) -> Any:
        """Like `take`, but an absent key is an error."""
        if key not in self.values:
            self.source.refuse(self.at(key), KINDS[kind], "nothing", way_out)
        return self.take(key, kind, way_out=way_out)

    def raw(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def count(self, key: str, default: Any = None, least: int = 1) -> Any:
        """A whole number not below `least`."""
        value = self.take(key, int, default)
        if value is not None and value < least:
            self.refuse(key, f"a whole number >= {least}", value, "raise it")
        return value

    def choice(self, key: str, allowed: Collection[str], default: str | None = None) -> str:
        """A value that is one of these words."""
        value = self.take(key, str, default)
        if value not in allowed:
            self.refuse(key, f"one of {', '.join(allowed)}", value, suggest_word(str(value), allowed))
        return str(value)

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty if the key is absent."""
        values = self.take(key, list, [])
        for value in values:
            if not isinstance(value, str):
                self.refuse(key, "a list of strings", value, 'put it in quotes, as in ["1"]')
        return tuple(values)

    def table(self, key: str) -> Table:
        """A table inside this one; empty if the key is absent."""
        return Table(self.source, self.at(key), self.take(key, dict, {}, f"write it as [{self.at(key)}]"))

    def only(self, *known: str) -> Table:
        """This table, after a check that it has no other keys. Call it first: a mistyped key explains later errors."""
        for key in self.values:
            if key not in known:
                self.source.refuse(
                    self.at(key), f"a key out of {', '.join(known)}", repr(key), suggest_word(key, known)
                )
        return self


def suggest_word(word: str, known: Collection[str]) -> str:
    """A way out for an unknown word: the known word that was probably meant."""
    close = [each for each in known if len(word) > 2 and each.startswith(word)]
    close = close or difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else "remove it or choose one of these"


def locate(text: str, path: str) -> int | None:
    """The line (from 1) where a TOML text sets a dotted path, or begins its table. None if there is no such line.

    It reads only headers and plain keys, which is enough for messages. Multi-line strings may mislead it.
    """
    prefix, length, best = "", 0, None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            prefix = re.sub(r"[\"'\s]", "", header.group(1)) + "."
            here = prefix
        elif key := re.match(r"\s*([\w.\-\"']+)\s*=", line):
            here = prefix + re.sub(r"[\"']", "", key.group(1)) + "."
        else:
            continue
        if (path + ".").startswith(here) and len(here) > length:
            length, best = len(here), number
    return best
