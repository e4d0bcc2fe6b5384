"""Acquisition functions: how good would it be to evaluate a row? Larger scores are better; values are minimised.

Notation
    mu, sd      (S, N) posterior mean and standard deviation at N rows under S samples
    best        (S,) reference value a sample's improvement is counted from
    z           (best - mu) / sd

Scores that average over samples do so outside the logarithm: log mean_s EI_s. A score that cannot fall when sd
grows (`Pointwise.rises_with_sd`) is bounded by its value at the prior's sd, which is cheap; search uses the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr

from carbo.numerics.types import Floats, Ints
from carbo.surrogate.bounds import Around
from carbo.surrogate.ensemble import Ensemble, Recombined
from carbo.surrogate.moves import Moves, moves

Score = Callable[[Floats, Floats, Floats], Floats]
"""(mu, sd, best) -> (N,) scores."""

TINY = 1e-300
"""What an entropy that underflows counts as."""
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def screening() -> np.errstate:
    """For scores that only choose what is scored exactly afterwards, in float64.

    On a busy machine matrix products in float32 raised the flag of an invalid operation now and then, which the same
    products did not when they were made again; why is not known.
    """
    return np.errstate(invalid="ignore")


def expected_improvement(mu: Floats, sd: Floats, best: Floats) -> Floats:
    """EI averaged over samples; underflows to 0 far from the best, where `log_expected_improvement` does not."""
    z = (best[:, None] - mu) / sd
    return np.asarray(np.mean(sd * (z * ndtr(z) + np.exp(-0.5 * z * z - LOG_SQRT_2PI)), axis=0))


def log_expected_improvement(mu: Floats, sd: Floats, best: Floats) -> Floats:
    """log of the EI averaged over samples, exact to rounding for any z; only where EI is tiny are logarithms summed."""
    plain = expected_improvement(mu, sd, best)
    tiny = ~(plain > (1e-100 if plain.dtype == np.float64 else 1e-30))
    out = np.log(np.where(tiny, 1.0, plain))
    if tiny.any():
        z = (best[:, None] - mu[:, tiny]) / sd[:, tiny]
        out[tiny] = logsumexp(log_h(z) + np.log(sd[:, tiny]), axis=0) - np.log(len(mu))
    return np.asarray(out)


def log_h(z: Floats) -> Floats:
    """log(phi(z) + z Phi(z)), by the Mills ratio where the sum cancels (z < -1)."""
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


def confidence_bound(kappa: float) -> Score:
    """GP-UCB for minimisation: kappa sd - mu, averaged over samples."""

    def score(mu: Floats, sd: Floats, best: Floats) -> Floats:  # noqa: ARG001
        return np.asarray(np.mean(kappa * sd - mu, axis=0))

    return score


def log_min_value_entropy(minima: Floats) -> Score:
    """log of max-value entropy search (Wang and Jegelka 2017) for minima (S, Q) drawn under each sample, in nats."""

    def score(mu: Floats, sd: Floats, best: Floats) -> Floats:  # noqa: ARG001
        gain = np.zeros(mu.shape[1])
        for q in range(minima.shape[1]):
            g = (mu - minima[:, q, None]) / sd
            log_cdf = log_ndtr(g)
            gain += np.mean(0.5 * g * np.exp(-0.5 * g * g - LOG_SQRT_2PI - log_cdf) - log_cdf, axis=0)
        return np.asarray(np.log(np.maximum(gain, TINY) / minima.shape[1]))

    return score


def draw_minima(rng: np.random.Generator, ensemble: Ensemble, rows: Ints, count: int) -> Floats:
    """(S, count) minima of joint posterior draws over rows."""
    return np.stack([draws.min(axis=1) for draws in (_joint_draws(rng, ensemble, s, rows, count)
                                                     for s in range(ensemble.size))])  # fmt: skip


def thompson(rng: np.random.Generator, ensemble: Ensemble, rows: Ints) -> Floats:
    """Minus one joint posterior draw over rows under one random sample: its argmax is a Thompson draw."""
    return np.asarray(-_joint_draws(rng, ensemble, int(rng.integers(ensemble.size)), rows, 1)[0])


def _joint_draws(rng: np.random.Generator, ensemble: Ensemble, s: int, rows: Ints, count: int) -> Floats:
    mean, cov = ensemble.joint(s, rows)
    lam, U = np.linalg.eigh(cov)  # a posterior covariance is often singular: no Cholesky
    return np.asarray(mean + rng.standard_normal((count, len(mean))) * np.sqrt(np.maximum(lam, 0.0)) @ U.T)


@dataclass(frozen=True, eq=False)
class Pointwise:
    """Scores of rows from mu and sd, as the search uses them: exact ones and cheap upper bounds.

    `penalty` (N,), never positive, is added to scores: the log probability of success where evaluations have failed. It
    multiplies what a score is the logarithm of; a confidence bound, or a function of a user's, is lowered by it.
    """

    ensemble: Ensemble
    function: Score
    best: Floats
    rises_with_sd: bool
    penalty: Callable[[Ints], Floats] | None = None

    @cached_property
    def moves(self) -> Moves:
        return moves(self.ensemble)

    def score(self, rows: Ints) -> Floats:
        """Exact scores, (N,)."""
        return self._in_pieces(rows, False)

    def rough(self, rows: Ints) -> Floats:
        """Scores good to about two digits, in float32 where that is enough."""
        with screening():
            return self._in_pieces(rows, True)

    def _in_pieces(self, rows: Ints, rough: bool) -> Floats:
        parts = [self._score(rows[i : i + 1024], rough) for i in range(0, len(rows), 1024)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _score(self, rows: Ints, rough: bool) -> Floats:
        mu, sd = self.ensemble.predict(rows, rough)
        return self._with_penalty(self.function(mu, sd, self.best), rows)

    def _with_penalty(self, scores: Floats, rows: Ints) -> Floats:
        return scores if self.penalty is None else scores + self.penalty(rows)

    def bound_starts(self, starts: Recombined) -> Floats:
        """Upper bounds at recombined rows, (len(starts),); +inf where the score has none."""
        if not self.rises_with_sd:
            return np.full(len(starts), np.inf)
        with screening():
            mu, sd = self.moves.spread(starts)
            return self.function(mu, sd, self.best.astype(mu.dtype)).astype(np.float64)

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Neighbours:
        """Scores of rows that each differ in one variable from parents[owner], with bounds."""
        return Neighbours(self, rows, self.moves.around(parents, rows, owner))


class Neighbours(NamedTuple):
    """`search.Neighbours` of an acquisition."""

    of: Pointwise
    rows: Ints
    known: Around

    def bounds(self) -> Floats:
        if not self.of.rises_with_sd:
            return np.full(len(self.rows), np.inf)
        return self.of.function(self.known.mu, self.known.cap, self.of.best)

    @property
    def closer(self) -> list[Callable[[Ints], Floats]]:
        return [partial(self._given, m) for m in self.known.stages] if self.of.rises_with_sd else []

    def _given(self, first: int, index: Ints) -> Floats:
        """Bounds from what sd is given the first observations."""
        return self.of.function(self.known.mu[:, index], self.known.sd(index, first), self.of.best)

    def score(self, index: Ints) -> Floats:
        scores = self.of.function(self.known.mu[:, index], self.known.sd(index), self.of.best)
        return self.of._with_penalty(scores, self.rows[index])


class Lowest:
    """Minus the posterior mean, averaged over samples: what has no spread to compute, and so is exact at once."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble, self._moves = ensemble, moves(ensemble)

    def score(self, rows: Ints) -> Floats:
        of = self._ensemble
        pieces = (rows[i : i + of.piece] for i in range(0, len(rows), of.piece))
        return np.concatenate([-of.mu(of.covariances(some)).mean(axis=0) for some in pieces] or [np.empty(0)])

    rough = score

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Exact:
        return Exact(-self._moves.around(parents, rows, owner).mu.mean(axis=0))


class Exact(NamedTuple):
    """`search.Neighbours` whose scores are known."""

    scores: Floats

    def bounds(self) -> Floats:
        return self.scores.copy()

    @property
    def closer(self) -> list[Callable[[Ints], Floats]]:
        return []

    def score(self, index: Ints) -> Floats:
        return self.scores[index]
