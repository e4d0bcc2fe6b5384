"""Log prior densities, up to a constant, one function each. All take and return floats; those named `_slope` take
arrays of logarithms and return values and derivatives.

Notation
    tau     global scale of the Horseshoe (Carvalho, Polson and Scott 2010)
    x       the parameter itself; log_x its logarithm
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Slopes = tuple[Floats, Floats]

MINUS_INFINITY = -math.inf


def horseshoe_bound(x: float, tau: float) -> float:
    """Upper bound log log(1 + 2 tau^2 / x^2) of the Horseshoe density at x > 0 (supplement B.2.3)."""
    return math.log(math.log1p(2.0 * (tau / x) ** 2))


def horseshoe_on_log(log_x: float, tau: float) -> float:
    """The same prior as a density of log x: the bound plus the Jacobian of x = exp(log x)."""
    return horseshoe_bound(math.exp(log_x), tau) + log_x


def half_cauchy_on_log(log_x: float, scale: float) -> float:
    """Half-Cauchy prior on x, as a density of log x."""
    return log_x - math.log1p((math.exp(log_x) / scale) ** 2)


def gamma_on_log(log_x: float, shape: float, rate: float) -> float:
    """Gamma(shape, rate) prior on x, as a density of log x."""
    return shape * log_x - rate * math.exp(log_x)


def normal(x: float, mean: float, sd: float) -> float:
    """Normal density at x."""
    return -0.5 * ((x - mean) / sd) ** 2


def truncated_normal(x: float, lower: float, upper: float) -> float:
    """Normal at the middle of [lower, upper], standard deviation a quarter of its width, cut off outside."""
    if not lower <= x <= upper:
        return MINUS_INFINITY
    if upper == lower:
        return 0.0
    return normal(x, 0.5 * (lower + upper), 0.25 * (upper - lower))


def horseshoe_bound_slope(log_x: Floats, tau: float) -> Slopes:
    """`horseshoe_bound` at exp(log_x), and its derivative by log_x."""
    u = 2.0 * (tau * np.exp(-log_x)) ** 2
    inner = np.log1p(u)
    return np.log(inner), -2.0 * u / ((1.0 + u) * inner)


def horseshoe_on_log_slope(log_x: Floats, tau: float) -> Slopes:
    value, by = horseshoe_bound_slope(log_x, tau)
    return value + log_x, by + 1.0


def half_cauchy_on_log_slope(log_x: Floats, scale: float) -> Slopes:
    u = (np.exp(log_x) / scale) ** 2
    return log_x - np.log1p(u), 1.0 - 2.0 * u / (1.0 + u)


def gamma_on_log_slope(log_x: Floats, shape: float, rate: float) -> Slopes:
    x = np.exp(log_x)
    return shape * log_x - rate * x, shape - rate * x


def normal_slope(x: Floats, mean: float, sd: float) -> Slopes:
    away = (x - mean) / sd
    return -0.5 * away**2, -away / sd
