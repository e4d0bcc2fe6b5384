"""Posterior of the kernel's parameters given the data: Gibbs sweeps of univariate slice updates.

Notation
    X       (n, d) integer rows; y (n,) standardised values
    C       (n, n) covariance of y: sum_p w_p parts_p + noise * I
    theta   the coordinate being updated, on its log scale
    t       where C is affine in a function t of theta (a weight, the noise, rho of a complete graph):
            -1/2 log det C is convex in t and -1/2 r'C^-1 r is concave, so chords bound both (`Conditional.quick`)

A sweep follows supplement B.1: mean, signal variances, noise, then beta (and relevances) in random order.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from carbo import gp, priors
from carbo import slice_sampling as slicing
from carbo.errors import NumericalError
from carbo.graph import Floats, Ints
from carbo.kernel import Coordinate, Curve, Kernel, Scales, Split

Interval = tuple[float, float]
LogDensity = Callable[[float], float]


class Grouping(NamedTuple):
    """The observations by their value of one variable: the commonest value's first."""

    order: Ints  # (n,)
    first: int  # how many have the commonest value
    differ: NDArray[np.bool_] | None  # (m, m) unequal values among the m others; None where they are all equal


@dataclass(frozen=True, eq=False)
class Data:
    """Observations: integer rows X (n, d) and standardised values y (n,), n >= 1."""

    X: Ints
    y: Floats
    _groupings: dict[int, Grouping] = field(default_factory=dict, repr=False)
    _scratch: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)

    def scratch(self, name: str, *shape: int, dtype: Any = np.float64) -> NDArray[Any]:
        """An uninitialised array of at most n x n numbers, the same memory each time: fresh pages cost more than
        the arithmetic on them.
        """
        n = len(self.y)
        if name not in self._scratch:
            self._scratch[name] = np.empty(n * n, dtype=dtype)
        return self._scratch[name][: math.prod(shape)].reshape(shape)

    def grouping(self, i: int) -> Grouping:
        """By variable i; kept, since a draw asks for it every sweep."""
        if i not in self._groupings:
            x = self.X[:, i]
            first = x == np.bincount(x).argmax()
            order = np.argsort(~first, kind="stable")
            rest = x[order[np.count_nonzero(first) :]]
            mixed = len(rest) > 0 and bool(np.any(rest != rest[0]))
            self._groupings[i] = Grouping(order, len(x) - len(rest), rest[:, None] != rest if mixed else None)
        return self._groupings[i]


class Hyper(NamedTuple):
    """One setting of every parameter: constant mean, log noise variance, log signal variances (P,), scales."""

    mean: float
    log_noise: float
    log_w: Floats
    scales: Scales


@dataclass(frozen=True)
class Priors:
    """Which prior each parameter has; intervals are supports on the log scale.

    beta: "published" is the paper's (Horseshoe bound at beta, no Jacobian), "horseshoe" the same with the
    Jacobian of log beta, "gamma" Gamma(1, 3), "normal" log beta ~ N(beta_mean, beta_sd).
    level: "published" puts the paper's data-dependent priors on mean and signal variance; "standard" puts N(0, 1)
    on the mean, drawn exactly, and log w ~ N(0, weight_sd).
    noise: "published" is the paper's bound; "half-cauchy" has scale noise_scale on the variance.
    relevance: "horseshoe" or "half-cauchy" with scale relevance_scale, or "normal": log r ~ N(0, relevance_scale).
    """

    beta: Literal["published", "horseshoe", "gamma", "normal"] = "published"
    beta_tau: float = 5.0
    beta_mean: float = 0.0
    beta_sd: float = 1.0
    beta_support: Interval = (-12.0, math.log(100.0))
    level: Literal["published", "standard"] = "published"
    weight_sd: float = 1.5
    weight_support: Interval = (-10.0, 10.0)
    noise: Literal["published", "half-cauchy"] = "published"
    noise_scale: float = 0.05
    noise_support: Interval = (-12.0, math.log(1e4))
    relevance: Literal["horseshoe", "half-cauchy", "normal"] = "horseshoe"
    relevance_scale: float = 1.0
    relevance_support: Interval = (-8.0, 4.0)

    def log_beta(self, theta: float) -> float:
        if self.beta == "published":
            return priors.horseshoe_bound(math.exp(theta), self.beta_tau)
        if self.beta == "horseshoe":
            return priors.horseshoe_on_log(theta, self.beta_tau)
        if self.beta == "gamma":
            return priors.gamma_on_log(theta, 1.0, 3.0)
        return priors.normal(theta, self.beta_mean, self.beta_sd)

    def log_noise(self, theta: float) -> float:
        if self.noise == "published":  # log(1 + (0.1 / noise)^2): tau = sqrt(0.05) * 0.1^(1/2) in the paper's letters
            return priors.horseshoe_bound(math.exp(theta), 0.1 / math.sqrt(2.0))
        return priors.half_cauchy_on_log(theta, self.noise_scale)

    def log_relevance(self, theta: float) -> float:
        if self.relevance == "horseshoe":
            return priors.horseshoe_on_log(theta, self.relevance_scale)
        if self.relevance == "half-cauchy":
            return priors.half_cauchy_on_log(theta, self.relevance_scale)
        return priors.normal(theta, 0.0, self.relevance_scale)


class Sampling(NamedTuple):
    """How the chain moves: samples a draw, burn-in sweeps of a new chain, slice width and most doublings."""

    samples: int = 10
    burn_in: int = 100
    width: float = 1.0
    doublings: int = 10


class Model(NamedTuple):
    """A kernel with its priors."""

    kernel: Kernel
    priors: Priors


def initial(model: Model, data: Data) -> Hyper:
    """Where a new chain starts: beta and relevance one, noise a hundredth of the values' variance."""
    d, w = len(model.kernel.spectra), 1.0 / model.kernel.size
    prior = level_prior(model, data)
    log_w = np.full(model.kernel.size, math.log(w))
    return Hyper(
        mean=_inside(float(np.mean(data.y)), prior.mean),
        log_noise=_inside(math.log(0.01), model.priors.noise_support),
        log_w=np.clip(log_w, *prior.log_w),
        scales=Scales(np.zeros(d), np.zeros(d)),
    )


def draw(
    rng: np.random.Generator, chain: Hyper | None, model: Model, data: Data, sampling: Sampling
) -> tuple[Hyper, list[Hyper]]:
    """Advance the chain (None: start and burn in) and return its end and `samples` successive states.

    Raises NumericalError when no noise level of the prior makes the covariance positive definite.
    """
    sweeps = sampling.samples + (sampling.burn_in if chain is None else 0)
    state = start(model, data, chain if chain is not None else initial(model, data))
    samples: list[Hyper] = []
    for _ in range(sweeps):
        state = sweep(rng, state, model, data, sampling)
        samples.append(state.hyper)
    return state.hyper, samples[-sampling.samples :]


class LevelPrior(NamedTuple):
    """Supports of the mean and of each log signal variance, which in the paper come from the data."""

    mean: Interval
    log_w: Interval


def level_prior(model: Model, data: Data) -> LevelPrior:
    """Supplement B.2.1-2 with the published experiments' reading: K taken at beta = 1."""
    if model.priors.level == "standard":
        return LevelPrior((-math.inf, math.inf), model.priors.weight_support)
    d = len(model.kernel.spectra)
    K = model.kernel.parts(Scales(np.zeros(d), np.zeros(d)), data.X)[0]
    log_variance = math.log(max(float(np.var(data.y)), 1e-10))
    low = log_variance - math.log(float(K.max()))
    high = log_variance - math.log(max(float(K.min()), 1e-30))
    return LevelPrior((float(data.y.min()), float(data.y.max())), (low, max(high, low + 1.0)))


class State(NamedTuple):
    """A chain's position with what would be costly to compute again: the kernel's parts and the fit."""

    hyper: Hyper
    parts: Floats
    fit: gp.Fit
    level: LevelPrior


def start(model: Model, data: Data, hyper: Hyper) -> State:
    """The state at `hyper`, moved into today's supports; noise is raised as far as the covariance needs it."""
    level = level_prior(model, data)
    hyper = hyper._replace(
        mean=_inside(hyper.mean, level.mean),
        log_w=np.clip(hyper.log_w, *level.log_w),
        log_noise=_inside(hyper.log_noise, model.priors.noise_support),
    )
    parts = model.kernel.parts(hyper.scales, data.X)
    while True:
        fit = gp.fit_in_place(covariance(parts, hyper), data.y - hyper.mean)
        if fit is not None:
            return State(hyper, parts, fit, level)
        if hyper.log_noise >= model.priors.noise_support[1]:
            raise NumericalError(
                f"covariance of {len(data.y)} observations: expected a positive definite matrix, got a singular one "
                "at every noise level of the prior; are values infinite or NaN?"
            )
        hyper = hyper._replace(log_noise=min(hyper.log_noise + 1.0, model.priors.noise_support[1]))


def covariance(parts: Floats, hyper: Hyper) -> Floats:
    """C at `hyper`, Fortran order."""
    w = np.exp(hyper.log_w)
    C = w[0] * parts[0]
    for p in range(1, len(w)):
        C += w[p] * parts[p]
    C.reshape(-1)[:: len(C) + 1] += math.exp(hyper.log_noise)
    return np.asarray(C.T)


def sweep(rng: np.random.Generator, state: State, model: Model, data: Data, sampling: Sampling) -> State:
    """One pass over every parameter (supplement B.1, steps 1 to 4)."""
    state = state._replace(parts=model.kernel.refresh(state.parts, state.hyper.scales, data.X))
    state = update_mean(rng, state, model, data, sampling)
    for p in range(model.kernel.size):
        state = update_weight(rng, state, p, model, data, sampling)
    state = update_noise(rng, state, model, data, sampling)
    coordinates = model.kernel.coordinates()
    for j in rng.permutation(len(coordinates)):
        state = update_scale(rng, state, coordinates[j], model, data, sampling)
    return state


def update_mean(rng: np.random.Generator, state: State, model: Model, data: Data, sampling: Sampling) -> State:
    """Step 1. The likelihood is quadratic in the mean: one factorisation serves the whole update."""
    L = gp.cholesky(covariance(state.parts, state.hyper))
    one, v = gp.solve_lower(L, np.ones(len(data.y))), gp.solve_lower(L, data.y)
    precision, linear, square = float(one @ one), float(one @ v), float(v @ v)

    def quad_half(mean: float) -> float:
        return -0.5 * (square - 2.0 * mean * linear + mean * mean * precision)

    if model.priors.level == "standard":
        mean = linear / (precision + 1.0) + rng.normal() / math.sqrt(precision + 1.0)
    else:
        low, high = state.level.mean
        if low == high:
            return state
        density = slicing.Function(lambda m: quad_half(m) + priors.truncated_normal(m, low, high), (low, high))
        now = state.hyper.mean
        width = sampling.width * (high - low) / 4.0
        mean = slicing.update(rng, slicing.Draw(now, density.value(now)), density, width, sampling.doublings).x
    return state._replace(hyper=state.hyper._replace(mean=mean), fit=state.fit._replace(quad_half=quad_half(mean)))


def update_weight(
    rng: np.random.Generator, state: State, p: int, model: Model, data: Data, sampling: Sampling
) -> State:
    """Step 2, for one signal variance."""
    now, support = float(state.hyper.log_w[p]), state.level.log_w

    def prior(theta: float) -> float:
        if model.priors.level == "published":
            return priors.truncated_normal(theta, *support)
        return priors.normal(theta, 0.0, model.priors.weight_sd)

    path = Ray(covariance(state.parts, state.hyper), data.y - state.hyper.mean, state.parts[p], now)
    theta, fit = Conditional(path, Prior(prior, support), now, state.fit).slice(rng, sampling)
    log_w = state.hyper.log_w.copy()
    log_w[p] = theta
    return state._replace(hyper=state.hyper._replace(log_w=log_w), fit=fit)


def update_noise(rng: np.random.Generator, state: State, model: Model, data: Data, sampling: Sampling) -> State:
    """Step 3."""
    hyper, prior = state.hyper, Prior(model.priors.log_noise, model.priors.noise_support)
    path = Ray(covariance(state.parts, hyper), data.y - hyper.mean, np.eye(len(data.y)), hyper.log_noise)
    theta, fit = Conditional(path, prior, hyper.log_noise, state.fit).slice(rng, sampling)
    return state._replace(hyper=hyper._replace(log_noise=theta), fit=fit)


def update_scale(
    rng: np.random.Generator, state: State, at: Coordinate, model: Model, data: Data, sampling: Sampling
) -> State:
    """Step 4, for one variable's beta or relevance."""
    hyper, kernel = state.hyper, model.kernel
    if at.name == "beta":
        prior, values = Prior(model.priors.log_beta, model.priors.beta_support), hyper.scales.log_beta
    else:
        prior, values = Prior(model.priors.log_relevance, model.priors.relevance_support), hyper.scales.log_relevance
    now = float(values[at.index])
    change = kernel.swap(state.parts, hyper.scales, data.X, np.exp(hyper.log_w), at)
    if isinstance(change, Split):
        path: Path = Eliminated(change, data, hyper)
    else:
        path = Filled(change, data.y - hyper.mean, math.exp(hyper.log_noise))
    theta, fit = Conditional(path, prior, now, state.fit).slice(rng, sampling)
    if theta == now:
        return state
    parts = kernel.swapped(state.parts, hyper.scales, data.X, at, theta)
    values = values.copy()
    values[at.index] = theta
    scales = hyper.scales._replace(**{f"log_{at.name}": values})
    return state._replace(hyper=hyper._replace(scales=scales), parts=parts, fit=fit)


class Prior(NamedTuple):
    """A log density on a closed interval."""

    log_density: LogDensity
    support: Interval


class Path(Protocol):
    """The likelihood along one coordinate."""

    def t(self, theta: float) -> float | None:
        """Where the covariance is affine in t, that t; else None."""

    def fit(self, theta: float) -> gp.Fit | None:
        """The fit at theta; None where the covariance is not positive definite."""


class Ray:
    """C(theta) = C + (exp(theta) - exp(now)) * slope: a signal variance or the noise."""

    def __init__(self, C: Floats, r: Floats, slope: Floats, now: float) -> None:
        self._C, self._r, self._slope, self._t_now = C, r, slope, math.exp(now)
        self._buffer = np.empty_like(C)

    def t(self, theta: float) -> float:
        return math.exp(theta)

    def fit(self, theta: float) -> gp.Fit | None:
        np.multiply(self._slope, self.t(theta) - self._t_now, out=self._buffer)
        self._buffer += self._C
        return gp.fit_in_place(self._buffer, self._r)


class Filled:
    """Any change of the signal covariance."""

    def __init__(self, change: Curve, r: Floats, noise: float) -> None:
        self._fill, self._r, self._noise = change.fill, r, noise
        self._buffer = np.empty((len(r), len(r)), order="F")

    def t(self, theta: float) -> None:
        return None

    def fit(self, theta: float) -> gp.Fit | None:
        self._fill(theta, self._buffer)
        self._buffer.T.reshape(-1)[:: len(self._r) + 1] += self._noise
        return gp.fit_in_place(self._buffer, self._r)


class Eliminated:
    """A complete graph's factor: only covariances between unequal values move, in proportion to t.

    The observations of the commonest value (index 1) are eliminated once: their block C11 never moves, and with
    t in units of its present value the rest has the Schur complement D + t O - t^2 C21 C11^-1 C12, D and O its own
    entries of equal and of unequal values. Each evaluation then factors that smaller matrix alone.
    """

    def __init__(self, change: Split, data: Data, hyper: Hyper) -> None:
        self.t, self._t_now = change.t, change.t(float(hyper.scales.log_beta[change.index]))
        order, n1, differ = data.grouping(change.index)
        n, m, nugget = len(order), len(order) - n1, math.exp(hyper.log_noise) / change.w  # C = w (P + nugget I)
        one, rest, r = order[:n1], order[n1:], (data.y[order] - hyper.mean) / math.sqrt(change.w)

        def block(name: str, a: Ints, b: Ints) -> Floats:
            index = data.scratch("index", len(a), len(b), dtype=np.intp)
            np.add((a * n)[:, None], b, out=index)
            return change.P.reshape(-1).take(index, out=data.scratch(name, len(a), len(b)), mode="clip")

        C11 = block("C11", one, one)
        C11.reshape(-1)[:: n1 + 1] += nugget
        H = data.scratch("H", m, m)
        self._scale = gp.Fit(-0.5 * n * math.log(change.w), 0.0)
        self._head = gp.eliminate(C11.T, block("C21", rest, one).T, r[:n1], H.T)
        self._r = r[n1:]
        self._D, self._H, self._O = block("D", rest, rest), H, None
        self._D.reshape(-1)[:: m + 1] += nugget
        if differ is not None:
            self._O = np.multiply(self._D, differ, out=data.scratch("O", m, m))
            self._D -= self._O
        self._buffer, self._term = data.scratch("S", m, m), data.scratch("term", m, m)

    def fit(self, theta: float) -> gp.Fit | None:
        if self._head is None:
            return None
        known = self._head.fit.plus(self._scale)
        if len(self._r) == 0:
            return known
        t = self.t(theta) / self._t_now  # in units of the current one
        np.multiply(self._H, -t * t, out=self._buffer)
        self._buffer += self._D
        if self._O is not None:
            np.multiply(self._O, t, out=self._term)
            self._buffer += self._term
        tail = gp.fit_in_place(self._buffer.T, self._r - t * self._head.g)
        return None if tail is None else known.plus(tail)


class Conditional:
    """Log density of one coordinate given all others, as `slicing.Density`.

    Every evaluation is remembered. Where the covariance is affine in t(theta), the evaluations so far bound the
    density everywhere else, and many of the sampler's questions are answered without a factorisation.
    """

    def __init__(self, path: Path, prior: Prior, now: float, fit: gp.Fit) -> None:
        self._path, self._prior, self._now, self.support = path, prior, now, prior.support
        self._fits: dict[float, gp.Fit | None] = {}
        self._t: list[float] = []  # ascending, with the fits at those t
        self._known: list[gp.Fit] = []
        self._level = math.nan
        self._decided: dict[float, bool] = {}  # what is known to be above or below that level
        self._remember(now, fit)

    def slice(self, rng: np.random.Generator, sampling: Sampling) -> tuple[float, gp.Fit]:
        """One slice update from `now`: the new value and its fit."""
        current = slicing.Draw(self._now, self.value(self._now))
        theta = slicing.update(rng, current, self, sampling.width, sampling.doublings).x
        fit = self._fits[theta]
        assert fit is not None  # a point of the slice has a finite density
        return theta, fit

    def value(self, theta: float) -> float:
        if not self._prior.support[0] <= theta <= self._prior.support[1]:
            return -math.inf
        if theta not in self._fits:
            self._remember(theta, self._path.fit(theta))
        fit = self._fits[theta]
        return -math.inf if fit is None else fit.log_likelihood + self._prior.log_density(theta)

    def quick(self, theta: float, level: float) -> bool | None:
        if level != self._level:
            self._level, self._decided = level, {}
        if theta in self._decided:
            return self._decided[theta]
        known = self._decide(theta, level)
        if known is not None:
            self._decided[theta] = known
        return known

    def _decide(self, theta: float, level: float) -> bool | None:
        if theta in self._fits or not self.support[0] <= theta <= self.support[1]:
            return self.value(theta) > level
        t = self._path.t(theta)
        if t is None:
            return None
        low, high = bounds(t, self._t, self._known)
        prior = self._prior.log_density(theta)
        margin = 1e-8 * (1.0 + abs(level))
        if low + prior > level + margin:
            return True
        return False if high + prior < level - margin else None

    def above(self, theta: float, level: float) -> bool:
        known = self.quick(theta, level)
        if known is None:
            known = self._decided[theta] = self.value(theta) > level
        return known

    def _remember(self, theta: float, fit: gp.Fit | None) -> None:
        self._fits[theta] = fit
        t = self._path.t(theta)
        if t is not None and fit is not None:
            at = bisect_left(self._t, t)
            if at == len(self._t) or self._t[at] != t:
                self._t.insert(at, t)
                self._known.insert(at, fit)


def bounds(t: float, ts: list[float], fits: list[gp.Fit]) -> Interval:
    """Bounds on the log likelihood at t from those at ts (ascending).

    Between two known points a convex function lies below their chord and above the neighbouring chords'
    extensions; a concave one the other way round. Outside all known points only one side is known.
    """
    at = bisect_left(ts, t)
    if at < len(ts) and ts[at] == t:
        return fits[at].log_likelihood, fits[at].log_likelihood
    chords = [j for j in (at - 2, at) if 0 <= j and j + 1 < len(ts)]  # pairs wholly on one side of t
    convex_low, concave_high = -math.inf, math.inf
    for j in chords:
        share = (t - ts[j]) / (ts[j + 1] - ts[j])
        convex_low = max(convex_low, _mix(fits[j].log_det_half, fits[j + 1].log_det_half, share))
        concave_high = min(concave_high, _mix(fits[j].quad_half, fits[j + 1].quad_half, share))
    convex_high, concave_low = math.inf, -math.inf
    if 0 < at < len(ts):
        share = (t - ts[at - 1]) / (ts[at] - ts[at - 1])
        convex_high = _mix(fits[at - 1].log_det_half, fits[at].log_det_half, share)
        concave_low = _mix(fits[at - 1].quad_half, fits[at].quad_half, share)
    return convex_low + concave_low, convex_high + concave_high


def _mix(a: float, b: float, share: float) -> float:
    return a + (b - a) * share


def _inside(x: float, interval: Interval) -> float:
    return min(max(x, interval[0]), interval[1])
