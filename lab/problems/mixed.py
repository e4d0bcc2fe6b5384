"""A machine with knobs of every kind: flags, kinds without an order, sizes, counts and a rate.

Notation
    u       a knob with an order, from 0 at its lowest level to 1 at its highest
    kind    a knob without one

Objective: a sum of terms, each of at most three knobs, drawn at random:
    taste     a cost for each value of a kind
    price     rising or falling in u
    ripple    waves in u
    valley    |u - t + s (v - 1/2)|: a crease across two ordered knobs, whose place t and slant s depend on a kind
    gate      a flag that is off costs a fixed amount; if it is on, a level matters, and some kinds cost more
    quarrel   a cost where two flags are equal, or where they are not
Flags thus decide which levels matter, and kinds decide which levels are best.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Floats
from carbo.space.space import Space
from carbo.space.variables import Binary, Categorical, Float, Integer, Ordinal, Variable
from lab.problems.base import Problem, random_design
from lab.problems.factors import Factor, Factors
from lab.problems.seeds import MIXED, check_run, check_seed, instance_stream, single_seed

BUDGET, VALLEYS = 150, 6
KNOBS: dict[str, Variable] = {
    **{f"flag{i}": Binary() for i in (1, 2, 3, 4)},
    "metal": Categorical(["iron", "copper", "zinc"]),
    "solver": Categorical(["a", "b", "c", "d", "e"]),
    "shape": Categorical(["disc", "ring", "rod", "tube", "plate", "ball", "cone", "cube"]),
    "batch": Ordinal([1, 2, 4, 8, 16, 32]),
    "grade": Ordinal(["tiny", "small", "medium", "large", "huge"]),
    "speed": Ordinal([10, 15, 20, 30, 40, 60, 80, 120]),
    "layers": Integer(1, 12),
    "width": Integer(10, 160, step=10),
    "delay": Integer(0, 20),
    "rate": Float(1e-3, 1.0, points=13, log=True),
}


class Knobs(NamedTuple):
    """Positions of the variables of each kind."""

    flags: list[int]
    kinds: list[int]
    ordered: list[int]


def mixed(seed: int, run: int = 1) -> Problem:
    """A random instance; the optimum is exact."""
    space = Space(KNOBS)
    return Problem(
        name="mixed",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=machine(check_seed(seed)),
        design=random_design(MIXED, space),
        optimum=_least(int(seed)),
        instance={"seed": int(seed), "start_seed": single_seed(MIXED, run)},
    )


@cache
def machine(seed: int) -> Factors:
    """The terms of the instance of a seed."""
    rng = instance_stream(MIXED, seed)
    each = list(KNOBS.values())
    knobs = Knobs(
        [i for i, knob in enumerate(each) if isinstance(knob, Binary)],
        [i for i, knob in enumerate(each) if isinstance(knob, Categorical)],
        [i for i, knob in enumerate(each) if not isinstance(knob, Binary | Categorical)],
    )
    terms = [Factor((kind,), rng.random_sample(each[kind].size)) for kind in knobs.kinds]
    terms += [Factor((level,), _alone(rng, each[level].size)) for level in knobs.ordered]
    terms += [_valley(rng, knobs, each) for _ in range(VALLEYS)]
    terms += [_gate(rng, flag, knobs, each) for flag in knobs.flags]
    terms += [_quarrel(rng, one, two) for one in knobs.flags for two in knobs.flags if one < two]
    return Factors(tuple(terms))


@cache
def _least(seed: int) -> float | None:
    return machine(seed).least()


def _alone(rng: np.random.RandomState, size: int) -> Floats:
    """The terms of one ordered knob: price and ripple."""
    u, (price, phase) = np.linspace(0, 1, size), rng.random_sample(2)
    return np.asarray((price - 0.5) * u + 0.15 * np.cos(2 * np.pi * (3 * u + phase)))


def _valley(rng: np.random.RandomState, knobs: Knobs, each: list[Variable]) -> Factor:
    kind = int(rng.choice(knobs.kinds))
    one, two = rng.choice(knobs.ordered, size=2, replace=False).tolist()
    u, v = (np.linspace(0, 1, each[level].size) for level in (one, two))
    place, slant = rng.random_sample((2, each[kind].size, 1, 1))
    weight = 1 + 2 * rng.random_sample()
    return Factor((kind, one, two), weight * np.abs(u[:, None] - place + (slant - 0.5) * (v - 0.5)))


def _gate(rng: np.random.RandomState, flag: int, knobs: Knobs, each: list[Variable]) -> Factor:
    kind, level = int(rng.choice(knobs.kinds)), int(rng.choice(knobs.ordered))
    off, best = 0.3 + 0.5 * rng.random_sample(), rng.random_sample()
    clash = rng.random_sample((each[kind].size, 1)) < 0.4
    on = clash + 4 * (np.linspace(0, 1, each[level].size) - best) ** 2
    return Factor((flag, kind, level), np.stack([np.full(on.shape, off), on]))


def _quarrel(rng: np.random.RandomState, one: int, two: int) -> Factor:
    cost, equal = 0.5 * rng.random_sample(), rng.random_sample() < 0.5
    return Factor((one, two), cost * (np.eye(2) if equal else 1 - np.eye(2)))
