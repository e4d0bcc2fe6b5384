"""The posterior density of one coordinate given all others, for the slice sampler, with few factorisations.

Notation
    X       (n, d) integer rows; y (n,) standardised values; r (n,) residuals y - mean
    C       (n, n) covariance of y: sum_p w_p parts_p + noise * I
    theta   the coordinate being updated, on its log scale
    t       where C is affine in a function t of theta (a weight, the noise, rho of a complete graph):
            -1/2 log det C is convex in t and -1/2 r'C^-1 r is concave, so chords bound both (`bounds`)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from carbo.inference.data import Data, Hyper
from carbo.kernels.base import Change, Split
from carbo.numerics import linalg, slice_sampling
from carbo.numerics.types import Floats, Ints

Interval = tuple[float, float]
LogDensity = Callable[[float], float]


class Prior(NamedTuple):
    """A log density on a closed interval."""

    log_density: LogDensity
    support: Interval


class LikelihoodPath(Protocol):
    """The likelihood as a function of one coordinate theta."""

    def t(self, theta: float) -> float | None:
        """The t of the notation at theta; None where the covariance is not affine in such a t."""

    def fit(self, theta: float) -> linalg.Fit | None:
        """The fit at theta; None where the covariance is not positive definite."""


class VariancePath:
    """Likelihood along a log variance: C(theta) = C + (exp(theta) - exp(now)) * slope. Slope None: the noise, I."""

    def __init__(self, C: Floats, r: Floats, slope: Floats | None, now: float) -> None:
        self._C, self._r, self._slope, self._t_now = C, r, slope, math.exp(now)
        self._buffer = np.empty_like(C)

    def t(self, theta: float) -> float:
        return math.exp(theta)

    def fit(self, theta: float) -> linalg.Fit | None:
        step = math.exp(theta) - self._t_now
        if self._slope is None:
            np.copyto(self._buffer, self._C)
            self._buffer.T.reshape(-1)[:: len(self._r) + 1] += step
        else:
            np.multiply(self._slope, step, out=self._buffer)
            self._buffer += self._C
        return linalg.fit_in_place(self._buffer, self._r)


class KernelPath:
    """Likelihood along any coordinate of the kernel: the signal covariance is computed anew at every theta."""

    def __init__(self, change: Change, r: Floats, noise: float) -> None:
        self._fill, self._r, self._noise = change.fill, r, noise
        self._buffer = np.empty((len(r), len(r)), order="F")

    def t(self, theta: float) -> None:  # noqa: ARG002
        return None

    def fit(self, theta: float) -> linalg.Fit | None:
        self._fill(theta, self._buffer)
        self._buffer.T.reshape(-1)[:: len(self._r) + 1] += self._noise
        return linalg.fit_in_place(self._buffer, self._r)


class SchurPath:
    """Likelihood along the beta of a complete graph: covariances between unequal values change in proportion to t.

    The observations with the commonest value (index 1) are eliminated once, because their block C11 never changes. With
    t in units of its present value, the Schur complement of the others is D + t O - t^2 C21 C11^-1 C12. D and O hold
    their covariances between equal and between unequal values. Each evaluation factors this smaller matrix alone.
    """

    def __init__(self, change: Split, data: Data, hyper: Hyper) -> None:
        self.t, self._t_now = change.t, change.t(float(hyper.scales.log_beta[change.variable]))
        order, n1, differ = data.grouping(change.variable)
        n, m, nugget = len(order), len(order) - n1, math.exp(hyper.log_noise) / change.w  # C = w (P + nugget I)
        common, others, r = order[:n1], order[n1:], (data.y[order] - hyper.mean) / math.sqrt(change.w)

        def block(a: Ints, b: Ints, out: Floats) -> Floats:
            index = data.scratch("index", len(a), len(b), dtype=np.intp)
            np.add((a * n)[:, None], b, out=index)
            return change.P.reshape(-1).take(index, out=out, mode="clip")

        C11 = block(common, common, data.scratch("C11", n1, n1))
        C11.reshape(-1)[:: n1 + 1] += nugget
        C21 = block(others, common, data.scratch("C21", m, n1))
        layers = data.scratch("layers", 2 if differ is None else 3, m, m)
        self._scale = linalg.Fit(-0.5 * n * math.log(change.w), 0.0)
        self._head = linalg.eliminate(C11.T, C21.T, r[:n1], layers[1].T)
        D = block(others, others, layers[0])
        D.reshape(-1)[:: m + 1] += nugget
        if differ is not None:
            np.multiply(D, differ, out=layers[2])
            D -= layers[2]
        self._r, self._layers = r[n1:], layers.reshape(len(layers), m * m)
        self._buffer = data.scratch("S", m, m)

    def fit(self, theta: float) -> linalg.Fit | None:
        if self._head is None:
            return None
        head_fit = self._head.fit.plus(self._scale)
        if len(self._r) == 0:
            return head_fit
        t = self.t(theta) / self._t_now
        np.dot(np.array([1.0, -t * t, t][: len(self._layers)]), self._layers, out=self._buffer.reshape(-1))
        tail = linalg.fit_in_place(self._buffer.T, self._r - t * self._head.g)
        return None if tail is None else head_fit.plus(tail)


class Conditional:
    """Log density of one coordinate given all others, as `slice_sampling.Density`.

    Every evaluation is remembered. Where the covariance is affine in t(theta), the evaluations so far bound the density
    at every other theta. These bounds answer many of the sampler's questions without a factorisation.
    """

    def __init__(self, path: LikelihoodPath, prior: Prior, now: float, fit: linalg.Fit) -> None:
        self._path, self._prior, self._now, self.support = path, prior, now, prior.support
        self._fits: dict[float, linalg.Fit | None] = {}
        self._t: list[float] = []  # ascending
        self._fits_at_t: list[linalg.Fit] = []
        self._level = math.nan
        self._decided: dict[float, bool] = {}  # theta -> whether the density there is above that level
        self._remember(now, fit)

    def slice(self, rng: np.random.Generator, width: float, doublings: int) -> tuple[float, linalg.Fit]:
        """The new theta and its fit after one slice update from `now`."""
        current = slice_sampling.Draw(self._now, self.value(self._now))
        theta = slice_sampling.update(rng, current, self, width, doublings).x
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

    def above_if_known(self, theta: float, level: float) -> bool | None:
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
        low, high = bounds(t, self._t, self._fits_at_t)
        prior = self._prior.log_density(theta)
        margin = 1e-8 * (1.0 + abs(level))
        if low + prior > level + margin:
            return True
        return False if high + prior < level - margin else None

    def above(self, theta: float, level: float) -> bool:
        known = self.above_if_known(theta, level)
        if known is None:
            known = self._decided[theta] = self.value(theta) > level
        return known

    def _remember(self, theta: float, fit: linalg.Fit | None) -> None:
        self._fits[theta] = fit
        t = self._path.t(theta)
        if t is not None and fit is not None:
            at = bisect_left(self._t, t)
            if at == len(self._t) or self._t[at] != t:
                self._t.insert(at, t)
                self._fits_at_t.insert(at, fit)


def bounds(t: float, ts: list[float], fits: list[linalg.Fit]) -> Interval:
    """Lower and upper bound of the log likelihood at t, from its fits at ts (ascending).

    A convex function lies below the chord between two known points, and above the extensions of the neighbouring
    chords; a concave function the other way round. Outside all known points one of the two bounds is missing.
    """
    at = bisect_left(ts, t)
    if at < len(ts) and ts[at] == t:
        return fits[at].log_likelihood, fits[at].log_likelihood
    chords = [j for j in (at - 2, at) if j >= 0 and j + 1 < len(ts)]  # pairs wholly on one side of t
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
