"""Other initial points than the paper's: fewer of them, or points that are far from each other."""

from __future__ import annotations

import numpy as np

from carbo.kernels.spectra import spectra_of
from carbo.numerics.types import Floats, Ints
from carbo.space.space import Space

CANDIDATES = 200
"""Random rows among which each spread-out point is the farthest from all before."""


def spread(space: Space, count: int, seed: int) -> Ints:
    """(count, d): each point the one, of many random ones, whose nearest point so far is farthest away.

    The distance sums over variables: 0 or 1 where values have no order, the share of the range where they have one.
    """
    rng = np.random.default_rng(seed)
    rows = space.random_rows(rng, 1)
    while len(rows) < count:
        some = space.random_rows(rng, CANDIDATES)
        nearest = np.min([distances(space, some, row) for row in rows], axis=0)
        rows = np.concatenate([rows, some[[int(np.argmax(nearest))]]])
    return rows


def distances(space: Space, rows: Ints, row: Ints) -> Floats:
    """(N,) of rows to one row."""
    ordered = np.array([s.kind == "path" for s in spectra_of(space.graphs)])
    range_ = np.maximum(space.sizes - 1, 1)
    apart = np.where(ordered, np.abs(rows - row) / range_, rows != row)
    return np.asarray(apart.sum(axis=1), dtype=np.float64)
