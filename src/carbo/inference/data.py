"""What inference is given: observations, a kernel with priors, and how to sample; and one setting of every parameter.

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
        """An uninitialised array, the same memory each time: fresh pages cost more than the arithmetic on them."""
        size = math.prod(shape)
        if name not in self._scratch or len(self._scratch[name]) < size:
            self._scratch[name] = np.empty(size, dtype=dtype)
        return self._scratch[name][:size].reshape(shape)

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


class Model(NamedTuple):
    """A kernel with its priors."""

    kernel: Kernel
    priors: Priors

    @property
    def differentiable(self) -> bool:
        """Whether all parameters can be sampled at once, by their density's gradient."""
        return self.kernel.differentiable and self.priors.level == "standard"


class Sampling(NamedTuple):
    """How a chain moves.

    samples, burn_in    samples a draw, sweeps or trajectories of a new chain
    width, doublings    of slice updates: the width of a step, and most doublings
    leapfrogs           most steps of a Hamiltonian trajectory
    """

    samples: int = 10
    burn_in: int = 100
    width: float = 1.0
    doublings: int = 10
    leapfrogs: int = 10
