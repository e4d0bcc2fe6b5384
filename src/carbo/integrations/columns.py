"""The columns of a search space of another package: each parameter as a variable of the engine, and its native values.

Optuna and Ray Tune describe parameters in their own ways; levels of numbers and the nearest level are the same for
both.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from carbo.space.choices import is_label
from carbo.space.variables import DEFAULT_POINTS, Float, Integer, Variable

STEPS = 201
"""Most levels of integers and of stepped floats that have no `points` of their own. Longer ranges get this many."""

Points = int | Mapping[str, int]
"""How many levels a numeric parameter may have: one number for all parameters, or numbers by name."""


class Ruler(NamedTuple):
    """The range of a numeric parameter, and the places of its levels on it. `log`: places are logarithms."""

    low: float
    high: float
    log: bool
    marks: Sequence[float]

    def nearest(self, value: Any) -> int | None:
        """The position of the nearest level. None outside the range, and for a value that is no number."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):  # a user may enqueue anything
            return None
        if not self.low <= number <= self.high:
            return None
        place = math.log(number) if self.log else number
        right = bisect.bisect_left(self.marks, place)
        sides = [i for i in (right - 1, right) if 0 <= i < len(self.marks)]
        return min(sides, key=lambda i: abs(self.marks[i] - place))


def ruler(levels: Sequence[Any], log: bool, low: float | None = None, high: float | None = None) -> Ruler:
    """The ruler of increasing levels. Its range is that of the levels, unless `low` and `high` are given."""
    ends = levels[0] if low is None else low, levels[-1] if high is None else high
    return Ruler(float(ends[0]), float(ends[1]), log, [math.log(v) if log else float(v) for v in levels])


class Column:
    """One parameter: the engine's variable, and the native Python value of each of its positions.

    ruler: how numbers between two levels are placed; None for choices.
    """

    def __init__(self, variable: Variable, values: Sequence[Any], ruler: Ruler | None = None) -> None:
        self.variable, self.values, self.ruler = variable, tuple(values), ruler
        self._index = {value: i for i, value in enumerate(self.values) if is_label(value)}

    @property
    def relabelled(self) -> bool:
        """Whether the engine knows some choice by another name, because that choice cannot be a label."""
        return len(self._index) < len(self.values)

    def position(self, value: Any) -> int | None:
        """The position of a value; of a number that of the nearest level. None for a value outside the parameter."""
        try:
            exact = self._index.get(value)
        except TypeError:  # unhashable
            exact = None
        if exact is not None:
            return exact
        if self.ruler is not None:
            return self.ruler.nearest(value)
        return next((i for i, choice in enumerate(self.values) if same(choice, value)), None)


def of_variable(variable: Variable) -> Column:
    """The column of a variable of a carbo.Space."""
    levels = variable.choices
    numeric = isinstance(variable, Float | Integer)
    return Column(variable, levels, ruler(levels, variable.arguments["log"]) if numeric else None)


def same(one: Any, two: Any) -> bool:
    """Equality as one truth value. NaN is the same as NaN, True is not the same as 1, arrays are never the same."""
    if one is two:
        return True
    if isinstance(one, bool) != isinstance(two, bool):
        return False
    try:
        return bool(one == two or (one != one and two != two))  # noqa: PLR0124
    except (TypeError, ValueError):  # arrays
        return False


# ---------------------------------------------------------------- levels of numbers


def most_levels(points: Points, name: str, usual: int | None = None) -> int:
    """The most levels that a parameter may have. `usual` applies unless `points` names the parameter."""
    if isinstance(points, Mapping):
        return points.get(name, usual or DEFAULT_POINTS)
    return usual or points


def floats(low: float, high: float, log: bool, most: int) -> list[float]:
    """At most `most` distinct numbers, evenly spread from low to high (log: in the logarithm), both included."""
    if most == 1 or low == high:
        return [low]
    # halves, because high - low may be beyond the largest float
    grid = np.geomspace(low, high, most) if log else 2.0 * np.linspace(low / 2, high / 2, most)
    return sorted({low, high, *np.clip(grid[1:-1], low, high).tolist()})


def integers(low: int, high: int, log: bool, most: int) -> list[int]:
    """At most `most` integers, evenly spread from low to high (log: in the logarithm), both included."""
    count = high - low + 1
    if most == 1 or count <= 1:
        return [low][:count]
    if log:
        return sorted({min(max(round(v), low), high) for v in floats(low, high, True, most)})
    last = min(most, count) - 1
    return [low + i * (high - low) // last for i in range(last + 1)]


def multiples(step: float, counts: Iterable[int], origin: float = 0.0) -> list[Decimal]:
    """origin + k step for each k, as the user would write them: 0.3, not 0.30000000000000004."""
    first, stride = Decimal(str(origin)), Decimal(str(step))
    return [first + k * stride for k in counts]
