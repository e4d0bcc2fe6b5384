"""Log prior densities up to a constant, one function each, and the table of priors that a model uses.

Plain functions take and return floats. Functions named `_slope` take an array of logarithms and return two arrays:
values, whose sum is the joint log density, and derivatives.

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
    """Normal prior on x."""
    return -0.5 * ((x - mean) / sd) ** 2


def truncated_normal(x: float, lower: float, upper: float) -> float:
    """Normal prior about the middle of [lower, upper], its standard deviation a quarter of the width, zero outside."""
    if not lower <= x <= upper:
        return -math.inf
    if upper == lower:
        return 0.0
    return normal(x, 0.5 * (lower + upper), 0.25 * (upper - lower))


def pooled_normal(log_x: Floats, scale: float) -> float:
    """Joint normal prior on log_x (k,) about 0 with one standard deviation s for all, s integrated out.

    (scale / s)^2 is Gamma(1, 1).
    """
    return -(1.0 + 0.5 * len(log_x)) * math.log(scale**2 + 0.5 * float(log_x @ log_x))


def horseshoe_bound_slope(log_x: Floats, tau: float) -> Slopes:
    """`horseshoe_bound` of each at exp(log_x), and its derivative by log_x."""
    u = 2.0 * (tau * np.exp(-log_x)) ** 2
    inner = np.log1p(u)
    return np.log(inner), -2.0 * u / ((1.0 + u) * inner)


def half_cauchy_on_log_slope(log_x: Floats, scale: float) -> Slopes:
    """`half_cauchy_on_log` of each, and its derivative."""
    u = (np.exp(log_x) / scale) ** 2
    return log_x - np.log1p(u), 1.0 - 2.0 * u / (1.0 + u)


def gamma_on_log_slope(log_x: Floats, shape: float, rate: float) -> Slopes:
    """`gamma_on_log` of each, and its derivative."""
    x = np.exp(log_x)
    return shape * log_x - rate * x, shape - rate * x


def normal_slope(x: Floats, mean: float, sd: float) -> Slopes:
    """`normal` of each, and its derivative."""
    away = (x - mean) / sd
    return -0.5 * away**2, -away / sd


def pooled_normal_slope(log_x: Floats, scale: float) -> Slopes:
    """`pooled_normal` as one value (1,), and its derivatives (k,)."""
    by = -(2.0 + len(log_x)) / (2.0 * scale**2 + float(log_x @ log_x)) * log_x
    return np.array([pooled_normal(log_x, scale)]), by


class Supports(NamedTuple):
    """Intervals in which the sampler moves: log beta, log noise variance, log signal variances, log relevances."""

    beta: Interval = (-12.0, math.log(100.0))
    noise: Interval = (-12.0, math.log(1e4))
    weight: Interval = (-10.0, 10.0)
    relevance: Interval = (-6.0, 3.0)


SUPPORTS = Supports()


@dataclass(frozen=True)
class Priors:
    """The prior of each parameter of the model. Raises SettingsError for a value that is not usable.

    level       "published": the paper's priors. Those of the mean and the signal variance depend on the data; the noise
                has the Horseshoe bound log(1 + (0.1 / noise)^2).
                "standard": the mean is N(0, 1), log signal variances are N(0, weight_sd), the noise variance is
                half-Cauchy with scale noise_scale, and log relevances are N(0, s) with one s for all variables, where
                (relevance_scale / s)^2 is Gamma(1, 1). The data determine s: small if all variables matter alike, large
                if few of them matter
    beta        "published": the paper's Horseshoe bound at beta, without a Jacobian; "gamma": Gamma(1, 3), the paper's
                ablation; "normal": log beta is N(beta_mean, beta_sd)
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
            if kind is float and not (_is_finite(value) and (value > 0 or key == "beta_mean")):
                raise SettingsError(f"prior {key!r}: expected a number > 0, got {value!r}")
        if not isinstance(self.supports, Supports):
            raise SettingsError(
                f"prior 'supports': expected Supports(beta, noise, weight, relevance), got {self.supports!r}"
            )
        for name, ends in zip(Supports._fields, self.supports, strict=True):
            numbers = isinstance(ends, tuple) and all(map(_is_finite, ends))
            if not (numbers and len(ends) == 2 and ends[0] < ends[1]):
                raise SettingsError(f"prior 'supports', {name}: expected (low, high) with low < high, got {ends!r}")

    def log_beta(self, theta: float) -> float:
        """Log prior density of one log beta."""
        if self.beta == "published":
            return horseshoe_bound(math.exp(theta), BETA_TAU)
        if self.beta == "gamma":
            return gamma_on_log(theta, 1.0, 3.0)
        return normal(theta, self.beta_mean, self.beta_sd)

    def log_noise(self, theta: float) -> float:
        """Log prior density of the log noise variance."""
        if self.level == "published":
            return horseshoe_bound(math.exp(theta), 0.1 / math.sqrt(2.0))
        return half_cauchy_on_log(theta, self.noise_scale)

    def log_relevance(self, theta: float, others: Floats) -> float:
        """Log prior density of one variable's log relevance, given the log relevances of the others."""
        return pooled_normal(np.append(others, theta), self.relevance_scale)

    def beta_slope(self, theta: Floats) -> Slopes:
        """`log_beta` of each, and its derivative."""
        if self.beta == "published":
            return horseshoe_bound_slope(theta, BETA_TAU)
        if self.beta == "gamma":
            return gamma_on_log_slope(theta, 1.0, 3.0)
        return normal_slope(theta, self.beta_mean, self.beta_sd)

    def noise_slope(self, theta: Floats) -> Slopes:
        """`log_noise` at level "standard", and its derivative."""
        return half_cauchy_on_log_slope(theta, self.noise_scale)

    def relevance_slope(self, theta: Floats) -> Slopes:
        """The joint log density of all log relevances, as one value (1,), and its derivatives."""
        return pooled_normal_slope(theta, self.relevance_scale)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
