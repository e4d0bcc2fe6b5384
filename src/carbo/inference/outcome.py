"""Values as the model sees them, and its predictions back in the units of the user.

Notation
    v       (n,) values as told, all finite
    t       (n,) the values warped: t = v up to the median m, t = m + s log(1 + (v - m)/s) above it
    y       (n,) t standardised: zero mean, unit variance

A Gaussian process believes in values that spread alike everywhere. Costs often do not: a few settings are hundreds of
times worse than the others, and how much worse says little about where the best ones are. The warp leaves the better
half of the values as they are, so that an improvement counts by its size, and takes the logarithm of the worse half,
in units of s, a multiple of the mean distance from the median: a heap of nearly equal good values does not shrink it to
nothing. A function that is a sum of parts ceases to be one under a warp, so that the data must ask for it (`evidence`).

Whoever returns 1e20 for whatever does not work means that it does not work, but beside such a value all others would be
one and the same. One value that stands alone beyond a gap of orders of magnitude counts by its logarithm whatever the
data say: m is the largest of the others then, and s its distance from the best. (A heap of nearly equal good values has
gaps as wide, but values of many sizes beyond them.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Floats

ROUNDING = 1e-15
"""Values that spread no more than this, in units of `size`, are held to be the same."""
BEYOND = 1.0
"""Predictions exceed the worst value seen at most e to this power times: exponentiated normal tails have no measure."""
GAP, NEAR = 1_000.0, 3
"""A value is beyond a gap if it is so many times as large as any other, and as far from the best; of the others there
must be at least NEAR, and a third of all.
"""
LARGEST = 1e30
"""What a value beyond a gap is taken for at most, in units of `size`."""
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
    """How told values v became y: t = size (centre + unit y), all in units of `size`; `tail` came first.

    log_slope: sum of log dy/dv over the values, v in units of `size`: what a density of y gains as one of v.
    """

    size: float
    centre: float
    unit: float
    tail: Tail | None = None
    log_slope: float = 0.0

    def seen(self, values: Floats) -> tuple[Floats, Floats]:
        """y of values as told, and log dy/dv of each, v in units of `size`."""
        v = _in_units(values, self.size)
        t = v if self.tail is None else self.tail.warped(v)
        steep = np.zeros_like(v) if self.tail is None else np.log1p(np.maximum(v - self.tail.m, 0.0) / self.tail.s)
        return (t - self.centre) / self.unit, -steep - math.log(self.unit)

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


def standardise(values: Floats, multiple: float | None = None) -> tuple[Floats, Scale]:
    """y and the way back, for values of any size; constant values become zeros.

    multiple None: no warp, but for a value beyond a gap.
    """
    top = _before_gap(values)
    near = values if top is None else values[values <= top]
    size = float(np.max(np.abs(near), initial=0.0)) or 1.0
    v = _in_units(values, size)  # squares of 1e300 would overflow
    tail = _fitted(v, multiple, None if top is None else top / size)
    t = v if tail is None else tail.warped(v)
    centre, unit = float(np.mean(t)), float(np.std(t))
    if unit <= ROUNDING:
        unit = 1.0
    scale = Scale(size, centre, unit, tail)
    y, log_slope = scale.seen(values)
    return y, scale._replace(log_slope=float(log_slope.sum()))


def _in_units(values: Floats, size: float) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(values / size, LARGEST))


def _before_gap(values: Floats) -> float | None:
    """The largest value but one, where the largest, however often it was told, stands alone beyond a gap; or None."""
    worst = np.max(values, initial=-np.inf)
    near = values[values < worst]
    if len(near) < max(NEAR, len(values) / 3):
        return None
    top, best, largest = np.max(near), np.min(near), np.max(np.abs(near))
    with np.errstate(over="ignore"):
        alone = top > best and worst / GAP > largest and (worst - best) / GAP > top - best
    return float(top) if alone else None


def _fitted(v: Floats, multiple: float | None, top: float | None) -> Tail | None:
    """The warp; None where there is none to be, or where the values do not differ."""
    if multiple is not None:
        near = v if top is None else np.minimum(v, top)
        m = float(np.median(near))
        s = multiple * float(np.mean(np.abs(near - m)))
        if s > ROUNDING:
            return Tail(m, s, float(np.max(v)))
    return None if top is None else Tail(top, top - float(np.min(v)), float(np.max(v)))
