"""Ising sparsification: which of the 24 interactions of a 4 x 4 grid of spins can be dropped.

Notation
    x       (24,) 1 where an edge is kept
    J       (24,) interactions of the model p, each counted twice as z'Jz does
    S       (2^15, 24) products of the two spins of each edge, one state of the grid a row
    m       (24,) mean of S under p, the edge covariances
    log Z   log sum exp(S J), less log 2

Objective (supplement, Ising sparsification): KL(p || q) + lambda |x|_1 where q has the interactions x J,
    KL = log Z_q - log Z_p + sum_e (1 - x_e) J_e m_e.
A state and its mirror image have the same energy. One state of each pair is enough, and the log 2 cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Floats, Ints
from lab.problems.base import Problem, binaries, check_lambda, lambda_name, random_design
from lab.problems.seeds import ISING, check_run, seed_pair, signs, uniforms

SIDE, EDGES, BUDGET = 4, 24, 170
HORIZONTAL = np.array([0, 2, 4, 7, 9, 11, 14, 16, 18, 21, 22, 23])
"""Positions of the horizontal edges in x, row by row; the vertical edges have the other positions."""
VERTICAL = np.setdiff1d(np.arange(EDGES), HORIZONTAL)
OPTIMA = {
    1286: {1e-4: 0.0024, 1e-2: 0.219250399192},
    6786: {1e-4: 0.002100026412, 1e-2: 0.159377918360},
    8158: {1e-4: 0.001507707307, 1e-2: 0.150007707307},
    8193: {1e-4: 0.002274540484, 1e-2: 0.210580355486},
    8733: {1e-4: 0.002019266620, 1e-2: 0.181290198986},
}
"""case -> lambda -> least value, by full search over the 2^24 points."""


@dataclass(frozen=True, eq=False)
class Ising:
    """The objective, in float64 on the float32 interactions of the published runs; about a millisecond for each row."""

    case: int
    lam: float

    def __call__(self, row: Ints) -> float:
        x = row.astype(np.float64)
        J, log_Z_p, m = model(self.case)
        divergence = _log_sum_exp(_states() @ (x * J)) - log_Z_p + float((1 - x) @ (J * m))
        return divergence + self.lam * float(x.sum())


class Model(NamedTuple):
    """The model p of a case."""

    J: Floats
    log_Z: float
    m: Floats


@cache
def model(case: int) -> Model:
    """The model of a case; computed once."""
    J = interactions(case)
    energy = _states() @ J
    log_Z = _log_sum_exp(energy)
    return Model(J, log_Z, np.exp(energy - log_Z) @ _states())


def interactions(case: int) -> Floats:
    """(24,) J of a case: signs, then magnitudes uniform in [0.05, 5], of the horizontal and then the vertical edges."""
    rng = np.random.RandomState(case)
    J = np.empty(EDGES, dtype=np.float32)
    for edges in (HORIZONTAL, VERTICAL):
        sign = signs(rng, len(edges))
        J[edges] = sign * (uniforms(rng, len(edges)) * np.float32(4.95) + np.float32(0.05))
    return 2.0 * J.astype(np.float64)


def ising(run: int, lam: float) -> Problem:
    """Ising sparsification of the run's case; lam weighs the number of edges kept."""
    lam, seeds = check_lambda(lam), seed_pair(ISING, run)
    space = binaries("edge", EDGES)
    return Problem(
        name=f"ising-{lambda_name(lam)}",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=Ising(seeds.case, lam),
        design=random_design(ISING, space),
        optimum=0.0 if lam == 0 else OPTIMA[seeds.case].get(lam),
        instance={"case_seed": seeds.case, "start_seed": seeds.start, "lambda": lam},
    )


@cache
def _states() -> Floats:
    """S of the states whose last spin is down: bit 15 of the numbers below 2^15 is never set."""
    z = ((np.arange(2 ** (SIDE**2 - 1))[:, None] >> np.arange(SIDE**2)) & 1).reshape(-1, SIDE, SIDE) * 2 - 1
    S = np.empty((len(z), EDGES))
    S[:, HORIZONTAL] = (z[:, :, :-1] * z[:, :, 1:]).reshape(len(z), -1)
    S[:, VERTICAL] = (z[:, :-1] * z[:, 1:]).reshape(len(z), -1)
    S.setflags(write=False)
    return S


def _log_sum_exp(a: Floats) -> float:
    top = float(a.max())
    return top + float(np.log(np.exp(a - top).sum()))
