"""Where the model is least sure, two changes away from a row: what two variables do together shows in neither alone.

A model that has seen both changes to be bad takes them to be worse together, and expected improvement never looks
there; but its variance is large there if it takes both variables for important.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from carbo.ensemble import Ensemble
from carbo.graph import Floats, Ints
from carbo.space import Space

PAIRS = 2_000
"""Rows looked at, drawn at random where there are more."""
LISTED = 1_000_000
"""Pairs of moves up to which all are listed."""


def two_away(rng: np.random.Generator, space: Space, row: Ints) -> Ints:
    """At most PAIRS different rows (m, d) that are one change of two variables each away from a row (d,)."""
    _, column, value = space.moves(row[None])
    some = _pairs(rng, column)[:PAIRS]
    rows = np.repeat(row[None], len(some), axis=0)
    for moves in some.T:
        rows[np.arange(len(rows)), column[moves]] = value[moves]
    return rows


def _pairs(rng: np.random.Generator, column: Ints) -> Ints:
    """(m, 2) moves that change different variables, each pair once, in random order: all there are, or many of them.

    column: (M,) which variable each of all moves changes, ascending.
    """
    M = len(column)
    if M * M <= LISTED:
        every = np.stack(np.triu_indices(M, 1), axis=1)
        return rng.permutation(every[column[every[:, 0]] != column[every[:, 1]]])
    begin, end = np.searchsorted(column, column, "left"), np.searchsorted(column, column, "right")
    others = M - (end - begin)
    if not others.any():
        return np.empty((0, 2), dtype=np.intp)
    first = rng.choice(M, size=10 * PAIRS, p=others / others.sum())
    second = rng.integers(0, others[first])
    second += np.where(second >= begin[first], end[first] - begin[first], 0)  # past the first one's own variable
    return rng.permutation(np.unique(np.sort(np.stack([first, second], axis=1), axis=1), axis=0))


def least_known(model: Ensemble, rows: Ints, log_success: Callable[[Ints], Floats] | None) -> Ints:
    """The row of largest variance, within samples and between them, times the probability that it succeeds."""
    mu, sd = model.predict(rows)
    scores = np.log(np.mean(sd**2, axis=0) + np.var(mu, axis=0))
    if log_success is not None:
        scores = scores + log_success(rows)
    return np.asarray(rows[int(np.argmax(scores))])
