"""Suggestions in a stall: when the model's promises have not come true, changes of the best row come instead.

Notation
    y       (n,) values as the model sees them, in the order they were told
    last    index of the last significant improvement; the evaluations after it brought none
    rise    (M,) by how much each single change of a row raises the posterior mean

The test. A model may promise improvements that never come, for example if it takes a flat floor of the function for a
slope. Each evaluation after `last` had, given all other values, some probability of being an improvement. The sum of
these probabilities is the number of improvements that the model expects where there was none. A model that is right
expects s or more of them with a probability of at most about exp(-s). The model is doubted once the sum is large.

The remedy. First all neighbours of the row of y[last] are tried, then rows that differ from it by two changes. Two
changes may be good together although each is bad alone. Neither expected improvement nor the posterior mean ever leads
to such a pair. Most often one of its changes is very bad and the other slightly bad, while most changes of a row have
next to no effect. If the floor is the optimum, these suggestions find nothing, but then there is nothing to lose.
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

SIGNIFICANT = 0.01
"""Least size of a significant improvement, as a share of the distance from the best to the median value."""
RATE = 0.1
"""Least share of the evaluations after the last improvement that the model must expect to be improvements. Without this
limit, many tiny probabilities would add up to a large number."""
CYCLE = 3
"""While the model is doubted, one of this many suggestions is the model's."""
CHANGES, ALIKE = 200, 20
"""CHANGES: number of single changes that are combined to pairs, the most effective ones. ALIKE: how many of them may be
changes of the same variable."""
LITTLE = 0.07
"""Effect of the lesser change in the pairs that are tried first, as a share of the largest effect of any change."""
BLOCK = 256
"""Pairs of changes that are checked at a time."""


class Override(NamedTuple):
    """A suggestion in place of the model's row: a neighbour of `row`, or a pair of changes if no neighbour is left.

    evaluated   the keys of all evaluated rows; none of these rows comes again
    """

    row: Ints
    evaluated: Set[bytes]


class Stall:
    """The state of the search, stalled or not, and the suggestion that follows from it.

    Once the model expects `doubt` improvements that did not come, two of three suggestions are changes of the row that
    improved last.
    """

    def __init__(self, space: RowSpace, settings: Settings, observations: Observations, posterior: Posterior) -> None:
        self._settings, self._posterior, self._evaluated = settings, posterior, len(observations.values)
        self._enumerable = space.cardinality <= settings.exhaustive

    def override(self, pending: int) -> Override | None:
        """The override for the next suggestion, with `pending` rows pending; None: the model's row is suggested."""
        return self._doubt_override if (self._evaluated + pending) % CYCLE else None

    @cached_property
    def _doubt_override(self) -> Override | None:
        """Changes of the row of the last improvement, if the model expects `doubt` improvements that did not come."""
        data, doubt = self._posterior.view.data, self._settings.doubt
        last = last_improvement(data.y)
        since = len(data.y) - 1 - last
        if doubt == 0 or self._enumerable or since <= doubt:  # the expected number cannot exceed `since`
            return None
        missed = expected_improvements(self._posterior.model, self._posterior.indices, data.y, last)
        if missed < max(doubt, RATE * since):
            return None
        return Override(np.asarray(data.X[last]), set(row_keys(data.X)))


def last_improvement(y: Floats) -> int:
    """Index of the last significant improvement: the last record that beat the one before it by enough.

    Enough is `_least_improvement`. Many small steps count as one improvement once their sum is significant.
    """
    least, last = _least_improvement(y), 0
    for i in np.flatnonzero(y == np.minimum.accumulate(y)):
        if y[i] < y[last] - least:
            last = int(i)
    return last


def expected_improvements(model: Ensemble, indices: Ints, y: Floats, last: int) -> float:
    """Number of values after `last` that the model expects to be improvements on y[last], each given all others.

    indices: (n',) the index in y of each of the model's observations. Values that the model was not given do not count.
    """
    later = indices > last
    mean, variance = (moment[:, later] for moment in model.leave_one_out())
    return float(ndtr((y[last] - _least_improvement(y) - mean) / np.sqrt(variance)).mean(axis=0).sum())


def _least_improvement(y: Floats) -> float:
    return SIGNIFICANT * float(np.median(y) - y.min())


def double_changes(row: Ints, column: Ints, value: Ints, rise: Floats) -> Iterator[Ints]:
    """Rows (m, d) two changes away from a row (d,), at most BLOCK at a time, ordered by the effects of the two changes.

    column, value, rise: (M,) of the single changes. Pairs of a large effect and a small one come first: the order is by
    the product of both effects, where a lesser effect e above LITTLE counts as LITTLE**2 / e.
    """
    most = top_of_each_owner(column, rise, ALIKE)
    most = most[np.argsort(-rise[most], kind="stable")[:CHANGES]]
    column, value = column[most], value[most]
    largest = np.max(np.abs(rise), initial=1e-300)
    size = np.maximum(rise[most] / largest, 1e-9)
    i, j = np.triu_indices(len(most), 1)  # i has the greater effect
    apart = column[i] != column[j]
    i, j = i[apart], j[apart]
    order = np.argsort(-size[i] * np.minimum(size[j], LITTLE**2 / size[j]), kind="stable")
    for start in range(0, len(order), BLOCK):
        some = order[start : start + BLOCK]
        rows, at = np.repeat(row[None], len(some), axis=0), np.arange(len(some))
        for change in (i[some], j[some]):
            rows[at, column[change]] = value[change]
        yield rows


def first_permitted(blocks: Iterator[Ints], permitted: Callable[[Ints], Bools]) -> Ints | None:
    """The first permitted row; None if there is none."""
    for rows in blocks:
        found = np.flatnonzero(permitted(rows))
        if len(found):
            return np.asarray(rows[found[0]])
    return None
