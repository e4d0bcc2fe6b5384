"""Hamiltonian Monte Carlo in a box (Neal 2011, MCMC using Hamiltonian dynamics), for any differentiable density.

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
    """A position x (k,), the log density there, its gradient (k,), and a note that the target may attach."""

    x: Floats
    log_f: float
    gradient: Floats
    note: Any = None


Target = Callable[[Floats], Place | None]
"""Function from a position to its place; None where the density is zero or cannot be computed."""


class Box(NamedTuple):
    """The box outside of which the density is zero."""

    low: Floats
    high: Floats

    def reflect(self, x: Floats, p: Floats) -> tuple[Floats, Floats]:
        """The position inside the box after a bounce off each wall that x has passed, and the momentum then."""
        for _ in range(64):
            under, over = x < self.low, x > self.high
            if not (under.any() or over.any()):
                return x, p
            x = np.where(under, 2.0 * self.low - x, np.where(over, 2.0 * self.high - x, x))
            p = np.where(under | over, -p, p)
        return np.clip(x, self.low, self.high), p  # a step of 64 widths: the trajectory will be rejected


class Transition(NamedTuple):
    """The place after one transition, and the probability with which the trajectory's end was accepted."""

    place: Place
    acceptance: float


def transition(rng: np.random.Generator, here: Place, target: Target, box: Box, size: Floats, steps: int) -> Transition:
    """One transition that leaves the density invariant: `steps` leapfrog steps (figure 2), then accept or stay."""
    p = rng.standard_normal(len(here.x))
    energy = here.log_f - 0.5 * float(p @ p)
    there = here
    threshold = math.log(rng.random())
    for _ in range(steps):
        p = p + 0.5 * size * there.gradient
        x, p = box.reflect(there.x + size * p, p)
        arrived = target(x)
        if arrived is None:
            return Transition(here, 0.0)
        p = p + 0.5 * size * arrived.gradient
        there = arrived
    gain = there.log_f - 0.5 * float(p @ p) - energy
    if not math.isfinite(gain):
        return Transition(here, 0.0)
    return Transition(there if threshold < gain else here, min(1.0, math.exp(min(gain, 0.0))))
