"""The default preset within a Hamming trust region that restarts, after the idea of Wan et al. 2021 (Casmopolitan).

Suggestions differ from the best point since the last restart in at most `radius` variables. After SUCCESSES better
values in a row the radius grows, after FAILURES in vain it shrinks; below one it is where it began, and the next
region lies around a random point. Other than there, the model sees all evaluations, those before a restart too, and
the counts and radii are of this laboratory. Where all of a region has been evaluated, a random point is suggested.
"""

from __future__ import annotations

import dataclasses

from carbo.settings import DEFAULT
from carbo.space.space import Space
from lab.methods.base import Method, Strategy
from lab.methods.presets import recorded

SUCCESSES, FAILURES, GROWTH = 3, 10, 1.5
FIRST = 0.5
"""Radius at the beginning, as a share of the variables."""
SETTINGS = dataclasses.replace(DEFAULT, initial=1, patience=0, doubt=0.0, random_starts=1,
                               spray_starts=DEFAULT.random_starts + DEFAULT.spray_starts)  # fmt: skip


def start(space: Space, seed: int, budget: int) -> Strategy:
    """One run; the engine is loaded for it, and not when the methods are listed."""
    from lab.methods.region import TrustRegion

    return TrustRegion(space, seed, budget)


TRUST = Method(
    "default-trust",
    "carbo, preset default within a trust region",
    start,
    {**recorded(SETTINGS), "successes": SUCCESSES, "failures": FAILURES, "growth": GROWTH, "first_radius": FIRST},
)
