"""BOCS: Bayesian optimisation of combinatorial structures (Baptista and Poloczek, ICML 2018), for binary variables.

Written from the paper. Each suggestion is Thompson sampling: the coefficients of a sparse polynomial are drawn once
from their posterior (`bocs_model`), and the row that minimises this one polynomial is suggested (`bocs_search`):
second order by semidefinite relaxation and rounding (BOCS-SDP), third order by simulated annealing (BOCS-SA3). A
regulariser, which the paper adds to the sampled polynomial, is part of our objectives and is learnt with them.

A row that was evaluated before may be suggested again, as in the paper: the repeated value is one more observation of
the regression. Where the posterior is sure of a wrong polynomial, a run can end in such repeats.

The Gibbs sampler continues from its state at the last suggestion: FIRST sweeps before the first suggestion, THEN sweeps
before each later one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from carbo.errors import SettingsError
from carbo.numerics.threads import limit_threads
from carbo.numerics.types import Ints
from carbo.space.choices import listing
from carbo.space.space import Space
from lab.methods import bocs_model as model
from lab.methods import bocs_search as search
from lab.methods.base import Method

FIRST, THEN = 100, 30
"""Sweeps of the Gibbs sampler before the first suggestion, and before each later one.

Measured on Ising sparsification without regulariser. Single draws at 100 observations, 24 chains each, err on random
rows by 0.86 standard deviations with these numbers, and by 0.79 after 1,000 sweeps from scratch (scatter 0.18 and
0.11). The best value of 170 evaluations, nine runs of the paper each: 0.083, 0.095 and 0.105 with 10, 30 and 100
sweeps, standard error 0.055.
"""

Search = Callable[[np.random.Generator, search.Polynomial], Ints]
"""A function from a generator and a polynomial to a row (d,) that minimises the polynomial, or nearly so."""


class BOCS:
    """One run. SettingsError on a space with a variable of more or fewer than two values, or with a constraint."""

    def __init__(self, order: int, minimise: Search, space: Space, seed: int, budget: int) -> None:  # noqa: ARG002
        _refuse(space)
        self._space, self._order, self._minimise = space, order, minimise
        self._rng = np.random.default_rng(seed)
        self._rows: list[Ints] = []
        self._values: list[float] = []
        self._chain: model.Chain | None = None

    def tell(self, row: Ints, value: float) -> None:
        self._rows.append(np.array(row))
        self._values.append(float(value))

    def ask(self) -> Ints:
        if len(self._values) < 2:  # the variance of the noise needs two values
            row: Ints = self._space.random_rows(self._rng, 1)[0]
            return row
        with limit_threads(len(self._values), None):
            return self._minimise(self._rng, self._draw_polynomial())

    def _draw_polynomial(self) -> search.Polynomial:
        """Draw a polynomial from the posterior, and move the chain on."""
        data = model.regression(self._rows, self._values, self._order)
        sweeps = FIRST if self._chain is None else THEN
        chain = self._chain or model.first_chain(data.X.shape[1])
        self._chain, a = model.draw(self._rng, chain, data, sweeps)
        return model.polynomial(a, self._space.dim, self._order)


def _refuse(space: Space) -> None:
    """Raise SettingsError unless every variable has two values and the space has no constraint."""
    others = [
        f"{name!r} with {size}" for name, size in zip(space.names, space.sizes.tolist(), strict=True) if size != 2
    ]
    if others:
        raise SettingsError(f"BOCS: expected variables of two values, got {listing(others)}; "
                            "use a method for categories, such as 'default'")  # fmt: skip
    if space.constraint is not None:
        raise SettingsError("BOCS: expected a space without a constraint, got one; "
                            "use a method that honours it, such as 'default'")  # fmt: skip


_MODEL: dict[str, Any] = {"prior": "horseshoe", "sampler": "Gibbs, warm-started", "sweeps": [FIRST, THEN]}

BOCS_SDP = Method(
    "bocs-sdp",
    "BOCS-SDP",
    partial(BOCS, 2, search.by_relaxation),
    {
        "order": 2,
        **_MODEL,
        "search": "semidefinite relaxation, SCS",
        "accuracy": search.ACCURACY,
        "iterations": search.ITERATIONS,
        "roundings": search.DIRECTIONS,
    },
    packages=("scs",),
    binary_only=True,
    unconstrained_only=True,
)
BOCS_SA3 = Method(
    "bocs-sa3",
    "BOCS-SA3",
    partial(BOCS, 3, search.by_annealing),
    {
        "order": 3,
        **_MODEL,
        "search": "simulated annealing",
        "restarts": search.RESTARTS,
        "annealing_sweeps": search.SWEEPS,
        "temperatures": [search.HOT, search.COLD],
    },
    binary_only=True,
    unconstrained_only=True,
)
