"""Covariances of many rows at a time: a kernel's per-variable tables, added up by products with one-hot rows.

Notation
    n, N, d     observations, candidate rows, variables
    M           number of values of the variables that are not wide: columns of a one-hot row
    H           (N, M) one-hot rows
"""

from __future__ import annotations

import copy
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


class Columns:
    """Which variables have a column for each of their values in one-hot rows; the others are wide."""

    def __init__(self, kernel: Kernel) -> None:
        sizes = np.array([s.size for s in kernel.spectra], dtype=np.intp)
        self.narrow, self.wide = np.flatnonzero(sizes <= WIDE), np.flatnonzero(sizes > WIDE)
        self.sizes = sizes[self.narrow]
        self.offset = np.full(len(sizes), -1)
        """(d,) each variable's first column; -1 for wide ones."""
        self.offset[self.narrow] = np.cumsum(self.sizes) - self.sizes

    def one_hot(self, rows: Ints) -> Floats | sparse.csr_array:
        """H (N, M)."""
        return one_hot(self.sizes, rows[:, self.narrow] if len(self.wide) else rows)


class Sums:
    """What `Kernel.combine` takes, for any rows against the observations X (n, d).

    Narrow variables' tables (M, n), one a summed quantity, are stacked: their product with one-hot rows sums them. A
    wide variable's entries are looked up for the rows at hand, since its table might not fit in memory.
    """

    def __init__(self, kernel: Kernel, scales: Scales, X: Ints, columns: Columns) -> None:
        self._kernel, self._scales, self._X = kernel, scales, X
        each = [kernel.turned(scales, i, kernel.table(scales, i).columns(X[:, i])) for i in columns.narrow.tolist()]
        self.tables = _stacked(kernel, each, len(X))
        self._wide = {i: kernel.table(scales, i) for i in columns.wide.tolist()}

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
        for i, wide in self._wide.items():
            entries = wide.at(rows[..., i, None], self._X[:, i])
            for q, one in enumerate(self._kernel.turned(self._scales, i, entries)):
                sums[q] += one if own is None else one * own[:, i, None, None]
        return sums

    def entries(self, i: int, values: Ints, first: int | None = None) -> Floats:
        """The first quantity of a wide variable's values against the (first) observations, (len(values), n)."""
        entries = self._wide[i].at(values[:, None], self._X[:first, i])
        return self._kernel.turned(self._scales, i, entries)[0]


class Variances:
    """The same for rows' covariances with themselves: their prior variances."""

    def __init__(self, kernel: Kernel, scales: Scales, columns: Columns) -> None:
        self._kernel, self._scales = kernel, scales
        each = [kernel.turned(scales, i, kernel.table(scales, i).diagonal()[:, None]) for i in columns.narrow.tolist()]
        self._tables = _stacked(kernel, each, 1)
        self._wide = [(i, kernel.table(scales, i).diagonal()) for i in columns.wide.tolist()]

    def at(self, H: Any, rows: Ints, w: Floats) -> Floats:
        """(N,)."""
        sums = [np.asarray(H @ T) for T in self._tables]
        for i, diagonal in self._wide:
            for q, one in enumerate(self._kernel.turned(self._scales, i, diagonal[rows[:, i]])):
                sums[q] += one[:, None]
        return self._kernel.combine(sums, self._scales, w)[:, 0]


def _stacked(kernel: Kernel, each: list[list[Floats]], n: int) -> list[Floats]:
    """Per summed quantity, the variables' tables one below another."""
    return [np.concatenate([turned[q] for turned in each] or [np.zeros((0, n))]) for q in range(kernel.summed)]


def cross(kernel: Kernel, scales: Scales, w: Floats, rows: Ints, X: Ints) -> Floats:
    """Covariances between rows (N, d) and observations X (n, d), (N, n)."""
    columns = Columns(kernel)
    return kernel.combine(Sums(kernel, scales, X, columns).at(columns.one_hot(rows), rows), scales, w)


def diagonal(kernel: Kernel, scales: Scales, w: Floats, rows: Ints) -> Floats:
    """Prior variance of each row, (N,)."""
    columns = Columns(kernel)
    return Variances(kernel, scales, columns).at(columns.one_hot(rows), rows, w)


def gram(kernel: Kernel, scales: Scales, w: Floats, X: Ints) -> Floats:
    """Signal covariance of the observations, (n, n)."""
    return np.asarray(np.einsum("p,pij->ij", w, kernel.parts(scales, X)))
