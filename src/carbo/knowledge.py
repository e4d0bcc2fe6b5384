"""Knowledge gradient: how much lower is the lowest posterior mean expected to be once a row has been evaluated?

Notation
    S, N, A     samples, rows that might be evaluated, rows among which the optimum is sought
    mean        (S, A) posterior means; cov (S, A, A) posterior covariances of the latent function
    slope       (S, N, A) what a row's value moves the means by: cov(a, x) / sqrt(var(x) + noise), times Z normal
    z           where two lines mean + slope Z cross

Expected improvement counts what is gained at the row itself; where values tell much about other rows, as they do when
many variables interact, what is learned about these is worth more.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from carbo.acquisition import log_h
from carbo.ensemble import Ensemble
from carbo.graph import Floats, Ints


def log_knowledge_gradient(ensemble: Ensemble, rows: Ints, others: Ints) -> Floats:
    """log of the knowledge gradient (Frazier 2009) of rows (N, d), exact for an optimum sought among them and others.

    Averaged over the samples outside the logarithm, (N,); -inf where nothing can be learned.
    """
    mean, cov = ensemble.joints(np.concatenate([rows, others]))
    N, noise = len(rows), np.exp([h.log_noise for h in ensemble.hypers])
    variance = np.maximum(np.diagonal(cov, axis1=1, axis2=2)[:, :N], 0.0) + noise[:, None]
    slope = np.swapaxes(cov[:, :, :N], 1, 2) / np.sqrt(variance)[:, :, None]
    gains = log_fall(np.broadcast_to(mean[:, None], slope.shape), slope)
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(gains, axis=0) - np.log(ensemble.size))


def log_fall(mean: Floats, slope: Floats) -> Floats:
    """log(min_a mean_a - E[min_a (mean_a + slope_a Z)]) of (..., A) lines, Z standard normal; -inf where it is zero.

    Along the lower envelope of the lines, from Z = -inf to inf, each crossing z at which the slope falls by s lowers
    the expectation by s h(-|z|), h(z) = phi(z) + z Phi(z): a sum of positive terms, so that nothing cancels.
    """
    shape, lines = mean.shape[:-1], mean.shape[-1]
    mean, slope = mean.reshape(-1, lines), slope.reshape(-1, lines)
    total = np.full(len(mean), -np.inf)
    open_ = np.arange(len(mean))
    at = np.argmin(np.where(slope == slope.max(axis=1, keepdims=True), mean, np.inf), axis=1)
    while len(open_):
        a, b = mean[open_], slope[open_]
        k = np.arange(len(open_))
        fall = b[k, at][:, None] - b
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            cut = np.where(fall > 0.0, (a - a[k, at][:, None]) / fall, np.inf)
        z = cut.min(axis=1)
        at = np.argmin(np.where(cut == z[:, None], b, np.inf), axis=1)
        crossed = np.flatnonzero(z < np.inf)
        open_, at, z, fall = open_[crossed], at[crossed], z[crossed], fall[crossed, at[crossed]]
        with np.errstate(divide="ignore", invalid="ignore"):
            total[open_] = np.logaddexp(total[open_], np.log(fall) + log_h(-np.abs(z)))
    return total.reshape(shape)
