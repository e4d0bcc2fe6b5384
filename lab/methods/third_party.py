"""Helpers for methods of other packages: no output, ordered variables, and a wrapper that keeps a constraint."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.graphs import Graph
from carbo.space.space import Space
from lab.methods.base import Start, Strategy

TRIES = 20
"""After so many forbidden suggestions in a row a random permitted row is suggested."""


@contextmanager
def quiet(*loggers: str) -> Iterator[None]:
    """Within: no warnings, and no messages of these loggers and the loggers below them."""
    named = [logging.getLogger(name) for name in loggers]
    levels = [logger.level for logger in named]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for logger in named:
                logger.setLevel(logging.CRITICAL + 1)
            yield
        finally:
            for logger, level in zip(named, levels, strict=True):
                logger.setLevel(level)


def is_ordered(graph: Graph) -> bool:
    """Whether the graph is a path over the values in their order, with any weights; other packages get integers."""
    if graph.weights is None:
        return graph.kind == "path"
    edges = np.asarray(graph.weights > 0)
    return graph.size > 2 and bool(np.array_equal(edges, np.eye(graph.size, k=1) + np.eye(graph.size, k=-1)))


class WithinConstraint:
    """One run of a method that has no constraints, on a space with a constraint.

    A forbidden row costs no evaluation: the method is told the worst value so far for it, and is asked again. After
    TRIES forbidden rows a random permitted row is suggested.
    """

    def __init__(self, start: Start, space: Space, seed: int, budget: int) -> None:
        self._space, self._rng = space, np.random.default_rng([seed, 1])  # another stream than that of the method
        self._inner = start(Space(space.variables), seed, budget)
        self._worst: float | None = None

    def tell(self, row: Ints, value: float) -> None:
        if not np.isnan(value):
            self._worst = value if self._worst is None else max(self._worst, value)
        self._inner.tell(row, value)

    def ask(self) -> Ints:
        for _ in range(0 if self._worst is None else TRIES):
            row = self._inner.ask()
            if self._space.feasible(row[None])[0]:
                return row
            assert self._worst is not None
            self._inner.tell(row, self._worst)
        return np.asarray(self._space.random_rows(self._rng, 1)[0])


def within_constraint(start: Start) -> Start:
    """The same runs on spaces without a constraint; `Permitted` runs on spaces with one."""
    return partial(_start_within_constraint, start)


def _start_within_constraint(start: Start, space: Space, seed: int, budget: int) -> Strategy:
    return start(space, seed, budget) if space.constraint is None else WithinConstraint(start, space, seed, budget)
