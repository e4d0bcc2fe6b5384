"""Graphs over the values of one variable.

Notation
    k       number of values (vertices)
    W       (k, k) symmetric non-negative edge weights, zero diagonal
    L       (k, k) graph Laplacian, D - W
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from carbo.errors import SpaceError
from carbo.numerics.types import Floats

Kind = Literal["complete", "path", "cycle", "weighted"]
Scale = Literal["connectivity", "published"]


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph over `size` values. Only the kind "weighted" has `weights`."""

    kind: Kind
    size: int
    weights: Floats | None = None


def complete(size: int) -> Graph:
    """Every value is a neighbour of every other: nominal categories."""
    return Graph("complete", size)


def path(size: int) -> Graph:
    """Each value is a neighbour of the one before and the one after: ordered levels."""
    return Graph("path" if size > 2 else "complete", size)


def cycle(size: int) -> Graph:
    """A path whose ends meet: hours of the day, angles."""
    return Graph("cycle" if size > 3 else "complete", size)


def from_weights(weights: Any, size: int, name: str) -> Graph:
    """The graph of a (size, size) weight matrix, or of a networkx graph over the nodes 0..size-1.

    Raises SpaceError, which names the variable `name`, unless the matrix is (size, size), finite, symmetric and
    non-negative. Warns if the graph is disconnected. The diagonal is ignored.
    """
    W = _as_matrix(weights, size, name)
    if W.shape != (size, size):
        raise SpaceError(
            f"variable {name!r}: expected a {size} x {size} graph matrix, got shape {W.shape}; "
            "give one row and one column for each choice"
        )
    if not np.all(np.isfinite(W)):
        raise SpaceError(f"variable {name!r}: expected finite graph weights, got NaN or infinity; use 0 for no edge")
    if np.any(W < 0):
        raise SpaceError(f"variable {name!r}: expected graph weights >= 0, got {W.min():g}; use 0 for no edge")
    if not np.allclose(W, W.T, rtol=1e-9, atol=0.0):
        i, j = np.unravel_index(np.argmax(np.abs(W - W.T)), W.shape)
        raise SpaceError(
            f"variable {name!r}: expected a symmetric graph matrix, got {W[i, j]:g} at ({i}, {j}) "
            f"and {W[j, i]:g} at ({j}, {i}); pass (W + W.T) / 2 if the mean is meant"
        )
    W = W / 2 + W.T / 2
    np.fill_diagonal(W, 0.0)
    pieces = components(W)
    if pieces > 1:
        warnings.warn(
            f"variable {name!r}: the graph is disconnected ({pieces} pieces); values in different pieces "
            "share nothing in the product kernel; add a small weight between them if they should",
            stacklevel=5,
        )
    W.setflags(write=False)
    return Graph("weighted", size, W)


def _as_matrix(weights: Any, size: int, name: str) -> Floats:
    if hasattr(weights, "adjacency") and hasattr(weights, "nodes"):  # networkx, without importing it
        nodes = set(weights.nodes)
        if nodes != set(range(size)):
            raise SpaceError(
                f"variable {name!r}: expected a graph over the choices, got nodes {sorted(map(str, nodes))}; "
                "name every choice once"
            )
        W = np.zeros((size, size))
        for node, neighbours in weights.adjacency():
            for other, edge in neighbours.items():
                W[node, other] = float(edge.get("weight", 1.0))
        return W
    try:
        given = np.asarray(weights)
        if given.dtype.kind not in "buif":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise SpaceError(
            f"variable {name!r}: expected a matrix of real numbers or a networkx graph as graph=, "
            f"got {type(weights).__name__}; give one row and one column of weights for each choice"
        ) from None


def components(W: Floats) -> int:
    """Number of connected pieces of the graph of W."""
    unseen, pieces = set(range(len(W))), 0
    while unseen:
        frontier, pieces = [unseen.pop()], pieces + 1
        while frontier:
            reached = unseen.intersection(np.flatnonzero(W[frontier.pop()]).tolist())
            unseen -= reached
            frontier.extend(reached)
    return pieces


def laplacian(graph: Graph) -> Floats:
    """The Laplacian L = D - W, unscaled. For checks and plots; the kernels use `spectra.spectrum`."""
    k = graph.size
    if graph.weights is not None:
        W = np.array(graph.weights)
    elif graph.kind == "complete":
        W = np.ones((k, k)) - np.eye(k)
    else:
        W = np.eye(k, k=1) + np.eye(k, k=-1)
        if graph.kind == "cycle":
            W[0, -1] = W[-1, 0] = 1.0
    return np.diag(W.sum(axis=1)) - W
