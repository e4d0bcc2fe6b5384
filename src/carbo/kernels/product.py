"""The paper's kernel: the product of all variables' diffusion tables. Notation as in `base`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from carbo.kernels.base import (
    Change,
    Coordinate,
    Factors,
    Gradient,
    Scales,
    Split,
    VarianceShares,
    diffusion_table,
    pairwise_entries,
    unequal_entry,
)
from carbo.kernels.cross import cross
from carbo.kernels.spectra import Spectrum, Table
from carbo.kernels.windows import Windows
from carbo.numerics.types import Floats, Ints

FLOOR = 1e-30
"""Smallest entry of a table in the product kernel, so that a factor can be divided out again."""
PRODUCT_FLOOR = 1e-100
"""Smallest entry of a product of tables: negligible in a covariance, and above subnormal numbers, which are slow."""


@dataclass(frozen=True, eq=False)
class Product:
    """The diffusion kernel of the paper, one beta for each variable. It does not use relevances."""

    spectra: tuple[Spectrum, ...]

    size = 1
    n_sums = 1
    differentiable = False

    @cached_property
    def windows(self) -> Windows:
        return Windows(self.spectra, 1)

    def with_windows(self) -> Product:
        raise NotImplementedError("windows are parts of the order kernel")

    def coordinates(self) -> list[Coordinate]:
        return [Coordinate("beta", i) for i, s in enumerate(self.spectra) if s.size > 1]

    def variance_shares(self, w: Floats) -> VarianceShares:  # noqa: ARG002
        return VarianceShares()

    # ---- for the sampler: one set of observations, changing parameters

    def parts(self, scales: Scales, X: Ints) -> Floats:
        return np.asarray(np.maximum(cross(self, scales, np.ones(1), X, X), PRODUCT_FLOOR)[None])

    def change(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Change:
        i, s, x, now = at.variable, self.spectra[at.variable], X[:, at.variable], float(scales.log_beta[at.variable])

        def moved_parts(theta: float) -> Floats:
            return self._move(parts, s, x, now, theta)

        if s.kind == "complete":
            split = Split(lambda theta: self._rho(s, theta), i, parts[0], float(w[0]))
            return Change(
                lambda theta, out: np.copyto(out, w[0] * self._move(parts.copy(), s, x, now, theta)[0]),
                moved_parts,
                split,
            )
        others = parts[0] * w[0] / self._factors(s, now, x)
        return Change(lambda theta, out: np.copyto(out, others * self._factors(s, theta, x)), moved_parts)

    def _move(self, parts: Floats, s: Spectrum, x: Ints, now: float, theta: float) -> Floats:
        """The parts after the log beta of one variable went from `now` to `theta`, in place."""
        if s.kind == "complete":
            ratio = self._rho(s, theta) / self._rho(s, now)
            rows = Table("complete", s.size, np.array([1.0, ratio])).columns(x)
        else:
            new, old = diffusion_table(s, theta).columns(x), diffusion_table(s, now).columns(x)
            rows = np.maximum(new, FLOOR) / np.maximum(old, FLOOR)
        for i in range(0, len(x), 32):  # 32 rows at a time need no fresh pages
            parts[0, i : i + 32] *= rows[x[i : i + 32]]
        return np.maximum(parts, PRODUCT_FLOOR, out=parts)

    @staticmethod
    def _factors(s: Spectrum, log_beta: float, x: Ints) -> Floats:
        """One variable's table for all pairs of its observed values x (n,), (n, n)."""
        return np.maximum(pairwise_entries(diffusion_table(s, log_beta), x), FLOOR)

    @staticmethod
    def _rho(s: Spectrum, log_beta: float) -> float:
        """The entry between unequal values of a complete graph."""
        return max(unequal_entry(float(s.lam[-1]), s.size, log_beta), FLOOR)

    def gradient(self, X: Ints) -> Gradient:
        raise NotImplementedError("the product kernel is sampled by slices")

    # ---- fixed parameters, many rows

    def table(self, scales: Scales, i: int) -> Table:
        return diffusion_table(self.spectra[i], scales.log_beta[i])

    def summands(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:  # noqa: ARG002
        return [np.log(np.maximum(entries, FLOOR))]

    def factor(self, first: Floats) -> Floats:
        return np.exp(first)

    def equality_factors(self, scales: Scales) -> tuple[Floats, Floats]:
        each = zip(self.spectra, scales.log_beta, strict=True)
        rho = np.array([self._rho(s, float(b)) if s.kind == "complete" else 1.0 for s, b in each])
        return np.ones(len(rho)), rho

    def weights(self, scales: Scales, w: Floats) -> Floats:  # noqa: ARG002
        return w

    def window_weights(self, scales: Scales, w: Floats) -> Floats:  # noqa: ARG002
        return np.zeros(0)

    def layers(self, sums: list[Floats]) -> list[Floats]:
        return [np.exp(sums[0], out=sums[0])]

    def lower_layers(self, layers: list[Floats]) -> list[Floats]:
        return layers

    def half_factors(self, weights: Floats, layers: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        return [layers[0] * weights[0]], layers

    def factor_slope(self, weights: Floats, u: Floats, lower: Sequence[Floats]) -> Floats:
        return np.asarray(weights[0] * lower[0] / u)

    def neighbour_covariances(self, K: Floats, lower: Floats, at: Ints, factors: Factors, weights: Floats) -> Floats:  # noqa: ARG002
        ratio = factors.after()
        ratio /= factors.before()
        ratio *= K[:, at, : ratio.shape[2]]
        return ratio
