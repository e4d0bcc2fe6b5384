"""The observations that a model uses when there are more of them than it can afford.

Notation
    X       (n, d) rows; values (n,), smaller is better, NaN where the evaluation failed

The kernel's parameters are learned from fewer observations than predictions are made from. A draw of the parameters
factors about a hundred covariances, and predictions factor one for each posterior sample; and every further observation
sharpens the predictions. Half of the chosen observations are the nearest to the best ones: the next suggestions will be
there, so the model must be accurate there. The other half is drawn at random from the others: a model of good values
alone would predict good values everywhere.
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
"""Number of best observations. The distance of an observation is that to the nearest of them."""
PLENTY = 1_000
"""Number of observations beyond which predictions average over fewer samples, and the search scores fewer rows."""

Sample = TypeVar("Sample")


class Subsets(NamedTuple):
    """Indices of the observations that parameters are learned from, and of those that predictions are made from."""

    learn: Ints
    predict: Ints

    def of(self, data: Data) -> SubsetData:
        """The data of these observations."""
        return SubsetData(*(Data(data.X[subset], data.y[subset]) for subset in self))


class SubsetData(NamedTuple):
    """The data that parameters are learned from, and the data that predictions are made from."""

    learn: Data
    predict: Data


def choose_subsets(
    spectra: Sequence[Spectrum], X: Ints, values: Floats, most: tuple[int | None, int | None]
) -> Subsets:
    """Subsets of at most most[0] observations for learning and most[1] for predictions; None: all."""
    learn, predict = (choose_subset(spectra, X, values, limit) for limit in most)
    return Subsets(learn, predict)


def choose_subset(spectra: Sequence[Spectrum], X: Ints, values: Floats, most: int | None) -> Ints:
    """Indices of at most `most` observations, ascending; None: all.

    The best observation is always among them. The choice is the same in every process, and changes little when an
    observation is added.
    """
    n = len(values)
    if most is None or n <= most:
        return np.arange(n)
    by_value = np.argsort(values, kind="stable")  # NaN last
    near = np.argsort(_distances(spectra, X, X[by_value[:ELITE]]), kind="stable")
    near = np.append(by_value[0], near[near != by_value[0]])[: max(most // 2, 1)]
    rank = np.random.default_rng(0).random(n)  # an observation keeps its number when others are added
    rank[near] = -1.0
    return np.sort(np.argsort(rank, kind="stable")[:most])


def _distances(spectra: Sequence[Spectrum], X: Ints, elite: Ints) -> Floats:
    """Distance (n,) of each row from the nearest row of `elite`.

    It counts the variables that differ; a step along a path or a cycle counts as its share of the length.
    """
    out = np.full(len(X), np.inf)
    for centre in elite:
        away = (centre != X).astype(np.float64)
        for i, s in enumerate(spectra):
            if s.kind in ("path", "cycle"):
                steps = np.abs(X[:, i] - centre[i])
                round_trip = s.size if s.kind == "cycle" else 2 * s.size
                away[:, i] = np.minimum(steps, round_trip - steps) / (s.size // 2 if s.kind == "cycle" else s.size - 1)
        out = np.minimum(out, away.sum(axis=1))
    return out


def thin_samples(samples: list[Sample], observations: int) -> list[Sample]:
    """The samples that predictions from so many observations average over: beyond PLENTY, fewer and evenly spaced.

    A prediction under one sample costs the square of the number of observations, so their number falls with the square.
    """
    kept = math.ceil(len(samples) * min(PLENTY / max(observations, 1), 1.0) ** 2)
    return [samples[i] for i in np.linspace(len(samples) - 1, 0, kept).round().astype(int)[::-1]]
