"""Pest control: none or one of four pesticides at each of 25 stations.

Notation
    x       (25,) choice at each station: 0 none, 1..4 a pesticide
    z       (T,) fraction with pests in each of T simulated chains
    u       the fraction that is tolerated

A pesticide becomes cheaper and less effective with every use. At each station: draw the spread,
draw the effect of the pesticide if one is used, pay, count the chains above u, move to the next fraction (supplement,
pest control). Every evaluation draws new numbers: the published objective is noisy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from carbo.space.variables import Categorical
from lab.problems.base import Problem, check_choice, random_design
from lab.problems.seeds import PEST_CONTROL, SEED_LIMIT, check_run, single_seed

STATIONS, CHOICES, BUDGET = 25, 5, 320
T, U = 100, 0.1
PRICE = (1.0, 0.8, 0.7, 0.5)
DISCOUNT = (0.2, 0.3, 0.3, 0.0)
"""Largest discount of each pesticide, reached when it is used at every station."""
EFFECT = (2 / 7, 3 / 7, 3 / 7, 5 / 7)
"""The effect is Beta(1, b); this is the first b of each pesticide."""
TOLERANCE = (1 / 7, 2.5 / 7, 2 / 7, 0.5 / 7)
"""The growth of b over a use at every station."""


def cost(rng: np.random.RandomState, row: Ints) -> float:
    """One simulation of a row with numbers from rng: the sum over stations of prices and of chains above u."""
    z = rng.beta(1, 30, size=T)
    effect, total = list(EFFECT), 0.0
    for choice in row.tolist():
        spread = rng.beta(1, 17 / 3, size=T)
        total += np.count_nonzero(z > U) / T
        if choice == 0:
            z = spread * (1 - z) + z
            continue
        pesticide = choice - 1
        z = (1 - rng.beta(1, effect[pesticide], size=T)) * z
        effect[pesticide] += TOLERANCE[pesticide] / STATIONS
        uses = np.count_nonzero(row == choice)
        total += PRICE[pesticide] * (1 - DISCOUNT[pesticide] / STATIONS * uses)
    return float(total)


@dataclass(frozen=True, eq=False)
class Noisy:
    """The published objective: the evaluations of a run draw from one stream, one after the other."""

    seed: int
    stream: np.random.RandomState = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stream", np.random.RandomState(self.seed))

    def __call__(self, row: Ints) -> float:
        return cost(self.stream, row)


@dataclass(frozen=True)
class Fixed:
    """A deterministic variant: every evaluation draws from the beginning of the same stream."""

    seed: int

    def __call__(self, row: Ints) -> float:
        return cost(np.random.RandomState(self.seed), row)


def pest_control(run: int, variant: str = "noisy", graph: str = "complete") -> Problem:
    """Pest control: "noisy" as published, or "fixed", which is deterministic and has no published results.

    The stream of both is seeded with the run's start seed + 10,000, which is no seed of the paper. graph "complete"
    is right for pesticides without an order; the paper's experiments used "path". The best
    known mean of the noisy problem is about 12.0; its least mean is not known exactly.
    """
    check_choice("variant", variant, ("noisy", "fixed"))
    check_choice("graph", graph, ("complete", "path"))
    start = single_seed(PEST_CONTROL, run)
    stream = start + SEED_LIMIT
    choices = Categorical(range(CHOICES), graph=graph)
    space = Space({f"station{i}": choices for i in range(1, STATIONS + 1)})
    return Problem(
        name="pest-control" + "-fixed" * (variant == "fixed") + "-path" * (graph == "path"),
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=Noisy(stream) if variant == "noisy" else Fixed(stream),
        design=random_design(PEST_CONTROL, space),
        optimum=None,
        instance={"start_seed": start, "stream_seed": stream, "variant": variant, "graph": graph},
        noisy=variant == "noisy",
    )
