"""When the model has been refuted, and what is tried then: two changes of the best row at once.

Notation
    y       (n,) values as the model sees them, in the order told
    last    index of the last improvement worth the name; everything after it was in vain
    rise    (M,) by how much each single change of a row raises the posterior mean

A model may promise improvements that never come, by taking the floor of a function for a slope. Its promises can be
counted: given all other values, each value told in vain had a probability of being an improvement, and these sum to the
number of improvements that the model expects where there was none. While one that is right goes on without an
improvement, it expects s or more of them with a probability of at most about exp(-s).

Once it expects too many, it is asked less. The neighbours of the row where improvements ended are tried, and then two
changes of it at once. Where two changes are good together alone, each of them is bad, so that neither expected
improvement nor the model's mean would ever go there; most often one is very bad and the other a little, while most
changes do next to nothing. (Where the floor is the optimum there is nothing to be found, and nothing to be lost.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from carbo.acquisition.search import top_of_each_owner
from carbo.numerics.types import Bools, Floats, Ints
from carbo.settings import Settings
from carbo.space.row_space import RowSpace, row_keys
from carbo.surrogate.ensemble import Ensemble
from carbo.surrogate.surrogate import Observations, Posterior

WORTH = 0.01
"""An improvement worth the name, as a share of the distance from the best to the median value."""
RATE = 0.1
"""Least share of the vain evaluations that the model must expect to be improvements: in a long drought little sums."""
CYCLE = 3
"""Of so many suggestions in doubt one is the model's."""
CHANGES, ALIKE = 200, 20
"""Changes that are tried two at once, those that do most; and how many of them may be of one variable."""
LITTLE = 0.07
"""What the lesser of two changes does, when they are tried first, as a share of the most that any change does."""
BLOCK = 256
"""Rows looked at a time."""


class Turn(NamedTuple):
    """What is suggested in place of the model's row: a single change of this row, then two changes at once.

    tried   the keys of all evaluated rows: none of them comes again
    """

    row: Ints
    tried: Set[bytes]


class Stall:
    """Whether the search has stalled, and what is suggested then.

    Once the model expects `doubt` improvements that did not come, two of three suggestions are changes of the row where
    improvements ended.
    """

    def __init__(self, space: RowSpace, settings: Settings, observations: Observations, posterior: Posterior) -> None:
        self._settings, self._posterior, self._evaluated = settings, posterior, len(observations.values)
        self._listed = space.cardinality <= settings.exhaustive

    def turn(self, pending: int) -> Turn | None:
        """What is suggested now, with so many rows pending; None: what the model suggests."""
        return self._doubted if (self._evaluated + pending) % CYCLE else None

    @cached_property
    def _doubted(self) -> Turn | None:
        """Changes of the row where improvements ended, if the model expects `doubt` improvements that did not come."""
        data, doubt = self._posterior.view.data, self._settings.doubt
        last = last_improvement(data.y)
        since = len(data.y) - 1 - last
        if doubt == 0 or self._listed or since <= doubt:  # so few cannot be expected to hold so many
            return None
        if expected(self._posterior.model, self._posterior.seen, data.y, last) < max(doubt, RATE * since):
            return None
        return Turn(np.asarray(data.X[last]), set(row_keys(data.X)))


def last_improvement(y: Floats) -> int:
    """Index of the last value that was better, by what is worth the name, than the last one before it that was so.

    Many small steps count once together they are worth it.
    """
    worth, last = _worth(y), 0
    for i in np.flatnonzero(y == np.minimum.accumulate(y)):
        if y[i] < y[last] - worth:
            last = int(i)
    return last


def expected(model: Ensemble, seen: Ints, y: Floats, last: int) -> float:
    """How many of the values after `last` the model expects to be improvements on y[last], each given all others.

    seen: (n',) which of y each of the model's observations is; a value that the model has not seen does not count.
    """
    later = seen > last
    mean, variance = (moment[:, later] for moment in model.leave_one_out())
    return float(ndtr((y[last] - _worth(y) - mean) / np.sqrt(variance)).mean(axis=0).sum())


def _worth(y: Floats) -> float:
    return WORTH * float(np.median(y) - y.min())


def doubles(row: Ints, column: Ints, value: Ints, rise: Floats) -> Iterator[Ints]:
    """Rows (m, d) two changes away from a row (d,), some at a time, by what each of the two changes does alone.

    column, value, rise: (M,) of the changes. First come those whose greater change does much and whose lesser does a
    little: by the product of both, the lesser's share falling again as it grows beyond LITTLE.
    """
    most = top_of_each_owner(column, rise, ALIKE)
    most = most[np.argsort(-rise[most], kind="stable")[:CHANGES]]
    column, value = column[most], value[most]
    largest = np.max(np.abs(rise), initial=1e-300)
    size = np.maximum(rise[most] / largest, 1e-9)
    i, j = np.triu_indices(len(most), 1)  # the greater first
    apart = column[i] != column[j]
    i, j = i[apart], j[apart]
    order = np.argsort(-size[i] * np.minimum(size[j], LITTLE**2 / size[j]), kind="stable")
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
