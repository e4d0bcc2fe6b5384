"""Hamiltonian Monte Carlo in a box (Neal 2011, MCMC using Hamiltonian dynamics); it knows no GP.

Notation
    x       (k,) position; p (k,) momentum, standard normal
    size    (k,) step size of each coordinate: a common step times the coordinate's spread
    low, high   (k,) ends of the box; a trajectory bounces off its walls (section 5.5.1)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from carbo.numerics.types import Floats


class Place(NamedTuple):
    """A position, its log density, the gradient of that, and whatever else the target has to say of it."""

    x: Floats
    log_f: float
    gradient: Floats
    note: Any = None


Target = Callable[[Floats], Place | None]
"""A position to its place; None where the density is zero or cannot be computed."""


class Box(NamedTuple):
    """Where the density is positive, or may be."""

    low: Floats
    high: Floats

    def reflect(self, x: Floats, p: Floats) -> tuple[Floats, Floats]:
        """x brought into the box by bouncing off the walls it has passed; its momentum turns at each."""
        for _ in range(64):
            under, over = x < self.low, x > self.high
            if not (under.any() or over.any()):
                return x, p
            x = np.where(under, 2.0 * self.low - x, np.where(over, 2.0 * self.high - x, x))
            p = np.where(under | over, -p, p)
        return np.clip(x, self.low, self.high), p  # a step of 64 widths: a rejection waits for it


class Move(NamedTuple):
    """Where a trajectory led, and how likely it was to be accepted."""

    place: Place
    chance: float


def trajectory(rng: np.random.Generator, here: Place, target: Target, box: Box, size: Floats, leaps: int) -> Move:
    """One transition that leaves the density invariant: `leaps` leapfrog steps (figure 2), then accept or stay."""
    p = rng.standard_normal(len(here.x))
    energy = here.log_f - 0.5 * float(p @ p)
    there = here
    threshold = math.log(rng.random())
    for _ in range(leaps):
        p = p + 0.5 * size * there.gradient
        x, p = box.reflect(there.x + size * p, p)
        arrived = target(x)
        if arrived is None:
            return Move(here, 0.0)
        p = p + 0.5 * size * arrived.gradient
        there = arrived
    gain = there.log_f - 0.5 * float(p @ p) - energy
    if not math.isfinite(gain):
        return Move(here, 0.0)
    return Move(there if threshold < gain else here, min(1.0, math.exp(min(gain, 0.0))))
