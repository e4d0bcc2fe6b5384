"""Neighbours of the values of each variable, and single steps between rows. Notation as in `row_space`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Bools, Ints
from carbo.space.graphs import Graph


class Adjacency(NamedTuple):
    """The neighbours of every vertex. For complete graphs only their number is stored."""

    offset: Ints
    """(d,) number of the first vertex of each variable."""
    degree: Ints
    """(sum k_i,) number of neighbours of each vertex."""
    start: Ints
    """(sum k_i,) index in `target` of the first neighbour of each vertex."""
    target: Ints
    """Positions of the neighbours, ascending for each vertex; no entries for complete graphs."""
    complete: Bools
    """(d,) whether the variable's graph is complete."""


class Moves(NamedTuple):
    """Single steps: step j takes rows[owner[j]] and sets variable column[j] to position value[j]. Each (m,)."""

    owner: Ints
    column: Ints
    value: Ints


def adjacency(each: Sequence[Graph], leaps: bool) -> Adjacency:
    """The neighbours in the variables' graphs; leaps: along paths and cycles also values 2, 4, 8, ... levels away."""
    degrees, targets = zip(*(_edges(graph, leaps) for graph in each), strict=True)
    sizes = np.array([graph.size for graph in each], dtype=np.intp)
    complete = np.array([graph.kind == "complete" for graph in each])
    degree = np.concatenate(degrees)
    stored = np.where(np.repeat(complete, sizes), 0, degree)
    return Adjacency(np.cumsum(sizes) - sizes, degree, np.cumsum(stored) - stored, np.concatenate(targets), complete)


def _edges(graph: Graph, leaps: bool) -> tuple[Ints, Ints]:
    """The degree of each value (k,), and the neighbours of value 0, of value 1, ...; none for a complete graph."""
    k = graph.size
    if graph.kind == "complete":
        return np.full(k, k - 1, dtype=np.intp), np.empty(0, dtype=np.intp)
    if graph.weights is not None:
        source, target = np.nonzero(graph.weights > 0)
        return np.bincount(source, minlength=k), target
    reach = k // 2 if graph.kind == "cycle" else k - 1
    lengths = np.array([2**j for j in range(reach.bit_length())] if leaps else [1])
    target = np.arange(k)[:, None] + np.concatenate([-lengths[::-1], lengths])
    if graph.kind == "path":
        inside = (target >= 0) & (target < k)
        return np.count_nonzero(inside, axis=1), target[inside]
    target = np.sort(target % k, axis=1)
    first = np.concatenate(
        [np.ones((k, 1), dtype=bool), np.diff(target, axis=1) > 0], axis=1
    )  # two leaps may end at one value
    return np.count_nonzero(first, axis=1), target[first]
