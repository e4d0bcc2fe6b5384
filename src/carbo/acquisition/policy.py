"""One suggestion: the row where the acquisition is largest, never one that is excluded.

posterior samples -> Ensemble -> acquisition -> starts -> local search -> row
"""

from __future__ import annotations

from collections.abc import Callable, Set
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from carbo.acquisition import functions as acq
from carbo.acquisition import search
from carbo.acquisition.knowledge_gradient import log_knowledge_gradient
from carbo.acquisition.search import Found
from carbo.acquisition.stall import Turn, doubles, first_fresh
from carbo.errors import SettingsError, SpaceExhausted
from carbo.numerics.types import Bools, Floats, Ints
from carbo.settings import Settings
from carbo.space.rows import RowSet, row_keys
from carbo.space.space import ENUMERABLE, Space
from carbo.surrogate.ensemble import Ensemble, Recombined
from carbo.surrogate.subset import PLENTY

HALVES = 50
"""Half rows on each side of a block of recombined random starts."""
SCORED = 25
"""Starts scored for each that climbs, the most promising first, where the search is hasty."""
FINITE = 256
"""Rows among which the acquisitions that need a joint posterior choose, and minima are drawn."""
EVALUATED = 32
"""Best evaluated rows among which the knowledge gradient seeks the optimum."""
LIKELY = float(np.log(0.5))
"""Least log probability of success of a row that is suggested in its turn, whatever the acquisition is elsewhere."""
WITHIN_TWO = 100_000
"""Rows looked at where random ones that are permitted have all been evaluated."""
VALLEYS, AROUND = 20, 1_200
"""Random starts on the way down to where the mean is low; how many neighbours they may have in all before there are
fewer of them, down to a fifth.
"""


class Question(NamedTuple):
    """What a suggestion depends on. `excluded` holds row keys; `incumbent` is the best evaluated row.

    turn: what to suggest in place of the row of largest acquisition, if there is such a row.
    """

    space: Space
    settings: Settings
    ensemble: Ensemble
    excluded: Set[bytes]
    incumbent: Ints
    penalty: Callable[[Ints], Floats] | None
    turn: Turn | None = None

    def permitted(self, rows: Ints, excluded: RowSet | None = None) -> Bools:
        fresh = ~(excluded or RowSet(self.excluded, self.space.sizes)).contains(rows)
        if self.space.constraint is not None and fresh.any():
            fresh[fresh] = self.space.feasible(rows[fresh])
        return fresh

    @property
    def hasty(self) -> bool:
        """Whether scores are so dear that the search has to make do with fewer: see `search.step`."""
        return self.settings.predict_from is not None and len(self.ensemble.X) > PLENTY

    @property
    def domain(self) -> search.Domain:
        excluded = RowSet(self.excluded, self.space.sizes)
        return search.Domain(
            lambda rows: self.space.neighbours_many(rows, self.settings.leaps),
            lambda rows: self.permitted(rows, excluded),
        )


def propose(rng: np.random.Generator, question: Question) -> Ints:
    """The next row to evaluate, (d,). Raises SpaceExhausted when no permitted row is left."""
    settings = question.settings
    small = question.space.cardinality <= settings.exhaustive
    candidates = remaining(question) if small else beside(question)
    if candidates is None and (row := twice_changed(question)) is not None:
        return row
    if settings.acquisition == "kg":
        return _most_telling(rng, question, candidates)
    if settings.acquisition == "thompson":
        return _from_finite(rng, question, candidates)
    objective = pointwise(rng, question)
    if candidates is not None:
        return np.asarray(candidates[int(np.argmax(objective.score(candidates)))])
    return np.asarray(maximise(rng, question, objective).rows[0])


def beside(question: Question) -> Ints | None:
    """The permitted neighbours where it is the turn of one of them; None where it is not, or for want."""
    if question.turn is None:
        return None
    rows, _ = question.space.neighbours_many(question.turn.row[None])
    rows = rows[_fresh(question)(rows)]
    return rows if len(rows) else None


def twice_changed(question: Question) -> Ints | None:
    """The row, two changes away, whose turn it is; None where it is not the turn of such a row, or for want."""
    if question.turn is None or question.turn.tried is None:
        return None
    row, lowest = question.turn.row, acq.Lowest(question.ensemble)
    _, column, value = question.space.moves(row[None])
    rows = np.repeat(row[None], len(column), axis=0)
    rows[np.arange(len(rows)), column] = value
    rise = lowest.score(row[None]) - lowest.score(rows)
    return first_fresh(doubles(row, column, value, rise), _fresh(question))


def _fresh(question: Question) -> Callable[[Ints], Bools]:
    """Which rows may be suggested in their turn: none that is likely to fail, and in doubt none that was evaluated."""
    assert question.turn is not None
    penalty = question.penalty
    excluded = RowSet(question.excluded | (question.turn.tried or set()), question.space.sizes)

    def fresh(rows: Ints) -> Bools:
        out = question.permitted(rows, excluded)
        if penalty is not None and out.any():
            out[out] = penalty(rows[out]) > LIKELY
        return out

    return fresh


def remaining(question: Question) -> Ints:
    """All permitted rows of a space small enough to list. Raises SpaceExhausted when there are none."""
    rows = question.space.all_rows(question.settings.exhaustive)
    rows = rows[question.permitted(rows)]
    if not len(rows):
        raise exhausted(question.space)
    return rows


def exhausted(space: Space) -> SpaceExhausted:
    return SpaceExhausted(
        f"space of {space.cardinality} combinations: looked for a permitted point not yet evaluated or pending and "
        "found none; stop here, widen the space, or allow repeats with replicate=True"
    )


def pointwise(rng: np.random.Generator, question: Question) -> acq.Pointwise:
    """The acquisition that the settings name, as a score of rows; log EI for those that need a joint posterior."""
    settings, ensemble = question.settings, question.ensemble
    best = reference(question)
    if callable(settings.acquisition):
        return acq.Pointwise(ensemble, checked(settings.acquisition), best, False, question.penalty)
    if settings.acquisition == "ucb":
        return acq.Pointwise(ensemble, acq.confidence_bound(settings.kappa), best, True, question.penalty)
    if settings.acquisition == "mes":
        minima = acq.draw_minima(rng, ensemble, _spread(rng, question), 8)
        return acq.Pointwise(ensemble, acq.log_min_value_entropy(np.minimum(minima, best[:, None])), best, False,
                             question.penalty)  # fmt: skip
    return acq.Pointwise(ensemble, acq.log_expected_improvement, best, True, question.penalty)


def checked(function: Callable[..., Any]) -> acq.Score:
    """A user's acquisition, its answers checked. Raises SettingsError for a wrong shape or NaN."""

    def score(mu: Floats, sd: Floats, best: Floats) -> Floats:
        scores = np.asarray(function(mu, sd, best), dtype=np.float64)
        if scores.shape != mu.shape[1:]:
            raise SettingsError(
                f"acquisition: expected scores of shape {mu.shape[1:]}, one a point, got {scores.shape}; "
                "average over the samples, axis 0"
            )
        if np.isnan(scores).any():
            raise SettingsError("acquisition: expected numbers, got NaN; use -inf for a point never to be chosen")
        return scores

    return score


def reference(question: Question) -> Floats:
    """(S,) the value each sample's improvement counts from."""
    ensemble = question.ensemble
    if question.settings.reference == "observed":
        return np.asarray(ensemble.values.min(axis=1))
    return np.asarray(ensemble.at_observations().min(axis=1))


def maximise(rng: np.random.Generator, question: Question, objective: acq.Pointwise) -> Found:
    """The best rows found, best first, at least one. Raises SpaceExhausted when no permitted row turns up."""
    settings, domain, hasty = question.settings, question.domain, question.hasty
    found = starts(rng, question, objective)
    if not len(found.rows):
        found = _any_left(rng, question, objective)
    if settings.search == "local":
        return search.climb(objective, domain, found, hasty)
    if settings.search == "local-or-anneal":
        half = rng.permutation(len(found.scores))
        one, two = (Found(found.rows[h], found.scores[h]) for h in (half[::2], half[1::2]))
        return _together(search.climb(objective, domain, one, hasty), search.anneal(rng, objective, domain, two))
    summits = search.climb(objective, domain, found, hasty)
    if settings.search == "local-and-anneal":
        return _together(summits, search.anneal(rng, objective, domain, found))
    return _together(summits, search.anneal(rng, objective, domain, summits))


def _together(one: Found, two: Found) -> Found:
    both = Found(np.concatenate([one.rows, two.rows]), np.append(one.scores, two.scores))
    return search.best_of(both, len(both.scores))


def starts(rng: np.random.Generator, question: Question, objective: acq.Pointwise) -> Found:
    """The best `climbers` of the random and the spray starts, with exact scores."""
    space, settings = question.space, question.settings
    spread = recombined(rng, space, settings.random_starts)
    near = spray(rng, space, question.incumbent, settings.spray_starts, settings.spray_distance)
    bounds = np.append(objective.bound_starts(spread), np.full(len(near), np.inf))

    def rows(index: Ints) -> Ints:
        far = index < len(spread)
        out = np.empty((len(index), space.dim), dtype=np.intp)
        out[far], out[~far] = spread.rows(index[far]), near[index[~far] - len(spread)]
        return out

    ranked = question.hasty and objective.rises_with_sd and space.constraint is None
    most = SCORED * settings.climbers if ranked else None
    found = search.select(objective, question.domain, rows, bounds, settings.climbers, most)
    if space.constraint is not None and len(found.rows) < settings.climbers:
        more = space.random_rows(rng, 10 * settings.climbers)
        more = more[question.permitted(more)]
        found = _together(found, Found(more, objective.score(more)))
        found = search.best_of(found, settings.climbers)
    return found


def recombined(rng: np.random.Generator, space: Space, count: int) -> Recombined:
    """At least `count` uniform random rows (the constraint is checked later, on the promising ones alone)."""
    blocks = -(-count // HALVES**2)
    left, right = (space.held(rng.integers(0, space.sizes, size=(blocks, HALVES, space.dim))) for _ in range(2))
    cut = rng.permuted(np.tile(np.arange(space.dim) < space.dim // 2, (blocks, 1)), axis=1)
    return Recombined(left, right, cut)


def spray(rng: np.random.Generator, space: Space, centre: Ints, count: int, distance: int) -> Ints:
    """`count` random rows at one to `distance` edges from the centre (supplement C)."""
    if count == 0:
        return np.empty((0, space.dim), dtype=np.intp)
    rows = np.tile(centre, (count, 1))
    steps = rng.integers(1, distance + 1, size=count)
    for k in range(distance):
        walkers = np.flatnonzero(steps > k)
        moves = space.moves(rows[walkers])
        chosen = search.leading(moves.owner, rng.random(len(moves.owner)), 1)
        rows[walkers[moves.owner[chosen]], moves.column[chosen]] = moves.value[chosen]
    return rows


def _any_left(rng: np.random.Generator, question: Question, objective: acq.Pointwise) -> Found:
    """Some permitted row where the usual starts found none: a nearly used-up or tightly constrained space."""
    row = unseen(rng, question.space, question.excluded)
    return Found(row[None], objective.score(row[None]))


def unseen(rng: np.random.Generator, space: Space, excluded: Set[bytes]) -> Ints:
    """A random feasible row that is not excluded. Raises SpaceExhausted when none turns up."""
    for count in (16, 256, 4_096):
        rows = space.random_rows(rng, count)
        for row, key in zip(rows, row_keys(rows), strict=True):
            if key not in excluded:
                return np.asarray(row)
    if space.cardinality <= ENUMERABLE:
        rows = space.all_rows(ENUMERABLE)
        fresh = [row for row, key in zip(rows, row_keys(rows), strict=True) if key not in excluded]
        if fresh:
            return np.asarray(fresh[int(rng.integers(len(fresh)))])
    elif space.constraint is not None and (row := _within_two(space, rows, excluded)) is not None:
        return row
    raise exhausted(space)


def _within_two(space: Space, rows: Ints, excluded: Set[bytes]) -> Ints | None:
    """The first feasible row, not excluded, within two changes of one of the rows, of WITHIN_TWO looked at; or None.

    Where a constraint permits few of very many combinations, random rows may miss the last ones.
    """
    barred, left = RowSet(excluded, space.sizes), WITHIN_TWO
    for centre in np.unique(rows, axis=0):
        _, column, value = space.moves(centre[None])
        for block in chain([space.neighbours(centre)], doubles(centre, column, value, np.zeros(len(column)))):
            if left <= 0:
                return None
            fresh = block[~barred.contains(block)]
            found = fresh[space.feasible(fresh)]
            if len(found):
                return np.asarray(found[0])
            left -= len(block)
    return None


def _spread(rng: np.random.Generator, question: Question) -> Ints:
    """A varied set of rows for joint draws: near the incumbent, the best evaluated, and random ones."""
    space = question.space
    near = spray(rng, space, question.incumbent, FINITE // 2, question.settings.spray_distance)
    far = space.random_rows(rng, FINITE // 2)
    return np.unique(np.concatenate([near, far]), axis=0)


def _most_telling(rng: np.random.Generator, question: Question, candidates: Ints | None) -> Ints:
    """The row of largest knowledge gradient: of the candidates, or of the summits of log EI and the valleys of a mean.

    The optimum is sought among these rows and the best evaluated ones. Where evaluations fail, a row's own chance of
    success counts, not that of the rows about which it tells something.
    """
    ensemble, log_ei, told = question.ensemble, pointwise(rng, question), evaluated(question.ensemble)
    if candidates is None:
        summits = maximise(rng, question, log_ei).rows
        near = question.space.held(told)
        candidates = np.unique(np.concatenate([summits, valleys(rng, question, near), near]), axis=0)
        candidates = candidates[question.permitted(candidates)]
    elif len(candidates) > FINITE:
        both = (log_ei.score(candidates), acq.Lowest(ensemble).score(candidates))
        candidates = candidates[np.unique([np.argsort(-scores, kind="stable")[: FINITE // 2] for scores in both])]
    scores = log_knowledge_gradient(ensemble, candidates, told)
    if question.penalty is not None:
        scores = scores + question.penalty(candidates)
    if not np.isfinite(scores).any():  # nothing to be learned anywhere
        scores = log_ei.score(candidates)
    return np.asarray(candidates[int(np.argmax(scores))])


def evaluated(ensemble: Ensemble) -> Ints:
    """The EVALUATED different rows of lowest mean of those evaluated (or pending), lowest first."""
    order = np.argsort(ensemble.at_observations().mean(axis=0), kind="stable")
    _, first = np.unique(ensemble.X[order], axis=0, return_index=True)
    return np.asarray(ensemble.X[order[np.sort(first)[:EVALUATED]]])


def valleys(rng: np.random.Generator, question: Question, told: Ints) -> Ints:
    """Rows where the mean under one of the samples is lower than around them: from random rows and the first of `told`.

    One sample's mean costs a fraction of all samples', and which one it is differs from suggestion to suggestion.
    """
    space, lowest = question.space, acq.Lowest(question.ensemble.only(int(rng.integers(question.ensemble.size))))
    around = len(space.neighbours_many(question.incumbent[None], question.settings.leaps)[0])
    count = min(VALLEYS, max(AROUND // max(around, 1), VALLEYS // 5))
    rows = np.concatenate([space.random_rows(rng, count), told[: VALLEYS // 2]])
    return search.climb(lowest, question.domain, Found(rows, lowest.score(rows)), question.hasty).rows


def _from_finite(rng: np.random.Generator, question: Question, candidates: Ints | None) -> Ints:
    """Of a finite set, the summits of log EI among it, the row that is best in one draw of the function.

    Where evaluations have failed, success is drawn too, row by row: only rows that succeed count, or, if none does, the
    one likeliest to.
    """
    if candidates is None or len(candidates) > FINITE:
        log_ei = pointwise(rng, question)
        if candidates is None:
            summits, spread = maximise(rng, question, log_ei).rows, _spread(rng, question)
            candidates = np.unique(np.concatenate([summits, spread[question.permitted(spread)]]), axis=0)
        else:
            candidates = candidates[np.argsort(-log_ei.score(candidates), kind="stable")[:FINITE]]
    scores = acq.thompson(rng, question.ensemble, candidates)
    if question.penalty is not None:
        log_success = question.penalty(candidates)
        succeeds = rng.random(len(candidates)) < np.exp(log_success)
        scores = np.where(succeeds, scores, -np.inf) if succeeds.any() else log_success
    return np.asarray(candidates[int(np.argmax(scores))])
