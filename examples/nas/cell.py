"""A cell of a convolutional network: 31 bits to a graph, and the graph to what it computes.

A row is ten bits for the hidden nodes H1..H5, two each (convolution?, large?), then 21 bits for the connections from
each of IN, H1..H5 to every later node up to OUT, row by row. IN and OUT are identities; the inputs of a node are added.

Different rows may make the same network. A node that is on no path from IN to OUT does nothing. An identity only passes
its sum on. The order of the nodes does not matter. `reduced` gives such rows one and the same `Architecture`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from carbo.errors import DataError

Ints = NDArray[np.intp]

HIDDEN = 5
NODES = HIDDEN + 2
"""IN is node 0, OUT the last."""
TYPE_BITS, EDGE_BITS = 2 * HIDDEN, NODES * (NODES - 1) // 2
BITS = TYPE_BITS + EDGE_BITS
IDENTITY, POOL3, CONV3, CONV5 = "identity", "pool3", "conv3", "conv5"
KINDS = {(0, 0): IDENTITY, (0, 1): POOL3, (1, 0): CONV3, (1, 1): CONV5}
"""(convolution?, large?) -> what a node computes."""
NAMES = tuple(
    [f"H{i} {what}" for i in range(1, HIDDEN + 1) for what in ("conv", "large")]
    + [
        f"{start}-{end}"
        for n, start in enumerate(("IN", "H1", "H2", "H3", "H4", "H5"))
        for end in ("H1", "H2", "H3", "H4", "H5", "OUT")[n:]
    ]
)
"""A name for each of the 31 bits."""
assert len(NAMES) == BITS


@dataclass(frozen=True)
class Cell:
    """The graph as the bits say it, useless nodes included."""

    kinds: tuple[str, ...]
    """(5,) what H1 to H5 compute."""
    edges: tuple[tuple[int, ...], ...]
    """(7, 7) 1 where the row's node is an input of the column's."""


@dataclass(frozen=True)
class Architecture:
    """What a cell computes: its nodes that are no identities and lie on a path from IN to OUT.

    Two cells have equal architectures exactly when they do the same operations on the same sums.
    """

    kinds: tuple[str, ...]
    """What each node computes; the inputs of a node come before it."""
    inputs: tuple[tuple[int, ...], ...]
    """For each node, and last for OUT: how often IN and each node before it is added to its input."""

    @property
    def key(self) -> str:
        """The architecture as text, such as conv5,pool3;1;0,1;1,0,1."""
        return ";".join([",".join(self.kinds), *(",".join(map(str, counts)) for counts in self.inputs)])


def decoded(row: Ints) -> Cell:
    """The cell of a row (31,) of 0 and 1. DataError for any other row."""
    bits = np.asarray(row)
    if bits.shape != (BITS,) or not np.isin(bits, (0, 1)).all():
        raise DataError(f"cell: expected {BITS} bits of 0 and 1, got {bits.tolist()}")
    types = bits[:TYPE_BITS].reshape(HIDDEN, 2).tolist()
    edges = np.zeros((NODES, NODES), dtype=np.intp)
    edges[np.triu_indices(NODES, 1)] = bits[TYPE_BITS:]
    return Cell(tuple(KINDS[conv, large] for conv, large in types), tuple(map(tuple, edges.tolist())))


def bits_of(text: str) -> Ints:
    """The row of a text of 31 characters 0 and 1. DataError for any other text."""
    if len(text) != BITS or set(text) - {"0", "1"}:
        raise DataError(f"cell: expected {BITS} characters 0 and 1, got {text!r}")
    return np.array([int(character) for character in text], dtype=np.intp)


def is_valid(row: Ints) -> bool:
    """Whether a path leads from IN to OUT."""
    return bool(_useful(decoded(row).edges)[0])


def reduced(row: Ints) -> Architecture | None:
    """What the cell of a row computes; None when no path leads from IN to OUT. DataError for any other row."""
    return _reduced(tuple(np.asarray(row).tolist()))


@lru_cache(maxsize=100_000)
def _reduced(bits: tuple[int, ...]) -> Architecture | None:
    cell = decoded(np.array(bits))
    useful = _useful(cell.edges)
    if not useful[0]:
        return None
    kinds = (IDENTITY, *cell.kinds, IDENTITY)
    kept = [node for node in range(1, NODES - 1) if useful[node] and kinds[node] != IDENTITY]
    counts = _counts(cell.edges, useful, kinds)
    orders = (order for order in itertools.permutations(kept) if _is_sorted(order, counts))
    return min((_in_order(order, kinds, counts) for order in orders), key=lambda one: (one.kinds, one.inputs))


def _useful(edges: tuple[tuple[int, ...], ...]) -> list[bool]:
    """(7,) whether each node is on a path from IN to OUT."""
    from_in, to_out = [node == 0 for node in range(NODES)], [node == NODES - 1 for node in range(NODES)]
    for i, j in itertools.combinations(range(NODES), 2):  # i ascends, so that what leads to i is known
        from_in[j] |= from_in[i] and edges[i][j] == 1
    for i, j in reversed(list(itertools.combinations(range(NODES), 2))):
        to_out[i] |= to_out[j] and edges[i][j] == 1
    return [one and other for one, other in zip(from_in, to_out, strict=True)]


def _counts(edges: tuple[tuple[int, ...], ...], useful: list[bool], kinds: tuple[str, ...]) -> list[list[int]]:
    """(7, 7) how often the row's node is added to the column's input, directly or through identities."""
    counts = [[0] * NODES for _ in range(NODES)]
    for j in range(NODES):
        for i in (i for i in range(j) if useful[i] and useful[j] and edges[i][j]):
            if i > 0 and kinds[i] == IDENTITY:
                for source in range(i):
                    counts[source][j] += counts[source][i]
            else:
                counts[i][j] += 1
    return counts


def _is_sorted(order: tuple[int, ...], counts: list[list[int]]) -> bool:
    return not any(counts[later][earlier] for earlier, later in itertools.combinations(order, 2))


def _in_order(order: tuple[int, ...], kinds: tuple[str, ...], counts: list[list[int]]) -> Architecture:
    places = (0, *order, NODES - 1)
    inputs = (tuple(counts[i][j] for i in places[:n]) for n, j in enumerate(places) if n)
    return Architecture(tuple(kinds[node] for node in order), tuple(inputs))
