"""Variables without features in the likelihood's gradient: their tables between the values that were seen.

Notation (n, z as in `gradient`)
    V, l    variables taken together, and the values that any of them was seen with, at most
    F       columns: one for each variable and each value that it was seen with
    H       (n, F) one where an observation has the value
    a       (V, l, l) between the values seen of each variable; filled up with zeros

Variables of about as many values are computed together: an operation on small arrays costs its call, not its numbers.
The products with n x n matrices cost their numbers, and have no columns that are filled up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from carbo.kernels.base import centred
from carbo.kernels.ordinal import Between, Levelled, Stack
from carbo.kernels.spectra import WIDE, Spectrum
from carbo.numerics.types import Floats, Ints


class Variable(NamedTuple):
    """The values (l,) that it was seen with, and which of them each observation has, (n,)."""

    number: int
    spectrum: Spectrum
    values: Ints
    at: Ints


class ByValues:
    """Variables that were seen with few values each, by pairs of these."""

    moves = True

    def __init__(self, some: Sequence[Variable]) -> None:
        self.variables = np.array([v.number for v in some], dtype=np.intp)
        self._of = Stack.of([v.spectrum for v in some]) if len(some) > 1 else some[0].spectrum
        most = max(len(v.values) for v in some)
        self._shape = (len(some), most, most)
        self._values = np.full((len(some), most), -1)  # the value that no variable has
        for j, v in enumerate(some):
            self._values[j, : len(v.values)] = v.values
        self._H = np.concatenate([np.eye(len(v.values))[v.at] for v in some], axis=1)
        rows = [(j * most + v.at)[:, None] * most + np.arange(len(v.values)) for j, v in enumerate(some)]
        self._entries = np.concatenate(rows, axis=1)  # (n, F): where a, laid flat, has the observation's row of it

    def between(self, log_beta: Floats) -> Between:
        """z (V, l, l) at log beta (V,), and its change."""
        if isinstance(self._of, Spectrum):
            return _alone(self._of, log_beta, self._values[0])
        return Levelled(self._of, log_beta).between(self._values)

    def spread(self, a: Floats) -> Floats:
        """What is given between values, between observations, summed over the variables: (n, n)."""
        return np.asarray(a.reshape(-1)[self._entries] @ self._H.T)

    def gathered(self, G: Floats) -> Floats:
        """What is given between observations (n, n), summed by their values: (V, l, l)."""
        columns = (G @ self._H).reshape(-1)
        sums = np.bincount(self._entries.reshape(-1), columns, math.prod(self._shape))
        return np.asarray(sums, dtype=np.float64).reshape(self._shape)


class ByObservations:
    """One variable that was seen with many values, or a complete graph of many, by pairs of observations: l = n."""

    def __init__(self, variable: Variable) -> None:
        self.variables, self._spectrum = np.array([variable.number]), variable.spectrum
        self._x, self.moves = variable.values[variable.at], variable.spectrum.kind != "complete"

    def between(self, log_beta: Floats) -> Between:
        if self.moves:
            return _alone(self._spectrum, log_beta, self._x)
        z = centred(self._spectrum, 0.0).at(self._x[:, None], self._x)  # the same at any beta
        return Between(z[None], lambda: np.zeros((1, *z.shape)))

    def spread(self, a: Floats) -> Floats:
        return np.asarray(a[0])

    def gathered(self, G: Floats) -> Floats:
        return np.asarray(G[None])


def _alone(s: Spectrum, log_beta: Floats, values: Ints) -> Between:
    z, change = Levelled(s, float(log_beta[0])).between(values)
    return Between(z[None], lambda: change()[None])


def observed_tables(spectra: Sequence[tuple[int, Spectrum]], X: Ints) -> list[ByValues | ByObservations]:
    """Variables, given with their numbers, together where between the same powers of two lie both the values they have
    and those they were seen with. One of more than `WIDE` values is alone: its modes are not to be filled up, and those
    of a path or a cycle not even to be computed.
    """
    out, together = list[ByValues | ByObservations](), dict[tuple[int, ...], list[Variable]]()
    for i, s in spectra:
        variable = Variable(i, s, *np.unique(X[:, i], return_inverse=True))
        if len(variable.values) > WIDE or s.kind == "complete":
            out.append(ByObservations(variable))
        else:
            key = (i,) if s.size > WIDE else ((s.size - 1).bit_length(), (len(variable.values) - 1).bit_length())
            together.setdefault(key, []).append(variable)
    return out + [ByValues(some) for some in together.values()]
