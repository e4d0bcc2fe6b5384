"""Posterior samples of the kernel's parameters, for any model: `draw`. Models with a gradient are sampled here, all
parameters at once, by Hamiltonian Monte Carlo; that is ten times faster. Other models are sampled by `gibbs`.

Notation
    x       (k,) log relevances, log betas (of graphs that are not complete), log signal variances, log noise variance,
            in that order (see `Layout`)
    step    common step size
    spread  (k,) posterior standard deviations, estimated from the samples so far

The mean is integrated out of the density and drawn exactly afterwards. All transitions of a draw use one fixed tuning,
so that each leaves the posterior invariant; their samples tune the next draw.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from carbo.errors import NumericalError
from carbo.inference import gibbs, priors
from carbo.inference.data import Data, Hyper, Model, Sampling
from carbo.inference.likelihood import Likelihood
from carbo.kernels.base import Kernel, Scales
from carbo.numerics import hmc
from carbo.numerics.hmc import Box, Place
from carbo.numerics.types import Floats, Ints

NARROW, WIDE = 0.1, 3.0
"""Limits between which a coordinate's spread is used for its step size."""


class Tuning(NamedTuple):
    """Estimates that the chain adapts: step size, and posterior centre (k,) and variance (k,)."""

    step: float
    centre: Floats
    variance: Floats

    @property
    def size(self) -> Floats:
        """Step size of each coordinate."""
        return self.step * np.clip(np.sqrt(self.variance), NARROW, WIDE)

    def adapt_spread(self, x: Floats, memory: float = 200.0) -> Tuning:
        """The tuning after one more sample x: moving averages over about `memory` samples."""
        away = x - self.centre
        share = 1.0 / memory
        return self._replace(
            centre=self.centre + share * away, variance=(1 - share) * (self.variance + share * away**2)
        )

    def adapt_step(self, acceptance: float, gain: float, target: float = 0.8) -> Tuning:
        """The tuning with a longer step if the acceptance was above its target rate, a shorter one if below."""
        return self._replace(step=min(max(self.step * math.exp(gain * (acceptance - target)), 1e-4), 2.0))


class Chain(NamedTuple):
    """The parameters at the chain's end, and its tuning; None if the chain is sampled by `gibbs`, which needs none."""

    hyper: Hyper
    tuning: Tuning | None = None


class Layout(NamedTuple):
    """Order of x: the variables whose relevances and whose betas it holds, and the number of signal variances."""

    relevance: Ints
    beta: Ints
    weights: int

    @property
    def size(self) -> int:
        return len(self.relevance) + len(self.beta) + self.weights + 1

    def vector(self, h: Hyper) -> Floats:
        """The x of parameters h."""
        scales = h.scales.log_relevance[self.relevance], h.scales.log_beta[self.beta]
        return np.concatenate([*scales, h.log_w, [h.log_noise]])

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats, float]:
        """The log relevances, log betas, log signal variances and log noise variance in x."""
        a, b = len(self.relevance), len(self.relevance) + len(self.beta)
        return x[:a], x[a:b], x[b:-1], float(x[-1])

    def hyper(self, x: Floats, base: Hyper) -> Hyper:
        """The parameters at x; those that x does not hold are taken from `base`."""
        log_r, log_beta, log_w, log_noise = self.split(x)
        relevance, beta = base.scales.log_relevance.copy(), base.scales.log_beta.copy()
        relevance[self.relevance], beta[self.beta] = log_r, log_beta
        return Hyper(base.mean, log_noise, log_w, Scales(beta, relevance))


def layout_of(kernel: Kernel) -> Layout:
    """The order of x for this kernel."""
    coordinates = kernel.coordinates()
    relevance, beta = ([at.variable for at in coordinates if at.name == name] for name in ("relevance", "beta"))
    return Layout(np.array(relevance, dtype=np.intp), np.array(beta, dtype=np.intp), kernel.size)


class PosteriorDensity:
    """The posterior density of x, as an `hmc.Target`. The note of a place holds mean and sd of the process's mean."""

    def __init__(self, model: Model, data: Data, base: Hyper) -> None:
        self.layout, self._priors, self._base = layout_of(model.kernel), model.priors, base
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
        prior, prior_gradient = self._prior(x)
        scales = slope.by.log_relevance[self.layout.relevance], slope.by.log_beta[self.layout.beta]
        gradient = np.concatenate([*scales, slope.by.log_w, [slope.log_noise]]) + prior_gradient
        return Place(x, slope.value + prior, gradient, slope.mean) if np.all(np.isfinite(gradient)) else None

    def hyper(self, rng: np.random.Generator, here: Place) -> Hyper:
        """The parameters at a place, with a draw of the mean given all others."""
        mean, sd = here.note
        return self.layout.hyper(here.x, self._base)._replace(mean=mean + sd * rng.standard_normal())

    def _prior(self, x: Floats) -> tuple[float, Floats]:
        """The log prior density at x, and its gradient (k,)."""
        p = self._priors
        log_r, log_beta, log_w, log_noise = self.layout.split(x)
        each = (
            p.relevance_slope(log_r),
            p.beta_slope(log_beta),
            priors.normal_slope(log_w, 0.0, p.weight_sd),
            p.noise_slope(np.array([log_noise])),
        )
        return float(sum(value.sum() for value, _ in each)), np.concatenate([by for _, by in each])


def mode(model: Model, data: Data) -> tuple[float, Hyper]:
    """The log posterior density near its mode, and the parameters there, of a differentiable model.

    The density is that of x, the mean integrated out, up to a constant of the model. Raises NumericalError like `draw`.
    """
    first = gibbs.initial_hyper(model, data)
    density = PosteriorDensity(model, data, first)
    top = _climb(density, _start(density, density.layout.vector(first)))
    return top.log_f, density.layout.hyper(top.x, first)._replace(mean=top.note[0])


def draw(
    rng: np.random.Generator, chain: Chain | None, model: Model, data: Data, sampling: Sampling
) -> tuple[Chain, list[Hyper]]:
    """The chain advanced by one draw, and the parameters at its last `samples` transitions.

    chain   where the chain stands; None: a new chain, which burns in first

    Raises NumericalError when no noise level of the prior makes the covariance positive definite.
    """
    if not model.differentiable:
        hyper, samples = gibbs.draw(rng, None if chain is None else chain.hyper, model, data, sampling)
        return Chain(hyper), samples
    base = gibbs.initial_hyper(model, data) if chain is None else chain.hyper
    density = PosteriorDensity(model, data, base)
    here = _start(density, density.layout.vector(base))
    if chain is None or chain.tuning is None:
        here, tuning = _burn_in(rng, here, density, sampling)
    else:
        tuning = chain.tuning
    return _draw_samples(rng, here, density, tuning, sampling)


def _draw_samples(
    rng: np.random.Generator, here: Place, density: PosteriorDensity, tuning: Tuning, sampling: Sampling
) -> tuple[Chain, list[Hyper]]:
    """The chain after `samples` transitions with this tuning, and the parameters at each of them."""
    samples, acceptances, adapted = [], [], tuning
    for _ in range(sampling.samples):
        here, acceptance = _move(rng, here, density, tuning, sampling)
        samples.append(density.hyper(rng, here))
        acceptances.append(acceptance)
        adapted = adapted.adapt_spread(here.x)
    adapted = adapted.adapt_step(float(np.mean(acceptances)), 0.3)
    return Chain(samples[-1], adapted), samples


def _start(density: PosteriorDensity, x: Floats) -> Place:
    """The place at x, clipped to the box, its noise raised until the covariance can be factored.

    Raises NumericalError when no noise level of the prior makes the covariance positive definite.
    """
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
    rng: np.random.Generator, here: Place, density: PosteriorDensity, tuning: Tuning, sampling: Sampling
) -> hmc.Transition:
    """One transition. Its number of steps is random, so that it cannot match a period of the dynamics."""
    steps = int(rng.integers((sampling.leapfrogs + 1) // 2, sampling.leapfrogs + 1))
    return hmc.transition(rng, here, density, density.box, tuning.size, steps)


def _climb(density: PosteriorDensity, here: Place, iterations: int = 30) -> Place:
    """The highest place of a climb towards the mode. Without it, burn-in would mostly be the way to the mode."""
    from scipy.optimize import minimize  # here: it would add a quarter to the time that importing carbo takes

    places = [here]

    def descent(x: Floats) -> tuple[float, Floats]:
        place = density(np.clip(x, density.box.low, density.box.high))
        if place is None:
            return math.inf, np.zeros(len(x))
        places.append(place)
        return -place.log_f, -place.gradient

    bounds = list(zip(density.box.low, density.box.high, strict=True))
    with np.errstate(invalid="ignore"):
        minimize(descent, here.x, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": iterations})
    return max(places, key=lambda place: place.log_f)


def _burn_in(
    rng: np.random.Generator, here: Place, density: PosteriorDensity, sampling: Sampling
) -> tuple[Place, Tuning]:
    """Place and tuning after a climb and `burn_in` transitions.

    The step adapts at every transition, the spread at a third and at two thirds of them, from the later half so far.
    """
    here = _climb(density, here)
    k, n = len(here.x), sampling.burn_in
    tuning = Tuning(0.1, here.x, np.ones(k))
    visited: list[Floats] = []
    for i in range(n):
        here, acceptance = _move(rng, here, density, tuning, sampling)
        tuning = tuning.adapt_step(acceptance, 0.5 / math.sqrt(1.0 + i / 20.0))
        visited.append(here.x)
        if i in (n // 3, 2 * n // 3):
            recent = np.array(visited[len(visited) // 2 :])
            tuning = tuning._replace(centre=recent.mean(axis=0), variance=np.maximum(recent.var(axis=0), NARROW**2))
    return here, tuning
