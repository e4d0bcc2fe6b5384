"""What the methods over other packages share: silence, ordered variables, and how they are kept within a constraint."""

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
"""Suggestions in a row that the constraint may forbid before a random one takes their place."""


@contextmanager
def quiet(*loggers: str) -> Iterator[None]:
    """No warnings, and nothing from these loggers (and those under them), until the block ends."""
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


def ordered(graph: Graph) -> bool:
    """Are the values on a path in their order (whatever its weights)? Then they are numbers to other packages."""
    if graph.weights is None:
        return graph.kind == "path"
    edges = np.asarray(graph.weights > 0)
    return graph.size > 2 and bool(np.array_equal(edges, np.eye(graph.size, k=1) + np.eye(graph.size, k=-1)))


class Permitted:
    """A method that knows no constraint, kept within one.

    The constraint is known, so that nobody has to spend an evaluation to find a row forbidden: the method is told the
    worst value so far for it, which costs none of the budget, and is asked again. After TRIES forbidden rows a random
    permitted one is taken.
    """

    def __init__(self, start: Start, space: Space, seed: int, budget: int) -> None:
        self._space, self._rng = space, np.random.default_rng([seed, 1])  # not the stream of the method itself
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


def permitted(start: Start) -> Start:
    """The same runs where there is no constraint; `Permitted` ones where there is."""
    return partial(_begun, start)


def _begun(start: Start, space: Space, seed: int, budget: int) -> Strategy:
    return start(space, seed, budget) if space.constraint is None else Permitted(start, space, seed, budget)
