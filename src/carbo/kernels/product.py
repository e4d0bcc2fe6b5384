"""The paper's kernel: the product of all variables' diffusion tables. Notation as in `kernel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carbo.kernels.base import Coordinate, Curve, Scales, Split, diffusion, square, unequal
from carbo.kernels.cross import cross
from carbo.kernels.spectra import Spectrum, Table
from carbo.numerics.types import Floats, Ints

FLOOR = 1e-30
"""Smallest entry of a table in the product kernel, so that a factor can always be divided out again."""
PRODUCT_FLOOR = 1e-100
"""Smallest entry of a product of tables: nothing to a covariance, and far from the slow subnormal numbers."""


@dataclass(frozen=True, eq=False)
class Product:
    """The ARD diffusion kernel of the paper; relevances play no part."""

    spectra: tuple[Spectrum, ...]

    @property
    def size(self) -> int:
        return 1

    def coordinates(self) -> list[Coordinate]:
        return [Coordinate("beta", i) for i, s in enumerate(self.spectra) if s.size > 1]

    def _square(self, i: int, log_beta: float, x: Ints) -> Floats:
        return np.maximum(square(diffusion(self.spectra[i], log_beta), x), FLOOR)

    def parts(self, scales: Scales, X: Ints) -> Floats:
        return np.asarray(np.maximum(cross(self, scales, np.ones(1), X, X), PRODUCT_FLOOR)[None])

    def swap(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Split | Curve:
        i, s, x = at.variable, self.spectra[at.variable], X[:, at.variable]
        if s.kind == "complete":
            return Split(lambda log_beta: self._rho(s, log_beta), i, parts[0], float(w[0]))
        rest = parts[0] * w[0] / self._square(i, scales.log_beta[i], x)

        def fill(log_beta: float, out: Floats) -> None:
            np.multiply(rest, self._square(i, log_beta, x), out=out)

        return Curve(fill, lambda theta: self.swapped(parts, scales, X, at, theta))

    def swapped(self, parts: Floats, scales: Scales, X: Ints, at: Coordinate, theta: float) -> Floats:
        s, x, now = self.spectra[at.variable], X[:, at.variable], float(scales.log_beta[at.variable])
        if s.kind == "complete":
            ratio = self._rho(s, theta) / self._rho(s, now)
            rows = Table("complete", s.size, np.array([1.0, ratio])).columns(x)
        else:
            new, old = diffusion(s, theta).columns(x), diffusion(s, now).columns(x)
            rows = np.maximum(new, FLOOR) / np.maximum(old, FLOOR)
        for i in range(0, len(x), 32):  # in pieces that need no fresh pages
            parts[0, i : i + 32] *= rows[x[i : i + 32]]
        return np.maximum(parts, PRODUCT_FLOOR, out=parts)

    @staticmethod
    def _rho(s: Spectrum, log_beta: float) -> float:
        return max(unequal(float(s.lam[-1]), s.size, log_beta), FLOOR)

    @property
    def summed(self) -> int:
        return 1

    def table(self, scales: Scales, i: int) -> Table:
        return diffusion(self.spectra[i], scales.log_beta[i])

    def turned(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:  # noqa: ARG002
        return [np.log(np.maximum(entries, FLOOR))]

    def weights(self, scales: Scales, w: Floats) -> Floats:  # noqa: ARG002
        return w

    def combine(self, sums: list[Floats], weights: Sequence[Floats]) -> Floats:
        K = np.exp(sums[0], out=sums[0])
        K *= weights[0]
        return K
