"""Values as the model sees them, and its predictions back in the units of the user.

Notation
    v       (n,) values as told, all finite
    t       (n,) the values warped: t = v up to the median m, t = m + s log(1 + (v - m)/s) above it
    y       (n,) t standardised: zero mean, unit variance

A Gaussian process believes in values that spread alike everywhere. Costs often do not: a few settings are hundreds of
times worse than the others, and how much worse says little about where the best ones are. The warp leaves the better
half of the values as they are, so that an improvement counts by its size, and takes the logarithm of the worse half.
Its unit s is half the mean distance from the median: a heap of nearly equal good values does not shrink it to nothing.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from carbo.graph import Floats

WarpName = Literal["none", "tail"]

BEYOND = 1.0
"""Predictions exceed the worst value seen at most by this power of e: the exponential of a normal tail has no measure."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
"""Of the Gauss-Hermite rule for a standard normal variable; the weights sum to sqrt(2 pi)."""


class Tail(NamedTuple):
    """t = m + s log(1 + (v - m)/s) above m; `worst` is the largest v seen."""

    m: float
    s: float
    worst: float

    def warped(self, v: Floats) -> Floats:
        above = np.maximum(v - self.m, 0.0)
        return np.asarray(np.minimum(v, self.m) + self.s * np.log1p(above / self.s))

    def undone(self, t: Floats) -> Floats:
        above = np.clip((t - self.m) / self.s, 0.0, math.log1p((self.worst - self.m) / self.s) + BEYOND)
        return np.asarray(np.minimum(t, self.m) + self.s * np.expm1(above))


class Scale(NamedTuple):
    """How told values v became y: t = size (centre + unit y), all in units of `size`; `tail` came first."""

    size: float
    centre: float
    unit: float
    tail: Tail | None = None

    def value(self, y: Floats) -> Floats:
        """The values of y in units of `size`."""
        t = self.centre + self.unit * y
        return np.asarray(t if self.tail is None else self.tail.undone(t))

    def back(self, mu: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation (N,) of the value, given S normal predictions (S, N) of y in equal parts."""
        if self.tail is None:
            mean, variance = self.value(mu), (self.unit * sd) ** 2
        else:
            share = WEIGHTS / WEIGHTS.sum()
            values = self.value(mu[..., None] + sd[..., None] * NODES)
            mean = values @ share
            variance = (values - mean[..., None]) ** 2 @ share
        centre = mean.mean(axis=0)
        std = np.sqrt(np.mean(variance + (mean - centre) ** 2, axis=0))
        with np.errstate(over="ignore"):  # values may be as large as floats can be; what is predicted then stays there
            return np.nan_to_num(self.size * centre), np.nan_to_num(self.size * std)


def standardise(values: Floats, warp: WarpName = "none") -> tuple[Floats, Scale]:
    """y and the way back, for values of any size; constant values become zeros."""
    size = float(np.max(np.abs(values), initial=0.0)) or 1.0
    t, tail = values / size, None  # squares of 1e300 would overflow
    if warp == "tail" and (tail := _fitted(t)) is not None:
        t = tail.warped(t)
    centre, unit = float(np.mean(t)), float(np.std(t))
    if unit <= 1e-14:
        unit = 1.0
    return (t - centre) / unit, Scale(size, centre, unit, tail)


def _fitted(v: Floats) -> Tail | None:
    """None where the values do not differ."""
    m = float(np.median(v))
    s = 0.5 * float(np.mean(np.abs(v - m)))
    return Tail(m, s, float(np.max(v))) if s > 1e-14 else None
