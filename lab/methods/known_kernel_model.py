"""The model of `known_kernel`: pairs of binary variables, all of one variance.

Notation
    P       (n, n) e_2(z) / e_2(1) of the evaluated rows, the second part of the order kernel at equal relevances
    y       (n,) standardised values, mean + w^(1/2) times a process of covariance P
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from carbo.inference.chain import Chain
from carbo.inference.data import Hyper, Model
from carbo.kernels.base import Scales
from carbo.kernels.orders import Orders
from carbo.kernels.spectra import spectra_of
from carbo.settings import Settings
from carbo.space.row_space import RowSpace
from carbo.space.space import Space
from carbo.surrogate.ensemble import Ensemble, build
from carbo.surrogate.subset import SubsetData
from carbo.surrogate.surrogate import Surrogate
from lab.methods.presets import Carbo

NOISE = 1e-6
"""A share of the signal variance that keeps the covariance positive definite."""
LEAST = 1e-12
"""The signal variance where all values are the same."""


class KnownKernel(Carbo):
    """One run: the preset's engine with the known model."""

    def __init__(self, settings: Settings, space: Space, seed: int, budget: int) -> None:
        super().__init__(settings, space, seed, budget, Pairs(space.rows, settings))


class Pairs(Surrogate):
    """The model: second order alone, mean and variance at their maximum likelihood."""

    def __init__(self, space: RowSpace, settings: Settings) -> None:
        super().__init__(space, settings)
        self._pairs = Orders(spectra_of(space.graphs, settings.graph_scale), 2)

    def draw(
        self,
        rng: np.random.Generator,  # noqa: ARG002
        chain: Chain | None,  # noqa: ARG002
        model: Model,  # noqa: ARG002
        given: SubsetData,
        samples: int | None = None,  # noqa: ARG002
    ) -> tuple[Chain, Ensemble]:
        data = given.predict
        X, y = data.X, data.y
        scales = Scales(np.zeros(X.shape[1]), np.zeros(X.shape[1]))
        P = self._pairs.parts(scales, X)[1] + NOISE * np.eye(len(y))
        factor = cho_factor(P, lower=True)
        solved = cho_solve(factor, np.stack([np.ones(len(y)), y], axis=1))
        mean = float(solved[:, 1].sum() / solved[:, 0].sum())
        w = max(float((y - mean) @ (solved[:, 1] - mean * solved[:, 0])) / len(y), LEAST)
        hyper = Hyper(mean, math.log(NOISE * w), np.array([-np.inf, math.log(w)]), scales)
        return Chain(hyper), build(self._pairs, [hyper], data)
