"""Log prior densities, up to a constant, one function each. All take and return floats; those named `_slope` take
arrays of logarithms and return values, whose sum is the log density of them all, and derivatives.

Notation
    tau     global scale of the Horseshoe (Carvalho, Polson and Scott 2010)
    x       the parameter itself; log_x its logarithm
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from carbo.errors import SettingsError
from carbo.numerics.types import Floats

Slopes = tuple[Floats, Floats]
Interval = tuple[float, float]

BETA_TAU = 5.0
"""The paper's global scale of the Horseshoe on beta."""
NOISE_TAU = 0.1 / math.sqrt(2.0)
"""The published scale on the noise: the bound is log(1 + (0.1 / noise)^2)."""


def horseshoe_bound(x: float, tau: float) -> float:
    """Upper bound log log(1 + 2 tau^2 / x^2) of the Horseshoe density at x > 0 (supplement B.2.3)."""
    return math.log(math.log1p(2.0 * (tau / x) ** 2))


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
        return -math.inf
    if upper == lower:
        return 0.0
    return normal(x, 0.5 * (lower + upper), 0.25 * (upper - lower))


def pooled(log_x: Floats, scale: float) -> float:
    """All of log_x normal about 0 with one standard deviation s, integrated out: s^2 is scale^2 over a Gamma(1, 1)."""
    return -(1.0 + 0.5 * len(log_x)) * math.log(scale**2 + 0.5 * float(log_x @ log_x))


def horseshoe_bound_slope(log_x: Floats, tau: float) -> Slopes:
    """`horseshoe_bound` at exp(log_x), and its derivative by log_x."""
    u = 2.0 * (tau * np.exp(-log_x)) ** 2
    inner = np.log1p(u)
    return np.log(inner), -2.0 * u / ((1.0 + u) * inner)


def half_cauchy_on_log_slope(log_x: Floats, scale: float) -> Slopes:
    u = (np.exp(log_x) / scale) ** 2
    return log_x - np.log1p(u), 1.0 - 2.0 * u / (1.0 + u)


def gamma_on_log_slope(log_x: Floats, shape: float, rate: float) -> Slopes:
    x = np.exp(log_x)
    return shape * log_x - rate * x, shape - rate * x


def normal_slope(x: Floats, mean: float, sd: float) -> Slopes:
    away = (x - mean) / sd
    return -0.5 * away**2, -away / sd


def pooled_slope(log_x: Floats, scale: float) -> Slopes:
    """One value, of all of log_x together."""
    by = -(2.0 + len(log_x)) / (2.0 * scale**2 + float(log_x @ log_x)) * log_x
    return np.array([pooled(log_x, scale)]), by


NO_OTHERS = np.zeros(0)


class Supports(NamedTuple):
    """Intervals in which the sampler moves: of log beta, log noise variance, log signal variances, log relevances."""

    beta: Interval = (-12.0, math.log(100.0))
    noise: Interval = (-12.0, math.log(1e4))
    weight: Interval = (-10.0, 10.0)
    relevance: Interval = (-6.0, 3.0)


SUPPORTS = Supports()


@dataclass(frozen=True)
class Priors:
    """Which prior each parameter has.

    level   "published": the paper's priors, which come from the data, on mean and signal variance, and its bound on the
            noise. "standard": N(0, 1) on the mean, drawn exactly, log w ~ N(0, weight_sd), noise half-Cauchy with scale
            noise_scale on the variance, and relevances pooled: log r ~ N(0, s) with one s for all variables, which the
            data tell: small where all matter alike, large where few do. (relevance_scale / s)^2 ~ Gamma(1, 1)
    beta    "published": the paper's Horseshoe bound at beta, without a Jacobian; "gamma": Gamma(1, 3), the paper's
            ablation; "normal": log beta ~ N(beta_mean, beta_sd)
    supports    intervals in which the sampler moves
    """

    level: Literal["published", "standard"] = "published"
    beta: Literal["published", "gamma", "normal"] = "published"
    beta_mean: float = 0.0
    beta_sd: float = 1.0
    weight_sd: float = 1.5
    noise_scale: float = 0.05
    relevance_scale: float = 1.0
    supports: Supports = SUPPORTS

    def __post_init__(self) -> None:
        for key, kind in get_type_hints(Priors).items():
            value = getattr(self, key)
            if get_origin(kind) is Literal and value not in get_args(kind):
                raise SettingsError(f"prior {key!r}: expected one of {', '.join(get_args(kind))}, got {value!r}")
            if kind is float and not (_finite(value) and (value > 0 or key == "beta_mean")):
                raise SettingsError(f"prior {key!r}: expected a number > 0, got {value!r}")
        for name, ends in zip(Supports._fields, _checked(self.supports), strict=True):
            numbers = isinstance(ends, tuple) and all(map(_finite, ends))
            if not (numbers and len(ends) == 2 and ends[0] < ends[1]):
                raise SettingsError(f"prior 'supports', {name}: expected (low, high) with low < high, got {ends!r}")

    def log_beta(self, theta: float) -> float:
        if self.beta == "published":
            return horseshoe_bound(math.exp(theta), BETA_TAU)
        if self.beta == "gamma":
            return gamma_on_log(theta, 1.0, 3.0)
        return normal(theta, self.beta_mean, self.beta_sd)

    def log_noise(self, theta: float) -> float:
        if self.level == "published":
            return horseshoe_bound(math.exp(theta), NOISE_TAU)
        return half_cauchy_on_log(theta, self.noise_scale)

    def log_relevance(self, theta: float, others: Floats = NO_OTHERS) -> float:
        """Of one variable, given the others' log relevances."""
        return pooled(np.append(others, theta), self.relevance_scale)

    def beta_slope(self, theta: Floats) -> Slopes:
        """`log_beta` of each, and its derivative."""
        if self.beta == "published":
            return horseshoe_bound_slope(theta, BETA_TAU)
        if self.beta == "gamma":
            return gamma_on_log_slope(theta, 1.0, 3.0)
        return normal_slope(theta, self.beta_mean, self.beta_sd)

    def noise_slope(self, theta: Floats) -> Slopes:
        """`log_noise` of the standard level, and its derivative."""
        return half_cauchy_on_log_slope(theta, self.noise_scale)

    def relevance_slope(self, theta: Floats) -> Slopes:
        """The log density of all relevances, as values that sum to it, and its derivatives."""
        return pooled_slope(theta, self.relevance_scale)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _checked(supports: object) -> Supports:
    if not isinstance(supports, Supports):
        raise SettingsError(f"prior 'supports': expected Supports(beta, noise, weight, relevance), got {supports!r}")
    return supports
