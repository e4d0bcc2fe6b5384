"""Checks of variables' arguments, with errors that teach, and choices as JSON and text.

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
"""Largest number of values of one variable. A finer grid is a slip, or needs fewer points."""


def is_label(value: Any) -> bool:
    """Whether a value can be a choice: it is hashable and equal to itself (NaN is not)."""
    try:
        hash(value)
    except TypeError:
        return False
    return bool(value == value)  # noqa: PLR0124


def refuse(name: str, expected: str, got: str, way_out: str) -> NoReturn:
    """Raise the SpaceError about the variable `name`."""
    raise SpaceError(f"variable {name!r}: expected {expected}, got {got}; {way_out}")


def as_native(value: Any) -> Any:
    """The Python value of a numpy scalar; other values unchanged."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value


def as_number(value: Any) -> float:
    """The float of a real number; NaN for anything else."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def as_choices(values: Any) -> Any:
    """A tuple of native values. A value that is no ordered collection is returned for `positions` to refuse."""
    values = as_native(values)
    if isinstance(values, str | bytes | set | frozenset) or not isinstance(values, Iterable):
        return values
    return tuple(as_native(v) for v in values)


def positions(name: str, choices: Any) -> dict[Any, int]:
    """choice -> position, for a tuple of distinct choices. Raises SpaceError for values that cannot be choices."""
    if isinstance(choices, set | frozenset):
        refuse(name, "choices in an order", f"a {type(choices).__name__}", "pass sorted(...) of it")
    if not isinstance(choices, tuple):
        refuse(name, "a list of choices", reprlib.repr(choices), "put the choices in [...]")
    if not choices:
        refuse(name, "at least one choice", "none", "list the values that the variable may take")
    index: dict[Any, int] = {}
    for position, value in enumerate(check_count(name, choices)):
        try:
            twin = choices[index.setdefault(value, position)]
        except TypeError:
            refuse(name, "hashable choices", reprlib.repr(value), "use strings or tuples as labels")
        if isinstance(value, Number) and value != value:  # noqa: PLR0124
            refuse(name, "choices that equal themselves", "NaN", 'use None or "nan" as the label')
        if index[value] != position:
            got = f"{reprlib.repr(value)} twice" if repr(twin) == repr(value) else f"{twin!r} and {value!r}"
            why = "remove one" if got.endswith("twice") else "these are equal in Python: use strings as labels"
            refuse(name, "distinct choices", got, why)
    return index


def check_count(name: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values; SpaceError if there are more than MAX_CHOICES."""
    if len(values) > MAX_CHOICES:
        refuse(name, f"at most {MAX_CHOICES} choices", f"{len(values)}", "use a larger step, fewer points or log=True")
    return values


def as_whole(name: str, key: str, value: Any) -> int:
    """The value of the argument `key` as an int; SpaceError if it is no whole number below 2**62."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        refuse(name, f"a whole number as {key}", repr(value), "write it without a decimal point, or use Float")
    if abs(int(value)) >= 2**62:
        refuse(name, f"{key} below 2**62", repr(value), "use Float, or Ordinal with the values you mean")
    return int(value)


def as_finite(name: str, key: str, value: Any) -> float:
    """The value of the argument `key` as a float; SpaceError if it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(name, f"a number as {key}", repr(value), "use Ordinal or Categorical for other values")
    if not math.isfinite(as_number(value)):
        refuse(name, f"a finite {key}", reprlib.repr(value), "choose the range that you would try by hand")
    return float(value)


def check_order(name: str, low: float, high: float) -> None:
    if low > high:
        refuse(name, "low <= high", f"low={low!r}, high={high!r}", "swap them")


def check_log_range(name: str, low: float) -> None:
    if low <= 0:
        refuse(name, "low > 0 with log=True", f"low={low!r}", "raise low, or drop log")


def as_flag(name: str, value: Any) -> bool:
    """The argument `log`; SpaceError if it is no bool."""
    if not isinstance(value, bool):
        refuse(name, "True or False as log", repr(value), "log=True spaces the values evenly in the logarithm")
    return value


def named_graph(name: str, shape: str, size: int) -> Graph:
    """The complete graph, path or cycle over `size` values."""
    makers = {"complete": graphs.complete, "path": graphs.path, "cycle": graphs.cycle}
    if shape not in makers:
        refuse(name, f"one of {', '.join(makers)} as graph", repr(shape), "or pass a weight matrix or a networkx graph")
    return makers[shape](size)


def weight_matrix(name: str, given: Any, index: dict[Any, int]) -> Any:
    """The weight matrix (k, k) of a networkx graph over the choices; parallel edges add up. Other values unchanged."""
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
                W[index[node], index[other]] += as_finite(name, "edge weight", as_native(data.get("weight", 1.0)))
    return W


def as_json(value: Any) -> Any:
    """The choice, if JSON can hold it; otherwise SpaceError."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    raise SpaceError(f"expected choices that JSON can hold (bool, int, finite float, str, None), got {value!r} "
                     f"of type {type(value).__name__}; use strings as labels and look the objects up")  # fmt: skip


def as_text(value: Any) -> Any:
    """The choice, if JSON can hold it; otherwise its repr in a dict, the same in every process."""
    try:
        return as_json(value)
    except SpaceError:
        return {"repr": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))}


def listing(items: Sequence[str], limit: int = 8) -> str:
    """The first `limit` items, joined by commas, and the number of all items if there are more."""
    return ", ".join(items[:limit]) + (f", ... ({len(items)} in all)" if len(items) > limit else "")


def hint(value: Any, choices: Sequence[Any]) -> str:
    """The end of an error message: the closest choice, or the advice to give one of the choices."""
    close: list[Any] = []
    if isinstance(value, str):
        close = difflib.get_close_matches(value, [c for c in choices if isinstance(c, str)], n=1)
    elif math.isfinite(number := as_number(value)):
        close = sorted((c for c in choices if math.isfinite(as_number(c))), key=lambda c: abs(as_number(c) - number))[
            :1
        ]
    return f"; the nearest is {close[0]!r}" if close else "; give one of these"
