"""Contamination control: at which of 25 stages of a food chain prevention is worth its cost.

Notation
    x       (25,) 1 where prevention is applied, at cost 1
    z       (T,) contaminated fraction in each of T simulated chains
    u       the fraction that is tolerated, with probability 1 - eps

Objective (supplement, contamination control; BOCS's form of it):
    sum_i x_i - rho (mean(z_i < u) - (1 - eps)) + lambda |x|_1, with z_i = (1 - restore_i) z_{i-1} where x_i = 1, and
    spread_i (1 - z_{i-1}) + z_{i-1} elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Floats, Ints
from lab.problems.base import Problem, binaries, check_lambda, lambda_name, random_design
from lab.problems.seeds import CONTAMINATION, check_run, seed_pair

STAGES, BUDGET = 25, 270
T, U, EPS, RHO = 100, 0.1, 0.05, 1.0
OPTIMA = {758: (21.35, 17), 1203: (21.18, 15), 2539: (21.19, 15), 6031: (21.44, 15), 7596: (21.02, 16)}
"""case -> least value at lambda = 0 and how many stages that point prevents; exact, by branch and bound.

The same points are best at lambda = 1e-2. The least value is concave in lambda and met by the line of such a point
at both ends: it is that line in between.
"""


class Chain(NamedTuple):
    """The simulated rates of a case."""

    first: Floats
    """(T,) contamination before the first stage, Beta(1, 30)."""
    spread: Floats
    """(25, T) Beta(1, 17/3)."""
    restore: Floats
    """(25, T) Beta(1, 3/7)."""


@dataclass(frozen=True, eq=False)
class Contamination:
    """The objective, in float64; the published float32 values differ in the seventh digit."""

    case: int
    lam: float

    def __call__(self, row: Ints) -> float:
        z, spread, restore = chain(self.case)
        total = 0.0
        for x, s, r in zip(row.tolist(), spread, restore, strict=True):
            z = (1 - r) * z if x else s * (1 - z) + z
            total += x - RHO * (np.count_nonzero(z < U) / T - (1 - EPS))
        return total + self.lam * int(row.sum())


@cache
def chain(case: int) -> Chain:
    """The rates of a case. Each array is drawn from a new generator of the same seed."""
    shapes = ((30, (T,)), (17 / 3, (STAGES, T)), (3 / 7, (STAGES, T)))
    return Chain(*(np.random.RandomState(case).beta(1, b, size=size) for b, size in shapes))


def contamination(run: int, lam: float) -> Problem:
    """Contamination control of the run's case; lam weighs the number of preventions."""
    lam, seeds = check_lambda(lam), seed_pair(CONTAMINATION, run)
    space = binaries("stage", STAGES)
    value, preventions = OPTIMA[seeds.case]
    return Problem(
        name=f"contamination-{lambda_name(lam)}",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=Contamination(seeds.case, lam),
        design=random_design(CONTAMINATION, space),
        optimum=round(value + lam * preventions, 10) if lam <= 1e-2 else None,
        instance={"case_seed": seeds.case, "start_seed": seeds.start, "lambda": lam},
    )
