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
from functools import cached_property

import numpy as np

from carbo.graph import WIDE, Floats, Ints, Spectrum, Table, table

NU = 2.5
LARGEST = 250.0
"""Of beta times the smallest non-zero eigenvalue: beyond it z is that mode's alone, to five digits, and stays so."""


class Levelled:
    """z at one beta, and how it changes with beta. `s` has more than one value and is not complete."""

    def __init__(self, s: Spectrum, log_beta: float) -> None:
        positive = s.lam[s.lam > 0]
        most = LARGEST / float(positive.min()) if positive.size else math.inf
        beta = math.exp(log_beta)
        self._spectrum, self._moves = s, beta < most
        self._x = min(beta, most) / NU * s.lam
        self._c = (1.0 + self._x) ** -(NU + 0.5)
        self._T = _table(s, self._c)
        self._square = 1.0 / self._T.diagonal()
        self._s = np.sqrt(self._square)
        self._Ts = self._T.times(self._s)
        u = self._s * self._Ts
        self._total = float(u.sum())
        self._v = u / math.sqrt(self._total)
        self._m = 1.0 - float(self._v @ self._v) / s.size

    @cached_property
    def table(self) -> Table:
        T, s, v, m = self._T, self._s, self._v, self._m
        if T.kind == "weighted":
            return Table(T.kind, T.size, (T.values * (s[:, None] * s) - v[:, None] * v) / m)
        return Table(T.kind, T.size, T.values / m, s, v / math.sqrt(m))

    def change(self, levels: Ints) -> Floats:
        """dz between levels (l,): (l, l)."""
        fall = (NU + 0.5) * self._x / (1.0 + self._x) * self._c
        if not self._moves or fall.sum() < 1e-150:  # beside c, of which one is 1: nothing, and its table would be 0/0
            return np.zeros((len(levels), len(levels)))
        D = _table(self._spectrum, fall)  # of mean diagonal one, as T is: dT = -share D
        share = float(fall.sum() / self._c.sum())
        s, v = self._s, self._v
        ds = 0.5 * share * D.diagonal() * s * self._square
        du = ds * self._Ts + s * (self._T.times(ds) - share * D.times(s))
        dv = du / math.sqrt(self._total) - v * (0.5 * float(du.sum()) / self._total)
        dm = -2.0 * float(v @ dv) / len(v)
        pairs = levels[:, None], levels
        s, v, ds, dv = s[levels], v[levels], ds[levels], dv[levels]
        changed = self._T.at(*pairs) * (ds[:, None] * s) - dv[:, None] * v
        changed += changed.T
        changed -= D.at(*pairs) * ((share * s)[:, None] * s)
        changed /= self._m
        return np.asarray(changed - self.table.at(*pairs) * (dm / self._m))


def _table(s: Spectrum, c: Floats) -> Table:
    """sum_j c_j u_j u_j', scaled to mean diagonal one; whole where the values are few."""
    if s.size > WIDE:
        return table(s, c)
    return Table("weighted", s.size, (s.modes * (c * (s.size / float(c.sum())))) @ s.modes.T)
