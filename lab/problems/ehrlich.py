"""Ehrlich functions (Stanton et al. 2024): sequences that need motifs, and must avoid forbidden neighbours.

Notation
    v, n    number of states, and of positions of a sequence x
    A       (v, v) transition matrix with zeros: a sequence with a step of probability 0 is infeasible, and fails
    c, k, q number of motifs, length of each, and quantisation
    a       (c, k) the states of the motifs
    s       (c, k) their offsets from their first elements, ascending from 0

Objective: -prod_i h_i, where h_i is the largest share of motif i's elements that are in place anywhere in x, rounded
down to a multiple of 1/q: max over l of floor(q/k |{j: x[l + s_ij] = a_ij}|) / q. The least value is -1.

As in the authors' holo-bench: of each row of A a band of 2 floor(0.4 v) + 1 states is possible, the bands' order
shuffled, and staying always is; the motifs are one draw of c k steps from the chain, cut into pieces, and their offsets
share out the positions left over. So repeating each state of the motifs until the next one is due is feasible and
optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from carbo.errors import SettingsError
from carbo.numerics.types import Bools, Floats, Ints
from carbo.space.space import Space
from carbo.space.variables import Categorical
from lab.problems.base import Problem
from lab.problems.digest import digest
from lab.problems.seeds import check_run, check_seed, instance_stream, single_seed, start_rows

TAG = "carbo_EHRLICH"
BUDGET, INITIAL = 200, 10
TEMPERATURE, BAND = 0.5, 0.4


@dataclass(frozen=True)
class Shape:
    """What a family of instances has in common."""

    states: int
    positions: int
    motifs: int
    length: int = 4
    quantisation: int = 4

    @property
    def name(self) -> str:
        return f"ehrlich-{self.states}x{self.positions}"


SHAPES = (Shape(20, 15, 2), Shape(32, 32, 4), Shape(8, 10, 2))
"""The laboratory's."""


@dataclass(frozen=True, eq=False)
class Ehrlich:
    """The objective."""

    transitions: Floats
    """A"""
    motifs: Ints
    """a"""
    offsets: Ints
    """s"""
    quantisation: int

    def __call__(self, row: Ints) -> float:
        return float(self.many(row[None])[0])

    def many(self, rows: Ints) -> Floats:
        """(m,) the values of rows (m, n); NaN where they are infeasible."""
        shares = [self._share(rows, *motif) for motif in zip(self.motifs, self.offsets, strict=True)]
        return np.where(self.feasible(rows), 0.0 - np.prod(shares, axis=0), np.nan)

    def feasible(self, rows: Ints) -> Bools:
        """(m,) whether all steps are possible."""
        return np.asarray((self.transitions[rows[:, :-1], rows[:, 1:]] > 0).all(axis=1))

    def best(self, positions: int) -> Ints:
        """An optimal row: each state of the motifs repeated until the next one is due, the last one to the end."""
        row = [
            state
            for motif, offsets in zip(self.motifs.tolist(), self.offsets, strict=True)
            for state, times in zip(motif, (*np.diff(offsets).tolist(), 1), strict=True)
            for _ in range(times)
        ]
        return np.array(row + row[-1:] * (positions - len(row)), dtype=np.intp)

    def _share(self, rows: Ints, motif: Ints, offsets: Ints) -> Floats:
        """(m,) h"""
        starts = np.arange(rows.shape[1] - offsets[-1])
        in_place = (rows[:, starts[:, None] + offsets] == motif).sum(axis=2).max(axis=1)
        return np.asarray(in_place * self.quantisation // len(motif) / self.quantisation)


def ehrlich(shape: Shape, seed: int, run: int = 1) -> Problem:
    """A random instance of a shape.

    Five of its initial rows are drawn from the chain, and feasible; none of them is optimal. Five are uniform.
    """
    made = function(_checked(shape), check_seed(seed))
    space = Space({f"x{i}": Categorical(range(shape.states)) for i in range(1, shape.positions + 1)})
    return Problem(
        name=shape.name,
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=made,
        design=partial(_design, made, space.sizes),
        optimum=-1.0,
        instance={"seed": int(seed), "motifs": shape.motifs, "length": shape.length,
                  "quantisation": shape.quantisation, "numbers": digest(*_numbers(made)),
                  "start_seed": single_seed(TAG, run)},
        fails=True,
    )  # fmt: skip


@cache
def function(shape: Shape, seed: int) -> Ehrlich:
    """The transition matrix of a shape and seed, the motifs, and the offsets."""
    rng = instance_stream(TAG, seed)
    transitions = _transitions(rng, shape.states)
    chain = _walk(rng, transitions, shape.motifs * shape.length)
    spare = (shape.positions - shape.motifs * shape.length) // shape.motifs
    offsets = [_offsets(rng, shape.length, spare) for _ in range(shape.motifs)]
    return Ehrlich(transitions, chain.reshape(shape.motifs, shape.length), np.array(offsets), shape.quantisation)


def _checked(shape: Shape) -> Shape:
    if shape.motifs * shape.length > shape.positions:
        raise SettingsError(f"ehrlich: expected positions for {shape.motifs} motifs of {shape.length}, got "
                            f"{shape.positions}; for example {shape.motifs * shape.length}")  # fmt: skip
    if not 1 <= shape.quantisation <= shape.length or shape.length % shape.quantisation:
        raise SettingsError(f"ehrlich: expected a quantisation that divides the length {shape.length}, got "
                            f"{shape.quantisation}; for example {shape.length}")  # fmt: skip
    return shape


def _transitions(rng: np.random.RandomState, states: int) -> Floats:
    """A: a softmax of normal numbers where steps are possible; drawn again until every state leads to every other."""
    while True:
        weights = np.exp(rng.standard_normal((states, states)) / TEMPERATURE)
        width = int(BAND * states)
        apart = (np.arange(states) - np.arange(states)[:, None] + width) % states
        possible = (apart <= 2 * width)[rng.permutation(states)] | np.eye(states, dtype=np.bool_)
        if (np.linalg.matrix_power(possible.astype(np.float64), states) > 0).all():
            weights = np.where(possible, weights, 0.0)
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _walk(rng: np.random.RandomState, transitions: Floats, steps: int) -> Ints:
    """A draw from the chain, which starts as it is in the long run."""
    states = len(transitions)
    long_run = np.linalg.matrix_power(transitions, 1_024)[0]
    walk = [int(rng.choice(states, p=long_run / long_run.sum()))]
    while len(walk) < steps:
        walk.append(int(rng.choice(states, p=transitions[walk[-1]])))
    return np.array(walk, dtype=np.intp)


def _offsets(rng: np.random.RandomState, length: int, spare: int) -> Ints:
    """Steps of one and more; together they use at most `spare` positions beyond one each."""
    shares = rng.random_sample(length - 1)
    steps = 1 + np.floor(spare * shares / shares.sum()).astype(np.intp)
    return np.concatenate([[0], np.cumsum(steps)])


def _design(made: Ehrlich, sizes: Ints, run: int) -> Ints:
    start, known = single_seed(TAG, run), INITIAL // 2
    rng = np.random.RandomState(start)
    walks: list[Ints] = []
    while len(walks) < known:
        walk = _walk(rng, made.transitions, len(sizes))
        walks += [walk] if made(walk) > -1.0 else []
    return np.concatenate([np.array(walks), start_rows(start, sizes, INITIAL - known)])


def _numbers(made: Ehrlich) -> tuple[Floats, Ints, Ints]:
    return made.transitions, made.motifs, made.offsets
