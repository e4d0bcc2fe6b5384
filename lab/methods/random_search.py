"""Random search: rows are independent and uniform, and values are ignored."""

from __future__ import annotations

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab.methods.base import Method


class RandomSearch:
    """One run: rows are uniform over the feasible ones, and may repeat."""

    def __init__(self, space: Space, seed: int, budget: int) -> None:  # noqa: ARG002
        self._space = space
        self._rng = np.random.default_rng(seed)

    def tell(self, row: Ints, value: float) -> None:
        """Ignore the value."""

    def ask(self) -> Ints:
        return np.asarray(self._space.random_rows(self._rng, 1)[0])


RANDOM = Method("random", "Random search", RandomSearch)
