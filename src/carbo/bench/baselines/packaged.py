"""What the methods over other packages share: silence, ordered variables, and no constraints."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from carbo.errors import SettingsError
from carbo.graph import Graph
from carbo.space import Space


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


def unconstrained(method: str, space: Space) -> Space:
    """The space, or SettingsError when it has a constraint: these packages know none on suggestions."""
    if space.constraint is not None:
        raise SettingsError(f"method {method!r}: expected a space without a constraint, got one with; "
                            "use random, annealing, evolution, genetic or a preset")  # fmt: skip
    return space
