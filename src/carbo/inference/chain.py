"""Draws of the posterior, the one way in for the optimiser: sweeps of slice updates (`posterior`), or all parameters at
once by Hamiltonian Monte Carlo, which the order kernel's cheap gradient makes ten times faster (here).

Notation
    x       (k,) log relevances, log betas (of graphs that are not complete), log signal variances, log noise variance
            in that order: `Layout` says where
    step    common step size; spread (k,) posterior standard deviations as seen so far

The mean is integrated out of the density and drawn exactly afterwards. A draw's transitions use one fixed tuning, so
that each leaves the posterior invariant; what they show tunes the next draw.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from carbo.errors import NumericalError
from carbo.inference import gibbs as posterior
from carbo.inference import priors
from carbo.inference.data import Data, Hyper, Model, Sampling
from carbo.inference.likelihood import Likelihood
from carbo.kernels.base import Kernel, Scales
from carbo.numerics import hmc
from carbo.numerics.hmc import Box, Place
from carbo.numerics.types import Floats, Ints

TARGET = 0.8
"""Rate of acceptance that the step size aims at."""
MEMORY = 200
"""Samples over which the spread is remembered."""
CLIMB = 30
"""Iterations towards the mode before a new chain's burn-in."""
SCATTER = 2.0
"""Standard deviation, in every log parameter, of the places from which a climb starts again."""
NARROW, WIDE = 0.1, 3.0
"""Least and largest spread that is believed."""


class Tuning(NamedTuple):
    """What the chain has learned of the posterior's shape: step size, and centre (k,) and variance (k,) so far."""

    step: float
    centre: Floats
    variance: Floats

    @property
    def size(self) -> Floats:
        """Step size of each coordinate."""
        return self.step * np.clip(np.sqrt(self.variance), NARROW, WIDE)

    def seen(self, x: Floats) -> Tuning:
        """After one more sample."""
        away = x - self.centre
        share = 1.0 / MEMORY
        return self._replace(
            centre=self.centre + share * away, variance=(1 - share) * (self.variance + share * away**2)
        )

    def stepped(self, chance: float, gain: float) -> Tuning:
        """A longer step where acceptance was likelier than TARGET."""
        return self._replace(step=min(max(self.step * math.exp(gain * (chance - TARGET)), 1e-4), 2.0))


class Chain(NamedTuple):
    """A position, and the tuning with which it goes on; slice updates need none."""

    hyper: Hyper
    tuning: Tuning | None = None


class Layout(NamedTuple):
    """Which variables' relevances and betas are in x, and how many signal variances."""

    relevance: Ints
    beta: Ints
    weights: int

    @property
    def size(self) -> int:
        return len(self.relevance) + len(self.beta) + self.weights + 1

    def flat(self, h: Hyper) -> Floats:
        """x of a setting."""
        some = h.scales.log_relevance[self.relevance], h.scales.log_beta[self.beta]
        return np.concatenate([*some, h.log_w, [h.log_noise]])

    def pieces(self, x: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Log relevances, log betas, log signal variances and log noise of x."""
        a, b = len(self.relevance), len(self.relevance) + len(self.beta)
        return x[:a], x[a:b], x[b:-1], float(x[-1])

    def hyper(self, x: Floats, base: Hyper) -> Hyper:
        """The setting at x, with what is not in x from `base`."""
        log_r, log_beta, log_w, log_noise = self.pieces(x)
        relevance, beta = base.scales.log_relevance.copy(), base.scales.log_beta.copy()
        relevance[self.relevance], beta[self.beta] = log_r, log_beta
        return Hyper(base.mean, log_noise, log_w, Scales(beta, relevance))


def layout(kernel: Kernel) -> Layout:
    """What of the kernel's scales moves."""
    some = kernel.coordinates()
    relevance, beta = ([at.variable for at in some if at.name == name] for name in ("relevance", "beta"))
    return Layout(np.array(relevance, dtype=np.intp), np.array(beta, dtype=np.intp), kernel.size)


class Posterior:
    """The posterior density of x, as an `hmc.Target`."""

    def __init__(self, model: Model, data: Data, base: Hyper) -> None:
        self.layout, self._priors, self._base = layout(model.kernel), model.priors, base
        self._likelihood = Likelihood(model.kernel, data)
        ends = model.priors.supports
        supports = (ends.relevance, ends.beta, ends.weight, ends.noise)
        counts = (len(self.layout.relevance), len(self.layout.beta), self.layout.weights, 1)
        self.box = Box(*(np.repeat([s[k] for s in supports], counts) for k in (0, 1)))

    def __call__(self, x: Floats) -> Place | None:
        h = self.layout.hyper(x, self._base)
        slope = self._likelihood.at(h.scales, h.log_w, h.log_noise)
        if slope is None:
            return None
        prior, by = self._prior(x)
        some = slope.by.log_relevance[self.layout.relevance], slope.by.log_beta[self.layout.beta]
        gradient = np.concatenate([*some, slope.by.log_w, [slope.log_noise]]) + by
        return Place(x, slope.value + prior, gradient, slope.mean) if np.all(np.isfinite(gradient)) else None

    def hyper(self, rng: np.random.Generator, here: Place) -> Hyper:
        """The setting there, with a draw of the mean given all else."""
        mean, sd = here.note
        return self.layout.hyper(here.x, self._base)._replace(mean=mean + sd * rng.standard_normal())

    def _prior(self, x: Floats) -> tuple[float, Floats]:
        p = self._priors
        log_r, log_beta, log_w, log_noise = self.layout.pieces(x)
        each = (
            p.relevance_slope(log_r),
            p.beta_slope(log_beta),
            priors.normal_slope(log_w, 0.0, p.weight_sd),
            p.noise_slope(np.array([log_noise])),
        )
        return float(sum(value.sum() for value, _ in each)), np.concatenate([by for _, by in each])


def mode(model: Model, data: Data, restarts: int = 0) -> tuple[float, Hyper]:
    """Log posterior density near its mode, the mean integrated out, up to a constant of the model; and the mode.

    restarts    climbs from other places around the usual start; the highest place counts
    For differentiable models. Raises NumericalError like `draw`.
    """
    first = posterior.initial(model, data)
    density = Posterior(model, data, first)
    x = density.layout.flat(first)
    elsewhere = np.random.default_rng(0).normal(x, SCATTER, size=(restarts, len(x)))
    tops = [_climb(density, _start(density, start)) for start in (x, *elsewhere)]
    top = max(tops, key=lambda place: place.log_f)
    return top.log_f, density.layout.hyper(top.x, first)._replace(mean=top.note[0])


def draw(
    rng: np.random.Generator, chain: Chain | None, model: Model, data: Data, sampling: Sampling
) -> tuple[Chain, list[Hyper]]:
    """Advance the chain (None: start and burn in) and return its end and `samples` successive states.

    Raises NumericalError when no noise level of the prior makes the covariance positive definite.
    """
    if not model.differentiable:
        hyper, samples = posterior.draw(rng, None if chain is None else chain.hyper, model, data, sampling)
        return Chain(hyper), samples
    base = posterior.initial(model, data) if chain is None else chain.hyper
    density = Posterior(model, data, base)
    here = _start(density, density.layout.flat(base))
    if chain is None or chain.tuning is None:
        here, tuning = _burn_in(rng, here, density, sampling)
    else:
        tuning = chain.tuning
    return _samples(rng, here, density, tuning, sampling)


def _samples(
    rng: np.random.Generator, here: Place, density: Posterior, tuning: Tuning, sampling: Sampling
) -> tuple[Chain, list[Hyper]]:
    samples, chances, later = [], [], tuning
    for _ in range(sampling.samples):
        here, chance = _move(rng, here, density, tuning, sampling)
        samples.append(density.hyper(rng, here))
        chances.append(chance)
        later = later.seen(here.x)
    later = later.stepped(float(np.mean(chances)), 0.3)
    return Chain(samples[-1], later), samples


def _start(density: Posterior, x: Floats) -> Place:
    """The place at x, moved into the box; noise is raised as far as the covariance needs it."""
    x = np.clip(x, density.box.low, density.box.high)
    while (here := density(x)) is None:
        if x[-1] >= density.box.high[-1]:
            raise NumericalError(
                "covariance of the observations: expected a positive definite matrix, got a singular one at every "
                "noise level of the prior; are values infinite or NaN?"
            )
        x = x.copy()
        x[-1] = min(x[-1] + 1.0, density.box.high[-1])
    return here


def _move(
    rng: np.random.Generator, here: Place, density: Posterior, tuning: Tuning, sampling: Sampling
) -> hmc.Transition:
    """One trajectory of random length, so that no period of the dynamics is met."""
    leaps = int(rng.integers((sampling.leapfrogs + 1) // 2, sampling.leapfrogs + 1))
    return hmc.transition(rng, here, density, density.box, tuning.size, leaps)


def _climb(density: Posterior, here: Place) -> Place:
    """Near the mode: a chain that starts far out would take most of its burn-in to get there."""
    from scipy.optimize import minimize  # a quarter of the time that importing all of carbo would take

    places = [here]

    def descent(x: Floats) -> tuple[float, Floats]:
        place = density(np.clip(x, density.box.low, density.box.high))
        if place is None:
            return math.inf, np.zeros(len(x))
        places.append(place)
        return -place.log_f, -place.gradient

    bounds = list(zip(density.box.low, density.box.high, strict=True))
    with np.errstate(invalid="ignore"):
        minimize(descent, here.x, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": CLIMB})
    return max(places, key=lambda place: place.log_f)


def _burn_in(rng: np.random.Generator, here: Place, density: Posterior, sampling: Sampling) -> tuple[Place, Tuning]:
    """Climb, then move and tune: the step at every trajectory, the spread at a third and at two thirds of the way from
    what came before.
    """
    here = _climb(density, here)
    k, n = len(here.x), sampling.burn_in
    tuning = Tuning(0.1, here.x, np.ones(k))
    seen: list[Floats] = []
    for i in range(n):
        here, chance = _move(rng, here, density, tuning, sampling)
        tuning = tuning.stepped(chance, 0.5 / math.sqrt(1.0 + i / 20.0))
        seen.append(here.x)
        if i in (n // 3, 2 * n // 3):
            recent = np.array(seen[len(seen) // 2 :])
            tuning = tuning._replace(centre=recent.mean(axis=0), variance=np.maximum(recent.var(axis=0), NARROW**2))
    return here, tuning
