"""Subsets of many observations that a model uses, the samples it averages over, and the memory it takes."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import carbo
from carbo import Binary, Categorical, Integer, Optimizer, Space
from carbo.inference import chain
from carbo.inference.data import Data
from carbo.kernels.spectra import spectra_of
from carbo.numerics.types import Floats, Ints
from carbo.surrogate import ensemble
from carbo.surrogate.subset import ELITE, PLENTY, choose_subset, thin_samples
from tests.presets import CHEAP
from tests.spaces import any_kinds, space_of

seeds = st.integers(0, 10**6)
LIMITS: dict[str, Any] = {"learn_from": 12, "predict_from": 30}
TEN = Space({f"x{i}": Binary() for i in range(10)})


def observed(seed: int, n: int) -> tuple[Space, Ints, Floats]:
    """A space of any kinds, with rows and values that have some ties and failures."""
    rng = np.random.default_rng(seed)
    space = space_of(rng, any_kinds(rng, 5))
    values = np.round(rng.normal(size=n), 1)
    values[rng.random(n) < 0.2] = np.nan
    return space, space.random_rows(rng, n), values


# -- which observations ----------------------------------------------------------------------------------------------


@given(seed=seeds, n=st.integers(1, 60), most=st.integers(1, 60))
@settings(max_examples=100)
def test_as_many_as_there_is_room_for_and_the_best_is_among_them(seed: int, n: int, most: int) -> None:
    space, X, values = observed(seed, n)
    kept = choose_subset(spectra_of(space.rows.graphs), X, values, most)
    assert len(kept) == min(n, most)
    assert np.all(np.diff(kept) > 0)
    if np.isfinite(values).any():
        assert int(np.nanargmin(values)) in kept
    np.testing.assert_array_equal(kept, choose_subset(spectra_of(space.rows.graphs), X, values, most))


@given(seed=seeds, n=st.integers(1, 60))
@settings(max_examples=30)
def test_where_there_is_room_for_all_all_are_kept(seed: int, n: int) -> None:
    space, X, values = observed(seed, n)
    for most in (n, n + 1, None):
        np.testing.assert_array_equal(choose_subset(spectra_of(space.rows.graphs), X, values, most), np.arange(n))


@given(seed=seeds, small=st.integers(1, 40), more=st.integers(0, 20))
@settings(max_examples=50)
def test_more_room_keeps_what_less_room_kept(seed: int, small: int, more: int) -> None:
    space, X, values = observed(seed, 80)
    less, all_of_it = (
        set(choose_subset(spectra_of(space.rows.graphs), X, values, most).tolist()) for most in (small, small + more)
    )
    assert less <= all_of_it


@given(seed=seeds, n=st.integers(30, 80))
@settings(max_examples=50)
def test_one_more_bad_observation_displaces_at_most_one(seed: int, n: int) -> None:
    """A chain can go on from its position, because the posterior changes little at every tell."""
    space, X, values = observed(seed, n + 1)
    values[-1] = 10.0
    before, after = (
        set(choose_subset(spectra_of(space.rows.graphs), X[:k], values[:k], 20).tolist()) for k in (n, n + 1)
    )
    assert len(before - after) <= (1 if np.isfinite(values[:-1]).sum() >= ELITE else 20)


def written_out(space: Space, row: Ints, other: Ints) -> float:
    """Number of variables that differ; a path or a cycle counts the share of its largest distance."""
    total = 0.0
    for i, variable in enumerate(space.variables.values()):
        a, b, k = int(row[i]), int(other[i]), variable.size
        if variable.graph.kind == "path":
            total += abs(a - b) / (k - 1)
        elif variable.graph.kind == "cycle":
            total += min((a - b) % k, (b - a) % k) / (k // 2)
        else:
            total += a != b
    return total


@given(seed=seeds)
@settings(max_examples=50)
def test_half_of_them_are_the_nearest_to_the_best(seed: int) -> None:
    space, X, values = observed(seed, 50)
    kept = choose_subset(spectra_of(space.rows.graphs), X, values, 20)
    elite = np.argsort(values, kind="stable")[:ELITE]
    distances = np.array([min(written_out(space, row, X[e]) for e in elite) for row in X])
    near = np.sort(distances)[9]  # the distance of the tenth nearest
    assert set(np.flatnonzero(distances < near - 1e-9)) <= set(kept)


def test_the_other_half_has_nothing_to_do_with_values_or_rows() -> None:
    """Its share of far and bad observations is theirs among all: the false-alarm rate is below 1e-6."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((200, 10)), np.ones((600, 10))]).astype(np.intp)  # the best, and two kinds of others
    X[400:, 0] = 0
    values = np.concatenate([rng.normal(-9.0, 1.0, 200), rng.normal(size=600)])
    kept = choose_subset(spectra_of(TEN.rows.graphs), X, values, 400)
    random = kept[kept >= 200]  # the nearest are the 200 zeros
    assert len(random) == 200
    far = int(np.count_nonzero(random < 400))  # hypergeometric: 200 of 600, of which 200 are far
    assert abs(far - 200 / 3) <= 5.0 * np.sqrt(200 * (1 / 3) * (2 / 3) * (400 / 599))


# -- how many samples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "kept"), [(1, 10), (PLENTY, 10), (2 * PLENTY, 3), (3 * PLENTY, 2), (10**6, 1)])
def test_samples_grow_fewer_beyond_plenty_and_the_last_one_stays(n: int, kept: int) -> None:
    samples = thin_samples(list(range(10)), n)
    assert len(samples) == kept
    assert samples == sorted(set(samples))
    assert samples[-1] == 9


# -- the optimiser ---------------------------------------------------------------------------------------------------


def value(row: Ints) -> float:
    weights = np.sin(np.arange(1, 11))
    return float(row @ weights + 2.0 * row[0] * row[1])


def told(n: int, failures: bool = False, **changes: Any) -> Optimizer:
    rng = np.random.default_rng(0)
    rows = rng.permutation(TEN.all_rows())[:n]
    optimizer = Optimizer(TEN, seed=0, settings=CHEAP | {"exhaustive": 0} | changes)
    values = [None if failures and row[2] == row[3] == 1 else value(row) for row in rows]
    optimizer.tell(TEN.decode_many(rows), values)
    return optimizer


class Seen:
    """The sizes of the data that chains and ensembles get."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.learned: list[Data] = []
        self.shown: list[Data] = []
        draw, build = chain.draw, ensemble.build

        def watched_draw(rng: Any, start: Any, model: Any, data: Data, sampling: Any) -> Any:
            self.learned.append(data)
            return draw(rng, start, model, data, sampling)

        def watched_build(kernel: Any, hypers: Any, data: Data) -> Any:
            self.shown.append(data)
            return build(kernel, hypers, data)

        monkeypatch.setattr(chain, "draw", watched_draw)
        monkeypatch.setattr("carbo.surrogate.surrogate.build", watched_build)


@pytest.mark.parametrize("failures", [False, True])
def test_beyond_the_limits_models_are_given_no_more_than_they_allow(
    failures: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizer, seen = told(60, failures, **LIMITS), Seen(monkeypatch)
    optimizer.ask()
    models = 1 + failures  # one of the values, one of failure
    assert [len(data.y) for data in seen.learned] == [12] * models
    assert [len(data.y) for data in seen.shown] == [30] * models
    assert optimizer.best is not None
    best = TEN.encode(optimizer.best.params)
    for data in (*seen.learned, *seen.shown):
        assert any(np.array_equal(row, best) for row in data.X)
    if failures:
        assert 0 < np.count_nonzero(seen.shown[1].y > 0) < 30  # failures are 1, standardised, and so above 0


@pytest.mark.parametrize("failures", [False, True])
def test_up_to_the_limits_nothing_changes(failures: bool) -> None:
    limited, unlimited = (told(20, failures, learn_from=most, predict_from=most) for most in (23, None))
    for _ in range(3):
        one, two = (optimizer.ask() for optimizer in (limited, unlimited))
        assert one == two
        for optimizer in (limited, unlimited):
            optimizer.tell(one, value(TEN.encode(one)))
    states = [optimizer.state() for optimizer in (limited, unlimited)]
    for state in states:
        del state["settings"]
    assert states[0] == states[1]


@pytest.mark.parametrize("failures", [False, True])
def test_beyond_the_limits_a_restored_optimiser_makes_the_same_suggestions(failures: bool) -> None:
    optimizer = told(60, failures, **LIMITS)
    first = optimizer.ask()
    restored = Optimizer.from_state(TEN, json.loads(json.dumps(optimizer.state())))
    assert restored.settings == optimizer.settings
    for each in (optimizer, restored):
        each.tell(first, value(TEN.encode(first)))
    assert [optimizer.ask(), *optimizer.ask(3)] == [restored.ask(), *restored.ask(3)]


def test_beyond_the_limits_all_doors_answer() -> None:
    optimizer = told(60, **LIMITS)
    asked = optimizer.ask(3)  # pending points are fantasised
    seen, _ = optimizer.history()
    assert len({tuple(p.values()) for p in (*asked, *seen)}) == 63
    means, sds = optimizer.predict(seen)
    assert np.all(np.isfinite(means))
    assert np.all(sds >= 0)
    assert set(optimizer.relevance().variables) == set(TEN.names)
    left_out, _ = optimizer.leave_one_out()
    assert left_out.shape == (60,)
    assert np.count_nonzero(np.isfinite(left_out)) == 30


def test_predictions_from_more_observations_than_were_learned_from_are_the_better() -> None:
    rows = TEN.all_rows()
    truth = np.array([value(row) for row in rows])

    def error(most: int) -> float:
        means, _ = told(400, learn_from=40, predict_from=most).predict(TEN.decode_many(rows))
        return float(np.sqrt(np.mean((means - truth) ** 2)))

    assert error(400) < 0.5 * error(40)


def test_the_paper_preset_has_no_limits() -> None:
    assert (carbo.PAPER.learn_from, carbo.PAPER.predict_from) == (None, None)


@pytest.mark.parametrize("name", ["learn_from", "predict_from"])
@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "all"])
def test_a_limit_is_a_whole_number_or_none(name: str, wrong: Any) -> None:
    with pytest.raises(carbo.CarboError, match=f"setting '{name}': expected a whole number >= 1, got"):
        Optimizer(TEN, settings={name: wrong})


# -- bookkeeping -----------------------------------------------------------------------------------------------------


def held(n: int) -> tuple[int, int]:
    """Bytes held after n points were told, and the largest number held while all cheap methods were called."""
    space = Space({f"x{i}": Categorical(range(5)) for i in range(20)})
    rng = np.random.default_rng(0)
    points, values = space.decode_many(space.random_rows(rng, n)), rng.normal(size=n).tolist()
    optimizer = Optimizer(space, seed=0, settings={"initial": 10**6})
    tracemalloc.start()
    for params, v in zip(points, values, strict=True):
        optimizer.tell(params, v)
    kept, _ = tracemalloc.get_traced_memory()
    optimizer.state()
    optimizer.history()
    optimizer.ask(3)  # no model yet: random points that are none of those told
    assert optimizer.best is not None
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept, most


def test_memory_of_bookkeeping_is_linear_in_the_points_told() -> None:
    (kept, most), (kept_twice, most_twice) = held(2_000), held(4_000)
    assert kept_twice <= 2.2 * kept
    assert most_twice <= 2.2 * most
    assert kept <= 2_000 * 1_000  # a row of 20 integers and what Python adds


def test_a_callback_does_not_make_a_run_decode_its_past_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space({"a": Integer(0, 999)})
    decoded, decode = [0], space.decode

    def counted(row: Any) -> Any:
        decoded[0] += 1
        return decode(row)

    monkeypatch.setattr(space, "decode", counted)
    lengths: list[int] = []
    carbo.minimize(lambda p: float(p["a"]), space, 60, seed=0, settings={"initial": 100},
                   callback=lambda r: lengths.append(len(r.x_iters)))  # fmt: skip
    assert lengths == list(range(1, 61))
    assert decoded[0] <= 4 * 60
