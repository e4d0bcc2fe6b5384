"""Acquisition functions: the worth of evaluating a row. Larger scores are better; values are minimised.

Notation
    mu, sd      (S, N) posterior mean and standard deviation at N rows under S samples
    best        (S,) value that improvements count from, for each sample
    z           (best - mu) / sd

Scores that average over samples do so outside the logarithm: log mean_s EI_s. To add an acquisition, write a `Score`
and give it a name in `ACQUISITIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erfcx, logsumexp, ndtr

from carbo.errors import SettingsError
from carbo.numerics.types import Floats

Score = Callable[[Floats, Floats, Floats], Floats]
"""(mu, sd, best) -> (N,) scores."""
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class Acquisition(NamedTuple):
    """An acquisition function; `rises_with_sd`: larger sd never lowers it, so an upper bound of sd bounds it."""

    score: Score
    rises_with_sd: bool


def expected_improvement(mu: Floats, sd: Floats, best: Floats) -> Floats:
    """EI averaged over samples, (N,). It underflows to 0 far from the best; `log_expected_improvement` does not."""
    z = (best[:, None] - mu) / sd
    return np.asarray(np.mean(sd * (z * ndtr(z) + np.exp(-0.5 * z * z - LOG_SQRT_2PI)), axis=0))


def log_expected_improvement(mu: Floats, sd: Floats, best: Floats) -> Floats:
    """log of the EI averaged over samples, (N,), exact to rounding for any z. Only tiny EI need logarithms of terms."""
    plain = expected_improvement(mu, sd, best)
    tiny = ~(plain > 1e-100)
    out = np.log(np.where(tiny, 1.0, plain))
    if tiny.any():
        z = (best[:, None] - mu[:, tiny]) / sd[:, tiny]
        out[tiny] = logsumexp(log_h(z) + np.log(sd[:, tiny]), axis=0) - np.log(len(mu))
    return np.asarray(out)


def log_h(z: Floats) -> Floats:
    """log(phi(z) + z Phi(z)), from the Mills ratio where the sum cancels (z < -1)."""
    z = np.asarray(z, dtype=np.float64)
    low, out = z < -1.0, np.empty_like(z)
    u = z[~low]
    out[~low] = np.log(np.exp(-0.5 * u * u - LOG_SQRT_2PI) + u * ndtr(u))
    v = -z[low]
    mills = np.sqrt(np.pi / 2.0) * erfcx(v / np.sqrt(2.0))  # Phi(-v) / phi(v)
    q = 1.0 / np.maximum(v, 1.0) ** 2
    gap = np.where(v > 60.0, q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q))), 1.0 - v * mills)
    out[low] = -0.5 * v * v - LOG_SQRT_2PI + np.log(gap)
    return out


def confidence_bound(mu: Floats, sd: Floats, best: Floats) -> Floats:  # noqa: ARG001
    """GP-UCB for minimisation, 2 sd - mu, averaged over samples, (N,)."""
    return np.asarray(np.mean(2.0 * sd - mu, axis=0))


ACQUISITIONS = {
    "ei": Acquisition(log_expected_improvement, rises_with_sd=True),
    "ucb": Acquisition(confidence_bound, rises_with_sd=True),
}
"""All acquisitions by their names in `Settings.acquisition`."""


def acquisition(wanted: str | Callable[..., Any]) -> Acquisition:
    """The acquisition with this name, or of a user's function. Raises SettingsError for an unknown name."""
    if callable(wanted):
        return Acquisition(with_checks(wanted), rises_with_sd=False)
    if wanted not in ACQUISITIONS:
        raise SettingsError(f"setting 'acquisition': expected one of {', '.join(ACQUISITIONS)}, "
                            f"or a function (mu, sd, best) -> scores, got {wanted!r}")  # fmt: skip
    return ACQUISITIONS[wanted]


def with_checks(function: Callable[..., Any]) -> Score:
    """A user's acquisition function that raises SettingsError if its scores have a wrong shape or are NaN."""

    def score(mu: Floats, sd: Floats, best: Floats) -> Floats:
        scores = np.asarray(function(mu, sd, best), dtype=np.float64)
        if scores.shape != mu.shape[1:]:
            raise SettingsError(
                f"acquisition: expected scores of shape {mu.shape[1:]}, one a point, got {scores.shape}; "
                "average over the samples, axis 0"
            )
        if np.isnan(scores).any():
            raise SettingsError("acquisition: expected numbers, got NaN; use -inf for a point never to be chosen")
        return scores

    return score
