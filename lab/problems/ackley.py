"""Ackley53: 50 binary variables and three ordered ones of 21 levels, from Wan et al. 2021 (Casmopolitan).

Notation
    z       (53,) the binary variables as 0 and 1, the ordered ones as -1, -0.9, ..., 1

Objective: 20 + e - 20 exp(-0.2 sqrt(mean z^2)) - exp(mean cos 2 pi z). Its least value, 0, is at z = 0. In the paper
the three are continuous, with noise of 1e-6 on the value; here they are levels, and there is none. Relocated, zeros and
ones of the binary variables change places, and the ordered ones' best level stays in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carbo.numerics.types import Floats, Ints
from carbo.space.space import Space
from carbo.space.variables import Binary, Ordinal
from lab.problems.base import Problem, random_design
from lab.problems.seeds import check_run, single_seed

TAG = "carbo_ACKLEY53"
BITS, LEVELS = 50, tuple(round(-1 + i / 10, 1) for i in range(21))
BUDGET, INITIAL = 200, 10


@dataclass(frozen=True)
class Ackley:
    """The objective."""

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(n,) the values of rows (n, 53)."""
        z = np.concatenate([rows[:, :BITS], np.array(LEVELS)[rows[:, BITS:]]], axis=1)
        distance = np.exp(-0.2 * np.sqrt(np.mean(z**2, axis=1)))
        waves = np.exp(np.mean(np.cos(2 * np.pi * z), axis=1))
        return np.asarray(20 * (1 - distance) + (np.e - waves))  # exactly 0 at z = 0


def ackley53(run: int) -> Problem:
    """The function. There is one instance: a run decides where to start; relocated, which bits are best."""
    bits = {f"b{i}": Binary() for i in range(1, BITS + 1)}
    space = Space({**bits, **{f"u{i}": Ordinal(LEVELS) for i in (1, 2, 3)}})
    return Problem(
        name="ackley53",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=Ackley(),
        design=random_design(TAG, space, INITIAL),
        optimum=0.0,
        instance={"start_seed": single_seed(TAG, run)},
    )
