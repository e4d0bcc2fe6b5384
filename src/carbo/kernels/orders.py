"""The order kernel: a weight for each order of interaction, and parts for windows.

Notation (besides that of `base`)
    i           the variable whose coordinate changes; z (n, n) its centred table between the observations
    A, norms    (Q, n, n) and (Q,): e_q and e_q(r) without variable i
    low, low_norms  the same of the order below: e_{q-1} and e_{q-1}(r) without variable i; B = low * z
    E           (Q + 1, n, n) e_0, ..., e_Q of the variables so far
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from carbo.kernels.base import Change, Coordinate, Factors, Scales, VarianceShares, centred_table, pairwise_entries
from carbo.kernels.gradient import OrdersGradient
from carbo.kernels.polynomials import elementary_symmetric, inverse_norms, newton
from carbo.kernels.spectra import WIDE, Spectrum, Table
from carbo.kernels.windows import Windows
from carbo.numerics.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Orders:
    """The kernel of orders of interaction up to `highest`; `windowed`: with parts for windows."""

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
    def n_sums(self) -> int:
        return self.highest

    def coordinates(self) -> list[Coordinate]:
        active = [(i, s) for i, s in enumerate(self.spectra) if s.size > 1]
        return [Coordinate("relevance", i) for i, _ in active] + [
            Coordinate("beta", i) for i, s in active if s.kind != "complete"
        ]

    @cached_property
    def _active(self) -> Floats:
        """One for each variable, zero for variables of one value, (d,)."""
        return np.array([float(s.size > 1) for s in self.spectra])

    def relevances(self, scales: Scales) -> Floats:
        """The relevances r (d,), zero for variables of one value."""
        return self._active * np.exp(scales.log_relevance)

    def variance_shares(self, w: Floats) -> VarianceShares:
        each = (w / w.sum(axis=1, keepdims=True)).mean(axis=0)
        orders, windows = each[: self.highest].copy(), each[self.highest :]
        orders[1 : len(windows) + 1] += windows
        names = {str(q + 1): float(share) for q, share in enumerate(orders)}
        return VarianceShares(names, float(windows.sum()) if len(windows) else None)

    # ---- for the sampler: one set of observations, changing parameters

    def parts(self, scales: Scales, X: Ints) -> Floats:
        r = self.relevances(scales)
        E = np.zeros((self.highest + 1, len(X), len(X)))
        E[0] = 1.0
        for i, s in enumerate(self.spectra):
            E[1:] += r[i] * pairwise_entries(centred_table(s, scales.log_beta[i]), X[:, i]) * E[:-1]
        orders = E[1:] * inverse_norms(elementary_symmetric(r, self.highest))[:, None, None]
        return np.concatenate([orders, self.windows.parts(scales.log_relevance, X)]) if self.windowed else orders

    def change(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Change:
        if self.windowed:
            return self._recompute(scales, X, w, at)
        A, norms, z = self._without_variable(parts, scales, X, at.variable)
        low, low_norms = np.concatenate([np.ones_like(A[:1]), A[:-1]]), np.append(1.0, norms[:-1])
        if at.name == "relevance":
            return _change_of_relevance(A, low * z, norms, low_norms, w)
        r, s, x = math.exp(scales.log_relevance[at.variable]), self.spectra[at.variable], X[:, at.variable]
        scale = inverse_norms(norms + r * low_norms)
        rest, slope = np.tensordot(w * scale, A, 1), np.tensordot(r * w * scale, low, 1)

        def fill(theta: float, out: Floats) -> None:
            np.multiply(slope, pairwise_entries(centred_table(s, theta), x), out=out)
            out += rest

        return Change(
            fill, lambda theta: (A + r * pairwise_entries(centred_table(s, theta), x) * low) * scale[:, None, None]
        )

    def _recompute(self, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Change:
        """A change that computes all parts again at every theta: slow, and not used by samplers with a gradient."""

        def parts(theta: float) -> Floats:
            key = f"log_{at.name}"
            values = getattr(scales, key).copy()
            values[at.variable] = theta
            return self.parts(scales._replace(**{key: values}), X)

        def fill(theta: float, out: Floats) -> None:
            out[:] = np.tensordot(w, parts(theta), 1)

        return Change(fill, parts)

    def _without_variable(self, parts: Floats, scales: Scales, X: Ints, i: int) -> tuple[Floats, Floats, Floats]:
        """The e_q and their norms without variable i, and z_i (n, n): the recursion of e_q backwards."""
        r = self.relevances(scales)
        z = pairwise_entries(centred_table(self.spectra[i], scales.log_beta[i]), X[:, i])
        a, full_norms = r[i] * z, elementary_symmetric(r, self.highest)
        A, norms = np.empty_like(parts), np.empty_like(full_norms)
        below, below_norm = np.ones_like(z), 1.0
        for q in range(self.highest):
            below = A[q] = parts[q] * full_norms[q] - a * below
            below_norm = norms[q] = max(full_norms[q] - r[i] * below_norm, 0.0)
        return A, norms, z

    def gradient(self, X: Ints) -> OrdersGradient:
        return OrdersGradient(self.spectra, self.highest, self.windows, X)

    # ---- for the search: fixed parameters, many rows

    def table(self, scales: Scales, i: int) -> Table:
        return centred_table(self.spectra[i], scales.log_beta[i])

    def summands(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:
        a = float(self._active[i]) * math.exp(scales.log_relevance[i]) * entries
        powers = [a]
        for q in range(2, self.highest + 1):  # numpy's powers above the second are slow where a is large
            powers.append(powers[-1] * a if self.spectra[i].size > WIDE else a**q)
        return powers

    def factor(self, first: Floats) -> Floats:
        return first

    def equality_factors(self, scales: Scales) -> tuple[Floats, Floats]:
        r, sizes = self.relevances(scales), np.array([s.size for s in self.spectra])
        return r, -r / np.maximum(sizes - 1, 1)

    def weights(self, scales: Scales, w: Floats) -> Floats:
        return w[: self.highest] * inverse_norms(elementary_symmetric(self.relevances(scales), self.highest))

    def window_weights(self, scales: Scales, w: Floats) -> Floats:
        return self.windows.weights(self.windows.rho(scales.log_relevance), w[self.highest :])

    def layers(self, sums: list[Floats]) -> list[Floats]:
        return newton(sums)

    def lower_layers(self, layers: list[Floats]) -> list[Floats]:
        return [np.ones_like(layers[0]), *layers[:-1]]

    def half_factors(self, weights: Floats, layers: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        """e_q of a row is sum_j e_j(left half) e_{q-j}(right half)."""
        plain = [np.ones_like(layers[0]), *layers]
        weighted = [np.zeros_like(plain[0]) for _ in plain]
        for m in range(self.highest + 1):
            for j in range(max(0, 1 - m), self.highest + 1 - m):
                weighted[m] += weights[j + m - 1] * plain[j]
        return weighted, plain

    def factor_slope(self, weights: Floats, u: Floats, lower: Sequence[Floats]) -> Floats:
        """sum_m e_m g_m(u), with g_m(u) = sum_{q > m} c_q (-u)^(q-1-m): sum_q c_q (e_{q-1} without i), regrouped."""
        g = np.full_like(u, weights[-1])  # g_{Q-1}, then downwards: g_{m-1} = c_m - u g_m
        total = lower[-1] * g
        for m in range(self.highest - 1, 0, -1):
            g *= -u
            g += weights[m - 1]
            total += lower[m - 1] * g
        return np.asarray(total)

    def neighbour_covariances(self, K: Floats, lower: Floats, at: Ints, factors: Factors, weights: Floats) -> Floats:
        u, new = factors.before(), factors.after()
        m = u.shape[2]
        new -= u
        for s, c in enumerate(weights):
            new[s] *= self.factor_slope(c, u[s], lower[s][:, at, :m])
        new += K[:, at, :m]
        return new


def _change_of_relevance(A: Floats, B: Floats, norms: Floats, low_norms: Floats, w: Floats) -> Change:
    """The change of one relevance r = exp(theta): each part is (A + r B) / (norms + r low_norms)."""
    stack = np.concatenate([A, B]).reshape(2 * len(A), -1)

    def fill(theta: float, out: Floats) -> None:
        r = math.exp(theta)
        scale = w * inverse_norms(norms + r * low_norms)
        np.dot(np.append(scale, r * scale), stack, out=out.T.reshape(-1))

    def parts(theta: float) -> Floats:
        r = math.exp(theta)
        return (A + r * B) * inverse_norms(norms + r * low_norms)[:, None, None]

    return Change(fill, parts)
