"""Gibbs sweeps of univariate slice updates: posterior samples of the kernel's parameters (supplement B).

Notation
    X       (n, d) integer rows; y (n,) standardised values
    w       (P,) signal variances, the weights of the kernel's parts

A sweep follows supplement B.1: mean, signal variances, noise, then beta (and relevances) in random order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from carbo.errors import NumericalError
from carbo.inference import priors
from carbo.inference.conditionals import (
    Conditional,
    Interval,
    KernelPath,
    LikelihoodPath,
    Prior,
    SchurPath,
    VariancePath,
)
from carbo.inference.data import Data, Hyper, Model, Sampling
from carbo.kernels.base import Coordinate, Scales
from carbo.numerics import linalg, slice_sampling
from carbo.numerics.types import Floats


def initial_hyper(model: Model, data: Data) -> Hyper:
    """The parameters that a new chain starts from: beta and relevance 1, noise a hundredth of the values' variance."""
    d, w = len(model.kernel.spectra), 1.0 / model.kernel.size
    prior = level_prior(model, data)
    log_w = np.full(model.kernel.size, math.log(w))
    return Hyper(
        mean=_clip(float(np.mean(data.y)), prior.mean),
        log_noise=_clip(math.log(0.01), model.priors.supports.noise),
        log_w=np.clip(log_w, *prior.log_w),
        scales=Scales(np.zeros(d), np.zeros(d)),
    )


def draw(
    rng: np.random.Generator, chain: Hyper | None, model: Model, data: Data, sampling: Sampling
) -> tuple[Hyper, list[Hyper]]:
    """The chain's end after one draw, and the parameters at its last `samples` sweeps.

    chain   where the chain stands; None: a new chain, which burns in first

    Raises NumericalError when no noise level of the prior makes the covariance positive definite.
    """
    sweeps = sampling.samples + (sampling.burn_in if chain is None else 0)
    state = start(model, data, chain if chain is not None else initial_hyper(model, data))
    samples: list[Hyper] = []
    for _ in range(sweeps):
        state = sweep(rng, state, model, data, sampling)
        samples.append(state.hyper)
    return state.hyper, samples[-sampling.samples :]


class LevelPrior(NamedTuple):
    """Supports of the mean and of each log signal variance. The paper takes them from the data."""

    mean: Interval
    log_w: Interval


def level_prior(model: Model, data: Data) -> LevelPrior:
    """The supports of supplement B.2.1-2, with K taken at beta = 1 as in the published experiments."""
    if model.priors.level == "standard":
        return LevelPrior((-math.inf, math.inf), model.priors.supports.weight)
    d = len(model.kernel.spectra)
    K = model.kernel.parts(Scales(np.zeros(d), np.zeros(d)), data.X)[0]
    log_variance = math.log(max(float(np.var(data.y)), 1e-10))
    low = log_variance - math.log(float(K.max()))
    high = log_variance - math.log(max(float(K.min()), 1e-30))
    return LevelPrior((float(data.y.min()), float(data.y.max())), (low, max(high, low + 1.0)))


class State(NamedTuple):
    """A chain's position, and what is expensive to compute again there: the kernel's parts (P, n, n) and the fit."""

    hyper: Hyper
    parts: Floats
    fit: linalg.Fit
    level: LevelPrior


def start(model: Model, data: Data, hyper: Hyper) -> State:
    """The state at `hyper`, clipped to the present supports, its noise raised until the covariance can be factored.

    Raises NumericalError when no noise level of the prior makes the covariance positive definite.
    """
    level = level_prior(model, data)
    hyper = hyper._replace(
        mean=_clip(hyper.mean, level.mean),
        log_w=np.clip(hyper.log_w, *level.log_w),
        log_noise=_clip(hyper.log_noise, model.priors.supports.noise),
        scales=Scales(
            np.clip(hyper.scales.log_beta, *model.priors.supports.beta),
            np.clip(hyper.scales.log_relevance, *model.priors.supports.relevance),
        ),
    )
    parts = model.kernel.parts(hyper.scales, data.X)
    while True:
        fit = linalg.fit_in_place(covariance(parts, hyper), data.y - hyper.mean)
        if fit is not None:
            return State(hyper, parts, fit, level)
        if hyper.log_noise >= model.priors.supports.noise[1]:
            raise NumericalError(
                f"covariance of {len(data.y)} observations: expected a positive definite matrix, got a singular one "
                "at every noise level of the prior; are values infinite or NaN?"
            )
        hyper = hyper._replace(log_noise=min(hyper.log_noise + 1.0, model.priors.supports.noise[1]))


def covariance(parts: Floats, hyper: Hyper) -> Floats:
    """C (n, n) at `hyper`, noise included, in Fortran order."""
    w = np.exp(hyper.log_w)
    C = w[0] * parts[0]
    for p in range(1, len(w)):
        C += w[p] * parts[p]
    C.reshape(-1)[:: len(C) + 1] += math.exp(hyper.log_noise)
    return np.asarray(C.T)


def sweep(rng: np.random.Generator, state: State, model: Model, data: Data, sampling: Sampling) -> State:
    """The state after one update of every parameter (supplement B.1, steps 1 to 4)."""
    state = state._replace(parts=model.kernel.parts(state.hyper.scales, data.X))  # updates accumulate rounding
    state = update_mean(rng, state, model, data, sampling)
    for p in range(model.kernel.size):
        state = update_weight(rng, state, p, model, data, sampling)
    state = update_noise(rng, state, model, data, sampling)
    coordinates = model.kernel.coordinates()
    for j in rng.permutation(len(coordinates)):
        state = update_scale(rng, state, coordinates[j], model, data, sampling)
    return state


def update_mean(rng: np.random.Generator, state: State, model: Model, data: Data, sampling: Sampling) -> State:
    """Step 1, the mean. The log likelihood is quadratic in it: one factorisation serves the whole update."""
    L = linalg.cholesky(covariance(state.parts, state.hyper))
    one, v = linalg.solve_lower(L, np.ones(len(data.y))), linalg.solve_lower(L, data.y)
    precision, linear, square = float(one @ one), float(one @ v), float(v @ v)

    def quad_half(mean: float) -> float:
        return -0.5 * (square - 2.0 * mean * linear + mean * mean * precision)

    if model.priors.level == "standard":
        mean = linear / (precision + 1.0) + rng.normal() / math.sqrt(precision + 1.0)
    else:
        low, high = state.level.mean
        if low == high:
            return state
        density = slice_sampling.Function(lambda m: quad_half(m) + priors.truncated_normal(m, low, high), (low, high))
        now = state.hyper.mean
        width = sampling.width * (high - low) / 4.0
        mean = slice_sampling.update(
            rng, slice_sampling.Draw(now, density.value(now)), density, width, sampling.doublings
        ).x
    return state._replace(hyper=state.hyper._replace(mean=mean), fit=state.fit._replace(quad_half=quad_half(mean)))


def update_weight(
    rng: np.random.Generator, state: State, p: int, model: Model, data: Data, sampling: Sampling
) -> State:
    """Step 2, for the signal variance of part p."""
    now, support = float(state.hyper.log_w[p]), state.level.log_w

    def prior(theta: float) -> float:
        if model.priors.level == "published":
            return priors.truncated_normal(theta, *support)
        return priors.normal(theta, 0.0, model.priors.weight_sd)

    path = VariancePath(covariance(state.parts, state.hyper), data.y - state.hyper.mean, state.parts[p].T, now)
    theta, fit = Conditional(path, Prior(prior, support), now, state.fit).slice(rng, sampling.width, sampling.doublings)
    log_w = state.hyper.log_w.copy()
    log_w[p] = theta
    return state._replace(hyper=state.hyper._replace(log_w=log_w), fit=fit)


def update_noise(rng: np.random.Generator, state: State, model: Model, data: Data, sampling: Sampling) -> State:
    """Step 3, the noise."""
    hyper, prior = state.hyper, Prior(model.priors.log_noise, model.priors.supports.noise)
    path = VariancePath(covariance(state.parts, hyper), data.y - hyper.mean, None, hyper.log_noise)
    theta, fit = Conditional(path, prior, hyper.log_noise, state.fit).slice(rng, sampling.width, sampling.doublings)
    return state._replace(hyper=hyper._replace(log_noise=theta), fit=fit)


def update_scale(
    rng: np.random.Generator, state: State, at: Coordinate, model: Model, data: Data, sampling: Sampling
) -> State:
    """Step 4, for one variable's beta or relevance."""
    hyper, kernel = state.hyper, model.kernel
    if at.name == "beta":
        prior, values = Prior(model.priors.log_beta, model.priors.supports.beta), hyper.scales.log_beta
    else:
        values = hyper.scales.log_relevance
        rest = [c.variable for c in kernel.coordinates() if c.name == "relevance" and c.variable != at.variable]
        others = values[rest]
        prior = Prior(lambda theta: model.priors.log_relevance(theta, others), model.priors.supports.relevance)
    now = float(values[at.variable])
    change = kernel.change(state.parts, hyper.scales, data.X, np.exp(hyper.log_w), at)
    if change.split is not None:
        path: LikelihoodPath = SchurPath(change.split, data, hyper)
    else:
        path = KernelPath(change, data.y - hyper.mean, math.exp(hyper.log_noise))
    theta, fit = Conditional(path, prior, now, state.fit).slice(rng, sampling.width, sampling.doublings)
    if theta == now:
        return state
    parts = change.parts(theta)
    values = values.copy()
    values[at.variable] = theta
    scales = hyper.scales._replace(**{f"log_{at.name}": values})
    return state._replace(hyper=hyper._replace(scales=scales), parts=parts, fit=fit)


def _clip(x: float, interval: Interval) -> float:
    return min(max(x, interval[0]), interval[1])
