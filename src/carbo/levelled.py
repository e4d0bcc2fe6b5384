"""The order kernel's table of a variable whose values are not all alike: on a path, a cycle, or weights of its own.

Notation (k, lam, U as in `graph`)
    nu      smoothness, 5/2
    c       (k,) (1 + beta lam / nu)^-(nu + 1/2): the Matern spectrum on a graph (Borovitskiy et al. 2021). That of the
            diffusion kernel, exp(-beta lam), is its limit for large nu, and too sure between values it has seen
    T       (k, k) sum_j c_j u_j u_j'
    s       (k,) diag(T)^-1/2
    R       s T s, a correlation matrix: the ends of a path, with neighbours on one side only, would else vary twice as
            much as its middle
    v       (k,) R 1 / sqrt(1' R 1)
    z       (R - v v') / m, where m makes its mean diagonal one: the covariance of a process with covariance R whose
            mean over the values is known to be zero
    d...    a derivative by log beta
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from carbo.graph import WIDE, Floats, Ints, Spectrum, Table, table

NU = 2.5
LARGEST = 250.0
"""Of beta times the smallest non-zero eigenvalue. Beyond, R - v v' would lose its digits: z is close to its limit, and
stays as it is. Priors of beta end before, where graphs are scaled by their connectivity."""


class Between(NamedTuple):
    """z between some levels, (l, l), and what computes dz there."""

    z: Floats
    change: Callable[[], Floats]


class Levelled:
    """z at one beta, and how it changes with beta. `s` has more than one value and is not complete."""

    def __init__(self, s: Spectrum, log_beta: float) -> None:
        most = LARGEST / s.slowest if s.slowest else math.inf
        beta = math.exp(log_beta)
        self._spectrum, self._moves = s, beta < most
        self._x = min(beta, most) / NU * s.lam
        self._c = (1.0 + self._x) ** -(NU + 0.5)
        self._T = _sum(s, self._c)
        self._square = 1.0 / self._T.diagonal()
        self._s = np.sqrt(self._square)
        self._Ts = self._T.times(self._s)
        u = self._s * self._Ts
        self._total = float(u.sum())
        self._v = u / math.sqrt(self._total)
        self._m = 1.0 - float(self._v @ self._v) / s.size

    def table(self) -> Table:
        """z, wherever it is asked for."""
        return self._T.table(self._s, self._v / math.sqrt(self._m), self._m)

    def between(self, levels: Ints) -> Between:
        """z and dz between levels (l,)."""
        s, v = self._s[levels], self._v[levels]
        T, outer = self._T.at(levels), s[:, None] * s
        z = (T * outer - v[:, None] * v) / self._m
        return Between(z, partial(self._change, levels, T, outer, z))

    def _change(self, levels: Ints, T: Floats, outer: Floats, z: Floats) -> Floats:
        if not self._moves:
            return np.zeros_like(z)
        s, v = self._s, self._v
        D = _sum(self._spectrum, -(NU + 0.5) * self._x / (1.0 + self._x) * self._c)
        ds = -0.5 * D.diagonal() * s * self._square
        du = ds * self._Ts + s * (self._T.times(ds) + D.times(s))
        dv = du / math.sqrt(self._total) - v * (0.5 * float(du.sum()) / self._total)
        dm = -2.0 * float(v @ dv) / len(v)
        s, v, ds, dv = s[levels], v[levels], ds[levels], dv[levels]
        half = T * (ds[:, None] * s) - dv[:, None] * v
        whole = half + half.T
        whole += D.at(levels) * outer
        whole -= z * dm
        whole /= self._m
        return np.asarray(whole)


def _sum(s: Spectrum, c: Floats) -> _Few | _Many:
    return _Few(s, c) if s.size <= WIDE or s.kind == "weighted" else _Many(s, c)


class _Few:
    """sum_j c_j u_j u_j', where all c have one sign, by the modes themselves."""

    def __init__(self, s: Spectrum, c: Floats) -> None:
        self._U, self._c = s.modes, c

    def diagonal(self) -> Floats:
        return np.asarray(self._U**2 @ self._c)

    def times(self, x: Floats) -> Floats:
        return np.asarray(self._U @ (self._c * (x @ self._U)))

    def at(self, levels: Ints) -> Floats:
        """Between levels (l,): (l, l)."""
        V = self._U[levels] * np.sqrt(np.abs(self._c))
        return np.asarray(V @ V.T if self._c[0] > 0 else -(V @ V.T))  # symmetric to the last digit, being a square

    def table(self, scale: Floats, offset: Floats, m: float) -> Table:
        """The sum times scale scale' / m, less offset offset'."""
        V = self._U * scale[:, None] * np.sqrt(self._c / m)
        return Table("weighted", len(V), V @ V.T - offset[:, None] * offset)


class _Many:
    """The same by the closed forms of paths and cycles, whose modes would fill a matrix."""

    def __init__(self, s: Spectrum, c: Floats) -> None:
        total = float(c.sum())
        values = np.zeros(2 * s.size if s.kind == "path" else s.size)
        if abs(total) > 1e-150:  # else nothing beside T, whose c hold 1; and a table of mean diagonal one would be 0/0
            values = table(s, c).values * (total / s.size)
        self._table = Table(s.kind, s.size, values)

    def diagonal(self) -> Floats:
        return self._table.diagonal()

    def times(self, x: Floats) -> Floats:
        return self._table.times(x)

    def at(self, levels: Ints) -> Floats:
        return self._table.at(levels[:, None], levels)

    def table(self, scale: Floats, offset: Floats, m: float) -> Table:
        t = self._table
        return Table(t.kind, t.size, t.values / m, scale, offset)
