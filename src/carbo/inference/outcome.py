"""The scale of values: from told values to the model's y, and from predictions of y back to the user's units.

Notation
    v       (n,) values as told, all finite
    t       (n,) the values warped: t = v up to the median m, t = m + s log(1 + (v - m)/s) above it
    y       (n,) t standardised: zero mean, unit variance

The warp. A Gaussian process assumes that values spread alike everywhere. Costs often do not: a few points are hundreds
of times worse than the others, and how much worse they are says little about the best ones. The warp leaves the better
half of the values unchanged, so that an improvement counts by its size. It takes the logarithm of the worse half, in
units of s. The unit s is a multiple of the mean distance from the median: many nearly equal good values do not make s
vanish. A warp spoils functions that are sums of parts. It is used only if the evidence favours it (`selection`).

The gap. Some users return 1e20 for a point that does not work. Next to such a value all others would look equal. The
logarithm is therefore always taken of one value beyond a gap of orders of magnitude. In this case m is the largest of
the other values, and s is its distance from the best. (Many nearly equal good values also leave wide gaps, but then the
values beyond the gap have many sizes.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Floats

ROUNDING = 1e-15
"""Values whose spread, in units of `size`, is at most this count as equal."""
BEYOND = 1.0
"""Log of the factor by which predictions may exceed the worst told value: without a limit, exp of a normal explodes."""
GAP, NEAR = 1_000.0, 3
"""A value is beyond a gap if it is GAP times as large as any other value, and its distance from the best is GAP times
theirs. There must be at least NEAR other values, and they must be at least a third of all.
"""
LARGEST = 1e30
"""Upper limit of a value beyond a gap, in units of `size`."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
"""The Gauss-Hermite rule for a standard normal variable; the weights sum to sqrt(2 pi)."""


class Tail(NamedTuple):
    """The warp of values above m: t = m + s log(1 + (v - m)/s). `worst` is the largest told v."""

    m: float
    s: float
    worst: float

    def warp(self, v: Floats) -> Floats:
        above = np.maximum(v - self.m, 0.0)
        return np.asarray(np.minimum(v, self.m) + self.s * np.log1p(above / self.s))

    def unwarp(self, t: Floats) -> Floats:
        above = np.clip((t - self.m) / self.s, 0.0, math.log1p((self.worst - self.m) / self.s) + BEYOND)
        return np.asarray(np.minimum(t, self.m) + self.s * np.expm1(above))


class Scale(NamedTuple):
    """The way from values to y and back, in three steps: v = value / size, t = warp of v, y = (t - centre) / unit.

    tail        the warp; None: t = v
    log_slope   sum of log dy/dv over the values: log density of v = log density of y + log_slope
    """

    size: float
    centre: float
    unit: float
    tail: Tail | None = None
    log_slope: float = 0.0

    def transform(self, values: Floats) -> tuple[Floats, Floats]:
        """y of told values, and log dy/dv of each."""
        v = _in_units(values, self.size)
        t = v if self.tail is None else self.tail.warp(v)
        steep = np.zeros_like(v) if self.tail is None else np.log1p(np.maximum(v - self.tail.m, 0.0) / self.tail.s)
        return (t - self.centre) / self.unit, -steep - math.log(self.unit)

    def value(self, y: Floats) -> Floats:
        """The inverse of `transform`, in units of `size`."""
        t = self.centre + self.unit * y
        return np.asarray(t if self.tail is None else self.tail.unwarp(t))

    def moments(self, mu: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation (N,) of the value, given an equal mixture of S normal predictions (S, N) of y."""
        if self.tail is None:
            mean, variance = self.value(mu), (self.unit * sd) ** 2
        else:
            share = WEIGHTS / WEIGHTS.sum()
            values = self.value(mu[..., None] + sd[..., None] * NODES)
            mean = values @ share
            variance = (values - mean[..., None]) ** 2 @ share
        centre = mean.mean(axis=0)
        std = np.sqrt(np.mean(variance + (mean - centre) ** 2, axis=0))
        with np.errstate(over="ignore"):  # near the largest float, predictions stay finite
            return np.nan_to_num(self.size * centre), np.nan_to_num(self.size * std)


def standardise(values: Floats, multiple: float | None = None) -> tuple[Floats, Scale]:
    """y and its scale, for values of any size; constant values become zeros.

    multiple: of the warp's unit; None: no warp, except for a value beyond a gap
    """
    top = _largest_before_gap(values)
    near = values if top is None else values[values <= top]
    size = float(np.max(np.abs(near), initial=0.0)) or 1.0
    v = _in_units(values, size)  # squares of 1e300 would overflow
    tail = _fit_tail(v, multiple, None if top is None else top / size)
    t = v if tail is None else tail.warp(v)
    centre, unit = float(np.mean(t)), float(np.std(t))
    if unit <= ROUNDING:
        unit = 1.0
    scale = Scale(size, centre, unit, tail)
    y, log_slope = scale.transform(values)
    return y, scale._replace(log_slope=float(log_slope.sum()))


def _in_units(values: Floats, size: float) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(values / size, LARGEST))


def _largest_before_gap(values: Floats) -> float | None:
    """The second largest distinct value, if the largest lies beyond a gap; otherwise None."""
    worst = np.max(values, initial=-np.inf)
    near = values[values < worst]
    if len(near) < max(NEAR, len(values) / 3):
        return None
    top, best, largest = np.max(near), np.min(near), np.max(np.abs(near))
    with np.errstate(over="ignore"):
        alone = top > best and worst / GAP > largest and (worst - best) / GAP > top - best
    return float(top) if alone else None


def _fit_tail(v: Floats, multiple: float | None, top: float | None) -> Tail | None:
    """The warp for values v, `top` the largest before a gap; None without a warp, or if all values are equal."""
    if multiple is not None:
        near = v if top is None else np.minimum(v, top)
        m = float(np.median(near))
        s = multiple * float(np.mean(np.abs(near - m)))
        if s > ROUNDING:
            return Tail(m, s, float(np.max(v)))
    return None if top is None else Tail(top, top - float(np.min(v)), float(np.max(v)))
