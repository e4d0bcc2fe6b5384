"""Reading weighted MaxSAT formulas: the DIMACS .wcnf format, old ("p wcnf V C [TOP]") and new (of 2022, no p line).

A clause is a line: its weight, its literals, 0. Lines that begin with c are comments. Hard clauses (weight TOP or
more in the old form, h in the new) are refused: as a penalty they would be much larger than all other weights.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

from carbo.errors import DataError

Clause = tuple[int, ...]
"""Literals: v for variable v true, -v for false; variables count from 1."""


@dataclass(frozen=True)
class Formula:
    """Soft clauses and their weights, over variables 1..variables."""

    variables: int
    clauses: tuple[Clause, ...]
    weights: tuple[float, ...]

    def fingerprint(self) -> str:
        """A digest of variables, clauses and weights; comments and spelling do not count."""
        text = f"{self.variables} {self.clauses} {self.weights}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Header(NamedTuple):
    """The numbers of a p line."""

    line: int
    variables: int
    clauses: int
    top: float


class Line(NamedTuple):
    """A line of a file, for messages."""

    path: Path
    number: int

    def refuse(self, expected: str, got: str, way_out: str) -> NoReturn:
        raise DataError(f"{self.path}, line {self.number}: expected {expected}, got {got}; {way_out}")


def read(path: str | Path) -> Formula:
    """The formula in a file. DataError, with file and line, where it cannot be read or has hard clauses."""
    header: Header | None = None
    clauses: list[Clause] = []
    weights: list[float] = []
    for line, words in _lines(Path(path)):
        if words[0] == "p":
            if header is not None or clauses:
                line.refuse("one p line, before all clauses", " ".join(words), "remove it")
            header = _header(line, words)
        else:
            weights.append(_weight(line, words, header))
            clauses.append(_literals(line, words, header))
    if not clauses:
        raise DataError(f"{path}: expected at least one clause, got none; check that this is a .wcnf file")
    if header is not None and header.clauses != len(clauses):
        Line(Path(path), header.line).refuse(f"{header.clauses} clauses, as the p line says", f"{len(clauses)}",
                                             "the file may be cut short: fetch it again")  # fmt: skip
    variables = max(abs(literal) for clause in clauses for literal in clause) if header is None else header.variables
    return Formula(variables, tuple(clauses), tuple(weights))


def _lines(path: Path) -> Iterator[tuple[Line, list[str]]]:
    """The words of each line that is neither blank nor a comment."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")  # comments may be in any encoding
    except OSError as error:
        raise DataError(f"{path}: expected a readable .wcnf file, got {error.strerror}; check the path") from error
    for number, content in enumerate(text.splitlines(), start=1):
        words = content.split()
        if words and not words[0].startswith("c"):
            yield Line(path, number), words


def _header(line: Line, words: list[str]) -> Header:
    form, shown = '"p wcnf VARIABLES CLAUSES [TOP]"', repr(_short(words))
    if len(words) not in (4, 5) or words[1] != "wcnf":
        line.refuse(form, shown, "give every clause a weight if the file is plain cnf")
    numbers = [_whole(word) for word in words[2:]]
    if any(n is None or n < 1 for n in numbers):
        line.refuse(f"{form} with numbers from 1 on", shown, "correct the line")
    variables, clauses, *top = (n for n in numbers if n is not None)
    return Header(line.number, variables, clauses, top[0] if top else math.inf)


def _weight(line: Line, words: list[str], header: Header | None) -> float:
    way_out = "carbo minimises weights and knows no hard clauses: give it a weight or choose another file"
    if words[0] == "h":
        line.refuse("a soft clause", "a hard one (h)", way_out)
    try:
        weight = float(words[0])
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        line.refuse("a weight above 0 first", repr(words[0]), "write: weight, literals, 0")
    if header is not None and weight >= header.top:
        line.refuse("a soft clause", f"a hard one (weight {words[0]}, top {header.top:.0f})", way_out)
    return weight


def _literals(line: Line, words: list[str], header: Header | None) -> Clause:
    literals = [_whole(word) for word in words[1:]]
    for word, literal in zip(words[1:], literals, strict=True):
        if literal is None:
            line.refuse("whole numbers as literals", repr(word), "write: weight, literals, 0")
    clause = tuple(literal for literal in literals if literal is not None)
    if len(clause) < 2 or clause[-1] != 0 or 0 in clause[:-1]:
        line.refuse("one clause: weight, literals, 0", repr(_short(words)), "end each line with its only 0")
    if header is not None and max(map(abs, clause)) > header.variables:
        odd = max(clause, key=abs)
        line.refuse(f"variables 1 to {header.variables}, as the p line says", f"literal {odd}", "correct one of them")
    return clause[:-1]


def _whole(word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None


def _short(words: list[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= 60 else f"{text[:57]}..."
