"""Measured tables: real tuning problems that need no hardware, read from files that a user names the folder of.

A table is a CSV file, gzipped or not: a header, one line for each configuration that was measured, the value in the
last column, and no value where the configuration failed. Its lines are the space: where not every combination is
there, the known constraint of the space permits only those that are.

A column becomes a variable:
    numbers 0 and 1             Binary; of three or more columns that are never 1 together, and of two of which always
                                one is, a Categorical of their names, with "none" where no column is 1 in some line
    other numbers               Ordinal, ascending
    text                        Categorical
A column says nothing and is left out when it is constant, the same as an earlier one, or 1 where one of those
alternatives is. So the block sizes of an image filter are one variable of 21 values, and not 21 flags.

Objective: the value as it was measured, negated where larger is better.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from carbo.errors import DataError
from carbo.numerics.types import Floats, Ints
from carbo.space.space import Space
from carbo.space.variables import Binary, Categorical, Ordinal, Variable
from lab.problems.base import Problem
from lab.problems.digest import digest
from lab.problems.seeds import check_run, single_seed

TAG = "carbo_TABLES"
BUDGET, INITIAL = 100, 10
SMALLER, LARGER = "smaller", "larger"
TABLES = {
    **{f"table-gpu-convolution-{device}": SMALLER for device in ("A4000", "A6000", "MI250X", "W7800")},
    **{f"table-gpu-dedispersion-{device}": SMALLER for device in ("A4000", "A6000", "W6600", "W7800")},
    **{f"table-config-{system}": SMALLER for system in ("bdbc", "dune", "hipacc", "llvm", "sql")},
    "table-config-apache": LARGER,
    "table-chemistry-direct-arylation": LARGER,
}
"""Problem -> which values are better. The file is called like the problem, without "table-" and with ".csv.gz"."""
ENDINGS = (".csv.gz", ".csv")
NONE = "none"

Column = list[str]


class Table(NamedTuple):
    """A file's configurations and values."""

    variables: dict[str, Variable]
    rows: Ints
    """(n, d), each once."""
    values: Floats
    """(n,) as measured; NaN where the configuration failed."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The objective: what was measured at a row (d,), times `sign`."""

    values: Mapping[tuple[int, ...], float]
    sign: float

    def __call__(self, row: Ints) -> float:
        return self.sign * self.values[tuple(row.tolist())]


@dataclass(frozen=True)
class Membership:
    """The constraint: only what was measured."""

    names: tuple[str, ...]
    permitted: frozenset[tuple[Any, ...]]

    def __call__(self, params: Mapping[str, Any]) -> bool:
        return tuple(params[name] for name in self.names) in self.permitted


def table(path: str | Path, run: int, better: str = SMALLER) -> Problem:
    """The problem of a table's file. DataError when it is missing or malformed.

    A run decides which ten configurations come first; all runs have the same table. The optimum is the best of it.
    """
    variables, rows, values = read(str(path))
    sign = 1.0 if better == SMALLER else -1.0
    free, objective = (
        Space(variables),
        Measured(dict(zip(map(tuple, rows.tolist()), values.tolist(), strict=True)), sign),
    )
    permitted = Membership(free.names, frozenset(tuple(params.values()) for params in free.decode_many(rows)))
    space = free if len(rows) == free.cardinality else Space(variables, constraint=permitted)
    best = float(np.nanmin(sign * values))
    return Problem(
        name=f"table-{_stem(Path(path))}",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=objective,
        design=partial(_design, rows),
        optimum=best,
        instance={"table": _stem(Path(path)), "numbers": digest(rows, values), "better": better, "best": best,
                  "start_seed": single_seed(TAG, run)},
        fails=bool(np.isnan(values).any()),
    )  # fmt: skip


def known_table(name: str, run: int, data: str | Path | None) -> Problem:
    """One of TABLES, from the folder `data`. DataError when its file is not there."""
    stem = name.removeprefix("table-")
    for ending in ENDINGS if data is not None else ():
        if (path := Path(str(data), stem + ending)).is_file():
            return table(path, run, TABLES[name])
    got = "no folder" if data is None else f"{data} without it"
    raise DataError(f"{name}: expected a folder with {stem}{ENDINGS[0]} as data=, got {got}; get the file, whose "
                    "source docs/problems.md names")  # fmt: skip


def percent_behind(value: float, optimum: float) -> float:
    """How far a value of a table is from the best one, in per cent of the best one; 0 at the best.

    Of a time it is what tables print as "% above the optimum"; of a yield, negated here, how much of the best is lost.
    """
    return 100 * (value - optimum) / abs(optimum)


@cache
def read(path: str) -> Table:
    """The table in a file. DataError, with the file's name, where it cannot be read."""
    columns, values = _columns(Path(path))
    coded = dict(_coded(columns))
    variables = {name: _variable(column) for name, column in coded.items()}
    positions = [_positions(variables[name], column) for name, column in coded.items()]
    rows = np.array(positions, dtype=np.intp).reshape(len(coded), -1).T
    if len(np.unique(rows, axis=0)) < len(rows):
        raise DataError(f"{path}: expected every configuration once, got {len(rows)} lines of which some repeat one; "
                        "leave each one once")  # fmt: skip
    if np.isnan(values).all():
        raise DataError(f"{path}: expected some values, got none; the last column has them")
    return Table(variables, rows, values)


def _columns(path: Path) -> tuple[dict[str, Column], Floats]:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
            header, *lines = list(csv.reader(file)) or [[]]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: expected a readable table, got {error}; check the file") from error
    if len(header) < 2 or not lines or len(set(header)) < len(header):
        raise DataError(f"{path}: expected a header of two or more names, each once, and lines under it, got "
                        f"{','.join(header)[:40]!r} and {len(lines)} lines; check the file")  # fmt: skip
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header) or not (line[-1] == "" or _is_number(line[-1])):
            raise DataError(f"{path}, line {number}: expected {len(header)} fields, the last a number or empty, got "
                            f"{','.join(line)[:40]!r}; correct the line")  # fmt: skip
    *columns, last = (list(column) for column in zip(*lines, strict=True))
    return dict(zip(header, columns, strict=False)), np.array([float(text or "nan") for text in last])


def _coded(columns: dict[str, Column]) -> Iterator[tuple[str, Column]]:
    """Columns that say something, alternatives made one of text."""
    flags = {name: np.array(column, dtype=float) for name, column in columns.items() if _is_flag(column)}
    groups = _alternatives(flags)
    implied = [sum(flags[name] for name in group) for group in groups]
    first = {group[0]: group for group in groups}
    grouped = {name for group in groups for name in group}
    seen: list[Column] = []
    for name, column in columns.items():
        if name in first:
            yield "/".join(first[name][:2]) + "/..." * (len(first[name]) > 2), _names(first[name], flags)
        elif name not in grouped and len(set(column)) > 1 and column not in seen:
            seen.append(column)
            if not any(np.array_equal(flags.get(name, ()), each) for each in implied):
                yield name, column


def _alternatives(flags: dict[str, Floats]) -> list[list[str]]:
    """Groups of flags that are never 1 together: three or more, or two of which always one is."""
    groups: list[list[str]] = []
    left = dict(flags)
    while left:
        name, column = next(iter(left.items()))
        group, taken = [name], column.copy()
        for other, further in left.items():
            if other != name and not (taken * further).any():
                group, taken = [*group, other], taken + further
        if len(group) > 2 or (len(group) == 2 and taken.all()):
            groups.append(group)
            left = {other: further for other, further in left.items() if other not in group}
        else:
            del left[name]
    return groups


def _names(group: list[str], flags: dict[str, Floats]) -> Column:
    """For each line the name of the flag that is 1, or NONE."""
    on = np.array([flags[name] for name in group])
    return [str(name) for name in np.where(on.any(axis=0), np.array(group)[on.argmax(axis=0)], NONE)]


def _variable(column: Column) -> Variable:
    if _is_flag(column):
        return Binary()
    if all(map(_is_number, column)):
        return Ordinal(sorted({_number(text) for text in column}))
    return Categorical(sorted(set(column)))


def _positions(variable: Variable, column: Column) -> list[int]:
    if isinstance(variable, Binary):
        return [int(float(text)) for text in column]
    place: dict[Any, int] = {choice: i for i, choice in enumerate(variable.choices)}
    return [place[_number(text) if isinstance(variable, Ordinal) else text] for text in column]


def _is_flag(column: Column) -> bool:
    return all(map(_is_number, column)) and set(map(float, column)) == {0.0, 1.0}


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() else number


def _stem(path: Path) -> str:
    return path.name.split(".csv")[0]


def _design(rows: Ints, run: int) -> Ints:
    order = np.random.RandomState(single_seed(TAG, run)).permutation(len(rows))
    return rows[order[:INITIAL]]
