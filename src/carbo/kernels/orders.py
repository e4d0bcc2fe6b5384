"""The kernel weighted by order of interaction (design section 6). Notation as in `kernel`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from carbo.kernels.base import Coordinate, Curve, Scales, Split, centred, square
from carbo.kernels.spectra import WIDE, Spectrum, Table
from carbo.numerics.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Orders:
    """The kernel weighted by order of interaction, up to `highest`, with the full product if `product`."""

    spectra: tuple[Spectrum, ...]
    highest: int
    product: bool

    @property
    def size(self) -> int:
        return self.highest + int(self.product)

    def coordinates(self) -> list[Coordinate]:
        some = [(i, s) for i, s in enumerate(self.spectra) if s.size > 1]
        return [Coordinate("relevance", i) for i, _ in some] + [
            Coordinate("beta", i) for i, s in some if s.kind != "complete"
        ]

    @cached_property
    def _active(self) -> Floats:
        """(d,) zero for variables of one value, which vary nothing."""
        return np.array([float(s.size > 1) for s in self.spectra])

    def relevances(self, scales: Scales) -> Floats:
        """(d,) r, zero for variables of one value."""
        return self._active * np.exp(scales.log_relevance)

    def norms(self, r: Floats) -> Floats:
        """(P,) e_q(r) for each order, one for the product: what makes each part's mean diagonal one."""
        return np.append(symmetric(r, self.highest), np.ones(int(self.product)))

    def parts(self, scales: Scales, X: Ints) -> Floats:
        n, r = len(X), self.relevances(scales)
        E = np.zeros((self.highest + 1, n, n))
        E[0] = 1.0
        full = np.ones((n, n))
        for i, s in enumerate(self.spectra):
            a = r[i] * square(centred(s, scales.log_beta[i]), X[:, i])
            E[1:] += a * E[:-1]
            if self.product:
                full *= _factor(a) / (1.0 + r[i])
        raw = E[1:] if not self.product else np.concatenate([E[1:], full[None]])
        return raw * inverse(self.norms(r))[:, None, None]

    def _without(self, parts: Floats, scales: Scales, X: Ints, i: int) -> tuple[Floats, Floats, Floats]:
        """Parts and norms without variable i (raw), and variable i's z: the recursion of e_q backwards."""
        r = self.relevances(scales)
        z = square(centred(self.spectra[i], scales.log_beta[i]), X[:, i])
        a, full_norms = r[i] * z, self.norms(r)
        A, norms = np.empty_like(parts), np.empty_like(full_norms)
        below, below_norm = np.ones_like(z), 1.0
        for q in range(self.highest):
            below = A[q] = parts[q] * full_norms[q] - a * below
            below_norm = norms[q] = max(full_norms[q] - r[i] * below_norm, 0.0)
        if self.product:
            A[-1] = parts[-1] * (1.0 + r[i]) / _factor(a)
            norms[-1] = 1.0
        return A, norms, z

    def _lower(self, A: Floats, norms: Floats) -> tuple[Floats, Floats]:
        """What variable i's z multiplies in each part: the order below, for the product the product itself."""
        low, low_norms = np.empty_like(A), np.empty_like(norms)
        low[0], low_norms[0] = 1.0, 1.0
        low[1 : self.highest], low_norms[1 : self.highest] = A[: self.highest - 1], norms[: self.highest - 1]
        if self.product:
            low[-1], low_norms[-1] = A[-1], 1.0
        return low, low_norms

    def swap(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Split | Curve:
        A, norms, z = self._without(parts, scales, X, at.variable)
        low, low_norms = self._lower(A, norms)
        if at.name == "relevance":
            return self._relevance_curve(A, low * z, norms, low_norms, w)
        r, s, x = math.exp(scales.log_relevance[at.variable]), self.spectra[at.variable], X[:, at.variable]
        scale = inverse(norms + r * low_norms)
        rest, slope = np.tensordot(w * scale, A, 1), np.tensordot(r * w * scale, low, 1)

        def fill(theta: float, out: Floats) -> None:
            np.multiply(slope, square(centred(s, theta), x), out=out)
            out += rest

        return Curve(fill, lambda theta: (A + r * square(centred(s, theta), x) * low) * scale[:, None, None])

    @staticmethod
    def _relevance_curve(A: Floats, B: Floats, norms: Floats, low_norms: Floats, w: Floats) -> Curve:
        """Each part is (A + r B) / (norms + r low_norms)."""
        stack = np.concatenate([A, B]).reshape(2 * len(A), -1)

        def fill(theta: float, out: Floats) -> None:
            r = math.exp(theta)
            scale = w * inverse(norms + r * low_norms)
            np.dot(np.append(scale, r * scale), stack, out=out.T.reshape(-1))

        def parts(theta: float) -> Floats:
            r = math.exp(theta)
            return (A + r * B) * inverse(norms + r * low_norms)[:, None, None]

        return Curve(fill, parts)

    def swapped(self, parts: Floats, scales: Scales, X: Ints, at: Coordinate, theta: float) -> Floats:
        change = self.swap(parts, scales, X, np.ones(self.size), at)
        assert isinstance(change, Curve)
        return change.parts(theta)

    @property
    def summed(self) -> int:
        return self.highest + 2 * int(self.product)

    def table(self, scales: Scales, i: int) -> Table:
        return centred(self.spectra[i], scales.log_beta[i])

    def turned(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:
        r = float(self._active[i]) * math.exp(scales.log_relevance[i])
        a = r * entries
        powers = [a]
        for q in range(2, self.highest + 1):  # numpy's powers above the second are slow where a is large
            powers.append(powers[-1] * a if self.spectra[i].size > WIDE else a**q)
        if self.product:  # signs are carried apart from magnitudes: a factor 1 + r z may be negative
            factor = _factor(a) / (1.0 + r)
            powers += [np.log(np.abs(factor)), np.where(factor < 0, 1.0, 0.0)]
        return powers

    def weights(self, scales: Scales, w: Floats) -> Floats:
        return w * inverse(self.norms(self.relevances(scales)))

    def combine(self, sums: list[Floats], weights: Sequence[Floats]) -> Floats:
        e = newton(sums[: self.highest])
        K = weights[0] * e[0]
        for q in range(1, self.highest):
            e[q] *= weights[q]
            K += e[q]
        if self.product:
            full = np.exp(sums[self.highest], out=sums[self.highest])
            K += weights[-1] * np.where(np.rint(sums[self.highest + 1]) % 2 == 1, -full, full)
        return np.asarray(K)


def symmetric(r: Floats, highest: int) -> Floats:
    """(e_1(r), ..., e_highest(r)): e_q sums r_i times e_{q-1} of the values before i. Nothing cancels."""
    e, before = np.empty(highest), np.ones(len(r))
    for q in range(highest):
        upto = np.cumsum(r * before)
        e[q] = upto[-1] if len(r) else 0.0
        before = np.concatenate([[0.0], upto[:-1]])
    return e


def newton(p: Sequence[Floats]) -> list[Floats]:
    """e_1..e_Q from power sums p_1..p_Q: q e_q = sum_s (-1)^(s-1) e_{q-s} p_s (Newton's identities)."""
    e: list[Floats] = []
    for q in range(1, len(p) + 1):
        total = p[q - 1] * p[0].dtype.type((-1.0) ** (q - 1))
        for s in range(1, q):
            term = e[q - s - 1] * p[s - 1]
            total = total + term if s % 2 == 1 else total - term
        total /= p[0].dtype.type(q)
        e.append(total)
    return e


def inverse(norms: Floats) -> Floats:
    """1 / norms; zero where a norm is: an order above the number of variables has no part."""
    return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)


def _factor(a: Floats) -> Floats:
    """1 + r z, kept from zero (binary: r = 1), so that it can be divided out again."""
    return np.where(np.abs(1.0 + a) < 1e-8, 1e-8, 1.0 + a)
