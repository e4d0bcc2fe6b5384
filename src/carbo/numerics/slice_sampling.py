"""Univariate slice sampling with doubling (Neal 2003, Annals of Statistics 31:705): figures 4, 5 and 6.

The sampler asks one question: is log f(x) above a level? A density may know the answer without an evaluation (see
`Density.above_if_known`). Bracket ends lie on the lattice origin + j * width with integer j. So the acceptance test
meets the points that the doubling visited, and no point is evaluated twice.

Notation
    x0, x1  current and new point
    level   log of the auxiliary height y: the slice is {x: log f(x) > level}
    lo, hi  integer lattice positions of the bracket's ends
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np


class Density(Protocol):
    """A log density of one real variable: -inf outside the closed interval `support`."""

    support: tuple[float, float]

    def value(self, x: float) -> float:
        """log f(x)."""

    def above_if_known(self, x: float, level: float) -> bool | None:
        """Whether log f(x) > level, if that is known without an evaluation; else None."""

    def above(self, x: float, level: float) -> bool:
        """Whether log f(x) > level, that is, whether x is inside the slice."""


class Bracket(NamedTuple):
    """The interval from `origin + lo * width` to `origin + hi * width`."""

    origin: float
    width: float
    lo: int
    hi: int

    def at(self, j: int) -> float:
        return self.origin + j * self.width


class Draw(NamedTuple):
    """A point and its log density."""

    x: float
    log_f: float


def update(rng: np.random.Generator, current: Draw, density: Density, width: float, doublings: int) -> Draw:
    """One transition that leaves the density invariant. `current.log_f` must be density.value(current.x)."""
    level = current.log_f - rng.exponential()
    bracket = double(rng, current.x, level, density, width, doublings)
    return shrink(rng, current, level, density, bracket)


def either_above(density: Density, a: float, b: float, level: float) -> bool:
    """Whether a or b is inside the slice. A point is evaluated only if the answer depends on it."""
    known_a, known_b = density.above_if_known(a, level), density.above_if_known(b, level)
    if known_a or known_b:
        return True
    return (known_a is None and density.above(a, level)) or (known_b is None and density.above(b, level))


def double(
    rng: np.random.Generator, x0: float, level: float, density: Density, width: float, doublings: int
) -> Bracket:
    """Figure 4: an interval that contains x0, doubled to a random side until both ends are outside the slice."""
    origin, lo, hi = x0 - width * rng.random(), 0, 1
    for _ in range(doublings):
        if not either_above(density, origin + lo * width, origin + hi * width, level):
            break
        if rng.random() < 0.5:
            lo -= hi - lo
        else:
            hi += hi - lo
    return Bracket(origin, width, lo, hi)


def shrink(rng: np.random.Generator, current: Draw, level: float, density: Density, bracket: Bracket) -> Draw:
    """Figure 5: draw from the bracket, shrinking it towards x0, until a point of the slice is accepted."""
    left, right = max(bracket.at(bracket.lo), density.support[0]), min(bracket.at(bracket.hi), density.support[1])
    while right - left > 1e-12 * (1.0 + abs(current.x)):
        x1 = left + rng.random() * (right - left)
        if density.above(x1, level) and is_acceptable(current.x, x1, level, density, bracket):
            log_f = density.value(x1)
            if log_f > level:  # `above` may rest on a bound where the value itself cannot be computed
                return Draw(x1, log_f)
        if x1 < current.x:
            left = x1
        else:
            right = x1
    return current


def is_acceptable(x0: float, x1: float, level: float, density: Density, bracket: Bracket) -> bool:
    """Figure 6: whether a doubling from x1 could have ended in the bracket that the doubling from x0 ended in."""
    lo, hi, differ = bracket.lo, bracket.hi, False
    while hi - lo > 1:
        middle = (lo + hi) // 2
        cut = bracket.at(middle)
        differ = differ or ((x0 < cut) != (x1 < cut))
        if x1 < cut:
            hi = middle
        else:
            lo = middle
        if differ and not either_above(density, bracket.at(lo), bracket.at(hi), level):
            return False
    return True


class Function:
    """A density from a plain function; each point is evaluated once."""

    def __init__(self, log_f: Callable[[float], float], support: tuple[float, float] = (-math.inf, math.inf)) -> None:
        self._log_f, self.support = log_f, support
        self._values: dict[float, float] = {}

    def value(self, x: float) -> float:
        if not self.support[0] <= x <= self.support[1]:
            return -math.inf
        if x not in self._values:
            self._values[x] = self._log_f(x)
        return self._values[x]

    def above_if_known(self, x: float, level: float) -> bool | None:
        return self._values[x] > level if x in self._values else None

    def above(self, x: float, level: float) -> bool:
        return self.value(x) > level
