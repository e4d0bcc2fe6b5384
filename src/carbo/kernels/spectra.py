"""Spectra of the variables' graphs, and tables of a kernel over one variable.

Notation
    k       number of values (vertices)
    L       (k, k) graph Laplacian, D - W
    lam     (k,) eigenvalues of L, ascending, lam[0] = 0 for the constant vector
    U       (k, k) eigenvectors, one a column, U[:, 0] = 1/sqrt(k)
    c       (k,) non-negative coefficients of a kernel sum_j c_j u_j u_j^T

The complete graph, the path and the cycle have closed forms: their matrices are never decomposed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from carbo.numerics.types import Floats, Ints
from carbo.space.graphs import Graph, Kind, Scale, laplacian

WIDE = 64
"""Largest number of values of a variable that has columns in one-hot rows. The entries of a wider variable are computed
for the pairs of rows at hand; a wider path or cycle uses its closed form instead of its modes."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues (ascending, scaled) and modes of one variable's graph.

    `vectors` is needed for kind "weighted" alone: the other kinds have closed forms.
    """

    kind: Kind
    lam: Floats
    vectors: Floats | None = None

    @property
    def size(self) -> int:
        return len(self.lam)

    @cached_property
    def slowest(self) -> float:
        """The smallest non-zero eigenvalue; 0.0 if there is none."""
        return float(min(self.lam[self.lam > 0], default=0.0))

    @cached_property
    def modes(self) -> Floats:
        """U (k, k): orthonormal eigenvectors as columns, in the order of `lam`, the constant vector first."""
        k = self.size
        if self.vectors is not None:
            return self.vectors
        if self.kind == "complete":
            return np.asarray(np.linalg.qr(np.append(np.ones((k, 1)), np.eye(k)[:, 1:], axis=1))[0])
        at, j = np.arange(k)[:, None], np.arange(k)
        if self.kind == "path":
            U = np.cos(np.pi * j * (at + 0.5) / k)
        else:  # a cosine and a sine of each frequency; for even k the last column is a cosine alone
            angle = 2 * np.pi * ((j + 1) // 2) * at / k
            U = np.where(j % 2 == 0, np.sin(angle), np.cos(angle))
            U[:, 0] = 1.0
        return np.asarray(U / np.linalg.norm(U, axis=0))

    @cached_property
    def squares(self) -> Floats:
        """The squares of the modes, (k, k)."""
        return self.modes**2


def spectrum(graph: Graph, scale: Scale = "connectivity") -> Spectrum:
    """The graph's spectrum. O(k) for complete graphs, paths and cycles; one `eigh` otherwise.

    scale   "connectivity": the smallest non-zero eigenvalue becomes 2, that of a single edge. Beta then means the same
            for 2 and for 20 categories, and for 10 and for 1,000 levels. "published": the eigenvalues of D - W
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
        unit = unit if unit > 0 else 1.0  # weights may be near the ends of the float range
        lam, vectors = _decompose(laplacian(Graph("weighted", k, np.asarray(graph.weights) / unit)))
        lam = lam * (unit if scale == "published" else 1.0)
    positive = lam[lam > 0]
    if scale == "connectivity" and positive.size:
        lam = lam * (2.0 / positive.min())
    return Spectrum(graph.kind, lam, vectors)


def spectra_of(graphs: Iterable[Graph], scale: Scale = "connectivity") -> tuple[Spectrum, ...]:
    """The spectra of all variables' graphs."""
    return tuple(spectrum(graph, scale) for graph in graphs)


def _decompose(L: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors, the constant vector first, even if the eigenvalue 0 is repeated (disconnected)."""
    k = len(L)
    lift = 2.0 * float(np.trace(L)) or 1.0  # puts the constant vector above every other eigenvalue
    lam, U = np.linalg.eigh(L + lift / k)
    lam, U = np.roll(lam, 1), np.roll(U, 1, axis=1)
    lam[0], U[:, 0] = 0.0, 1.0 / np.sqrt(k)
    return np.asarray(np.where(lam > 1e-13 * lift, lam, 0.0)), U


@dataclass(frozen=True, eq=False)
class Table:
    """M = k * sum_j c_j u_j u_j^T / sum_j c_j, of mean diagonal one; its entries are computed on request.

    values  complete: (diagonal, off-diagonal); path, cycle: values[r] at distance r (Toeplitz, for a path plus
            Hankel); weighted: M itself (k, k)
    scale, offset   s and v, both (k,): if they are set, the table is M s s' - v v' (entry by entry) instead
    """

    kind: Kind
    size: int
    values: Floats
    scale: Floats | None = None
    offset: Floats | None = None

    def at(self, a: Ints, b: Ints) -> Floats:
        """Entries M[a, b]; the integer arrays a and b are broadcast."""
        plain = self._plain(a, b)
        if self.scale is None or self.offset is None:
            return plain
        return np.asarray(plain * (self.scale[a] * self.scale[b]) - self.offset[a] * self.offset[b])

    def times(self, x: Floats) -> Floats:
        """The product M x (k,), for a table that is not complete and has no scale and offset."""
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
        """The diagonal of M, (k,)."""
        return self.at(np.arange(self.size), np.arange(self.size))

    def columns(self, b: Ints) -> Floats:
        """The columns M[:, b], (k, len(b))."""
        if self.kind == "complete":
            out = np.full((self.size, len(b)), self.values[1])
            out[b, np.arange(len(b))] = self.values[0]
            return out
        return self.at(np.arange(self.size)[:, None], b[None, :])


def table(s: Spectrum, c: Floats) -> Table:
    """The table with coefficients c (k,), not all zero. A path takes O(k log k): T(p, q) = g(p - q) + g(p + q + 1)."""
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
