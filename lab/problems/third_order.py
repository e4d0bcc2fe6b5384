"""Dense functions of the third order: every bit, every pair and every triple of bits has a weight.

Notation
    s       (n,) signs, -1 for False and 1 for True
    a, b, c weights of bits, pairs and triples, whole numbers near 100 times a standard normal one

Objective: sum_i a_i s_i + sum_{i<j} b_ij s_i s_j + sum_{i<j<k} c_ijk s_i s_j s_k, over 100 times the square root of
the number of terms: about one standard deviation is 1. Nothing is sparse, and nothing is of an order beyond three.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

from carbo.errors import SettingsError
from carbo.numerics.types import Floats, Ints
from carbo.space.row_space import ENUMERABLE
from lab.problems.base import Problem, binaries, random_design
from lab.problems.digest import digest
from lab.problems.seeds import check_run, check_seed, instance_stream, single_seed

TAG = "carbo_THIRD_ORDER"
BITS, SCALE = 30, 100
BUDGET, INITIAL = 200, 10
OPTIMA = {
    "7db3c07d89a4838b": -38799,
    "f82d2112b433bace": -37622,
    "486ac974053835cf": -43672,
    "ac40c489f890fa6c": -38818,
    "3105722e3dd9d2db": -41911,
    "d4678dcd0af61993": -38229,
    "82735a557af440b7": -38480,
    "3e1e2fcff8c5f06d": -38630,
    "5fc69018be45272c": -40242,
    "7c1c415ce002fda9": -39386,
    "9eb996b714b967db": -37895,
    "3385d262b57c0ff5": -41612,
    "ef08d48eed8b120a": -39270,
    "a501303a64faf6df": -44424,
    "a0f9a57aeb0309ed": -38983,
    "5ccdb5172778f1b9": -37578,
    "2b4c732417e06b60": -40123,
    "cfc4b2085df4f258": -39232,
    "737f815a406af21a": -39846,
    "f653d2c722fd8ca6": -39583,
    "7493a1c8106698f3": -40044,
    "b9e2a0317afc57d3": -41888,
    "74f5ee76a28fb069": -38852,
    "dc3022cc7c5eec74": -42849,
    "1aba2389ecf348ba": -41211,
}
"""fingerprint of the instance -> least sum of the seeds 1 to 25, by full search."""


@dataclass(frozen=True, eq=False)
class Cubic:
    """The objective."""

    a: Ints
    """(n,)"""
    b: Ints
    """(n (n - 1) / 2,), pairs in the order of `itertools.combinations`."""
    c: Ints
    """(n (n - 1) (n - 2) / 6,), triples in that order."""

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(m,) the values of rows (m, n)."""
        return self.sums(rows) / self.unit

    def sums(self, rows: Ints) -> Ints:
        """(m,) the whole numbers that the values are over one unit."""
        s = 2 * rows - 1
        (i, j), (p, q, r) = _indices(len(self.a), 2), _indices(len(self.a), 3)
        return np.asarray(s @ self.a + (s[:, i] * s[:, j]) @ self.b + (s[:, p] * s[:, q] * s[:, r]) @ self.c)

    @property
    def unit(self) -> float:
        return float(SCALE * np.sqrt(len(self.a) + len(self.b) + len(self.c)))

    def fingerprint(self) -> str:
        return digest(self.a, self.b, self.c)


def third_order(seed: int, run: int = 1, bits: int = BITS) -> Problem:
    """A random function. The optimum is known for the laboratory's own seeds, and for few bits, which are listed."""
    if bits < 3:
        raise SettingsError(f"third_order: expected at least 3 bits, got {bits}; for example {BITS}")
    made, space = function(check_seed(seed), bits), binaries("x", bits)
    numbers = made.fingerprint()
    least = int(made.sums(space.all_rows()).min()) if space.cardinality <= ENUMERABLE else OPTIMA.get(numbers)
    return Problem(
        name="third-order",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=made,
        design=random_design(TAG, space, INITIAL),
        optimum=None if least is None else least / made.unit,
        instance={"seed": int(seed), "bits": bits, "numbers": numbers, "start_seed": single_seed(TAG, run)},
    )


@cache
def function(seed: int, bits: int) -> Cubic:
    """The weights of a seed: of bits, of pairs, of triples."""
    rng = instance_stream(TAG, seed)
    counts = (len(_indices(bits, order)[0]) for order in (1, 2, 3))
    return Cubic(*(np.round(SCALE * rng.standard_normal(count)).astype(np.intp) for count in counts))


@cache
def _indices(bits: int, order: int) -> tuple[Ints, ...]:
    """The first, second, ... members of all sets of so many bits."""
    return tuple(np.array(list(itertools.combinations(range(bits), order)), dtype=np.intp).T)
