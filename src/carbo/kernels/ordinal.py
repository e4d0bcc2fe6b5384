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
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from carbo.kernels.spectra import WIDE, Spectrum, Table, table
from carbo.numerics.types import Floats, Ints

NU = 2.5
LARGEST = 250.0
"""Of beta times the smallest non-zero eigenvalue. Beyond, R - v v' would lose its digits: z is close to its limit, and
stays as it is. Priors of beta end before, where graphs are scaled by their connectivity."""


class Stack(NamedTuple):
    """Spectra of V variables in arrays of one shape, filled up with zeros: k is above the number of any one's values,
    so that the last index is that of a value which no variable has, where z is 0.
    """

    lam: Floats
    """(V, k)"""
    modes: Floats
    """(V, k, k)"""
    squares: Floats
    """Of the modes."""
    size: Floats
    """(V,)"""
    slowest: Floats
    """(V,)"""

    @classmethod
    def of(cls, spectra: Sequence[Spectrum]) -> Stack:
        k = max(s.size for s in spectra) + 1
        lam, modes = np.zeros((len(spectra), k)), np.zeros((len(spectra), k, k))
        for i, s in enumerate(spectra):
            lam[i, : s.size], modes[i, : s.size, : s.size] = s.lam, s.modes
        size, slowest = np.array([float(s.size) for s in spectra]), np.array([s.slowest for s in spectra])
        return cls(lam, modes, modes * modes, size, slowest)


class Between(NamedTuple):
    """z between some levels, (..., l, l), and what computes dz there."""

    z: Floats
    change: Callable[[], Floats]


class Levelled:
    """z of one variable at one beta, or of several at one each, and how it changes with beta.

    Variables have more than one value and are not complete. Arrays are as above, with an axis before them for several.
    """

    def __init__(self, of: Spectrum | Stack, log_beta: float | Floats) -> None:
        most, beta = LARGEST / np.maximum(of.slowest, 1e-300), np.exp(log_beta)
        self._of, self._moves, self._size = of, beta < most, np.asarray(of.size)[..., None]
        self._x = np.minimum(beta, most)[..., None] / NU * of.lam
        self._c = (1.0 + self._x) ** -(NU + 0.5)
        self._T = _sum(of, self._c)
        diagonal = self._T.diagonal()
        self._square = 1.0 / np.where(diagonal > 0.0, diagonal, np.inf)  # 0 for what no variable has
        self._s = np.sqrt(self._square)
        self._Ts = self._T.times(self._s)
        u = self._s * self._Ts
        self._total = u.sum(axis=-1, keepdims=True)
        self._v = u / np.sqrt(self._total)
        self._m = 1.0 - _dot(self._v, self._v) / self._size

    def table(self) -> Table:
        """z of one variable, wherever it is asked for."""
        assert isinstance(self._of, Spectrum)
        m = float(self._m[0])
        return self._T.table(self._s, self._v / math.sqrt(m), m)

    def between(self, levels: Ints) -> Between:
        """z and dz between levels (..., l)."""
        s, v = (_taken(x, levels) for x in (self._s, self._v))
        T, outer = self._T.at(levels), _pairs(s, s)
        z = (T * outer - _pairs(v, v)) / self._m[..., None]
        return Between(z, partial(self._change, levels, T, outer, z))

    def _change(self, levels: Ints, T: Floats, outer: Floats, z: Floats) -> Floats:
        s, v = self._s, self._v
        D = _sum(self._of, -(NU + 0.5) * self._x / (1.0 + self._x) * self._c, -1.0)
        ds = -0.5 * D.diagonal() * s * self._square
        du = ds * self._Ts + s * (self._T.times(ds) + D.times(s))
        dv = du / np.sqrt(self._total) - v * (0.5 * du.sum(axis=-1, keepdims=True) / self._total)
        dm = -2.0 * _dot(v, dv) / self._size
        s, v, ds, dv = (_taken(x, levels) for x in (s, v, ds, dv))
        half = T * _pairs(ds, s) - _pairs(dv, v)
        whole = half + half.swapaxes(-1, -2)
        whole += D.at(levels) * outer
        whole -= z * dm[..., None]
        whole *= self._moves[..., None, None] / self._m[..., None]
        return np.asarray(whole)


def _dot(a: Floats, b: Floats) -> Floats:
    """a' b, (..., 1)."""
    return np.asarray(np.einsum("...i,...i->...", a, b)[..., None])


def _taken(x: Floats, levels: Ints) -> Floats:
    """x (..., k) at levels (..., l)."""
    return x[levels] if levels.ndim == 1 else np.take_along_axis(x, levels, axis=-1)


def _pairs(a: Floats, b: Floats) -> Floats:
    """a b', (..., l, l)."""
    return np.asarray(a[..., :, None] * b[..., None, :])


def _sum(of: Spectrum | Stack, c: Floats, sign: float = 1.0) -> _Few | _Many:
    """sum_j c_j u_j u_j', where no c is of the other sign."""
    if isinstance(of, Spectrum) and of.size > WIDE and of.kind != "weighted":
        return _Many(of, c)
    return _Few(of, c, sign)


class _Few:
    """The sum by the modes U (..., k, k) themselves."""

    def __init__(self, of: Spectrum | Stack, c: Floats, sign: float) -> None:
        self._U, self._squares, self._c, self._sign = of.modes, of.squares, c, sign

    def diagonal(self) -> Floats:
        return _applied(self._squares, self._c)

    def times(self, x: Floats) -> Floats:
        return _applied(self._U, self._c * _applied(self._U.swapaxes(-1, -2), x))

    def at(self, levels: Ints) -> Floats:
        """Between levels (..., l): (..., l, l)."""
        rows = self._U[levels if levels.ndim == 1 else (np.arange(len(levels))[:, None], levels)]
        V = rows * np.sqrt(np.abs(self._c))[..., None, :]
        return np.asarray(self._sign * (V @ V.swapaxes(-1, -2)))  # symmetric to the last digit, being a square

    def table(self, scale: Floats, offset: Floats, m: float) -> Table:
        """The sum times scale scale' / m, less offset offset', of one variable."""
        V = self._U * scale[:, None] * np.sqrt(self._c / m)
        return Table("weighted", len(V), V @ V.T - _pairs(offset, offset))


def _applied(A: Floats, x: Floats) -> Floats:
    """A x, (..., k)."""
    return np.asarray((A @ x[..., None])[..., 0])


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
