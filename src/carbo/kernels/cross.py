"""Covariances of many rows at a time: products with one-hot rows sum a kernel's tables over the variables.

Notation
    n, N, d, S  observations, candidate rows, variables, samples of the parameters
    M           columns of a one-hot row: values of all narrow variables (of at most `WIDE` values)
    F           entries of all narrow variables' tables, flat and one after another
    H           (N, M) one-hot rows
    Psi         features of the windows, if the kernel has any (see `windows`)
    q           number of a quantity that is summed over variables (`Kernel.n_sums` of them)
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
"""All samples."""


def one_hot(sizes: Ints, rows: Ints, dense_columns: int = 1024) -> Floats | sparse.csr_array:
    """H (N, M): column offset_i + v is one where variable i has value v. Sparse if it has more than `dense_columns`."""
    columns, width = rows + (np.cumsum(sizes) - sizes), int(np.sum(sizes))
    if width > dense_columns:
        pointers = np.arange(0, columns.size + 1, columns.shape[1])
        from scipy import sparse

        return sparse.csr_array((np.ones(columns.size), columns.reshape(-1), pointers), (len(rows), width))
    H = np.zeros((len(rows), width))
    H[np.arange(len(rows))[:, None], columns] = 1.0
    return H


def to_dense(H: Any) -> Floats:
    """An array of one-hot rows that may be sparse."""
    return np.asarray(H.toarray() if hasattr(H, "toarray") else H)


class Columns:
    """The columns of one-hot rows: one for each value of a narrow variable; wide variables have none."""

    def __init__(self, kernel: Kernel) -> None:
        sizes = np.array([s.size for s in kernel.spectra], dtype=np.intp)
        self.narrow, self.wide = np.flatnonzero(sizes <= WIDE), np.flatnonzero(sizes > WIDE)
        self.sizes = sizes[self.narrow]
        self.offset = np.full(len(sizes), -1)
        """(d,) the first column of each variable; -1 for wide variables."""
        self.offset[self.narrow] = np.cumsum(self.sizes) - self.sizes
        self._complete = np.array([s.kind == "complete" for s in kernel.spectra])
        entries = np.where(self._complete, 2, sizes**2)[self.narrow]
        self._first, self._sizes = np.zeros(len(sizes), dtype=np.intp), sizes
        self._first[self.narrow] = np.cumsum(entries) - entries

    def one_hot(self, rows: Ints) -> Floats | sparse.csr_array:
        """One-hot rows H (N, M)."""
        return one_hot(self.sizes, rows[:, self.narrow] if len(self.wide) else rows)

    def pair_index(self, i: Ints, a: Ints, b: Ints) -> Ints:
        """Indices, in the flat tables (F,), of entries (a, b) of the tables of narrow variables i.

        The table of a complete graph has two entries there: one for equal and one for unequal values.
        """
        return np.asarray(self._first[i] + np.where(self._complete[i], a != b, a * self._sizes[i] + b))

    def pair_indices(self, X: Ints) -> Ints:
        """Indices (M, n) of the entries between each column's value and the observations X."""
        i, value = self._variable_and_value
        return self.pair_index(i[:, None], value[:, None], X.T[i])

    @cached_property
    def diagonal_indices(self) -> Ints:
        """Indices (M,) of the entries between each column's value and itself."""
        i, value = self._variable_and_value
        return self.pair_index(i, value, value)

    @cached_property
    def _variable_and_value(self) -> tuple[Ints, Ints]:
        """The variable and the value of each column, each (M,)."""
        i = np.repeat(self.narrow, self.sizes)
        return i, np.arange(len(i)) - self.offset[i]


class Tables:
    """The terms that each table entry contributes to the sums of `Kernel.layers`, under S samples of the parameters.

    The terms of narrow variables are kept flat, in one array (S, F) for each sum. The terms of a wide variable are
    computed for the rows at hand, because its table might not fit in memory.
    """

    def __init__(self, kernel: Kernel, scales: Sequence[Scales], w: Sequence[Floats], columns: Columns) -> None:
        self._kernel, self._scales, self._columns = kernel, scales, columns
        self.weights = np.stack([kernel.weights(h, v) for h, v in zip(scales, w, strict=True)])
        narrow = [self._compute_narrow_terms(h) for h in scales]
        self.narrow_terms = [np.stack([terms[q] for terms in narrow]) for q in range(kernel.n_sums)]
        self.wide = {i: [kernel.table(h, i) for h in scales] for i in columns.wide.tolist()}
        self.windows = kernel.windows
        self.window_weights = np.stack([kernel.window_weights(h, v) for h, v in zip(scales, w, strict=True)])

    def _compute_narrow_terms(self, scales: Scales) -> list[Floats]:
        """The terms of all narrow variables under one sample, (F,) for each sum."""
        each = []
        for i in self._columns.narrow.tolist():
            t, complete = self._kernel.table(scales, i), self._kernel.spectra[i].kind == "complete"
            entries = t.values if complete else t.columns(np.arange(t.size)).reshape(-1)
            each.append(self._kernel.summands(scales, i, entries))
        return [np.concatenate([terms[q] for terms in each] or [np.zeros(0)]) for q in range(self._kernel.n_sums)]

    @property
    def size(self) -> int:
        """S, the number of samples."""
        return len(self._scales)

    def wide_terms(self, i: int, s: int, a: Ints, b: Ints) -> list[Floats]:
        """The terms of wide variable i under sample s, for entries (a, b) of its table."""
        return self._kernel.summands(self._scales[s], i, self.wide[i][s].at(a, b))

    def combine(self, sums: list[Floats], samples: slice = ALL) -> Floats:
        """Covariances (S, ...) without windows, from the sums (S, ...) of these samples, which may be overwritten."""
        shape = (-1, *(1,) * (sums[0].ndim - 1))
        layers, weights = self._kernel.layers(sums), [weight.reshape(shape) for weight in self.weights[samples].T]
        K = layers[0]
        K *= weights[0]
        for layer, weight in zip(layers[1:], weights[1:], strict=True):
            K += np.multiply(layer, weight, out=layer)
        return K

    def variances(self, H: Any, rows: Ints) -> Floats:
        """Prior variances (S, N) of rows (N, d), with one-hot rows H."""
        return np.asarray(self.combine(self._diagonal_sums(H, rows)) + self.window_weights.sum(axis=1)[:, None])

    def parent_covariances(self, H: Any, rows: Ints, owner: Ints, i: Ints, before: Ints, after: Ints) -> Floats:
        """Prior covariances (S, len(owner)) of the parents rows[owner] with neighbours that differ in variables i.

        before, after: indices of the table entries (a, a) and (a, c), for a change from value a to value c.
        """
        each = zip(self._diagonal_sums(H, rows), self.narrow_terms, strict=True)
        K = self.combine([total[:, owner] - T[:, before] + T[:, after] for total, T in each])
        return np.asarray(K + self._window_parent_covariances[:, i])

    @cached_property
    def _window_parent_covariances(self) -> Floats:
        """The windows' part of `parent_covariances` for each variable, (S, d): z_i falls by m_i / (m_i - 1)."""
        sizes = np.array([s.size for s in self._kernel.spectra])
        fall = sizes / np.maximum(sizes - 1, 1)
        return np.asarray(
            self.window_weights.sum(axis=1)[:, None] - (self.window_weights @ self.windows.members) * fall
        )

    def _diagonal_sums(self, H: Any, rows: Ints) -> list[Floats]:
        """The sums (S, N) between each row and itself."""
        sums = [np.asarray((H @ T[:, self._columns.diagonal_indices].T).T) for T in self.narrow_terms]
        for i in self.wide:
            for s in range(self.size):
                for total, term in zip(sums, self.wide_terms(i, s, rows[:, i], rows[:, i]), strict=True):
                    total[s] += term
        return sums


class Sums:
    """The sums of `Kernel.layers` between any rows and the observations X (n, d), under S samples.

    `terms` holds the terms between each column's value and the observations, one array (S, M, n) for each sum. Its
    product with one-hot rows sums the terms over the narrow variables.
    """

    def __init__(self, tables: Tables, columns: Columns, X: Ints) -> None:
        self._tables, self._X = tables, X
        indices = columns.pair_indices(X)
        self.terms = [T.take(indices, axis=1) for T in tables.narrow_terms]
        self.Psi = tables.windows.features(X)

    def at(
        self, H: Any, rows: Ints, own: NDArray[np.bool_] | None = None, samples: slice = ALL, first: int | None = None
    ) -> list[Floats]:
        """The sums between rows (..., d), with one-hot rows H (..., M), and the observations: each (S, ..., n).

        samples: the samples to use. first: the number of observations to use; None: all.
        own (B, d): for rows (B, R, d), the variables to sum over in each block; H (B, R, M) must be zero at the others.
        """
        sums = [_multiply(H, T[samples, :, :first]) for T in self.terms]
        for i in self._tables.wide:
            for k, s in enumerate(range(self._tables.size)[samples]):
                terms = self._tables.wide_terms(i, s, rows[..., i, None], self._X[:first, i])
                for total, term in zip(sums, terms, strict=True):
                    total[k] += term if own is None else term * own[:, i, None, None]
        return sums

    def covariances(self, H: Any, rows: Ints, samples: slice = ALL, first: int | None = None) -> Floats:
        """Covariances (S, N, n) of rows (N, d) with the (first) observations."""
        K = self._tables.combine(self.at(H, rows, samples=samples, first=first), samples)
        return self.add_windows(K, self._tables.windows.features(rows), samples, first)

    def add_windows(self, K: Floats, Psi: Floats, samples: slice = ALL, first: int | None = None) -> Floats:
        """K (S, N, n) with the windows' covariances added, in place; Psi are the rows' features."""
        if Psi.shape[1]:
            for s, weights in enumerate(self._tables.window_weights[samples]):
                K[s] += (Psi * weights[self._tables.windows.owner]) @ self.Psi[:first].T
        return K

    def add_window_changes(self, K: Floats, step: Floats, first: int | None = None) -> Floats:
        """K (S, N, n) with the covariances of a change of the rows' features added; most of `step` must be zero."""
        from scipy import sparse

        D, X = sparse.csr_array(step), np.ascontiguousarray(self.Psi[:first].T)
        for s, weights in enumerate(self._tables.window_weights):
            weighted = D.data * weights[self._tables.windows.owner[D.indices]]
            K[s] += sparse.csr_array((weighted, D.indices, D.indptr), shape=D.shape) @ X
        return K

    def first_wide_terms(self, i: int, values: Ints, first: int | None = None) -> Floats:
        """Terms (S, len(values), n) in the first sum of wide variable i, between values and (first) observations."""
        column = self._X[:first, i]
        each = [self._tables.wide_terms(i, s, values[:, None], column)[0] for s in range(self._tables.size)]
        return np.stack(each)


def _multiply(H: Any, T: Floats) -> Floats:
    """The products H @ T[s] for every sample s, (S, ..., n)."""
    if hasattr(H, "toarray"):  # sparse
        return np.stack([H @ terms for terms in T])
    return np.asarray(H @ T.reshape(len(T), *(1,) * (H.ndim - 2), *T.shape[1:]))


def cross(kernel: Kernel, scales: Scales, w: Floats, rows: Ints, X: Ints) -> Floats:
    """Covariances (N, n) between rows (N, d) and observations X (n, d), with weights w (P,)."""
    columns = Columns(kernel)
    sums = Sums(Tables(kernel, [scales], [w], columns), columns, X)
    return np.asarray(sums.covariances(columns.one_hot(rows), rows)[0])
