"""Optuna's distributions as carbo's variables, and the parameters that a study's trials have in common."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from carbo.errors import SpaceError
from carbo.space.choices import is_label
from carbo.space.space import Constraint, Params, Space
from carbo.space.variables import DEFAULT_POINTS, Binary, Categorical, Float, Integer, Ordinal, Variable

Distributions = dict[str, BaseDistribution]

STEPS = 201
"""Most levels of an integer or stepped float without `points` of its own; longer ranges get a grid of this many."""
DYNAMIC = 3
"""Distributions under one name beyond which its range is held to depend on other parameters, not on a user's edit."""


class Wishes(NamedTuple):
    """What the user said about parameters, by name. `variables` come from a carbo.Space and leave nothing open."""

    points: int | Mapping[str, int] = DEFAULT_POINTS
    ordinal: frozenset[str] = frozenset()
    graphs: Mapping[str, Any] = {}
    variables: Mapping[str, Variable] = {}

    def levels(self, name: str, usual: int | None = None) -> int:
        """The most levels that a numeric parameter may have."""
        if isinstance(self.points, Mapping):
            return self.points.get(name, usual or DEFAULT_POINTS)
        return usual or self.points


class Ruler(NamedTuple):
    """The range of a numeric parameter and its levels' places on it; `log`: places are logarithms."""

    low: float
    high: float
    log: bool
    marks: Sequence[float]

    def nearest(self, value: Any) -> int | None:
        """The position of the nearest level; None outside the range, or for what is no number."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):  # as it may stand in a trial that was enqueued
            return None
        if not self.low <= number <= self.high:
            return None
        place = math.log(number) if self.log else number
        right = bisect.bisect_left(self.marks, place)
        sides = [i for i in (right - 1, right) if 0 <= i < len(self.marks)]
        return min(sides, key=lambda i: abs(self.marks[i] - place))


class Column:
    """One parameter: the engine's variable, and the native Python value that each of its positions stands for."""

    def __init__(self, variable: Variable, values: Sequence[Any], ruler: Ruler | None = None) -> None:
        self.variable, self.values, self._ruler = variable, tuple(values), ruler
        self._index = {value: i for i, value in enumerate(self.values) if is_label(value)}

    @property
    def relabelled(self) -> bool:
        """Whether the engine knows some choice by another name, because it cannot be a label."""
        return len(self._index) < len(self.values)

    def position(self, value: Any) -> int | None:
        """Where a value stands: of numbers the nearest level; None for what the distribution does not contain."""
        try:
            exact = self._index.get(value)
        except TypeError:  # unhashable
            exact = None
        if exact is not None:
            return exact
        if self._ruler is not None:
            return self._ruler.nearest(value)
        return next((i for i, choice in enumerate(self.values) if _same(choice, value)), None)


def column(name: str, distribution: BaseDistribution, wishes: Wishes) -> Column:
    """The column of a parameter. SpaceError for a distribution or a wish that has no meaning."""
    if name in wishes.variables:
        return _given(wishes.variables[name])
    if isinstance(distribution, CategoricalDistribution):
        choices = [c for i, c in enumerate(distribution.choices) if distribution.to_internal_repr(c) == i]
        labels = [c if is_label(c) else ("choice", i) for i, c in enumerate(choices)]
        return Column(_variable(name, labels, wishes, name in wishes.ordinal), choices)
    if isinstance(distribution, IntDistribution):
        numbers: Sequence[int | float] = _integers(name, distribution, wishes)
    elif isinstance(distribution, FloatDistribution):
        numbers = _floats(name, distribution, wishes)
    else:
        raise SpaceError(f"parameter {name!r}: expected a categorical, integer or float distribution, "
                         f"got {distribution!r}; sample it with another sampler")  # fmt: skip
    ruler = _ruler(numbers, distribution.low, distribution.high, distribution.log)
    return Column(_variable(name, numbers, wishes, True), numbers, ruler)


def _variable(name: str, labels: Sequence[Any], wishes: Wishes, ordered: bool) -> Variable:
    if name in wishes.graphs:
        return Categorical(labels, graph=wishes.graphs[name])
    return Ordinal(labels) if ordered else Categorical(labels)


def _given(variable: Variable) -> Column:
    if not isinstance(variable, Float | Integer):
        return Column(variable, variable.choices)
    levels = variable.choices
    return Column(variable, levels, _ruler(levels, levels[0], levels[-1], variable.arguments["log"]))


def _ruler(levels: Sequence[Any], low: float, high: float, log: bool) -> Ruler:
    return Ruler(float(low), float(high), log, [math.log(v) if log else float(v) for v in levels])


def _same(one: Any, two: Any) -> bool:
    return bool(one == two or (one != one and two != two))  # noqa: PLR0124


# ---------------------------------------------------------------- levels of numbers


def _integers(name: str, distribution: IntDistribution, wishes: Wishes) -> list[int]:
    low, high, step = distribution.low, distribution.high, distribution.step
    if distribution.log:
        inner = _spaced(low, high, wishes.levels(name), True)
        return sorted({low, high, *(min(max(round(v), low), high) for v in inner)})
    return [low + step * k for k in _spread((high - low) // step + 1, wishes.levels(name, STEPS))]


def _floats(name: str, distribution: FloatDistribution, wishes: Wishes) -> list[float]:
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is None:
        return _spaced(low, high, wishes.levels(name), distribution.log)
    count = round((high - low) / step) + 1
    first, stride = Decimal(str(low)), Decimal(str(step))  # 0.3, not 0.30000000000000004
    return [min(float(first + k * stride), high) for k in _spread(count, wishes.levels(name, STEPS))]


def _spaced(low: float, high: float, points: int, log: bool) -> list[float]:
    """At most `points` distinct numbers from low to high, both included where there are two or more."""
    if points == 1 or low == high:
        return [low]
    # halves, because high - low may be beyond the largest float
    grid = np.geomspace(low, high, points) if log else 2.0 * np.linspace(low / 2, high / 2, points)
    return sorted({low, high, *np.clip(grid[1:-1], low, high).tolist()})


def _spread(count: int, most: int) -> Sequence[int]:
    """`most` of 0..count-1, evenly spread, the ends included; all of them where they are few."""
    if count <= most or most == 1:
        return range(min(count, most))
    return [i * (count - 1) // (most - 1) for i in range(most)]


# ---------------------------------------------------------------- spaces


def distributions(space: Space) -> Distributions:
    """The distributions that say to Optuna what a carbo.Space says, as far as they can: of graphs they know nothing."""
    return {name: _distribution(variable) for name, variable in space.variables.items()}


def _distribution(variable: Variable) -> BaseDistribution:
    if isinstance(variable, Integer):
        arguments = variable.arguments
        return IntDistribution(variable.choices[0], variable.choices[-1], arguments["log"], arguments["step"])
    if isinstance(variable, Float):
        return FloatDistribution(variable.choices[0], variable.choices[-1], variable.arguments["log"])
    assert isinstance(variable, Binary | Categorical | Ordinal)
    return CategoricalDistribution(variable.choices)


def build(columns: Mapping[str, Column], constraint: Constraint | None, missing: Callable[[str], None] | None) -> Space:
    """The engine's space. The constraint sees the parameters' own values.

    missing: called with the name where the constraint asks for one that the space does not hold, which then counts
    as permitted; None: that is an error like any other.
    """
    variables = {name: each.variable for name, each in columns.items()}
    if constraint is None:
        return Space(variables)
    odd = {name: dict(zip(each.variable.choices, each.values, strict=True))
           for name, each in columns.items() if each.relabelled}  # fmt: skip

    def permits(params: Params) -> bool:
        real = params | {name: values[params[name]] for name, values in odd.items()}
        return permitted(constraint, real, missing)

    return Space(variables, permits)


def permitted(constraint: Constraint, params: Params, missing: Callable[[str], None] | None) -> bool:
    """The constraint's verdict; see `build` for `missing`."""
    try:
        return bool(constraint(params))
    except KeyError as error:
        name = error.args[0] if error.args else None
        if missing is None or not isinstance(name, str) or name in params:
            raise
        missing(name)
        return True


class Common:
    """The parameters that every trial with a result asked for, each under its latest distribution.

    Where a distribution has changed, the one of the trial with the highest number counts. A name that has had more
    than DYNAMIC of them is left out.
    """

    def __init__(self) -> None:
        self.asked: set[str] = set()
        """Names that any finished trial asked for."""
        self._shared: set[str] | None = None
        self._latest: FrozenTrial | None = None
        self._variants: dict[str, list[BaseDistribution]] = {}

    def add(self, trial: FrozenTrial) -> None:
        """Take a finished trial into account."""
        self.asked |= trial.distributions.keys()
        if trial.state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        names = set(trial.distributions)
        self._shared = names if self._shared is None else self._shared & names
        if self._latest is None or trial.number > self._latest.number:
            self._latest = trial
        for name, each in trial.distributions.items():
            known = self._variants.setdefault(name, [])
            if each not in known:
                known.append(each)

    def distributions(self) -> Distributions | None:
        """By name, in the names' order, x2 before x10; None while no trial has a result."""
        if self._shared is None or self._latest is None:
            return None
        names = sorted((name for name in self._shared if len(self._variants[name]) <= DYNAMIC), key=natural)
        return {name: self._latest.distributions[name] for name in names}


def provisional(trials: Sequence[FrozenTrial]) -> Distributions:
    """While no trial has a result: the parameters of the one that asked for most, under way or failed."""
    fullest = max(trials, key=lambda t: len(t.distributions), default=None)
    if fullest is None:
        return {}
    return {name: fullest.distributions[name] for name in sorted(fullest.distributions, key=natural)}


def natural(name: str) -> list[str | int]:
    """Sorts numbers in names by what they are worth: variables next to each other may belong together."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", name))]
