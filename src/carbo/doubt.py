"""When the model has been refuted, and what is tried then: two changes of the best row at once.

Notation
    y       (n,) values as the model sees them, in the order told
    last    index of the last improvement worth the name; everything after it was in vain
    rise    (M,) by how much each single change of a row raises the posterior mean

A model may promise improvements that never come, by taking the floor of a function for a slope. Its promises can be
counted: given all other values, each value told in vain had a probability of being an improvement, and these sum to the
number of improvements that the model expects where there was none. A model that is right expects s or more of them with
a probability of about exp(-s).

Once it expects too many, it is asked less. Neighbours of the best row are tried, and two changes of it at once, first
those that do most by themselves: where two changes are needed together, each alone is bad, and while most variables
matter little at such a row, these do. Neither expected improvement nor the model's mean would ever go there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from carbo.ensemble import Ensemble
from carbo.graph import Floats, Ints
from carbo.rows import Bools

WORTH = 0.01
"""An improvement worth the name, as a share of the distance from the best to the median value."""
CYCLE = 3
"""Of so many suggestions in doubt one is the model's."""
CHANGES = 200
"""Changes that are tried two at once: those that do most."""
BLOCK = 256
"""Rows looked at a time."""


class Turn(NamedTuple):
    """What is to be suggested in place of what the model would: a single change of this row, while any is left.

    doubted: and two at once where none is.
    """

    row: Ints
    doubted: bool


def last_improvement(y: Floats) -> int:
    """Index of the last value that was better, by what is worth the name, than the last one before it that was so.

    Many small steps count once together they are worth it.
    """
    worth, last = _worth(y), 0
    for i in np.flatnonzero(y == np.minimum.accumulate(y)):
        if y[i] < y[last] - worth:
            last = int(i)
    return last


def expected(model: Ensemble, told: Ints, y: Floats, last: int) -> float:
    """How many of the values after `last` the model expects to be improvements on y[last], each given all others.

    told: (n',) which of y each of the model's observations is; what it has not seen does not count.
    """
    vain = told > last
    mean, variance = (moment[:, vain] for moment in model.left_out())
    return float(ndtr((y[last] - _worth(y) - mean) / np.sqrt(variance)).mean(axis=0).sum())


def _worth(y: Floats) -> float:
    return WORTH * float(np.median(y) - y.min())


def doubles(row: Ints, column: Ints, value: Ints, rise: Floats) -> Iterator[Ints]:
    """Rows (m, d) two changes away from a row (d,), some at a time, by the product of what each change does alone.

    column, value, rise: (M,) of the changes, of which the CHANGES that do most are looked at.
    """
    most = np.argsort(-rise, kind="stable")[:CHANGES]
    column, value = column[most], value[most]
    size = np.maximum(rise[most], 1e-9 * np.max(np.abs(rise), initial=1e-300))
    i, j = np.triu_indices(len(most), 1)
    apart = column[i] != column[j]
    i, j = i[apart], j[apart]
    order = np.argsort(-size[i] * size[j], kind="stable")
    for start in range(0, len(order), BLOCK):
        some = order[start : start + BLOCK]
        rows, at = np.repeat(row[None], len(some), axis=0), np.arange(len(some))
        for change in (i[some], j[some]):
            rows[at, column[change]] = value[change]
        yield rows


def first_fresh(blocks: Iterator[Ints], fresh: Callable[[Ints], Bools]) -> Ints | None:
    """The first row that is fresh; None where none is."""
    for rows in blocks:
        found = np.flatnonzero(fresh(rows))
        if len(found):
            return np.asarray(rows[found[0]])
    return None
