"""Variables: lists of choices, each with a graph over the choices.

Notation
    k       number of choices
    W       (k, k) weights of the edges between choices
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from carbo.space import graphs
from carbo.space.choices import (
    as_choices,
    as_finite,
    as_flag,
    as_json,
    as_native,
    as_number,
    as_text,
    as_whole,
    check_count,
    check_log_range,
    check_order,
    named_graph,
    positions,
    refuse,
    weight_matrix,
)
from carbo.space.graphs import Graph

DEFAULT_POINTS = 51
"""Grid points of a Float, and the most that a logarithmic Integer has."""


@dataclass(frozen=True, eq=False)
class Domain:
    """The choices, their graph and their positions: the meaning of a variable's checked arguments."""

    choices: tuple[Any, ...]
    graph: Graph
    index: dict[Any, int]


class Variable:
    """A finite list of choices with a graph over them. Variables cannot be changed.

    A constructor only stores its arguments. `Space` checks them, so that error messages name the variable. Outside a
    space, the first use of `choices`, `size` or `graph` checks them, and messages name the kind of the variable.
    """

    arguments: dict[str, Any]

    def __init__(self, **arguments: Any) -> None:
        vars(self)["arguments"] = {key: as_native(value) for key, value in arguments.items()}

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: make a new variable instead of setting {key!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={reprlib.repr(v)}' for k, v in self.arguments.items())})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variable):
            return NotImplemented
        return self.choices == other.choices and self.describe(as_text) == other.describe(as_text)

    def __hash__(self) -> int:
        return hash((type(self), self.choices))

    def domain(self, name: str) -> Domain:
        """The choices, graph and positions. SpaceError, which names the variable `name`, for wrong arguments."""
        if "_domain" not in vars(self):
            vars(self)["_domain"] = self._check(name)
        checked: Domain = vars(self)["_domain"]
        return checked

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values as native Python values. Rows hold positions in this tuple."""
        return self.domain(type(self).__name__).choices

    @property
    def size(self) -> int:
        """The number of choices."""
        return len(self.choices)

    @property
    def graph(self) -> Graph:
        """The graph over the choices."""
        return self.domain(type(self).__name__).graph

    def position(self, value: Any) -> int | None:
        """The position of `value` in the choices; None if `value` is not one of them."""
        try:
            return self.domain(type(self).__name__).index.get(as_native(value))
        except TypeError:  # unhashable
            return None

    def describe(self, encode: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """The variable as a JSON value. `encode` maps each choice; default: SpaceError if it is not JSON."""
        return {"kind": type(self).__name__.lower()} | self._details(encode or as_json)

    def _check(self, name: str) -> Domain:
        raise NotImplementedError

    def _details(self, encode: Callable[[Any], Any]) -> dict[str, Any]:  # noqa: ARG002
        return self.arguments


class Binary(Variable):
    """A variable that is False or True."""

    def __init__(self) -> None:
        super().__init__()

    def _check(self, name: str) -> Domain:  # noqa: ARG002
        return Domain((False, True), graphs.complete(2), {False: 0, True: 1})


class Categorical(Variable):
    """Choices without an order. All choices are neighbours of each other, unless `graph` says otherwise.

    graph: "complete", "path" or "cycle"; a (k, k) matrix of weights >= 0, rows in the order of the choices; or a
    networkx graph whose nodes are the choices (edge attribute `weight`, 1 if absent).
    """

    def __init__(self, choices: Iterable[Any], graph: Any = None) -> None:
        super().__init__(choices=as_choices(choices), graph=graph)

    def _check(self, name: str) -> Domain:
        choices, given = self.arguments["choices"], self.arguments["graph"]
        index = positions(name, choices)
        if given is None:
            made = graphs.complete(len(choices))
        elif isinstance(given, str):
            made = named_graph(name, given, len(choices))
        else:
            made = graphs.from_weights(weight_matrix(name, given, index), len(choices), name)
        return Domain(choices, made, index)

    def _details(self, encode: Callable[[Any], Any]) -> dict[str, Any]:
        weights = self.graph.weights
        shape = self.graph.kind if weights is None else weights.tolist()
        return {"choices": [encode(v) for v in self.choices], "graph": shape}


class Ordinal(Variable):
    """Values of any hashable type in an order. Neighbours are the value before and the value after."""

    def __init__(self, values: Iterable[Any]) -> None:
        super().__init__(values=as_choices(values))

    def _check(self, name: str) -> Domain:
        return _levels(name, self.arguments["values"])

    def _details(self, encode: Callable[[Any], Any]) -> dict[str, Any]:
        return {"values": [encode(v) for v in self.choices]}


class Integer(Variable):
    """The whole numbers low, low + step, ... up to `high`, in this order.

    With log=True: 51 log-spaced numbers from low to high, both included, rounded to whole numbers, each once.
    """

    def __init__(self, low: int, high: int, step: int = 1, log: bool = False) -> None:
        super().__init__(low=low, high=high, step=step, log=log)

    def _check(self, name: str) -> Domain:
        low, high, step = (as_whole(name, key, self.arguments[key]) for key in ("low", "high", "step"))
        check_order(name, low, high)
        if step < 1:
            refuse(name, "step >= 1", f"step={step}", "swap low and high to count down, or use Ordinal")
        if not as_flag(name, self.arguments["log"]):
            return _levels(name, check_count(name, range(low, high + 1, step)))
        check_log_range(name, low)
        if step != 1:
            refuse(name, "step=1 with log=True", f"step={step}", "drop one of the two")
        inner = np.rint(np.geomspace(low, high, DEFAULT_POINTS)[1:-1]).tolist()
        return _levels(name, sorted({low, high, *(min(max(int(v), low), high) for v in inner)}))


class Float(Variable):
    """A grid of `points` numbers from low to high, both included, evenly spaced (log=True: in the logarithm).

    The grid has one point if low == high, and only `low` if points=1. A number within 1e-9 (relative) of a grid point
    counts as that point.
    """

    def __init__(self, low: float, high: float, points: int = DEFAULT_POINTS, log: bool = False) -> None:
        super().__init__(low=low, high=high, points=points, log=log)

    def _check(self, name: str) -> Domain:
        low, high = (as_finite(name, key, self.arguments[key]) for key in ("low", "high"))
        points = as_whole(name, "points", self.arguments["points"])
        check_order(name, low, high)
        if not math.isfinite(high - low):
            refuse(name, "a finite high - low", f"low={low!r}, high={high!r}", "narrow the range")
        if points < 1:
            refuse(name, "points >= 1", f"points={points}", "give the number of grid points")
        if as_flag(name, self.arguments["log"]):
            check_log_range(name, low)
        points = len(check_count(name, range(points if high > low else 1)))
        grid = (np.geomspace if self.arguments["log"] else np.linspace)(low, high, points).tolist()
        if len(set(grid)) < points:
            refuse(name, f"{points} distinct points", f"{len(set(grid))} that float64 tells apart", "use fewer points")
        return _levels(name, grid)

    def position(self, value: Any) -> int | None:
        exact, number = super().position(value), as_number(value)
        if exact is not None or not math.isfinite(number):
            return exact
        grid = np.array(self.choices)
        nearest = int(np.argmin(np.abs(grid - number)))
        slack = (
            1e-9 * float(np.min(np.diff(grid), initial=np.inf)) if len(grid) > 1 else 0.0
        )  # needed at the grid point 0
        return nearest if math.isclose(grid[nearest], number, rel_tol=1e-9, abs_tol=slack) else None

    def _details(self, encode: Callable[[Any], Any]) -> dict[str, Any]:  # noqa: ARG002
        return self.arguments | {"low": float(self.arguments["low"]), "high": float(self.arguments["high"])}


def _levels(name: str, values: Any) -> Domain:
    """The domain of ordered values, on a path."""
    choices = tuple(values) if isinstance(values, list | range) else values
    index = positions(name, choices)
    return Domain(choices, graphs.path(len(choices)), index)


KINDS: dict[str, type[Variable]] = {
    kind.__name__.lower(): kind for kind in (Binary, Categorical, Ordinal, Integer, Float)
}
