"""Random spaces of every kind of variable, for tests that must hold on all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

import numpy as np

from carbo import Binary, Categorical, Integer, Ordinal, Space
from carbo.kernels import cross, gradient, observed_tables, orders
from carbo.numerics.types import Floats
from carbo.space.variables import Variable


def weights(rng: np.random.Generator, k: int) -> Floats:
    """(k, k) of a connected graph."""
    W = np.triu(rng.exponential(size=(k, k)) * (rng.random((k, k)) < 0.6), 1) + 0.1 * np.eye(k, k=1)
    return np.asarray(W + W.T)


def letters(k: int) -> list[str]:
    return [chr(ord("a") + i) for i in range(k)]


KINDS: dict[str, Callable[[np.random.Generator], Variable]] = {
    "binary": lambda _: Binary(),
    "categorical": lambda rng: Categorical(letters(int(rng.integers(3, 8)))),
    "ordinal": lambda rng: Ordinal(range(int(rng.integers(2, 7)))),
    "levels": lambda rng: Integer(0, int(rng.integers(8, 30))),
    "cycle": lambda rng: Categorical(letters(int(rng.integers(3, 8))), graph="cycle"),
    "weighted": lambda rng: Categorical(letters(k := int(rng.integers(2, 6))), graph=weights(rng, k)),
    "constant": lambda _: Categorical(["only"]),
    "constant level": lambda _: Integer(3, 3),
}


def space_of(rng: np.random.Generator, kinds: Sequence[str]) -> Space:
    return Space({f"x{i}": KINDS[kind](rng) for i, kind in enumerate(kinds)})


def any_kinds(rng: np.random.Generator, most: int) -> list[str]:
    """One to `most` kinds, repeats allowed."""
    return [str(kind) for kind in rng.choice(list(KINDS), size=int(rng.integers(1, most + 1)))]


@contextlib.contextmanager
def wide_above(values: int) -> Iterator[None]:
    """Within: variables of more values than that count as wide, so that small spaces can show what large ones do."""
    with contextlib.ExitStack() as stack:
        for module in (cross, orders, gradient, observed_tables):
            stack.enter_context(mock.patch.object(module, "WIDE", values))
        yield
