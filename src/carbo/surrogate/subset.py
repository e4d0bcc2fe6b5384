"""What a model is given where there are more observations than it can afford.

Notation
    X       (n, d) rows; values (n,), smaller is better, NaN where the evaluation failed

The kernel's parameters are learned from fewer observations than predictions are made from: a draw of the parameters
factors a covariance about a hundred times, predictions factor one a posterior sample, and it is predictions that every
further observation sharpens. Half of the observations kept are the nearest to the best ones, for there the next
suggestions will be and the model has to be right. The other half is drawn at random from the rest: a model that had
seen good values alone would take every other setting for a good one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from carbo.inference.data import Data
from carbo.kernels.spectra import Spectrum
from carbo.numerics.types import Floats, Ints

ELITE = 10
"""The best observations, from the nearest of which distances are counted."""
PLENTY = 1_000
"""Observations up to which predictions average over all posterior samples, and the search scores what it likes."""

Sample = TypeVar("Sample")


class Shares(NamedTuple):
    """Observations, by index, that parameters are learned from and that predictions are made from."""

    learn: Ints
    predict: Ints

    def of(self, data: Data) -> Given:
        """Their data."""
        return Given(*(Data(data.X[some], data.y[some]) for some in self))


class Given(NamedTuple):
    """Data that parameters are learned from and that predictions are made from."""

    learn: Data
    predict: Data


def shares(spectra: Sequence[Spectrum], X: Ints, values: Floats, most: tuple[int | None, int | None]) -> Shares:
    """At most so many of the observations for either purpose; None: all."""
    learn, predict = (chosen(spectra, X, values, limit) for limit in most)
    return Shares(learn, predict)


def chosen(spectra: Sequence[Spectrum], X: Ints, values: Floats, most: int | None) -> Ints:
    """At most `most` observations, by index, ascending; all where there are no more, or where most is None.

    The same in every process, and much the same when an observation is added. The best one is always among them.
    """
    n = len(values)
    if most is None or n <= most:
        return np.arange(n)
    by_value = np.argsort(values, kind="stable")  # NaN last
    near = np.argsort(_distances(spectra, X, X[by_value[:ELITE]]), kind="stable")
    near = np.append(by_value[0], near[near != by_value[0]])[: max(most // 2, 1)]
    lot = np.random.default_rng(0).random(n)  # the first ones stay when there are more
    lot[near] = -1.0
    return np.sort(np.argsort(lot, kind="stable")[:most])


def _distances(spectra: Sequence[Spectrum], X: Ints, elite: Ints) -> Floats:
    """(n,) from the nearest of the elite: variables that differ, on a path or cycle by the share of its length."""
    out = np.full(len(X), np.inf)
    for centre in elite:
        away = (centre != X).astype(np.float64)
        for i, s in enumerate(spectra):
            if s.kind in ("path", "cycle"):
                steps = np.abs(X[:, i] - centre[i])
                around = s.size if s.kind == "cycle" else 2 * s.size
                away[:, i] = np.minimum(steps, around - steps) / (s.size // 2 if s.kind == "cycle" else s.size - 1)
        out = np.minimum(out, away.sum(axis=1))
    return out


def spared(samples: list[Sample], observations: int) -> list[Sample]:
    """The samples that predictions from so many observations average over: fewer, evenly spaced, beyond PLENTY.

    A prediction under one sample costs the square of the observations; so does, beyond PLENTY, the saving.
    """
    kept = math.ceil(len(samples) * min(PLENTY / max(observations, 1), 1.0) ** 2)
    return [samples[i] for i in np.linspace(len(samples) - 1, 0, kept).round().astype(int)[::-1]]
