"""The variables of a study file, with their flags, graphs and constraints, as a space."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from carbo.errors import CarboError
from carbo.space.space import Params, Space
from carbo.space.variables import DEFAULT_POINTS, Binary, Categorical, Float, Integer, Ordinal, Variable
from carbo.tune.arguments import BUILT_IN
from carbo.tune.constraint_expression import Expression, parse
from carbo.tune.errors import ExpressionError, StudyError
from carbo.tune.keyed_table import Table

KINDS = {
    "binary": ("flag", "flags"),
    "categorical": ("choices", "graph"),
    "ordinal": ("choices",),
    "integer": ("low", "high", "step", "log"),
    "float": ("low", "high", "points", "log"),
}
"""The kinds of variables, and the keys that each may have."""
COMBINATIONS = 2_000
"""How many combinations of its variables a constraint is tried on when it is read."""


@dataclass(frozen=True)
class Constraint:
    """A function of params: whether all expressions are true."""

    expressions: tuple[Expression, ...]

    def __call__(self, params: Params) -> bool:
        return all(expression(params) for expression in self.expressions)


@dataclass(frozen=True)
class Variables:
    """The space, and the texts of its binary variables in the command."""

    space: Space
    flags: Mapping[str, tuple[str, str]]
    constraint: Constraint | None

    @property
    def constraints(self) -> tuple[str, ...]:
        return tuple(each.text for each in self.constraint.expressions) if self.constraint else ()


def variables(table: Table, constraints: Sequence[str], where: str = "constraints") -> Variables:
    """Read the table of variables. where: the path of the constraints. StudyError if anything is wrong."""
    if not table.values:
        table.source.refuse("variables", "at least one variable", "none", 'add [variables.x] with kind = "binary"')
    made: dict[str, Variable] = {}
    flags: dict[str, tuple[str, str]] = {}
    for name in table.values:
        own = table.table(name)
        _check_name(table, name)
        made[name] = _variable(own, name)
        if isinstance(made[name], Binary) and (spelling := _flags(own)) is not None:
            flags[name] = spelling
    try:
        constraint = _constraint(made, constraints)
        space = Space(made, constraint)
        space.describe()
    except ExpressionError as error:
        raise StudyError(f"{table.source.place(where)}: {error}") from None
    except CarboError as error:
        raise StudyError(f"{table.source.place(_at_fault(error, where))}: {error}") from None
    _check_text(table, space)
    return Variables(space, flags, constraint)


def _at_fault(error: CarboError, where: str) -> str:
    """The path of what an error of the space is about: a variable, or the constraints."""
    named = re.match(r"variable '([^']+)'", str(error))
    return f"variables.{named.group(1)}" if named else where


def _check_name(table: Table, name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        table.refuse(name, "a name of letters, digits and _", name, "rename it; flags may be spelled as you like")
    if name in BUILT_IN:
        table.refuse(name, "another name", name, f"{{{name}}} is {BUILT_IN[name]}; rename the variable")


def _variable(own: Table, name: str) -> Variable:
    kind = own.choice("kind", KINDS)
    own.only("kind", *KINDS[kind])
    if kind == "binary":
        return Binary()
    if kind == "categorical":
        choices = own.need("choices", list, 'as in choices = ["a", "b"]')
        return Categorical(choices, _graph(own, choices))
    if kind == "ordinal":
        return Ordinal(own.need("choices", list, "as in choices = [1, 2, 4], in their order"))
    number = int if kind == "integer" else float
    low = own.need("low", number, f"{name} needs low and high")
    high = own.need("high", number, f"{name} needs low and high")
    log = own.take("log", bool, False)
    if kind == "integer":
        return Integer(low, high, own.count("step", 1), log)
    return Float(low, high, own.count("points", DEFAULT_POINTS), log)


def _flags(own: Table) -> tuple[str, str] | None:
    """The texts (off, on) of a binary variable; None if there are none."""
    flag, both = own.take("flag", str), own.strings("flags")
    if flag is not None and both:
        own.refuse("flags", "flag or flags", list(both), "remove one of the two")
    if both and len(both) != 2:
        own.refuse("flags", "two spellings, off and on", list(both), 'as in flags = ["-fno-x", "-fx"]')
    if flag is not None:
        return ("", flag)
    return (both[0], both[1]) if both else None


def _graph(own: Table, choices: list[Any]) -> Any:
    """None, a name, or a matrix; a list of edges [a, b] or [a, b, weight] is made a matrix."""
    given = own.raw("graph")
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, list) or not all(isinstance(row, list) for row in given):
        own.refuse("graph", "a name, a matrix of weights or a list of edges", given, 'as in [["a", "b"], ["b", "c"]]')
    if not any(isinstance(cell, str) for row in given for cell in row):
        return given
    weights = [[0.0] * len(choices) for _ in choices]
    for edge in given:
        a, b, weight = _edge(own, edge, choices)
        weights[a][b] = weights[b][a] = weight
    return weights


def _edge(own: Table, edge: list[Any], choices: list[Any]) -> tuple[int, int, float]:
    if len(edge) not in (2, 3) or edge[0] == edge[1]:
        own.refuse("graph", "edges [a, b] or [a, b, weight] between two choices", edge, "correct it")
    for end in edge[:2]:
        if end not in choices:
            own.refuse("graph", f"edges between {', '.join(map(repr, choices))}", end, "name the choices as they are")
    weight = edge[2] if len(edge) == 3 else 1.0
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        own.refuse("graph", "a number as the weight of an edge", weight, "as in [a, b, 2.0]")
    return choices.index(edge[0]), choices.index(edge[1]), float(weight)


def _constraint(made: Mapping[str, Variable], texts: Sequence[str]) -> Constraint | None:
    expressions = tuple(parse(text, made) for text in texts)
    for name, variable in made.items():
        variable.domain(name)
    for expression in expressions:
        for params in _combinations({name: made[name].choices for name in expression.names}):
            expression(params)
    return Constraint(expressions) if expressions else None


def _combinations(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of these choices. If there are too many, random ones, always the same."""
    if math.prod(map(len, choices.values())) <= COMBINATIONS:
        rows: Any = itertools.product(*choices.values())
    else:
        chance = random.Random(0)
        rows = ([chance.choice(values) for values in choices.values()] for _ in range(COMBINATIONS))
    return [dict(zip(choices, row, strict=True)) for row in rows]


def _check_text(table: Table, space: Space) -> None:
    """StudyError for choices that a command line or the storage cannot hold."""
    for name, variable in space.variables.items():
        for choice in variable.choices:
            if not isinstance(choice, bool | int | float | str):
                table.refuse(name, "choices that are strings, numbers, true or false", choice, "put it in quotes")
            if isinstance(choice, str) and "\0" in choice:
                table.refuse(name, "choices without a null character", choice, "no program can be given one")
