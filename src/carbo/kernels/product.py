"""The paper's kernel: the product of all variables' diffusion tables. Notation as in `base`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from carbo.kernels.base import Change, Coordinate, Factors, Gradient, Scales, Shares, Split, diffusion, square, unequal
from carbo.kernels.cross import cross
from carbo.kernels.spectra import Spectrum, Table
from carbo.kernels.windows import Windows
from carbo.numerics.types import Floats, Ints

FLOOR = 1e-30
"""Smallest entry of a table in the product kernel, so that a factor can always be divided out again."""
PRODUCT_FLOOR = 1e-100
"""Smallest entry of a product of tables: nothing to a covariance, and far from the slow subnormal numbers."""


@dataclass(frozen=True, eq=False)
class Product:
    """The ARD diffusion kernel of the paper; relevances play no part."""

    spectra: tuple[Spectrum, ...]

    size = 1
    summed = 1
    differentiable = False

    @cached_property
    def windows(self) -> Windows:
        return Windows(self.spectra, 1)

    def with_windows(self) -> Product:
        raise NotImplementedError("windows are parts of the order kernel")

    def coordinates(self) -> list[Coordinate]:
        return [Coordinate("beta", i) for i, s in enumerate(self.spectra) if s.size > 1]

    def shares(self, w: Floats) -> Shares:  # noqa: ARG002
        return Shares()

    # ---- one set of observations, changing parameters

    def parts(self, scales: Scales, X: Ints) -> Floats:
        return np.asarray(np.maximum(cross(self, scales, np.ones(1), X, X), PRODUCT_FLOOR)[None])

    def change(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Change:
        i, s, x, now = at.variable, self.spectra[at.variable], X[:, at.variable], float(scales.log_beta[at.variable])

        def moved(theta: float) -> Floats:
            return self._moved(parts, s, x, now, theta)

        def moved_copy(theta: float) -> Floats:
            return np.asarray(self._moved(parts.copy(), s, x, now, theta)[0])

        if s.kind == "complete":
            split = Split(lambda theta: self._rho(s, theta), i, parts[0], float(w[0]))
            return Change(
                lambda theta, out: np.copyto(out, w[0] * self._moved(parts.copy(), s, x, now, theta)[0]), moved, split
            )
        rest = parts[0] * w[0] / self._square(s, now, x)
        return Change(lambda theta, out: np.copyto(out, rest * self._square(s, theta, x)), moved)

    def _moved(self, parts: Floats, s: Spectrum, x: Ints, now: float, theta: float) -> Floats:
        """The parts after one beta went from `now` to `theta`; they are overwritten."""
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
    def _square(s: Spectrum, log_beta: float, x: Ints) -> Floats:
        return np.maximum(square(diffusion(s, log_beta), x), FLOOR)

    @staticmethod
    def _rho(s: Spectrum, log_beta: float) -> float:
        return max(unequal(float(s.lam[-1]), s.size, log_beta), FLOOR)

    def gradient(self, X: Ints) -> Gradient:
        raise NotImplementedError("the product kernel is sampled by slices")

    # ---- fixed parameters, many rows

    def table(self, scales: Scales, i: int) -> Table:
        return diffusion(self.spectra[i], scales.log_beta[i])

    def summands(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:  # noqa: ARG002
        return [np.log(np.maximum(entries, FLOOR))]

    def factor(self, first: Floats) -> Floats:
        return np.exp(first)

    def flat(self, scales: Scales) -> tuple[Floats, Floats]:
        each = zip(self.spectra, scales.log_beta, strict=True)
        rho = np.array([self._rho(s, float(b)) if s.kind == "complete" else 1.0 for s, b in each])
        return np.ones(len(rho)), rho

    def weights(self, scales: Scales, w: Floats) -> Floats:  # noqa: ARG002
        return w

    def window_weights(self, scales: Scales, w: Floats) -> Floats:  # noqa: ARG002
        return np.zeros(0)

    def layers(self, sums: list[Floats]) -> list[Floats]:
        return [np.exp(sums[0], out=sums[0])]

    def below(self, layers: list[Floats]) -> list[Floats]:
        return layers

    def halves(self, weights: Floats, layers: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        return [layers[0] * weights[0]], layers

    def rest(self, weights: Floats, u: Floats, below: Sequence[Floats]) -> Floats:
        return np.asarray(weights[0] * below[0] / u)

    def changed(self, K: Floats, below: Floats, at: Ints, factors: Factors, weights: Floats) -> Floats:  # noqa: ARG002
        ratio = factors.after()
        ratio /= factors.before()
        ratio *= K[:, at, : ratio.shape[2]]
        return ratio
