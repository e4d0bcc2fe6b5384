"""Graphs over the values of one variable, and their spectra.

Notation
    k       number of values (vertices)
    W       (k, k) symmetric non-negative edge weights, zero diagonal
    L       (k, k) graph Laplacian, D - W
    lam     (k,) eigenvalues of L, ascending, lam[0] = 0 for the constant vector
    U       (k, k) eigenvectors, one a column, U[:, 0] = 1/sqrt(k)
    c       (k,) non-negative coefficients of a kernel sum_j c_j u_j u_j^T

The complete graph, the path and the cycle have closed forms: no matrix of theirs is ever decomposed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from carbo.errors import SpaceError

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Kind = Literal["complete", "path", "cycle", "weighted"]
Scale = Literal["connectivity", "published"]

WIDE = 64
"""A variable of more values than this has no columns in one-hot rows: it is computed pair by pair of rows; a path or
cycle by its closed form instead of its modes."""
PAIR_EIGENVALUE = 2.0
"""The non-zero eigenvalue of a single edge: what every graph's connectivity is scaled to."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph over `size` values; `weights` is given for kind "weighted" alone."""

    kind: Kind
    size: int
    weights: Floats | None = None


def complete(size: int) -> Graph:
    """Every value next to every other: nominal categories."""
    return Graph("complete", size)


def path(size: int) -> Graph:
    """Each value next to the one before and the one after: ordered levels."""
    return Graph("path" if size > 2 else "complete", size)


def cycle(size: int) -> Graph:
    """A path whose ends meet: hours of the day, angles."""
    return Graph("cycle" if size > 3 else "complete", size)


def from_weights(weights: Any, size: int, name: str) -> Graph:
    """The graph of a (size, size) weight matrix, or of a networkx graph over the nodes 0..size-1.

    Raises SpaceError, naming the variable `name`, unless the matrix is square of that size, finite,
    symmetric and non-negative; warns when the graph is disconnected. The diagonal is ignored.
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
    """L = D - W, unscaled: for checks and for people to look at; the kernels use `spectrum`."""
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


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues (ascending, scaled) of one variable's graph, and its modes.

    `vectors` is given for kind "weighted" alone; the other kinds know theirs, and sums of them in closed form.
    """

    kind: Kind
    lam: Floats
    vectors: Floats | None = None

    @property
    def size(self) -> int:
        return len(self.lam)

    @cached_property
    def slowest(self) -> float:
        """The smallest non-zero eigenvalue; 0.0 where there is none."""
        return float(min(self.lam[self.lam > 0], default=0.0))

    @cached_property
    def modes(self) -> Floats:
        """U: (k, k) orthonormal eigenvectors in the order of `lam`, a column each, the constant one first."""
        k = self.size
        if self.vectors is not None:
            return self.vectors
        if self.kind == "complete":
            return np.asarray(np.linalg.qr(np.append(np.ones((k, 1)), np.eye(k)[:, 1:], axis=1))[0])
        at, j = np.arange(k)[:, None], np.arange(k)
        if self.kind == "path":
            U = np.cos(np.pi * j * (at + 0.5) / k)
        else:  # a cosine and a sine of each frequency, a lone cosine at the end where k is even
            angle = 2 * np.pi * ((j + 1) // 2) * at / k
            U = np.where(j % 2 == 0, np.sin(angle), np.cos(angle))
            U[:, 0] = 1.0
        return np.asarray(U / np.linalg.norm(U, axis=0))

    @cached_property
    def squares(self) -> Floats:
        """(k, k) the modes' squares."""
        return self.modes**2


def spectrum(graph: Graph, scale: Scale = "connectivity") -> Spectrum:
    """The graph's spectrum. O(k) for complete graphs, paths and cycles; one `eigh` otherwise.

    scale "connectivity" makes the smallest non-zero eigenvalue 2, that of a single edge, so that beta
    means the same for 2 and for 20 categories, and for 10 and for 1,000 levels; "published" leaves D - W.
    """
    k, vectors = graph.size, None
    if graph.kind == "complete":
        lam = np.full(k, float(k))
        lam[0] = 0.0
    elif graph.kind == "path":
        lam = 4.0 * np.sin(np.pi * np.arange(k) / (2 * k)) ** 2  # 2 - 2 cos(pi j / k)
    elif graph.kind == "cycle":
        lam = 4.0 * np.sin(np.pi * ((np.arange(k) + 1) // 2) / k) ** 2  # 2 - 2 cos(2 pi j / k), each twice
    else:
        unit = float(np.max(graph.weights, initial=0.0)) if graph.weights is not None else 0.0
        unit = unit if unit > 0 else 1.0  # decomposed at unit scale: weights may be near the ends of the float range
        lam, vectors = _decompose(laplacian(Graph("weighted", k, np.asarray(graph.weights) / unit)))
        lam = lam * (unit if scale == "published" else 1.0)
    positive = lam[lam > 0]
    if scale == "connectivity" and positive.size:
        lam = lam * (PAIR_EIGENVALUE / positive.min())
    return Spectrum(graph.kind, lam, vectors)


def _decompose(L: Floats) -> tuple[Floats, Floats]:
    """Eigenpairs with the constant vector first, even where a disconnected graph repeats the eigenvalue 0."""
    k = len(L)
    lift = 2.0 * float(np.trace(L)) or 1.0  # puts the constant vector above every other eigenvalue
    lam, U = np.linalg.eigh(L + lift / k)
    lam, U = np.roll(lam, 1), np.roll(U, 1, axis=1)
    lam[0], U[:, 0] = 0.0, 1.0 / np.sqrt(k)
    return np.asarray(np.where(lam > 1e-13 * lift, lam, 0.0)), U


@dataclass(frozen=True, eq=False)
class Table:
    """M = k * sum_j c_j u_j u_j^T / sum_j c_j, of mean diagonal one, evaluated where it is asked for.

    complete: values = (diagonal, off-diagonal); path, cycle: values[r] at distance r (Toeplitz, for a path
    plus Hankel); weighted: values (k, k). With scale s and offset v, both (k,), it is M s s' - v v' instead.
    """

    kind: Kind
    size: int
    values: Floats
    scale: Floats | None = None
    offset: Floats | None = None

    def at(self, a: Ints, b: Ints) -> Floats:
        """M[a, b], broadcast over the integer arrays a and b."""
        plain = self._plain(a, b)
        if self.scale is None or self.offset is None:
            return plain
        return np.asarray(plain * (self.scale[a] * self.scale[b]) - self.offset[a] * self.offset[b])

    def times(self, x: Floats) -> Floats:
        """M x (k,), of a table without scale and offset that is not complete."""
        if self.kind == "weighted":
            return np.asarray(self.values @ x)
        mirrored = np.append(x, x[::-1]) if self.kind == "path" else x
        folded = np.fft.rfft(self.values) * np.fft.rfft(mirrored)
        return np.asarray(np.fft.irfft(folded, len(self.values))[: self.size])

    def _plain(self, a: Ints, b: Ints) -> Floats:
        if self.kind == "complete":
            return np.asarray(np.where(a == b, self.values[0], self.values[1]))
        if self.kind == "path":
            return np.asarray(self.values[np.abs(a - b)] + self.values[a + b + 1])
        if self.kind == "cycle":
            return np.asarray(self.values[(a - b) % self.size])
        return np.asarray(self.values[a, b])

    def diagonal(self) -> Floats:
        """(k,) M[v, v]."""
        return self.at(np.arange(self.size), np.arange(self.size))

    def columns(self, b: Ints) -> Floats:
        """M[:, b]: (k, len(b))."""
        if self.kind == "complete":
            out = np.full((self.size, len(b)), self.values[1])
            out[b, np.arange(len(b))] = self.values[0]
            return out
        return self.at(np.arange(self.size)[:, None], b[None, :])


def table(s: Spectrum, c: Floats) -> Table:
    """The table of coefficients c (k,), not all zero. A path takes O(k log k): T(p, q) = g(p - q) + g(p + q + 1)."""
    k, total = s.size, float(np.sum(c))
    if s.kind == "complete":
        tail = float(c[1]) if k > 1 else 0.0
        return Table(s.kind, k, np.array([1.0, (float(c[0]) - tail) / total]))
    if s.kind == "path":
        return Table(s.kind, k, np.fft.irfft(np.append(c, 0.0), 2 * k) * (k / total))
    if s.kind == "cycle":
        return Table(s.kind, k, np.fft.irfft(c[np.maximum(2 * np.arange(k // 2 + 1) - 1, 0)], k) * (k / total))
    assert s.vectors is not None
    return Table(s.kind, k, (s.vectors * (c * (k / total))) @ s.vectors.T)
