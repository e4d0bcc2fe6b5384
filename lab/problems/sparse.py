"""Sparse functions: of 40 binary variables only some matter, alone and in pairs.

Notation
    k       number of variables that matter; s_i = -1 or 1 the value of variable i

Objective: sum_i a_i s_i + sum_(i,j) b_ij s_i s_j over those k, with a and b standard normal; a pair is there with
probability 2 / k, so that each variable has about two partners for any k.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from carbo.errors import SettingsError
from lab.problems.base import Problem, binaries, random_design
from lab.problems.factors import Factor, Factors
from lab.problems.seeds import SPARSE, check_run, check_seed, instance_stream, single_seed

BITS, BUDGET = 40, 150
PARTNERS = 2.0
SIGNS = np.array([-1.0, 1.0])


def sparse(matter: int, seed: int, run: int = 1) -> Problem:
    """A random function of `matter` variables. Its optimum is exact where it is known."""
    if not 1 <= matter <= BITS:
        raise SettingsError(f"sparse: expected 1 to {BITS} variables that matter, got {matter}")
    space = binaries("x", BITS)
    return Problem(
        name=f"sparse-{matter}",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=function(matter, check_seed(seed)),
        design=random_design(SPARSE, space),
        optimum=_least(matter, int(seed)),
        instance={"seed": int(seed), "matter": matter, "start_seed": single_seed(SPARSE, run)},
    )


@cache
def function(matter: int, seed: int) -> Factors:
    """The terms of the instance of a seed."""
    rng = instance_stream(SPARSE, seed)
    those = rng.permutation(BITS)[:matter].tolist()
    found = [Factor((i,), rng.standard_normal() * SIGNS) for i in those]
    for b, j in enumerate(those):
        for i in those[:b]:
            present, weight = rng.random_sample() < PARTNERS / matter, rng.standard_normal()
            if present:
                found.append(Factor((i, j), weight * np.outer(SIGNS, SIGNS)))
    return Factors(tuple(found))


@cache
def _least(matter: int, seed: int) -> float | None:
    return function(matter, seed).least()
