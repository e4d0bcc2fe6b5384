"""Cases: recorded runs cut in two. A model, search or choice gets the first evaluations, and is judged by the next."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from carbo.errors import DataError
from lab.runs.machine import machine, revision, versions
from lab.runs.record import canonical
from lab.tables.formats import Cell, Table
from lab.tables.statistics import Summary

if TYPE_CHECKING:
    from lab.problems import Problem
    from lab.runs.record import Record

Key = tuple[Any, ...]
Line = dict[str, Any]
Lines = Sequence[Mapping[str, Any]]


class Case(NamedTuple):
    """A recorded run cut in two: the first `observations`, which are given, and the evaluations `ahead` after them."""

    record: Record
    observations: int
    ahead: int

    @property
    def name(self) -> Line:
        r = self.record
        return {"problem": r.problem, "relocated": r.relocated, "by": r.method, "run": r.run, "told": self.observations,
                "ahead": self.ahead}  # fmt: skip


class Experiment(NamedTuple):
    """Models, searches or choices that are tried on cases, by names that were checked."""

    names: tuple[str, ...]
    measure: Callable[[Case, Sequence[str], Problem], Iterable[Line]]
    """A function to one line for each name: the name as "model", and the measurements."""
    version: Callable[[str], str]
    """A function from a name to the `digest` of its settings: measurements of other versions are measured again."""
    table: Callable[[Lines, Sequence[str]], Table]
    shown: str
    """The measurement that is shown while the experiment runs."""
    together: bool = False
    """Whether the lines of a case compare only with each other: if one is missing, all are measured."""

    def key(self, case: Case, name: str) -> Key:
        """The key of the line of a case and a name."""
        return key_of({**case.name, "model": name, "version": self.version(name)})


def cases(records: Iterable[Record], observations: Sequence[int], ahead: int) -> list[Case]:
    """All cases that the runs are long enough for. Relocated runs are left out: for a model they are the same."""
    return [
        Case(r, n, ahead) for r in records for n in observations if r.relocated is None and n + ahead <= len(r.values)
    ]


def key_of(line: Mapping[str, Any]) -> Key:
    """The key of a measurement."""
    return tuple(line[name] for name in ("problem", "relocated", "by", "run", "told", "ahead", "model", "version"))


def digest(*of: Any) -> str:
    """A short digest of JSON values."""
    return hashlib.sha256(canonical(of).encode()).hexdigest()[:12]


def run(
    experiment: Experiment, every: Sequence[Case], out: Path, problem_of: Callable[[Record], Problem]
) -> Iterator[Line]:
    """Measure all cases that the file `out` does not have; append each line and yield it."""
    done = {key_of(line) for line in read(out)}
    for case in every:
        left = [name for name in experiment.names if experiment.key(case, name) not in done]
        names = experiment.names if experiment.together and left else left
        for found in experiment.measure(case, names, problem_of(case.record)) if names else ():
            stamp = {"version": experiment.version(found["model"]), "revision": revision()}
            line = {**case.name, **found, **stamp, "machine": machine(), "versions": versions(())}
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            yield line


def read(path: Path) -> list[Line]:
    """The lines of a file, the latest of each measurement; [] where there is no file yet.

    DataError when a line is no measurement, or `path` is a folder.
    """
    if path.is_dir():
        raise DataError(f"{path}: expected a file for measurements, got a folder; name one in it")
    lines: dict[Key, Line] = {}
    texts = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
            lines[key_of(line)] = line
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}:{number}: expected a line of measurements, got {text[:40]!r}; delete it to "
                            "measure that case again") from None  # fmt: skip
    return list(lines.values())


def shared_lines(lines: Lines, names: Sequence[str]) -> dict[str, Lines]:
    """The lines of each name on the cases that all names have, in one order. DataError when there is no such case."""
    of: dict[str, dict[Key, Mapping[str, Any]]] = {name: {} for name in names}
    for line in lines:
        if line["model"] in of:
            of[line["model"]][key_of(line)[:-2]] = line
    keys = sorted(set.intersection(*(set(by) for by in of.values())), key=repr)
    if not keys:
        raise DataError(f"expected cases that all of {', '.join(names)} were measured on, got none")
    return {name: [by[key] for key in keys] for name, by in of.items()}


def cell(of: Summary, digits: int, signed: bool = False) -> Cell:
    """A cell with mean and standard error."""
    mean = f"{of.mean:+.{digits}f}" if signed else f"{of.mean:.{digits}f}"
    error = "" if of.error is None else f" ± {of.error:.{digits}f}"
    return Cell(mean + error, of.mean, of.error, of.runs)
