"""Recorded runs cut in two, on which models and searches are tried: told some evaluations, asked about what follows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from carbo.bench.formats import Cell
from carbo.bench.machine import machine, revision, versions
from carbo.bench.statistics import Summary
from carbo.errors import DataError

if TYPE_CHECKING:
    from carbo.bench.problems import Problem
    from carbo.bench.record import Record

Key = tuple[Any, ...]
Line = dict[str, Any]
Measure = Callable[["Case", Sequence[str], "Problem"], Iterable[Line]]
"""(case, names, its problem) -> one line each, "model" its name, besides what was measured."""


class Case(NamedTuple):
    """A recorded run cut in two: told so many evaluations, of which so many follow."""

    record: Record
    told: int
    ahead: int

    @property
    def name(self) -> Line:
        r = self.record
        return {"problem": r.problem, "relocated": r.relocated, "by": r.method, "run": r.run, "told": self.told,
                "ahead": self.ahead}  # fmt: skip


def cases(records: Iterable[Record], told: Sequence[int], ahead: int) -> list[Case]:
    """All cuts that the runs are long enough for; of original problems, relabelled ones being the same to a model."""
    return [Case(r, n, ahead) for r in records for n in told if r.relocated is None and n + ahead <= len(r.values)]


def key_of(line: Mapping[str, Any]) -> Key:
    """What tells one measurement from another."""
    return tuple(line[name] for name in ("problem", "relocated", "by", "run", "told", "ahead", "model"))


def run(
    every: Sequence[Case], names: Sequence[str], out: Path, problem_of: Callable[[Record], Problem], measure: Measure,
    together: bool = False,
) -> Iterator[Line]:  # fmt: skip
    """Measures what `out` does not hold yet, appends it there, and yields it.

    together: a case of which anything is missing is measured whole, because its lines only compare with each other.
    """
    done = {key_of(line) for line in read(out)} if out.exists() else set()
    for case in every:
        left = [name for name in names if key_of({**case.name, "model": name}) not in done]
        for found in measure(case, names if together and left else left, problem_of(case.record)) if left else ():
            line = {**case.name, **found, "revision": revision(), "machine": machine(), "versions": versions(())}
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            yield line


def read(path: Path) -> list[Line]:
    """The lines of a file, the latest of each measurement. DataError when one is no such line."""
    lines: dict[Key, Line] = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            lines[key_of(line)] = line
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}:{number}: expected a line of measurements, got {text[:40]!r}; delete it to "
                            "measure that case again") from None  # fmt: skip
    return list(lines.values())


def cell(of: Summary, digits: int, signed: bool = False) -> Cell:
    """Mean and standard error."""
    mean = f"{of.mean:+.{digits}f}" if signed else f"{of.mean:.{digits}f}"
    error = "" if of.error is None else f" ± {of.error:.{digits}f}"
    return Cell(mean + error, of.mean, of.error, of.runs)
