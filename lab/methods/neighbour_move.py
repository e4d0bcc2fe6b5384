"""The step of the local methods: one variable moves to a neighbouring value."""

from __future__ import annotations

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space


def random_neighbour(rng: np.random.Generator, space: Space, row: Ints) -> Ints:
    """A feasible neighbour (d,) of `row`: a random variable, then a random one of the values next to its value.

    The variable is drawn first; otherwise a variable of a hundred categories would take almost all of the steps. Where
    no step is feasible, a random row is returned.
    """
    near = space.neighbours(row)
    if not len(near):
        return np.asarray(space.random_rows(rng, 1)[0])
    columns = np.argmax(near != row, axis=1)
    column = rng.choice(np.unique(columns))
    chosen: Ints = rng.choice(near[columns == column])
    return chosen
