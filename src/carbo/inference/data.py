"""Inputs of inference (observations, a kernel with priors, how to sample), and its output: one value per parameter.

Notation
    X       (n, d) integer rows; y (n,) standardised values
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from carbo.inference.priors import Priors
from carbo.kernels.base import Kernel, Scales
from carbo.numerics.types import Floats, Ints


class Grouping(NamedTuple):
    """The observations sorted by their value of one variable: those with the commonest value first."""

    order: Ints  # (n,) indices of the observations
    first: int  # how many observations have the commonest value
    differ: NDArray[np.bool_] | None  # (m, m) which of the m others have unequal values; None where all are equal


@dataclass(frozen=True, eq=False)
class Data:
    """Observations: integer rows X (n, d) and standardised values y (n,), n >= 1."""

    X: Ints
    y: Floats
    _groupings: dict[int, Grouping] = field(default_factory=dict, repr=False)
    _scratch: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)

    def scratch(self, name: str, *shape: int, dtype: Any = np.float64) -> NDArray[Any]:
        """An uninitialised array of this shape, in the same memory at each call: fresh pages are expensive."""
        size = math.prod(shape)
        if name not in self._scratch or len(self._scratch[name]) < size:
            self._scratch[name] = np.empty(size, dtype=dtype)
        return self._scratch[name][:size].reshape(shape)

    def grouping(self, i: int) -> Grouping:
        """The observations grouped by variable i; remembered, because every sweep asks for it."""
        if i not in self._groupings:
            x = self.X[:, i]
            commonest = x == np.bincount(x).argmax()
            order = np.argsort(~commonest, kind="stable")
            others = x[order[np.count_nonzero(commonest) :]]
            mixed = len(others) > 0 and bool(np.any(others != others[0]))
            self._groupings[i] = Grouping(order, len(x) - len(others), others[:, None] != others if mixed else None)
        return self._groupings[i]


class Hyper(NamedTuple):
    """One value of every parameter: constant mean, log noise variance, log signal variances (P,), kernel scales."""

    mean: float
    log_noise: float
    log_w: Floats
    scales: Scales


class Model(NamedTuple):
    """A kernel with its priors."""

    kernel: Kernel
    priors: Priors

    @property
    def differentiable(self) -> bool:
        """Whether the posterior density has a gradient, so that all parameters can be sampled at once."""
        return self.kernel.differentiable and self.priors.level == "standard"


class Sampling(NamedTuple):
    """How many steps a chain makes, and how long they are.

    samples     samples of each draw
    burn_in     sweeps or trajectories of a new chain before its first sample
    width       step width of slice updates
    doublings   largest number of doublings in a slice update
    leapfrogs   largest number of steps in a Hamiltonian trajectory
    """

    samples: int = 10
    burn_in: int = 100
    width: float = 1.0
    doublings: int = 10
    leapfrogs: int = 10
