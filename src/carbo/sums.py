"""Covariances of many rows at a time: a kernel's per-variable tables, added up by products with one-hot rows.

Notation
    n, N, d     observations, candidate rows, variables
    M           number of values of the variables that are not wide: columns of a one-hot row
    H           (N, M) one-hot rows
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from carbo.graph import Floats, Ints
from carbo.kernel import WIDE, Kernel, Scales

if TYPE_CHECKING:
    from scipy import sparse

DENSE_COLUMNS = 1024
"""One-hot rows wider than this are multiplied as sparse matrices."""


def one_hot(sizes: Ints, rows: Ints) -> Floats | sparse.csr_array:
    """H (N, M): column offset_i + v is one where variable i has value v; sparse where it is wide."""
    columns, width = rows + (np.cumsum(sizes) - sizes), int(np.sum(sizes))
    if width > DENSE_COLUMNS:
        pointers = np.arange(0, columns.size + 1, columns.shape[1])
        from scipy import sparse

        return sparse.csr_array((np.ones(columns.size), columns.reshape(-1), pointers), (len(rows), width))
    H = np.zeros((len(rows), width))
    H[np.arange(len(rows))[:, None], columns] = 1.0
    return H


def dense(H: Any) -> Floats:
    """One-hot rows, sparse or not, as an array."""
    return np.asarray(H.toarray() if hasattr(H, "toarray") else H)


class Columns:
    """Which variables have a column for each of their values in one-hot rows; the others are wide."""

    def __init__(self, kernel: Kernel) -> None:
        sizes = np.array([s.size for s in kernel.spectra], dtype=np.intp)
        self.narrow, self.wide = np.flatnonzero(sizes <= WIDE), np.flatnonzero(sizes > WIDE)
        self.sizes = sizes[self.narrow]
        self.offset = np.full(len(sizes), -1)
        """(d,) each variable's first column; -1 for wide ones."""
        self.offset[self.narrow] = np.cumsum(self.sizes) - self.sizes
        self._pairs = np.zeros((2, len(sizes)), dtype=np.intp)
        self._pairs[:, self.narrow] = np.cumsum(self.sizes**2) - self.sizes**2, self.sizes

    def one_hot(self, rows: Ints) -> Floats | sparse.csr_array:
        """H (N, M)."""
        return one_hot(self.sizes, rows[:, self.narrow] if len(self.wide) else rows)

    def pair(self, i: Ints, a: Ints, b: Ints) -> Ints:
        """Where entries (a, b) of narrow variables' tables are in all of them, flat and one after another."""
        first, size = self._pairs[:, i]
        return np.asarray(first + a * size + b)

    def pairs(self, X: Ints) -> Ints:
        """(M, n): the same of every column's value with the observations'."""
        i = np.repeat(self.narrow, self.sizes)
        value = np.arange(len(i)) - self.offset[i]
        return self.pair(i[:, None], value[:, None], X.T[i])

    @cached_property
    def diagonal(self) -> Ints:
        """(M,): of every column's value with itself."""
        i = np.repeat(self.narrow, self.sizes)
        value = np.arange(len(i)) - self.offset[i]
        return self.pair(i, value, value)


class Tables:
    """All variables' tables at one setting of the parameters, turned into what `Kernel.combine` takes summed.

    Narrow variables' are kept flat, one after another. A wide variable's entries are looked up for the rows at hand,
    since its table might not fit in memory.
    """

    def __init__(self, kernel: Kernel, scales: Scales, w: Floats, columns: Columns) -> None:
        self._kernel, self._scales, self._columns = kernel, scales, columns
        self._weights = kernel.weights(scales, w)
        each = []
        for i in columns.narrow.tolist():
            t = kernel.table(scales, i)
            each.append(kernel.turned(scales, i, t.columns(np.arange(t.size)).reshape(-1)))
        self.flat = [np.concatenate([turned[q] for turned in each] or [np.zeros(0)]) for q in range(kernel.summed)]
        self.wide = {i: kernel.table(scales, i) for i in columns.wide.tolist()}

    def turned(self, i: int, entries: Floats) -> list[Floats]:
        """Entries of wide variable i's table, turned."""
        return self._kernel.turned(self._scales, i, entries)

    def combine(self, sums: list[Floats]) -> Floats:
        """Covariances from sums, which may be overwritten."""
        return self._kernel.combine(sums, self._weights)

    def variances(self, H: Any, rows: Ints) -> Floats:
        """Prior variances (N,) of rows, H their one-hot form."""
        return self.combine(self._own(H, rows))

    def beside(self, H: Any, rows: Ints, owner: Ints, before: Ints, after: Ints) -> Floats:
        """(len(owner),): of rows[owner] with what they are when one variable's `Columns.pair` (a, a) becomes (a, c)."""
        each = zip(self._own(H, rows), self.flat, strict=True)
        return self.combine([own[owner] - T[before] + T[after] for own, T in each])

    def _own(self, H: Any, rows: Ints) -> list[Floats]:
        """Sums (N,) of rows with themselves."""
        sums = [np.asarray(H @ T[self._columns.diagonal]) for T in self.flat]
        for i, t in self.wide.items():
            for q, one in enumerate(self.turned(i, t.at(rows[:, i], rows[:, i]))):
                sums[q] += one
        return sums


class Sums:
    """What `Kernel.combine` takes, for any rows against the observations X (n, d).

    Narrow variables' tables (M, n), one a summed quantity, are stacked: their product with one-hot rows sums them.
    """

    def __init__(self, tables: Tables, X: Ints, pairs: Ints) -> None:
        self._of, self._X = tables, X
        self.tables = [T[pairs] for T in tables.flat]

    def astype(self, dtype: type[np.floating[Any]]) -> Sums:
        """The same in another precision."""
        other = copy.copy(self)
        other.tables = [T.astype(dtype) for T in self.tables]
        return other

    def at(self, H: Any, rows: Ints, own: NDArray[np.bool_] | None = None) -> list[Floats]:
        """(..., n) each, of one-hot rows H (..., M) of rows (..., d).

        own (B, d): of rows (B, R, d), what is not their own is left out; H (B, R, M) must leave it out by itself.
        """
        sums = [np.asarray(H @ T) for T in self.tables]
        for i, wide in self._of.wide.items():
            entries = wide.at(rows[..., i, None], self._X[:, i])
            for q, one in enumerate(self._of.turned(i, entries)):
                sums[q] += one if own is None else one * own[:, i, None, None]
        return sums

    def covariances(self, H: Any, rows: Ints) -> Floats:
        """(N, n)."""
        return self._of.combine(self.at(H, rows))

    def entries(self, i: int, values: Ints, first: int | None = None) -> Floats:
        """The first quantity of a wide variable's values against the (first) observations, (len(values), n)."""
        return self._of.turned(i, self._of.wide[i].at(values[:, None], self._X[:first, i]))[0]


def cross(kernel: Kernel, scales: Scales, w: Floats, rows: Ints, X: Ints) -> Floats:
    """Covariances between rows (N, d) and observations X (n, d), (N, n)."""
    columns = Columns(kernel)
    sums = Sums(Tables(kernel, scales, w, columns), X, columns.pairs(X))
    return sums.covariances(columns.one_hot(rows), rows)


def diagonal(kernel: Kernel, scales: Scales, w: Floats, rows: Ints) -> Floats:
    """Prior variance of each row, (N,)."""
    columns = Columns(kernel)
    return Tables(kernel, scales, w, columns).variances(columns.one_hot(rows), rows)


def gram(kernel: Kernel, scales: Scales, w: Floats, X: Ints) -> Floats:
    """Signal covariance of the observations, (n, n)."""
    return np.asarray(np.einsum("p,pij->ij", w, kernel.parts(scales, X)))
