"""The checks of variables' arguments, whose errors teach, and choices as text.

Notation
    W       (k, k) weights of the edges between k choices
"""

from __future__ import annotations

import difflib
import math
import re
import reprlib
from collections.abc import Iterable, Sequence
from numbers import Integral, Number, Real
from typing import Any, NoReturn

import numpy as np

from carbo.errors import SpaceError
from carbo.space import graphs
from carbo.space.graphs import Graph

MAX_CHOICES = 100_000
"""More values than this in one variable are refused: a grid that fine is a slip, or wants fewer points."""


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


def as_number(value: Any) -> float:
    """The float of a real number; NaN for anything else."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def listed(values: Any) -> Any:
    """A tuple of native values; what is not an ordered collection is left for `positions` to refuse."""
    values = native(values)
    if isinstance(values, str | bytes | set | frozenset) or not isinstance(values, Iterable):
        return values
    return tuple(native(v) for v in values)


def positions(name: str, choices: Any) -> dict[Any, int]:
    """choice -> position, for a tuple of distinct, hashable choices that equal themselves."""
    if isinstance(choices, set | frozenset):
        refuse(name, "choices in an order", f"a {type(choices).__name__}", "pass sorted(...) of it: rows count them")
    if not isinstance(choices, tuple):
        refuse(name, "a list of choices", reprlib.repr(choices), "put the choices in [...]")
    if not choices:
        refuse(name, "at least one choice", "none", "list the values it may take")
    index: dict[Any, int] = {}
    for position, value in enumerate(few(name, choices)):
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


def few(name: str, values: Sequence[Any]) -> Sequence[Any]:
    if len(values) > MAX_CHOICES:
        refuse(name, f"at most {MAX_CHOICES} choices", f"{len(values)}", "use a larger step, fewer points or log=True")
    return values


def whole(name: str, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        refuse(name, f"a whole number as {key}", repr(value), "write it without a decimal point, or use Float")
    if abs(int(value)) >= 2**62:
        refuse(name, f"{key} below 2**62", repr(value), "use Float, or Ordinal with the values you mean")
    return int(value)


def finite(name: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(name, f"a number as {key}", repr(value), "use Ordinal or Categorical for other values")
    if not math.isfinite(as_number(value)):
        refuse(name, f"a finite {key}", reprlib.repr(value), "choose the range that you would try by hand")
    return float(value)


def ordered(name: str, low: float, high: float) -> None:
    if low > high:
        refuse(name, "low <= high", f"low={low!r}, high={high!r}", "swap them")


def loggable(name: str, low: float) -> None:
    if low <= 0:
        refuse(name, "low > 0 with log=True", f"low={low!r}", "raise low, or drop log")


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        refuse(name, "True or False as log", repr(value), "log=True spaces the values evenly in the logarithm")
    return value


def named_graph(name: str, shape: str, size: int) -> Graph:
    makers = {"complete": graphs.complete, "path": graphs.path, "cycle": graphs.cycle}
    if shape not in makers:
        refuse(name, f"a graph out of {', '.join(makers)}", repr(shape), "or pass a weight matrix or a networkx graph")
    return makers[shape](size)


def weights(name: str, given: Any, index: dict[Any, int]) -> Any:
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
                W[index[node], index[other]] += finite(name, "edge weight", native(data.get("weight", 1.0)))
    return W


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
    elif math.isfinite(number := as_number(value)):
        close = sorted((c for c in choices if math.isfinite(as_number(c))), key=lambda c: abs(as_number(c) - number))[
            :1
        ]
    return f"; the nearest is {close[0]!r}" if close else "; give one of these"
