"""Benchmark problems, and their relocated forms.

Notation
    row     (d,) integers, positions in the choices of each variable, as in `carbo.space.space`
    back    for each variable (k_i,): relocated position -> original position
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from carbo.errors import SettingsError, SpaceError
from carbo.numerics.types import Ints
from carbo.space.space import Constraint, Params, Space
from carbo.space.variables import Binary
from lab.problems.seeds import check_run, start_rows, start_seed

Objective = Callable[[Ints], float]
"""A function from a row (d,) to its value; smaller is better. NaN: the evaluation failed (`Problem.fails`)."""
Design = Callable[[int], Ints]
"""A function from a run in 1..25 to its initial rows (n, d)."""

LAMBDAS = {"0": 0.0, "1e-4": 1e-4, "1e-2": 1e-2}
"""The paper's weights of the regulariser, by their text in the names of problems."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A function to minimise, with the paper's budget and starting points. Problems are immutable and can be pickled.

    One thing changes: a `noisy` objective draws from its own stream of random numbers at every evaluation. Its values
    depend on the order of evaluations, and a new problem repeats them.
    """

    name: str
    run: int
    """The paper's run, 1..25, of the instance."""
    space: Space
    budget: int
    """Number of evaluations, the initial ones included."""
    objective: Objective
    design: Design
    optimum: float | None
    """The least value (or, where `instance` says so, the best one known); None where neither is known."""
    instance: Mapping[str, Any] = field(default_factory=dict)
    """The data that fix the instance, as JSON values."""
    noisy: bool = False
    fails: bool = False
    """Some evaluations fail and have no value: NaN. Which ones is not known beforehand."""
    relocation: int | None = None
    """The seed of the relocation; None for the original problem."""
    valid: Callable[[Ints], bool] | None = None
    """Whether a row (d,) is valid; None where all rows are. Invalid rows have a value too."""
    packages: tuple[str, ...] = ()
    """Python packages that the objective needs."""

    def initial(self, run: int | None = None) -> list[Params]:
        """The initial points of a run of the paper, by default of the problem's own run."""
        return self.space.decode_many(self.design(check_run(self.run if run is None else run)))

    def evaluate(self, params: Mapping[str, Any]) -> float:
        """The value at `params`. SpaceError when they are no point of the space, or violate its constraint."""
        row = self.space.encode(params)
        if not self.space.feasible(row[None])[0]:
            raise SpaceError(f"{self.name}: expected params that the constraint permits, got {dict(params)!r}; "
                             "ask space.feasible first")  # fmt: skip
        return self.objective(row)

    def relocated(self, seed: int) -> Problem:
        """The same function with each variable's values shuffled, so that no optimum is at a structured point.

        Values that are all neighbours (binary, categorical) are permuted at random. On a path the order is kept
        or reversed, at random, because any other permutation would leave no path. Initial points are moved too: they
        have the same values as before. A constraint is moved too. A noisy problem shares its stream of random numbers
        with its relocated form.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise SettingsError(f"relocated: expected a whole number from 0 on as seed, got {seed!r}; for example 1")
        if self.relocation is not None:
            raise SettingsError(f"relocated: expected the original problem, got {self.name} relocated by seed "
                                f"{self.relocation}; relocate the original with another seed")  # fmt: skip
        moved = Relocated(self, _permutations(np.random.default_rng(seed), self.space))
        return replace(self, space=moved.space, objective=moved.objective, design=moved.design, relocation=int(seed),
                       valid=None if self.valid is None else moved.valid,
                       instance={**self.instance, "relocated": int(seed)})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Relocated:
    """A problem whose values of each variable are permuted."""

    problem: Problem
    back: tuple[Ints, ...]

    @property
    def space(self) -> Space:
        """The space of the original; its constraint, if it has one, is moved too."""
        original = self.problem.space
        if original.constraint is None:
            return original
        return Space(original.variables, constraint=MovedConstraint(original.constraint, self._originals()))

    def objective(self, row: Ints) -> float:
        """The value of the original at the mapped-back row."""
        return self.problem.objective(self._original(row))

    def valid(self, row: Ints) -> bool:
        """Whether the mapped-back row is valid in the original."""
        return self.problem.valid is None or self.problem.valid(self._original(row))

    def design(self, run: int) -> Ints:
        """The initial rows of the original, moved."""
        rows = self.problem.design(run)
        return np.stack([np.argsort(back_of)[rows[:, i]] for i, back_of in enumerate(self.back)], axis=1)

    def _original(self, row: Ints) -> Ints:
        return np.array([back_of[v] for back_of, v in zip(self.back, row, strict=True)])

    def _originals(self) -> dict[str, dict[Any, Any]]:
        """variable -> choice -> the choice of the original that it stands for."""
        return {
            name: {choice: variable.choices[v] for choice, v in zip(variable.choices, back_of.tolist(), strict=True)}
            for (name, variable), back_of in zip(self.problem.space.variables.items(), self.back, strict=True)
        }


@dataclass(frozen=True, eq=False)
class MovedConstraint:
    """A constraint of the original, for points of the relocated problem."""

    constraint: Constraint
    originals: Mapping[str, Mapping[Any, Any]]

    def __call__(self, params: Mapping[str, Any]) -> bool:
        return self.constraint({name: original[params[name]] for name, original in self.originals.items()})


def _permutations(rng: np.random.Generator, space: Space) -> tuple[Ints, ...]:
    back = []
    for variable in space.variables.values():
        if variable.graph.kind == "complete":
            back.append(rng.permutation(variable.size))
        else:
            back.append(np.arange(variable.size)[:: 1 if rng.random() < 0.5 else -1])
    return tuple(back)


def binaries(prefix: str, n: int) -> Space:
    """n binary variables, prefix1 to prefixn."""
    return Space({f"{prefix}{i}": Binary() for i in range(1, n + 1)})


def random_design(tag: str, space: Space, n: int = 20) -> Design:
    """The paper's n random initial rows of each run."""
    return partial(_tagged_rows, tag, space.sizes, n)


def _tagged_rows(tag: str, sizes: Ints, n: int, run: int) -> Ints:
    return start_rows(start_seed(tag, run), sizes, n)


def check_lambda(lam: float) -> float:
    """`lam`, or SettingsError unless it is a finite number from 0 on."""
    if isinstance(lam, bool) or not isinstance(lam, int | float) or not math.isfinite(lam) or lam < 0:
        raise SettingsError(f"lam: expected a number from 0 on, got {lam!r}; the paper uses 0, 1e-4 and 1e-2")
    return float(lam)


def lambda_name(lam: float) -> str:
    """The text of a weight in names of problems: 1e-4 rather than 0.0001."""
    return next((name for name, known in LAMBDAS.items() if known == lam), f"{lam:g}")


def check_choice(what: str, value: str, known: tuple[str, ...]) -> str:
    """`value`, or SettingsError unless it is one of `known`."""
    if value not in known:
        raise SettingsError(f"{what}: expected {' or '.join(map(repr, known))}, got {value!r}")
    return value
