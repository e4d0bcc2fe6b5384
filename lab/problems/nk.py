"""NK landscapes (Kauffman and Levin 1987): the cost of each bit depends on the bit and on K random others.

Notation
    N, K    number of bits, and of other bits that the cost of each bit depends on

Objective: the mean of N costs, each uniform in [0, 1) and independent for every setting of its K + 1 bits.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from carbo.errors import SettingsError
from lab.problems.base import Problem, binaries, random_design
from lab.problems.factors import Factor, Factors
from lab.problems.seeds import NK, check_run, check_seed, instance_stream, single_seed

BUDGET = 200


def nk(seed: int, run: int = 1, bits: int = 30, k: int = 4) -> Problem:
    """A random landscape. Its optimum is exact; None where that needs too large tables."""
    if not 0 <= k < bits:
        raise SettingsError(f"nk: expected 0 <= k < bits, got k={k} and bits={bits}; for example 4 and 30")
    space = binaries("x", bits)
    return Problem(
        name="nk",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=landscape(check_seed(seed), bits, k),
        design=random_design(NK, space),
        optimum=_least(int(seed), bits, k),
        instance={"seed": int(seed), "bits": bits, "k": k, "start_seed": single_seed(NK, run)},
    )


@cache
def landscape(seed: int, bits: int, k: int) -> Factors:
    """The costs of the instance of a seed: for each bit its K others, then the cost of each setting, divided by N."""
    rng = instance_stream(NK, seed)
    found = []
    for bit in range(bits):
        others = np.setdiff1d(np.arange(bits), bit)[rng.permutation(bits - 1)[:k]]
        costs = rng.random_sample(2 ** (k + 1)) / bits
        found.append(Factor((bit, *others.tolist()), costs.reshape((2,) * (k + 1))))
    return Factors(tuple(found))


@cache
def _least(seed: int, bits: int, k: int) -> float | None:
    return landscape(seed, bits, k).least()
