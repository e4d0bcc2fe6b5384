"""The kernel weighted by order of interaction (docs/model.md), with parts for windows. Notation as in `base`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from carbo.kernels.base import Change, Coordinate, Factors, Scales, Shares, centred, square
from carbo.kernels.gradient import OrdersGradient
from carbo.kernels.polynomials import inverse, newton, symmetric
from carbo.kernels.spectra import WIDE, Spectrum, Table
from carbo.kernels.windows import Windows
from carbo.numerics.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Orders:
    """Orders of interaction up to `highest`; `windowed`: with parts for variables one after another."""

    spectra: tuple[Spectrum, ...]
    highest: int
    windowed: bool = False

    differentiable = True

    @property
    def size(self) -> int:
        return self.highest + self.windows.orders

    @cached_property
    def windows(self) -> Windows:
        return Windows(self.spectra, self.highest if self.windowed else 1)

    def with_windows(self) -> Orders:
        return Orders(self.spectra, self.highest, True)

    @property
    def summed(self) -> int:
        return self.highest

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

    def shares(self, w: Floats) -> Shares:
        each = (w / w.sum(axis=1, keepdims=True)).mean(axis=0)
        orders, windows = each[: self.highest].copy(), each[self.highest :]
        orders[1 : len(windows) + 1] += windows
        names = {str(q + 1): float(share) for q, share in enumerate(orders)}
        return Shares(names, float(windows.sum()) if len(windows) else None)

    # ---- one set of observations, changing parameters

    def parts(self, scales: Scales, X: Ints) -> Floats:
        r = self.relevances(scales)
        E = np.zeros((self.highest + 1, len(X), len(X)))
        E[0] = 1.0
        for i, s in enumerate(self.spectra):
            E[1:] += r[i] * square(centred(s, scales.log_beta[i]), X[:, i]) * E[:-1]
        own = E[1:] * inverse(symmetric(r, self.highest))[:, None, None]
        return np.concatenate([own, self.windows.parts(scales.log_relevance, X)]) if self.windowed else own

    def change(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Change:
        if self.windowed:
            return self._from_scratch(scales, X, w, at)
        A, norms, z = self._without(parts, scales, X, at.variable)
        low, low_norms = _lower(A, norms)
        if at.name == "relevance":
            return _of_relevance(A, low * z, norms, low_norms, w)
        r, s, x = math.exp(scales.log_relevance[at.variable]), self.spectra[at.variable], X[:, at.variable]
        scale = inverse(norms + r * low_norms)
        rest, slope = np.tensordot(w * scale, A, 1), np.tensordot(r * w * scale, low, 1)

        def fill(theta: float, out: Floats) -> None:
            np.multiply(slope, square(centred(s, theta), x), out=out)
            out += rest

        return Change(fill, lambda theta: (A + r * square(centred(s, theta), x) * low) * scale[:, None, None])

    def _from_scratch(self, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Change:
        """All parts computed again at every theta: the sampler that wants speed takes all coordinates at once."""

        def moved(theta: float) -> Floats:
            key = f"log_{at.name}"
            values = getattr(scales, key).copy()
            values[at.variable] = theta
            return self.parts(scales._replace(**{key: values}), X)

        def fill(theta: float, out: Floats) -> None:
            out[:] = np.tensordot(w, moved(theta), 1)

        return Change(fill, moved)

    def _without(self, parts: Floats, scales: Scales, X: Ints, i: int) -> tuple[Floats, Floats, Floats]:
        """Parts and norms without variable i (raw), and variable i's z: the recursion of e_q backwards."""
        r = self.relevances(scales)
        z = square(centred(self.spectra[i], scales.log_beta[i]), X[:, i])
        a, full_norms = r[i] * z, symmetric(r, self.highest)
        A, norms = np.empty_like(parts), np.empty_like(full_norms)
        below, below_norm = np.ones_like(z), 1.0
        for q in range(self.highest):
            below = A[q] = parts[q] * full_norms[q] - a * below
            below_norm = norms[q] = max(full_norms[q] - r[i] * below_norm, 0.0)
        return A, norms, z

    def gradient(self, X: Ints) -> OrdersGradient:
        return OrdersGradient(self.spectra, self.highest, self.windows, X)

    # ---- fixed parameters, many rows

    def table(self, scales: Scales, i: int) -> Table:
        return centred(self.spectra[i], scales.log_beta[i])

    def summands(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:
        a = float(self._active[i]) * math.exp(scales.log_relevance[i]) * entries
        powers = [a]
        for q in range(2, self.highest + 1):  # numpy's powers above the second are slow where a is large
            powers.append(powers[-1] * a if self.spectra[i].size > WIDE else a**q)
        return powers

    def factor(self, first: Floats) -> Floats:
        return first

    def flat(self, scales: Scales) -> tuple[Floats, Floats]:
        r, sizes = self.relevances(scales), np.array([s.size for s in self.spectra])
        return r, -r / np.maximum(sizes - 1, 1)

    def weights(self, scales: Scales, w: Floats) -> Floats:
        return w[: self.highest] * inverse(symmetric(self.relevances(scales), self.highest))

    def window_weights(self, scales: Scales, w: Floats) -> Floats:
        return self.windows.weights(self.windows.rho(scales.log_relevance), w[self.highest :])

    def layers(self, sums: list[Floats]) -> list[Floats]:
        return newton(sums)

    def below(self, layers: list[Floats]) -> list[Floats]:
        return [np.ones_like(layers[0]), *layers[:-1]]

    def halves(self, weights: Floats, layers: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        """e_q of a row is sum_j e_j(left half) e_{q-j}(right half)."""
        plain = [np.ones_like(layers[0]), *layers]
        weighted = [np.zeros_like(plain[0]) for _ in plain]
        for m in range(self.highest + 1):
            for j in range(max(0, 1 - m), self.highest + 1 - m):
                weighted[m] += weights[j + m - 1] * plain[j]
        return weighted, plain

    def rest(self, weights: Floats, u: Floats, below: Sequence[Floats]) -> Floats:
        """sum_m e_m g_m(u), with g_m(u) = sum_{q > m} c_q (-u)^(q-1-m): e_{q-1} without the variable, regrouped."""
        g = np.full_like(u, weights[-1])  # g_{Q-1}, then downwards: g_{m-1} = c_m - u g_m
        total = below[-1] * g
        for m in range(self.highest - 1, 0, -1):
            g *= -u
            g += weights[m - 1]
            total += below[m - 1] * g
        return np.asarray(total)

    def changed(self, K: Floats, below: Floats, at: Ints, factors: Factors, weights: Floats) -> Floats:
        u, new = factors.before(), factors.after()
        m = u.shape[2]
        new -= u
        for s, c in enumerate(weights):
            new[s] *= self.rest(c, u[s], below[s][:, at, :m])
        new += K[:, at, :m]
        return new


def _lower(A: Floats, norms: Floats) -> tuple[Floats, Floats]:
    """What variable i's z multiplies in each part: the order below."""
    low, low_norms = np.empty_like(A), np.empty_like(norms)
    low[0], low_norms[0] = 1.0, 1.0
    low[1:], low_norms[1:] = A[:-1], norms[:-1]
    return low, low_norms


def _of_relevance(A: Floats, B: Floats, norms: Floats, low_norms: Floats, w: Floats) -> Change:
    """Each part is (A + r B) / (norms + r low_norms)."""
    stack = np.concatenate([A, B]).reshape(2 * len(A), -1)

    def fill(theta: float, out: Floats) -> None:
        r = math.exp(theta)
        scale = w * inverse(norms + r * low_norms)
        np.dot(np.append(scale, r * scale), stack, out=out.T.reshape(-1))

    def parts(theta: float) -> Floats:
        r = math.exp(theta)
        return (A + r * B) * inverse(norms + r * low_norms)[:, None, None]

    return Change(fill, parts)
