"""Low-autocorrelation binary sequences: the sequence of signs that is least similar to its own shifts.

Notation
    s       (n,) signs, -1 for False and 1 for True
    C_k     sum_i s_i s_{i+k}, the autocorrelation at shift k

Objective: the energy E = sum_{k=1}^{n-1} C_k^2. It is of order four in the signs and couples all of them. It does not
change when s is reversed, nor when all signs or every second sign are flipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carbo.errors import SettingsError
from carbo.numerics.types import Floats, Ints
from lab.problems.base import Problem, binaries, random_design
from lab.problems.seeds import LABS, check_run, single_seed

BUDGET = 200
ENERGIES = (1, 1, 2, 2, 7, 3, 8, 12, 13, 5, 10, 6, 19, 15, 24, 32, 25, 29, 26, 26, 39, 47, 36, 36, 45, 37, 50, 62, 59)
"""The least energy of the lengths 2 to 30, by full search."""


@dataclass(frozen=True)
class Energy:
    """The objective: the energy of a sequence."""

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(n,) the energies of rows (n, d)."""
        s = 2.0 * rows - 1.0
        shifts = range(1, rows.shape[1])
        return np.asarray(np.sum([np.sum(s[:, :-k] * s[:, k:], axis=1) ** 2 for k in shifts], axis=0))


def labs(run: int, length: int = 30) -> Problem:
    """The sequences of a length. There is one instance; runs differ in their starts, and relocated in the signs too."""
    if length < 2:
        raise SettingsError(f"labs: expected a length of at least 2, got {length}; for example 30")
    space = binaries("s", length)
    known = length < len(ENERGIES) + 2
    return Problem(
        name="labs",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=Energy(),
        design=random_design(LABS, space),
        optimum=float(ENERGIES[length - 2]) if known else None,
        instance={"length": length, "start_seed": single_seed(LABS, run)},
    )
