"""Variables without features in the likelihood's gradient: their tables between the levels that were seen.

Notation (n, z, r, a as in `gradient`)
    V, l    variables taken together, and levels that one of them was seen with, at most
    H       (V, n, l) one where an observation has the level: H_i a_i H_i' is a_i between observations

Variables seen with about as many values are computed together: an operation on small arrays costs its call.
One that was seen with more than `WIDE` values is computed by pairs of observations, alone: each observation counts as
a level of its own, l = n, and H is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from carbo.graph import WIDE, Floats, Ints, Spectrum
from carbo.kernel import centred
from carbo.levelled import Between, Levelled, Stack


class Few:
    """Variables that were seen with few values each."""

    def __init__(self, variables: Sequence[int], spectra: Sequence[Spectrum], X: Ints) -> None:
        self.variables = np.array(variables, dtype=np.intp)
        seen = [np.unique(X[:, i], return_inverse=True) for i in variables]
        most = max(len(levels) for levels, _ in seen)
        self._of = Stack.of(spectra) if len(spectra) > 1 else spectra[0]
        self._levels = np.full((len(seen), most), -1)  # the level that no variable has
        self._H = np.zeros((len(X), len(seen), most))
        for j, (levels, at) in enumerate(seen):
            self._levels[j, : len(levels)] = levels
            self._H[np.arange(len(X)), j, at] = 1.0
        self._flat = self._H.reshape(len(X), -1)

    def tables(self, log_beta: Floats) -> Between:
        """(V, l, l): centred tables, and their change by log beta (V,)."""
        if isinstance(self._of, Spectrum):
            return _alone(self._of, log_beta, self._levels[0])
        return Levelled(self._of, log_beta).between(self._levels)

    def spread(self, a: Floats) -> Floats:
        """What is given between levels (V, l, l), between observations, summed over the variables: (n, n)."""
        rows = self._H.swapaxes(0, 1) @ a
        return np.asarray(rows.swapaxes(0, 1).reshape(self._flat.shape) @ self._flat.T)

    def gathered(self, G: Floats) -> Floats:
        """What is given between observations (n, n), summed by their levels (V, l, l)."""
        columns = (G @ self._flat).reshape(self._H.shape).swapaxes(0, 1)
        return np.asarray(self._H.transpose(1, 2, 0) @ columns)


class Wide:
    """One variable, by pairs of observations: V = 1, l = n."""

    def __init__(self, variable: int, spectrum: Spectrum, x: Ints) -> None:
        self.variables, self._spectrum, self._x = np.array([variable]), spectrum, x

    def tables(self, log_beta: Floats) -> Between:
        s, x = self._spectrum, self._x
        if s.kind == "complete":  # the same at any beta
            z = centred(s, 0.0).at(x[:, None], x)[None]
            return Between(z, partial(np.zeros_like, z))
        return _alone(s, log_beta, x)

    def spread(self, a: Floats) -> Floats:
        return np.asarray(a[0])

    def gathered(self, G: Floats) -> Floats:
        return np.asarray(G[None])


def _alone(s: Spectrum, log_beta: Floats, levels: Ints) -> Between:
    z, change = Levelled(s, float(log_beta[0])).between(levels)
    return Between(z[None], lambda: change()[None])


def groups(spectra: Sequence[tuple[int, Spectrum]], X: Ints) -> list[Few | Wide]:
    """Of variables, given with their numbers: together where one was seen with at least half as many values as another.

    Modes of more than `WIDE` values would fill the memory: paths and cycles of so many do without them, alone.
    """
    seen = {i: len(np.unique(X[:, i])) for i, _ in spectra}
    wide, together = list[Few | Wide](), list[list[tuple[int, Spectrum]]]()
    for i, s in sorted(spectra, key=lambda variable: -seen[variable[0]]):
        if seen[i] > WIDE or s.kind == "complete":
            wide.append(Wide(i, s, X[:, i]))
        elif together and max(s.size, together[-1][0][1].size) <= WIDE and seen[together[-1][0][0]] <= 2 * seen[i]:
            together[-1].append((i, s))
        else:
            together.append([(i, s)])
    return wide + [Few([i for i, _ in group], [s for _, s in group], X) for group in together]
