"""Knowledge gradient: how much lower is the lowest posterior mean expected to be once a row has been evaluated?

Notation
    S, N, A     samples, rows that might be evaluated, rows among which the optimum is sought
    mean        (S, A) posterior means; cov (S, A, A) posterior covariances of the latent function
    slope       (S, N, A) what evaluating a row moves the means by: cov / sqrt(var(row) + noise), times Z
    Z           standard normal: how far the value is from what was expected
    z           (lines,) where the lowest line of mean + slope Z gives way to the next; fall, its slope less the next's
    h           phi(z) + z Phi(z), phi and Phi the standard normal's density and distribution

Expected improvement counts what is gained at the row itself; where values tell much about other rows, as they do when
many variables interact, what is learned about these is worth more.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from carbo.acquisition.functions import log_h
from carbo.numerics.types import Floats, Ints
from carbo.surrogate.ensemble import Ensemble


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
    """log(min(mean) - E[min(mean + slope Z)]) over the last axis of (..., A) lines; -inf where it is zero.

    Along the lower envelope of the lines, from Z = -inf to inf, each crossing lowers the expectation by fall h(-|z|): a
    sum of positive terms, so that nothing cancels.
    """
    shape, lines = mean.shape[:-1], mean.shape[-1]
    mean, slope = mean.reshape(-1, lines), slope.reshape(-1, lines)
    total, left = np.full(len(mean), -np.inf), np.arange(len(mean))
    lowest = np.argmin(np.where(slope == slope.max(axis=1, keepdims=True), mean, np.inf), axis=1)
    while len(left):
        fall = np.take_along_axis(slope[left], lowest[:, None], axis=1) - slope[left]
        rise = mean[left] - np.take_along_axis(mean[left], lowest[:, None], axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            crossing = np.where(fall > 0.0, rise / fall, np.inf)
        z = crossing.min(axis=1, keepdims=True)
        # of lines that cross in one point the steepest goes on below; of parallel ones (z overflows) the lowest
        beyond = np.where(np.isneginf(z), mean[left], slope[left])
        lowest = np.argmin(np.where(crossing == z, beyond, np.inf), axis=1)
        crossed = np.flatnonzero(z < np.inf)
        left, lowest, z, fall = left[crossed], lowest[crossed], z[crossed, 0], fall[crossed, lowest[crossed]]
        with np.errstate(divide="ignore", invalid="ignore"):
            total[left] = np.logaddexp(total[left], np.log(fall) + log_h(-np.abs(z)))
    return total.reshape(shape)
