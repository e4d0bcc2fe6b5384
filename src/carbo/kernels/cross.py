"""Covariances of many rows at a time: a kernel's per-variable tables, added up by products with one-hot rows.

Notation
    n, N, d, S  observations, candidate rows, variables, samples of the parameters
    M           number of values of the variables that are not wide: columns of a one-hot row
    H           (N, M) one-hot rows
    Psi         (n, F) features of the windows, where the kernel has any (see `windows`)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from carbo.kernels.base import Kernel, Scales
from carbo.kernels.spectra import WIDE
from carbo.numerics.types import Floats, Ints

if TYPE_CHECKING:
    from scipy import sparse

ALL = slice(None)
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
        self._complete = np.array([s.kind == "complete" for s in kernel.spectra])
        entries = np.where(self._complete, 2, sizes**2)[self.narrow]
        self._first, self._sizes = np.zeros(len(sizes), dtype=np.intp), sizes
        self._first[self.narrow] = np.cumsum(entries) - entries

    def one_hot(self, rows: Ints) -> Floats | sparse.csr_array:
        """H (N, M)."""
        return one_hot(self.sizes, rows[:, self.narrow] if len(self.wide) else rows)

    def pair(self, i: Ints, a: Ints, b: Ints) -> Ints:
        """Where entries (a, b) of narrow variables' tables are in all of them, flat and one after another.

        Of a complete graph's table there are two entries: of equal values and of unequal ones.
        """
        return np.asarray(self._first[i] + np.where(self._complete[i], a != b, a * self._sizes[i] + b))

    def pairs(self, X: Ints) -> Ints:
        """(M, n): the same of every column's value with the observations'."""
        i, value = self._each
        return self.pair(i[:, None], value[:, None], X.T[i])

    @cached_property
    def diagonal(self) -> Ints:
        """(M,): of every column's value with itself."""
        i, value = self._each
        return self.pair(i, value, value)

    @cached_property
    def _each(self) -> tuple[Ints, Ints]:
        """Every column's variable and value."""
        i = np.repeat(self.narrow, self.sizes)
        return i, np.arange(len(i)) - self.offset[i]


class Tables:
    """All variables' tables under S samples of the parameters, turned into what `Kernel.layers` takes summed.

    Narrow variables' are kept flat, one after another: one array (S, F) a summed quantity. A wide variable's entries
    are looked up for the rows at hand, since its table might not fit in memory.
    """

    def __init__(self, kernel: Kernel, scales: Sequence[Scales], w: Sequence[Floats], columns: Columns) -> None:
        self._kernel, self._scales, self._columns = kernel, scales, columns
        self.weights = np.stack([kernel.weights(h, own) for h, own in zip(scales, w, strict=True)])
        flat = [self._flat(h) for h in scales]
        self.flat = [np.stack([of[q] for of in flat]) for q in range(kernel.summed)]
        self.wide = {i: [kernel.table(h, i) for h in scales] for i in columns.wide.tolist()}
        self.windows = kernel.windows
        self.window_weights = np.stack([kernel.window_weights(h, own) for h, own in zip(scales, w, strict=True)])

    def _flat(self, scales: Scales) -> list[Floats]:
        each = []
        for i in self._columns.narrow.tolist():
            t, complete = self._kernel.table(scales, i), self._kernel.spectra[i].kind == "complete"
            entries = t.values if complete else t.columns(np.arange(t.size)).reshape(-1)
            each.append(self._kernel.summands(scales, i, entries))
        return [np.concatenate([turned[q] for turned in each] or [np.zeros(0)]) for q in range(self._kernel.summed)]

    @property
    def size(self) -> int:
        return len(self._scales)

    def looked_up(self, i: int, s: int, a: Ints, b: Ints) -> list[Floats]:
        """Entries (a, b) of wide variable i's table under sample s, turned."""
        return self._kernel.summands(self._scales[s], i, self.wide[i][s].at(a, b))

    def combine(self, sums: list[Floats], samples: slice = ALL) -> Floats:
        """Covariances (S, ...) from sums, which may be overwritten."""
        shape = (-1, *(1,) * (sums[0].ndim - 1))
        layers, weights = self._kernel.layers(sums), [own.reshape(shape) for own in self.weights[samples].T]
        K = layers[0]
        K *= weights[0]
        for layer, weight in zip(layers[1:], weights[1:], strict=True):
            K += np.multiply(layer, weight, out=layer)
        return K

    def variances(self, H: Any, rows: Ints) -> Floats:
        """Prior variances (S, N) of rows, H their one-hot form."""
        return np.asarray(self.combine(self._own(H, rows)) + self.window_weights.sum(axis=1)[:, None])

    def with_parent(self, H: Any, rows: Ints, owner: Ints, i: Ints, before: Ints, after: Ints) -> Floats:
        """Prior covariances (S, len(owner)) of rows[owner] with neighbours: variable i's pair (a, a) becomes (a, c)."""
        each = zip(self._own(H, rows), self.flat, strict=True)
        K = self.combine([own[:, owner] - T[:, before] + T[:, after] for own, T in each])
        return np.asarray(K + self._windows_with_parent[:, i])

    @cached_property
    def _windows_with_parent(self) -> Floats:
        """(S, d): the windows' covariance of rows that differ in variable i: of m values, z_i falls by m / (m - 1)."""
        sizes = np.array([s.size for s in self._kernel.spectra])
        fall = sizes / np.maximum(sizes - 1, 1)
        return np.asarray(
            self.window_weights.sum(axis=1)[:, None] - (self.window_weights @ self.windows.members) * fall
        )

    def _own(self, H: Any, rows: Ints) -> list[Floats]:
        """Sums (S, N) of rows with themselves."""
        sums = [np.asarray((H @ T[:, self._columns.diagonal].T).T) for T in self.flat]
        for i in self.wide:
            for s in range(self.size):
                for total, one in zip(sums, self.looked_up(i, s, rows[:, i], rows[:, i]), strict=True):
                    total[s] += one
        return sums


class Sums:
    """What `Kernel.layers` takes, for any rows against the observations X (n, d), under S samples.

    Narrow variables' tables (S, M, n), one a summed quantity, are stacked: their product with one-hot rows sums them.
    """

    def __init__(self, tables: Tables, columns: Columns, X: Ints) -> None:
        self._of, self._X = tables, X
        pairs = columns.pairs(X)
        self.tables = [T.take(pairs, axis=1) for T in tables.flat]
        self.Psi = tables.windows.features(X)

    def at(
        self, H: Any, rows: Ints, own: NDArray[np.bool_] | None = None, samples: slice = ALL, first: int | None = None
    ) -> list[Floats]:
        """(S, ..., n) each, of one-hot rows H (..., M) of rows (..., d), under some samples.

        first: with so many observations only.
        own (B, d): of rows (B, R, d), what is not their own is left out; H (B, R, M) must leave it out by itself.
        """
        sums = [_products(H, T[samples, :, :first]) for T in self.tables]
        for i in self._of.wide:
            for k, s in enumerate(range(self._of.size)[samples]):
                turned = self._of.looked_up(i, s, rows[..., i, None], self._X[:first, i])
                for total, one in zip(sums, turned, strict=True):
                    total[k] += one if own is None else one * own[:, i, None, None]
        return sums

    def covariances(self, H: Any, rows: Ints, samples: slice = ALL, first: int | None = None) -> Floats:
        """(S, N, n), or with the first observations only."""
        K = self._of.combine(self.at(H, rows, samples=samples, first=first), samples)
        return self.add_windows(K, self._of.windows.features(rows), samples, first)

    def add_windows(self, K: Floats, Psi: Floats, samples: slice = ALL, first: int | None = None) -> Floats:
        """K (S, N, n) with the (first) observations, the windows' share added: features Psi (N, F) of the rows."""
        if Psi.shape[1]:
            for s, weights in enumerate(self._of.window_weights[samples]):
                K[s] += (Psi * weights[self._of.windows.owner]) @ self.Psi[:first].T
        return K

    def add_moved(self, K: Floats, step: Floats, first: int | None = None) -> Floats:
        """K (S, N, n) with the (first) observations, the share of a step of the features (N, F), many zeros, added."""
        from scipy import sparse

        D, X = sparse.csr_array(step), np.ascontiguousarray(self.Psi[:first].T)
        for s, weights in enumerate(self._of.window_weights):
            weighted = D.data * weights[self._of.windows.owner[D.indices]]
            K[s] += sparse.csr_array((weighted, D.indices, D.indptr), shape=D.shape) @ X
        return K

    def entries(self, i: int, values: Ints, first: int | None = None) -> Floats:
        """The first quantity of a wide variable's values against the (first) observations, (S, len(values), n)."""
        each = [self._of.looked_up(i, s, values[:, None], self._X[:first, i])[0] for s in range(self._of.size)]
        return np.stack(each)


def _products(H: Any, T: Floats) -> Floats:
    """H @ T[s] for every s, (S, ..., n)."""
    if hasattr(H, "toarray"):  # sparse
        return np.stack([H @ own for own in T])
    return np.asarray(H @ T.reshape(len(T), *(1,) * (H.ndim - 2), *T.shape[1:]))


def cross(kernel: Kernel, scales: Scales, w: Floats, rows: Ints, X: Ints) -> Floats:
    """Covariances between rows (N, d) and observations X (n, d), (N, n)."""
    columns = Columns(kernel)
    sums = Sums(Tables(kernel, [scales], [w], columns), columns, X)
    return np.asarray(sums.covariances(columns.one_hot(rows), rows)[0])


def diagonal(kernel: Kernel, scales: Scales, w: Floats, rows: Ints) -> Floats:
    """Prior variance of each row, (N,)."""
    columns = Columns(kernel)
    return np.asarray(Tables(kernel, [scales], [w], columns).variances(columns.one_hot(rows), rows)[0])


def gram(kernel: Kernel, scales: Scales, w: Floats, X: Ints) -> Floats:
    """Signal covariance of the observations, (n, n)."""
    return np.asarray(np.einsum("p,pij->ij", w, kernel.parts(scales, X)))
