"""What was tuned: variables, constraints and command, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from carbo.report.numbers import choice, figure
from carbo.report.secrets import mask_arguments, mask_text
from carbo.space.variables import Binary, Categorical, Float, Integer, Variable
from carbo.tune.arguments import Point, arguments, shell_line

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from carbo.tune.compatibility import Described
    from carbo.tune.reading import OpenStudy

FEW = 8
"""Choices that are listed in full."""
READINGS = {"last-number": "the last number", "regex": "a pattern", "json": "a JSON field", "wall-time": "wall time"}


class Row(NamedTuple):
    """One variable."""

    name: str
    kind: str
    values: str
    size: int | None
    """Number of values; None for what is continuous."""


class Definition(NamedTuple):
    """A study's definition, in words."""

    direction: str
    variables: tuple[Row, ...]
    constraints: tuple[str, ...]
    command: str | None
    """With placeholders; what looks like a secret is hidden."""
    reading: str | None
    """How the value is read."""
    budget: int | None
    storage: str | None

    @property
    def combinations(self) -> int | None:
        """Without regard to constraints; None where a variable is continuous."""
        sizes = [row.size for row in self.variables]
        known = [size for size in sizes if size is not None]
        return math.prod(known) if len(known) == len(sizes) else None


def definition(source: OpenStudy) -> Definition:
    described = source.described
    if described is not None:
        rows = tuple(_variable(name, each) for name, each in described.variables.space.variables.items())
        constraints = described.variables.constraints
    else:
        rows = tuple(_parameter(*pair) for pair in _latest(source.study.get_trials(deepcopy=False)).items())
        constraints = ()
    return Definition(
        direction=source.study.direction.name.lower(),
        variables=rows,
        constraints=constraints,
        command=None if described is None else _template(described),
        reading=None if described is None else _reading(described.value),
        budget=source.budget,
        storage=source.storage,
    )


def command_of(described: Described | None, params: Mapping[str, Any], number: int) -> str | None:
    """The command of one evaluation, fit to be shown."""
    if described is None:
        return None
    command, flags, point = described.command, described.variables.flags, Point(params, number, 0, "TMP")
    if command.shell:
        return mask_text(shell_line(command.run[0], point, flags))
    return mask_arguments(arguments(command.run, point, flags))


def _template(described: Described) -> str:
    texts = [each.text for each in described.command.run]
    return mask_text(texts[0]) if described.command.shell else mask_arguments(texts)


def _reading(value: Mapping[str, Any]) -> str:
    """How the value is read, in words."""
    how = READINGS.get(str(value.get("from")), "a number")
    detail = value.get("pattern") or value.get("field")
    text = f"{how} {detail}" if detail else how
    if value.get("from") != "wall-time":
        text += f" of {value.get('file') or value.get('stream') or 'the output'}"
    repeats = value.get("repeats") or 1
    return text if repeats == 1 else f"{text}; {value.get('aggregate')} of {repeats} runs"


# ---------------------------------------------------------------- variables


def _variable(name: str, variable: Variable) -> Row:
    kind, size = type(variable).__name__.lower(), variable.size
    if isinstance(variable, Integer | Float):
        return Row(name, kind, _range(variable.choices, bool(variable.arguments["log"])), size)
    if isinstance(variable, Categorical) and variable.graph.kind != "complete":
        shape = variable.graph.kind
        kind += ", own graph" if shape == "weighted" else f", {shape} graph"
    return Row(name, kind, "false, true" if isinstance(variable, Binary) else _listed(variable.choices), size)


def _range(levels: Sequence[Any], log: bool) -> str:
    return f"{choice(levels[0])} to {choice(levels[-1])}" + (", logarithmic" if log else "")


def _listed(choices: Sequence[Any]) -> str:
    words = [choice(each) for each in choices]
    return ", ".join(words if len(words) <= FEW else [*words[: FEW // 2], "…", words[-1]])


def _latest(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Every parameter that any trial had, in the order of their first use, under its latest distribution."""
    found: dict[str, BaseDistribution] = {}
    for trial in trials:
        found.update(trial.distributions)
    return found


def _parameter(name: str, distribution: BaseDistribution) -> Row:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return Row(name, "categorical", _listed(distribution.choices), len(distribution.choices))
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    text = _range((distribution.low, distribution.high), distribution.log)
    step = distribution.step
    if step is not None and step != 1:
        text += f", step {figure(step)}"
    kind = "integer" if isinstance(distribution, IntDistribution) else "float"
    size = None if step is None else round((distribution.high - distribution.low) / step) + 1
    return Row(name, kind, text, size)
