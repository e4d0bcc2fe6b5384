"""Branin on a grid of 51 x 51 ordered levels.

Notation
    a, b    coordinates in [-5, 10] and [0, 15]

Values are computed in float32, as the published ones were. Float64 differs from the published values by up to 4e-5
where they are large, float32 by 2e-6.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from carbo.space.variables import Categorical, Float, Variable
from lab.problems.base import Problem, check_choice
from lab.problems.seeds import BRANIN, check_run, single_seed, start_rows

LEVELS, BUDGET = 51, 100
BOUNDS = {"a": (-5.0, 10.0), "b": (0.0, 15.0)}
CENTRE = (LEVELS // 2, LEVELS // 2)
OPTIMUM = 0.40377044677734375
"""The least value on the grid, at the levels (48, 8); off the grid it is 0.397887."""


def value(row: Ints) -> float:
    """The function at a row of two levels."""
    f = np.float32
    level = np.linspace(-1, 1, LEVELS)[row].astype(np.float32) * f(7.5)
    a, b = level + np.array([2.5, 7.5], dtype=np.float32)
    valley = b - f(5.1 / (4 * np.pi**2)) * a**2 + f(5 / np.pi) * a - f(6)
    return float(valley**2 + f(10) * (f(1) - f(1 / (8 * np.pi))) * np.cos(a) + f(10))


def branin(run: int, graph: str = "path") -> Problem:
    """Ordinal Branin. It starts at the centre and at one random point.

    graph "path" has ordered levels; "published" gives the same paths edges of weight 50, as in the paper;
    the weight matters where the plain Laplacian is used. The paper's random points were not published: they are drawn
    as for the other problems, from the tag `seeds.BRANIN`.
    """
    check_choice("graph", graph, ("path", "published"))
    space = Space({name: _levels(low, high, graph) for name, (low, high) in BOUNDS.items()})
    return Problem(
        name="branin" if graph == "path" else "branin-published",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=value,
        design=partial(_design, space.sizes),
        optimum=OPTIMUM,
        instance={"start_seed": single_seed(BRANIN, run), "graph": graph},
    )


def _design(sizes: Ints, run: int) -> Ints:
    return np.concatenate([[CENTRE], start_rows(single_seed(BRANIN, run), sizes, 1)])


def _levels(low: float, high: float, graph: str) -> Variable:
    levels: Variable = Float(low, high, points=LEVELS)
    if graph == "path":
        return levels
    weights: Any = (LEVELS - 1.0) * (np.eye(LEVELS, k=1) + np.eye(LEVELS, k=-1))
    return Categorical(levels.choices, graph=weights)
