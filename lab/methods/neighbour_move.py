"""The step that the local methods share: one variable to one of its neighbours."""

from __future__ import annotations

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space


def random_neighbour(rng: np.random.Generator, space: Space, row: Ints) -> Ints:
    """A feasible neighbour (d,) of `row`: a variable by chance, then one of its values next to this one by chance.

    Drawing the variable first keeps one with a hundred categories from taking almost all of the steps. Where no
    step is feasible, a random row.
    """
    near = space.neighbours(row)
    if not len(near):
        return np.asarray(space.random_rows(rng, 1)[0])
    columns = np.argmax(near != row, axis=1)
    column = rng.choice(np.unique(columns))
    chosen: Ints = rng.choice(near[columns == column])
    return chosen
