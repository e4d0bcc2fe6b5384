"""Tables between observed values, for the variables that have no features in the likelihood's gradient.

Notation (n, z as in `gradient`)
    V       variables that are computed together
    l       largest number of observed values of any of them
    F       columns: one for each variable and each of its observed values
    H       (n, F) one where an observation has the value
    a       (V, l, l) numbers between the observed values of each variable, padded with zeros

Variables with similar numbers of values are computed together, because an operation on small arrays costs as much as
the call. Products with (n, n) matrices are expensive for their size: H has no padded columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from carbo.kernels.base import centred_table
from carbo.kernels.ordinal import Entries, OrdinalTables, SpectrumStack
from carbo.kernels.spectra import WIDE, Spectrum
from carbo.numerics.types import Floats, Ints


class Variable(NamedTuple):
    """A variable: its number, its spectrum, its observed values (l,), and which of them each observation has, (n,)."""

    number: int
    spectrum: Spectrum
    values: Ints
    at: Ints


class ValueTables:
    """Tables of V variables between their observed values, for variables with few of them."""

    depends_on_beta = True

    def __init__(self, some: Sequence[Variable]) -> None:
        self.variables = np.array([v.number for v in some], dtype=np.intp)
        self._spectrum = SpectrumStack.of([v.spectrum for v in some]) if len(some) > 1 else some[0].spectrum
        most = max(len(v.values) for v in some)
        self._shape = (len(some), most, most)
        self._values = np.full((len(some), most), -1)  # padded with the last level, which no variable has
        for j, v in enumerate(some):
            self._values[j, : len(v.values)] = v.values
        self._H = np.concatenate([np.eye(len(v.values))[v.at] for v in some], axis=1)
        rows = [(j * most + v.at)[:, None] * most + np.arange(len(v.values)) for j, v in enumerate(some)]
        self._entries = np.concatenate(
            rows, axis=1
        )  # (n, F): index, in the flat a, of the entry of H's column with the observation's value

    def entries(self, log_beta: Floats) -> Entries:
        """z (V, l, l) at log beta (V,), and its derivative."""
        if isinstance(self._spectrum, Spectrum):
            return _entries_of_one(self._spectrum, log_beta, self._values[0])
        return OrdinalTables(self._spectrum, log_beta).entries(self._values)

    def expand(self, a: Floats) -> Floats:
        """The sum over the variables of a between the values of each pair of observations, (n, n)."""
        return np.asarray(a.reshape(-1)[self._entries] @ self._H.T)

    def collect(self, G: Floats) -> Floats:
        """Sums of G (n, n) over the observations with each pair of values, (V, l, l): the transpose of `expand`."""
        columns = (G @ self._H).reshape(-1)
        sums = np.bincount(self._entries.reshape(-1), columns, math.prod(self._shape))
        return np.asarray(sums, dtype=np.float64).reshape(self._shape)


class ObservationTable:
    """Table of one variable between the observations (l = n): for many observed values, or a wide complete graph."""

    def __init__(self, variable: Variable) -> None:
        self.variables, self._spectrum = np.array([variable.number]), variable.spectrum
        self._x, self.depends_on_beta = variable.values[variable.at], variable.spectrum.kind != "complete"

    def entries(self, log_beta: Floats) -> Entries:
        """z (1, n, n) at log beta (1,), and its derivative."""
        if self.depends_on_beta:
            return _entries_of_one(self._spectrum, log_beta, self._x)
        z = centred_table(self._spectrum, 0.0).at(self._x[:, None], self._x)
        return Entries(z[None], lambda: np.zeros((1, *z.shape)))

    def expand(self, a: Floats) -> Floats:
        """As `ValueTables.expand`."""
        return np.asarray(a[0])

    def collect(self, G: Floats) -> Floats:
        """As `ValueTables.collect`."""
        return np.asarray(G[None])


def _entries_of_one(s: Spectrum, log_beta: Floats, values: Ints) -> Entries:
    """z (1, l, l) of one variable between values (l,) at log beta (1,), and its derivative."""
    z, derivative = OrdinalTables(s, float(log_beta[0])).entries(values)
    return Entries(z[None], lambda: derivative()[None])


def observed_tables(spectra: Sequence[tuple[int, Spectrum]], X: Ints) -> list[ValueTables | ObservationTable]:
    """The tables of variables, given as (number, spectrum), for observations X (n, d).

    Variables share a table if their numbers of values, and of observed values, lie between the same powers of two. A
    variable of more than `WIDE` values has its own table: its modes would be expensive to pad, and those of a path or
    a cycle are never computed.
    """
    out, together = list[ValueTables | ObservationTable](), dict[tuple[int, ...], list[Variable]]()
    for i, s in spectra:
        variable = Variable(i, s, *np.unique(X[:, i], return_inverse=True))
        if len(variable.values) > WIDE or s.kind == "complete":
            out.append(ObservationTable(variable))
        else:
            key = (i,) if s.size > WIDE else ((s.size - 1).bit_length(), (len(variable.values) - 1).bit_length())
            together.setdefault(key, []).append(variable)
    return out + [ValueTables(some) for some in together.values()]
