"""Variables: lists of choices with a graph over them, and the checks that make their errors teach.

Notation
    k       number of choices
    W       (k, k) weights of the edges between choices
"""

from __future__ import annotations

import difflib
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Number, Real
from typing import Any, NoReturn

import numpy as np

from carbo import graph as graphs
from carbo.errors import SpaceError
from carbo.graph import Graph

DEFAULT_POINTS = 51
"""Grid points of a Float, and the most that a logarithmic Integer has."""
MAX_CHOICES = 100_000
"""More values than this in one variable are refused: a grid that fine is a slip, or wants fewer points."""


@dataclass(frozen=True, eq=False)
class Domain:
    """What a variable's arguments mean, once they have been checked."""

    choices: tuple[Any, ...]
    graph: Graph
    index: dict[Any, int]


class Variable:
    """A finite list of choices with a graph over them; frozen.

    Constructors only store their arguments. `Space` checks them, so that errors name the variable; reading
    `choices`, `size` or `graph` of a variable outside a space checks too, under the name of its kind.
    """

    arguments: dict[str, Any]

    def __init__(self, **arguments: Any) -> None:
        vars(self)["arguments"] = {key: native(value) for key, value in arguments.items()}

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
        """The checked meaning of the arguments; SpaceError naming `name` when they have none."""
        if "_domain" not in vars(self):
            vars(self)["_domain"] = self._check(name)
        checked: Domain = vars(self)["_domain"]
        return checked

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values, native Python ones, in the order that rows count them."""
        return self.domain(type(self).__name__).choices

    @property
    def size(self) -> int:
        return len(self.choices)

    @property
    def graph(self) -> Graph:
        return self.domain(type(self).__name__).graph

    def position(self, value: Any) -> int | None:
        """Where `value` stands in the choices; None when it is not one of them."""
        try:
            return self.domain(type(self).__name__).index.get(native(value))
        except TypeError:  # unhashable
            return None

    def describe(self, encode: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """A JSON value that `Space.from_description` reads; `encode` maps each choice (SpaceError if not JSON)."""
        return {"kind": type(self).__name__.lower()} | self._details(encode or as_json)

    def _check(self, name: str) -> Domain:
        raise NotImplementedError

    def _details(self, encode: Callable[[Any], Any]) -> dict[str, Any]:  # noqa: ARG002
        return self.arguments


class Binary(Variable):
    """False or True."""

    def __init__(self) -> None:
        super().__init__()

    def _check(self, name: str) -> Domain:  # noqa: ARG002
        return Domain((False, True), graphs.complete(2), {False: 0, True: 1})


class Categorical(Variable):
    """Choices without an order: every one is next to every other, unless `graph` says who is.

    graph: "complete", "path" or "cycle"; a (k, k) matrix of weights >= 0, rows in the order of the choices; or a
    networkx graph whose nodes are the choices (edge attribute `weight`, 1 where absent).
    """

    def __init__(self, choices: Iterable[Any], graph: Any = None) -> None:
        super().__init__(choices=_listed(choices), graph=graph)

    def _check(self, name: str) -> Domain:
        choices, given = self.arguments["choices"], self.arguments["graph"]
        index = _positions(name, choices)
        if given is None:
            made = graphs.complete(len(choices))
        elif isinstance(given, str):
            made = _named_graph(name, given, len(choices))
        else:
            made = graphs.from_weights(_weights(name, given, index), len(choices), name)
        return Domain(choices, made, index)

    def _details(self, encode: Callable[[Any], Any]) -> dict[str, Any]:
        weights = self.graph.weights
        shape = self.graph.kind if weights is None else weights.tolist()
        return {"choices": [encode(v) for v in self.choices], "graph": shape}


class Ordinal(Variable):
    """Values of any hashable type in the given order, each next to the one before and the one after."""

    def __init__(self, values: Iterable[Any]) -> None:
        super().__init__(values=_listed(values))

    def _check(self, name: str) -> Domain:
        return _levels(name, self.arguments["values"])

    def _details(self, encode: Callable[[Any], Any]) -> dict[str, Any]:
        return {"values": [encode(v) for v in self.choices]}


class Integer(Variable):
    """low, low + step, ... up to `high`, on a path.

    log=True takes instead the distinct roundings of 51 log-spaced numbers from low to high, both included.
    """

    def __init__(self, low: int, high: int, step: int = 1, log: bool = False) -> None:
        super().__init__(low=low, high=high, step=step, log=log)

    def _check(self, name: str) -> Domain:
        low, high, step = (_whole(name, key, self.arguments[key]) for key in ("low", "high", "step"))
        _ordered(name, low, high)
        if step < 1:
            refuse(name, "step >= 1", f"step={step}", "swap low and high to count down, or use Ordinal")
        if not _flag(name, self.arguments["log"]):
            return _levels(name, _few(name, range(low, high + 1, step)))
        _loggable(name, low)
        if step != 1:
            refuse(name, "step=1 with log=True", f"step={step}", "drop one of the two")
        inner = np.rint(np.geomspace(low, high, DEFAULT_POINTS)[1:-1]).tolist()
        return _levels(name, sorted({low, high, *(min(max(int(v), low), high) for v in inner)}))


class Float(Variable):
    """`points` numbers from low to high, both exact, evenly spaced (log=True: in the logarithm), on a path.

    low == high is one value whatever `points`; points=1 is `low` alone. A number within 1e-9 (relative) of a
    grid point counts as that point.
    """

    def __init__(self, low: float, high: float, points: int = DEFAULT_POINTS, log: bool = False) -> None:
        super().__init__(low=low, high=high, points=points, log=log)

    def _check(self, name: str) -> Domain:
        low, high = (_finite(name, key, self.arguments[key]) for key in ("low", "high"))
        points = _whole(name, "points", self.arguments["points"])
        _ordered(name, low, high)
        if not math.isfinite(high - low):
            refuse(name, "a finite high - low", f"low={low!r}, high={high!r}", "narrow the range")
        if points < 1:
            refuse(name, "points >= 1", f"points={points}", "give the number of grid points")
        if _flag(name, self.arguments["log"]):
            _loggable(name, low)
        points = len(_few(name, range(points if high > low else 1)))
        grid = (np.geomspace if self.arguments["log"] else np.linspace)(low, high, points).tolist()
        if len(set(grid)) < points:
            refuse(name, f"{points} distinct points", f"{len(set(grid))} that float64 tells apart", "use fewer points")
        return _levels(name, grid)

    def position(self, value: Any) -> int | None:
        exact, number = super().position(value), _number(value)
        if exact is not None or not math.isfinite(number):
            return exact
        grid = np.array(self.choices)
        nearest = int(np.argmin(np.abs(grid - number)))
        slack = 1e-9 * float(np.min(np.diff(grid), initial=np.inf)) if len(grid) > 1 else 0.0  # for a grid point 0
        return nearest if math.isclose(grid[nearest], number, rel_tol=1e-9, abs_tol=slack) else None

    def _details(self, encode: Callable[[Any], Any]) -> dict[str, Any]:  # noqa: ARG002
        return self.arguments | {"low": float(self.arguments["low"]), "high": float(self.arguments["high"])}


KINDS: dict[str, type[Variable]] = {
    kind.__name__.lower(): kind for kind in (Binary, Categorical, Ordinal, Integer, Float)
}


# ---------------------------------------------------------------- checks of arguments


def is_label(value: Any) -> bool:
    """Whether the engine can use a choice as it is: hashable, and equal to itself, which NaN is not."""
    try:
        hash(value)
    except TypeError:
        return False
    return bool(value == value)  # noqa: PLR0124


def refuse(name: str, expected: str, got: str, way_out: str) -> NoReturn:
    raise SpaceError(f"variable {name!r}: expected {expected}, got {got}; {way_out}")


def native(value: Any) -> Any:
    """A numpy scalar as the Python value it stands for; anything else as it is."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value


def _number(value: Any) -> float:
    """The float of a real number; NaN for anything else."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def _listed(values: Any) -> Any:
    """A tuple of native values; what is not an ordered collection is left for `_positions` to refuse."""
    values = native(values)
    if isinstance(values, str | bytes | set | frozenset) or not isinstance(values, Iterable):
        return values
    return tuple(native(v) for v in values)


def _positions(name: str, choices: Any) -> dict[Any, int]:
    """choice -> position, for a tuple of distinct, hashable choices that equal themselves."""
    if isinstance(choices, set | frozenset):
        refuse(name, "choices in an order", f"a {type(choices).__name__}", "pass sorted(...) of it: rows count them")
    if not isinstance(choices, tuple):
        refuse(name, "a list of choices", reprlib.repr(choices), "put the choices in [...]")
    if not choices:
        refuse(name, "at least one choice", "none", "list the values it may take")
    index: dict[Any, int] = {}
    for position, value in enumerate(_few(name, choices)):
        try:
            twin = choices[index.setdefault(value, position)]
        except TypeError:
            refuse(name, "hashable choices", reprlib.repr(value), "use strings or tuples as labels")
        if isinstance(value, Number) and value != value:  # noqa: PLR0124
            refuse(name, "choices that equal themselves", "NaN", 'use None or "nan" as the label')
        if index[value] != position:
            got = f"{reprlib.repr(value)} twice" if repr(twin) == repr(value) else f"{twin!r} and {value!r}"
            why = "remove one" if got.endswith("twice") else "Python holds these to be equal: use strings as labels"
            refuse(name, "distinct choices", got, why)
    return index


def _levels(name: str, values: Any) -> Domain:
    choices = tuple(values) if isinstance(values, list | range) else values
    index = _positions(name, choices)
    return Domain(choices, graphs.path(len(choices)), index)


def _few(name: str, values: Sequence[Any]) -> Sequence[Any]:
    if len(values) > MAX_CHOICES:
        refuse(name, f"at most {MAX_CHOICES} choices", f"{len(values)}", "use a larger step, fewer points or log=True")
    return values


def _whole(name: str, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        refuse(name, f"a whole number as {key}", repr(value), "write it without a decimal point, or use Float")
    if abs(int(value)) >= 2**62:
        refuse(name, f"{key} below 2**62", repr(value), "use Float, or Ordinal with the values you mean")
    return int(value)


def _finite(name: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(name, f"a number as {key}", repr(value), "use Ordinal or Categorical for other values")
    if not math.isfinite(_number(value)):
        refuse(name, f"a finite {key}", reprlib.repr(value), "choose the range that you would try by hand")
    return float(value)


def _ordered(name: str, low: float, high: float) -> None:
    if low > high:
        refuse(name, "low <= high", f"low={low!r}, high={high!r}", "swap them")


def _loggable(name: str, low: float) -> None:
    if low <= 0:
        refuse(name, "low > 0 with log=True", f"low={low!r}", "raise low, or drop log")


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        refuse(name, "True or False as log", repr(value), "log=True spaces the values evenly in the logarithm")
    return value


def _named_graph(name: str, shape: str, size: int) -> Graph:
    makers = {"complete": graphs.complete, "path": graphs.path, "cycle": graphs.cycle}
    if shape not in makers:
        refuse(name, f"a graph out of {', '.join(makers)}", repr(shape), "or pass a weight matrix or a networkx graph")
    return makers[shape](size)


def _weights(name: str, given: Any, index: dict[Any, int]) -> Any:
    """The weight matrix of a networkx graph over the choices, parallel edges added up; other things unchanged."""
    if not (hasattr(given, "adjacency") and hasattr(given, "nodes")):  # networkx, without importing it
        return given.toarray() if hasattr(given, "toarray") else given  # scipy.sparse
    nodes = set(given.nodes)
    if nodes != set(index):
        odd = sorted(map(repr, nodes ^ set(index)))
        refuse(name, "a graph whose nodes are the choices", f"a mismatch at {listing(odd)}", "name every choice once")
    W = np.zeros((len(index), len(index)))
    for node, others in given.adjacency():
        for other, edge in others.items():
            for data in edge.values() if given.is_multigraph() else [edge]:
                W[index[node], index[other]] += _finite(name, "edge weight", native(data.get("weight", 1.0)))
    return W


# ---------------------------------------------------------------- text


def as_json(value: Any) -> Any:
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    raise SpaceError(f"expected choices that JSON can hold (bool, int, finite float, str, None), got {value!r} "
                     f"of type {type(value).__name__}; use strings as labels and look the objects up")  # fmt: skip


def as_text(value: Any) -> Any:
    """Like `as_json`, with a stand-in, the same in every process, for what JSON cannot hold."""
    try:
        return as_json(value)
    except SpaceError:
        return {"repr": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))}


def listing(items: Sequence[str], limit: int = 8) -> str:
    return ", ".join(items[:limit]) + (f", ... ({len(items)} in all)" if len(items) > limit else "")


def hint(value: Any, choices: Sequence[Any]) -> str:
    """The choice that was probably meant, as a phrase; empty when nothing is close."""
    close: list[Any] = []
    if isinstance(value, str):
        close = difflib.get_close_matches(value, [c for c in choices if isinstance(c, str)], n=1)
    elif math.isfinite(number := _number(value)):
        close = sorted((c for c in choices if math.isfinite(_number(c))), key=lambda c: abs(_number(c) - number))[:1]
    return f"; the nearest is {close[0]!r}" if close else "; give one of these"
