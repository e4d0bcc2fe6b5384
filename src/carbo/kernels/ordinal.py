"""The order kernel's table of a variable whose graph is not complete: a path, a cycle, or a weighted graph.

Notation (k, lam, U as in `spectra`)
    nu      smoothness, 5/2
    c       (k,) (1 + beta lam / nu)^-(nu + 1/2): the Matern spectrum on a graph (Borovitskiy et al. 2021). The spectrum
            of the diffusion kernel, exp(-beta lam), is its limit for large nu; that limit is overconfident between
            observed values
    T       (k, k) sum_j c_j u_j u_j'
    s       (k,) diag(T)^-1/2
    R       s T s, a correlation matrix. Under T the ends of a path, which have one neighbour, would vary twice as much
            as its middle
    v       (k,) R 1 / sqrt(1' R 1)
    z       (R - v v') / m, where m makes the mean diagonal one: the covariance of a process with covariance R, given
            that its mean over the values is zero
    l       number of levels: values of one variable between which z is computed
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
"""Largest product of beta and the smallest non-zero eigenvalue. Beyond it R - v v' would lose its digits; z is close to
its limit there and is kept constant. With graphs scaled by their connectivity, the supports of beta end below it."""


class SpectrumStack(NamedTuple):
    """Spectra of V variables in arrays of one shape, padded with zeros.

    k is one more than the largest number of values: no variable has the value with the last index, and z is 0 there.
    """

    lam: Floats
    """(V, k)"""
    modes: Floats
    """(V, k, k)"""
    squares: Floats
    """(V, k, k)"""
    size: Floats
    """(V,)"""
    slowest: Floats
    """(V,)"""

    @classmethod
    def of(cls, spectra: Sequence[Spectrum]) -> SpectrumStack:
        """The stack of these spectra."""
        k = max(s.size for s in spectra) + 1
        lam, modes = np.zeros((len(spectra), k)), np.zeros((len(spectra), k, k))
        for i, s in enumerate(spectra):
            lam[i, : s.size], modes[i, : s.size, : s.size] = s.lam, s.modes
        size, slowest = np.array([float(s.size) for s in spectra]), np.array([s.slowest for s in spectra])
        return cls(lam, modes, modes * modes, size, slowest)


class Entries(NamedTuple):
    """Entries of z between levels, (..., l, l), and a function that computes dz there."""

    z: Floats
    derivative: Callable[[], Floats]


class OrdinalTables:
    """z and dz of one variable at one beta, or of V variables at one beta each.

    The variables have more than one value, and their graphs are not complete. Arrays have the shapes of the notation,
    with a first axis V if there are several variables.
    """

    def __init__(self, spectrum: Spectrum | SpectrumStack, log_beta: float | Floats) -> None:
        most, beta = LARGEST / np.maximum(spectrum.slowest, 1e-300), np.exp(log_beta)
        self._spectrum, self._moves, self._size = spectrum, beta < most, np.asarray(spectrum.size)[..., None]
        self._x = np.minimum(beta, most)[..., None] / NU * spectrum.lam
        self._c = (1.0 + self._x) ** -(NU + 0.5)
        self._T = _spectral_sum(spectrum, self._c)
        diagonal = self._T.diagonal()
        self._square = 1.0 / np.where(diagonal > 0.0, diagonal, np.inf)  # 0 at the padding
        self._s = np.sqrt(self._square)
        self._Ts = self._T.times(self._s)
        u = self._s * self._Ts
        self._total = u.sum(axis=-1, keepdims=True)
        self._v = u / np.sqrt(self._total)
        self._m = 1.0 - _dot(self._v, self._v) / self._size

    def table(self) -> Table:
        """The table z of one variable."""
        assert isinstance(self._spectrum, Spectrum)
        m = float(self._m[0])
        return self._T.table(self._s, self._v / math.sqrt(m), m)

    def entries(self, levels: Ints) -> Entries:
        """z and dz between levels (..., l)."""
        s, v = (_select(x, levels) for x in (self._s, self._v))
        T, outer = self._T.at(levels), _outer(s, s)
        z = (T * outer - _outer(v, v)) / self._m[..., None]
        return Entries(z, partial(self._derivative, levels, T, outer, z))

    def _derivative(self, levels: Ints, T: Floats, outer: Floats, z: Floats) -> Floats:
        """dz between levels, (..., l, l): the product rule through every line of the notation."""
        s, v = self._s, self._v
        D = _spectral_sum(self._spectrum, -(NU + 0.5) * self._x / (1.0 + self._x) * self._c, -1.0)
        ds = -0.5 * D.diagonal() * s * self._square
        du = ds * self._Ts + s * (self._T.times(ds) + D.times(s))
        dv = du / np.sqrt(self._total) - v * (0.5 * du.sum(axis=-1, keepdims=True) / self._total)
        dm = -2.0 * _dot(v, dv) / self._size
        s, v, ds, dv = (_select(x, levels) for x in (s, v, ds, dv))
        half = T * _outer(ds, s) - _outer(dv, v)
        dz = half + half.swapaxes(-1, -2)
        dz += D.at(levels) * outer
        dz -= z * dm[..., None]
        dz *= self._moves[..., None, None] / self._m[..., None]
        return np.asarray(dz)


def _dot(a: Floats, b: Floats) -> Floats:
    """The inner products a' b, (..., 1)."""
    return np.asarray(np.einsum("...i,...i->...", a, b)[..., None])


def _select(x: Floats, levels: Ints) -> Floats:
    """The entries of x (..., k) at levels (..., l)."""
    return x[levels] if levels.ndim == 1 else np.take_along_axis(x, levels, axis=-1)


def _outer(a: Floats, b: Floats) -> Floats:
    """The outer products a b', (..., l, l)."""
    return np.asarray(a[..., :, None] * b[..., None, :])


def _spectral_sum(spectrum: Spectrum | SpectrumStack, c: Floats, sign: float = 1.0) -> _ModalSum | _ClosedFormSum:
    """The sum over j of c_j u_j u_j', where every c_j is 0 or has this sign."""
    if isinstance(spectrum, Spectrum) and spectrum.size > WIDE and spectrum.kind != "weighted":
        return _ClosedFormSum(spectrum, c)
    return _ModalSum(spectrum, c, sign)


class _ModalSum:
    """The sum computed from the modes U (..., k, k)."""

    def __init__(self, spectrum: Spectrum | SpectrumStack, c: Floats, sign: float) -> None:
        self._U, self._squares, self._c, self._sign = spectrum.modes, spectrum.squares, c, sign

    def diagonal(self) -> Floats:
        """The diagonal, (..., k)."""
        return _multiply(self._squares, self._c)

    def times(self, x: Floats) -> Floats:
        """The product of the sum and x, (..., k)."""
        return _multiply(self._U, self._c * _multiply(self._U.swapaxes(-1, -2), x))

    def at(self, levels: Ints) -> Floats:
        """The entries between levels (..., l), (..., l, l)."""
        rows = self._U[levels if levels.ndim == 1 else (np.arange(len(levels))[:, None], levels)]
        V = rows * np.sqrt(np.abs(self._c))[..., None, :]
        return np.asarray(self._sign * (V @ V.swapaxes(-1, -2)))  # V V' is symmetric to the last digit

    def table(self, scale: Floats, offset: Floats, m: float) -> Table:
        """The table (sum) * scale scale' / m - offset offset' (entry by entry) of one variable."""
        V = self._U * scale[:, None] * np.sqrt(self._c / m)
        return Table("weighted", len(V), V @ V.T - _outer(offset, offset))


def _multiply(A: Floats, x: Floats) -> Floats:
    """The products A x, (..., k)."""
    return np.asarray((A @ x[..., None])[..., 0])


class _ClosedFormSum:
    """The sum of a path or a cycle, computed by its closed form: a matrix of all modes would be large."""

    def __init__(self, s: Spectrum, c: Floats) -> None:
        total = float(c.sum())
        values = np.zeros(2 * s.size if s.kind == "path" else s.size)
        if abs(total) > 1e-150:  # else the sum is negligible against T, and `table` would divide 0 by 0
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
