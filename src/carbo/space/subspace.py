"""A space some of whose variables stand still, for suggestions around values that someone else has chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from carbo.numerics.types import Ints
from carbo.space.neighbours import Moves
from carbo.space.space import Space, combinations


class Pinned(Space):
    """The rows of a space that have given positions in some columns; they stay rows of the whole space.

    NothingPermitted when the constraint permits none of them, as far as can be found out.
    """

    def __init__(self, whole: Space, positions: Mapping[int, int]) -> None:
        vars(self).update({k: v for k, v in vars(whole).items() if k not in ("_listed_rows", "_reservoir")})
        self._columns = np.array(list(positions), dtype=np.intp)
        self._positions = np.array(list(positions.values()), dtype=np.intp)
        self._free = np.ones(self.dim, dtype=np.bool_)
        self._free[self._columns] = False
        self._known = self._first_feasible()

    @property
    def cardinality(self) -> int:
        return math.prod(self.sizes[self._free].tolist())

    def held(self, rows: Ints) -> Ints:
        out = rows.copy()
        out[..., self._columns] = self._positions
        return out

    def moves(self, rows: ArrayLike, leaps: bool = False) -> Moves:
        every = super().moves(rows, leaps)
        free = self._free[every.column]
        return Moves(*(each[free] for each in every))

    def _every_row(self) -> Ints:
        return self.held(combinations(np.where(self._free, self.sizes, 1)))
