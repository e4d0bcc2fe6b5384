"""The search against brute force: tables of random scores over small spaces, with random bounds above them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from carbo.acquisition import search
from carbo.acquisition.search import Domain, Found
from carbo.numerics.types import Floats, Ints


class Landscape:
    """A random score for every vertex of a grid of complete graphs; bounds exceed scores by a random slack."""

    def __init__(self, seed: int, sizes: tuple[int, ...] = (3, 4, 2, 3), slack: float = 1.0) -> None:
        self.rng, self.sizes, self.slack = np.random.default_rng(seed), sizes, slack
        self.rows = np.array(list(itertools.product(*map(range, sizes))), dtype=np.intp)
        self.table = self.rng.normal(size=sizes)
        self.forbidden = np.zeros(sizes, dtype=bool)
        self.scored: list[tuple[int, ...]] = []

    def forbid(self, share: float) -> Landscape:
        self.forbidden = self.rng.random(self.sizes) < share
        return self

    def at(self, rows: Ints) -> Floats:
        return np.asarray(self.table[tuple(rows.T)])

    def score(self, rows: Ints) -> Floats:
        self.scored += map(tuple, rows.tolist())
        return self.at(rows)

    def rough(self, rows: Ints) -> Floats:
        return self.at(rows)

    def neighbour_scores(self, parents: Ints, rows: Ints, owner: Ints) -> Near:
        differ = np.count_nonzero(rows != parents[owner], axis=1)
        assert np.all(differ == 1)
        loose = self.at(rows) + self.slack * self.rng.exponential(size=len(rows))
        tight = self.at(rows) + (loose - self.at(rows)) * self.rng.random(len(rows))
        return Near(self, rows, loose, tight)

    def neighbours(self, rows: Ints) -> tuple[Ints, Ints]:
        out, owner = [], []
        for v, row in enumerate(rows):
            for i, k in enumerate(self.sizes):
                for value in set(range(k)) - {int(row[i])}:
                    out.append([*row[:i], value, *row[i + 1 :]])
                    owner.append(v)
        return np.array(out, dtype=np.intp).reshape(-1, len(self.sizes)), np.array(owner, dtype=np.intp)

    def permitted(self, rows: Ints) -> NDArray[np.bool_]:
        return np.asarray(~self.forbidden[tuple(rows.T)])

    @property
    def domain(self) -> Domain:
        return Domain(self.neighbours, self.permitted)

    def allowed(self) -> Ints:
        return np.asarray(self.rows[self.permitted(self.rows)])

    def best_neighbour(self, row: Ints) -> tuple[Ints, float]:
        """The best permitted neighbour by brute force, or the row itself if no neighbour is better."""
        rows, _ = self.neighbours(row[None])
        rows = rows[self.permitted(rows)]
        if not len(rows) or self.at(rows).max() <= self.at(row[None])[0]:
            return row, float(self.at(row[None])[0])
        return rows[np.argmax(self.at(rows))], float(self.at(rows).max())

    def summit(self, row: Ints) -> tuple[int, ...]:
        """The end of greedy ascent from the row."""
        while True:
            up, _ = self.best_neighbour(row)
            if np.array_equal(up, row):
                return tuple(row.tolist())
            row = up


class Near(NamedTuple):
    of: Landscape
    rows: Ints
    loose: Floats
    tight: Floats

    def bounds(self) -> Floats:
        return self.loose.copy()

    @property
    def tighter_bounds(self) -> list[Callable[[Ints], Floats]]:
        return [self.tight.__getitem__]

    def score(self, index: Ints) -> Floats:
        return self.of.score(self.rows[index])


def found(land: Landscape, rows: Ints) -> Found:
    return Found(rows, land.at(rows))


def as_set(rows: Ints) -> set[tuple[int, ...]]:
    return set(map(tuple, rows.tolist()))


# -- choosing starts -------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), count=st.integers(1, 12), share=st.sampled_from([0.0, 0.3, 0.8]))
def test_select_returns_exactly_the_best_of_the_list(seed: int, count: int, share: float) -> None:
    land = Landscape(seed).forbid(share)
    rng = np.random.default_rng(seed)
    listed = land.rows[rng.integers(0, len(land.rows), 400)]  # with repeats
    bounds = land.at(listed) + rng.exponential(size=400) * rng.choice([0.0, 0.1, 3.0])
    got = search.select(land, land.domain, lambda index: listed[index], bounds, count)
    expected = sorted(as_set(listed[land.permitted(listed)]), key=lambda r: -land.table[r])[:count]
    assert list(map(tuple, got.rows.tolist())) == expected
    np.testing.assert_array_equal(got.scores, [land.table[r] for r in expected])


def test_select_leaves_most_of_a_list_unscored_when_bounds_are_tight() -> None:
    land, seen = Landscape(0, (10, 10, 10)), list[int]()

    def rows(index: Ints) -> Ints:
        seen.extend(index.tolist())
        return np.asarray(land.rows[index])

    bounds = land.at(land.rows) + 0.01
    got = search.select(land, land.domain, rows, bounds, 5)
    assert len(seen) < 200
    np.testing.assert_allclose(got.scores, np.sort(land.table.ravel())[::-1][:5])


def test_select_over_a_whole_space_is_the_exhaustive_argmax() -> None:
    for seed in range(20):
        land = Landscape(seed).forbid(0.2)
        got = search.select(land, land.domain, land.rows.__getitem__, np.full(len(land.rows), np.inf), 1)
        allowed = land.allowed()
        np.testing.assert_array_equal(got.rows[0], allowed[np.argmax(land.at(allowed))])
        assert len(got.scores) == 1


def test_select_finds_nothing_where_nothing_is_permitted() -> None:
    land = Landscape(0).forbid(1.1)
    got = search.select(land, land.domain, lambda i: land.rows[i], np.full(len(land.rows), np.inf), 3)
    assert got.rows.shape == (0, 4)
    assert len(got.scores) == 0


def test_select_survives_scores_of_minus_infinity() -> None:
    land = Landscape(0)
    land.table[1:] = -np.inf
    got = search.select(land, land.domain, lambda i: land.rows[i], np.full(len(land.rows), np.inf), 4)
    np.testing.assert_allclose(got.scores, np.sort(land.table.ravel())[::-1][:4])


# -- climbing --------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), slack=st.sampled_from([0.0, 0.3, 5.0]), share=st.sampled_from([0.0, 0.4]))
def test_a_step_goes_to_the_best_permitted_neighbour_whatever_the_bounds(seed: int, slack: float, share: float) -> None:
    land = Landscape(seed, slack=slack).forbid(share)
    starts = land.rows[land.rng.permutation(len(land.rows))[:7]]
    moved = search.step(land, land.domain, found(land, starts))
    for start, row, score in zip(starts, moved.rows, moved.scores, strict=True):
        expected, value = land.best_neighbour(start)
        np.testing.assert_array_equal(row, expected)
        assert score == value


def test_a_step_scores_only_neighbours_whose_bound_demands_it() -> None:
    land = Landscape(0, (9, 9, 9), slack=1e-6)
    row = land.rows[[100]]
    search.step(land, land.domain, found(land, row))
    assert len(land.scored) <= 3


def test_a_step_leaves_its_arguments_alone() -> None:
    land = Landscape(1)
    starts = found(land, land.rows[:5].copy())
    search.step(land, land.domain, starts)
    np.testing.assert_array_equal(starts.rows, land.rows[:5])
    np.testing.assert_array_equal(starts.scores, land.at(land.rows[:5]))


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.4]))
def test_climbing_ends_where_greedy_ascent_ends_from_every_start(seed: int, share: float) -> None:
    land = Landscape(seed).forbid(share)
    starts = land.allowed()[land.rng.permutation(len(land.allowed()))[:8]]
    got = search.climb(land, land.domain, found(land, starts))
    assert as_set(got.rows) == {land.summit(s) for s in starts}
    np.testing.assert_array_equal(got.scores, land.at(got.rows))
    assert np.all(np.diff(got.scores) <= 0)
    assert len(as_set(got.rows)) == len(got.rows)


def test_climbing_from_everywhere_finds_every_local_optimum_and_so_the_best_row() -> None:
    for seed in range(5):
        land = Landscape(seed).forbid(0.2)
        allowed = land.allowed()
        got = search.climb(land, land.domain, found(land, allowed))
        optima = {tuple(r.tolist()) for r in allowed if np.array_equal(land.best_neighbour(r)[0], r)}
        assert as_set(got.rows) == optima
        np.testing.assert_array_equal(got.rows[0], allowed[np.argmax(land.at(allowed))])


def test_climbing_a_plateau_stops_at_once() -> None:
    land = Landscape(0)
    land.table[:] = 1.0
    got = search.climb(land, land.domain, found(land, land.rows[[5]]))
    np.testing.assert_array_equal(got.rows, land.rows[[5]])


def test_climbing_from_nowhere_finds_nothing() -> None:
    land = Landscape(0)
    assert len(search.climb(land, land.domain, found(land, land.rows[:0])).rows) == 0


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.3, 0.8]), slack=st.sampled_from([0.0, 1.0, 50.0]))
def test_a_hasty_climber_never_goes_down_and_ends_where_no_neighbour_is_better(
    seed: int, share: float, slack: float
) -> None:
    land = Landscape(seed, slack=slack).forbid(share)
    allowed = land.allowed()
    got = search.climb(land, land.domain, found(land, allowed[::3]), hasty=True)
    assert np.all(land.permitted(got.rows))
    np.testing.assert_array_equal(got.scores, land.at(got.rows))
    for row in got.rows:
        np.testing.assert_array_equal(land.best_neighbour(row)[0], row)
    if len(got.rows):
        assert got.scores[0] >= land.at(allowed[::3]).max()


def test_where_bounds_say_nothing_a_hasty_climber_scores_far_fewer_rows() -> None:
    counts = {}
    for hasty in (False, True):
        land = Landscape(0, sizes=(2,) * 11, slack=1e6)
        land.table = (land.rows @ np.linspace(1.0, 2.0, 11)).reshape(land.sizes)  # a long way up
        got = search.climb(land, land.domain, found(land, land.rows[:1]), hasty)
        np.testing.assert_array_equal(got.rows, np.ones((1, 11)))
        counts[hasty] = len(land.scored)
    assert counts[False] == 11 * 12  # every neighbour, at every step
    assert counts[True] <= 0.6 * counts[False]


def test_a_selection_from_the_highest_bounds_looks_at_no_others() -> None:
    land = Landscape(1, slack=0.1)
    bounds = land.at(land.rows) + 0.1
    top = np.argsort(-bounds)[:10]
    got = search.select(land, land.domain, lambda index: land.rows[index], bounds, 20, most=10)
    assert as_set(got.rows) == as_set(land.rows[top])
    whole = search.select(land, land.domain, lambda index: land.rows[index], bounds, 20)
    assert len(whole.rows) == 20


# -- parts -----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), count=st.integers(1, 5))
def test_the_highest_scores_of_each_owner(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    owner, scores = rng.integers(0, 5, 30), rng.normal(size=30)
    got = set(search.top_of_each_owner(owner, scores, count).tolist())
    expected = set()
    for v in range(5):
        mine = np.flatnonzero(owner == v)
        expected |= set(mine[np.argsort(-scores[mine])][:count].tolist())
    assert got == expected


def test_best_of_sorts_and_drops_repeats() -> None:
    rows = np.array([[0, 1], [2, 2], [0, 1], [1, 1]])
    got = search.best_of(Found(rows, np.array([1.0, 3.0, 1.0, 2.0])), 3)
    np.testing.assert_array_equal(got.rows, [[2, 2], [1, 1], [0, 1]])
    np.testing.assert_array_equal(got.scores, [3.0, 2.0, 1.0])
    assert len(search.best_of(got, 2).rows) == 2
