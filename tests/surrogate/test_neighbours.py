"""Recombined rows and neighbours have the means, sds and covariances that are computed from scratch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbo import Binary, Categorical, Integer, Space
from carbo.inference.data import Data, Hyper
from carbo.kernels.base import Kernel, Scales
from carbo.kernels.cross import cross
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import spectra_of
from carbo.numerics.types import Floats, Ints
from carbo.surrogate import ensemble
from carbo.surrogate.ensemble import FEW, Ensemble, Recombined, build
from carbo.surrogate.neighbours import NeighbourPredictions, NeighbourPredictor
from tests.models import prior_variances
from tests.spaces import any_kinds, space_of, wide_above
from tests.surrogate import test_ensemble

KERNELS = ("product", "orders", "adjacent")
SAMPLES = 3
EXACT = 1e-10
"""Allowed relative difference between two computations of the same numbers."""


class Case(NamedTuple):
    """A model of random data over a space, with parameters drawn at random."""

    space: Space
    model: Ensemble
    data: Data

    @property
    def neighbours(self) -> NeighbourPredictor:
        return NeighbourPredictor(self.model)


def kernel_of(name: str, space: Space, highest: int = 2) -> Kernel:
    spectra = spectra_of(space.rows.graphs)
    if name == "adjacent":
        return Orders(spectra, highest, True)
    return Product(spectra) if name == "product" else Orders(spectra, highest)


def random_hyper(rng: np.random.Generator, kernel: Kernel) -> Hyper:
    d = len(kernel.spectra)
    scales = Scales(rng.normal(-0.5, 0.8, d), rng.normal(0.0, 0.7, d))
    return Hyper(float(rng.normal()), float(rng.uniform(-4.0, -1.0)), rng.normal(0.0, 0.5, kernel.size), scales)


def case_of(rng: np.random.Generator, space: Space, kernel: Kernel, n: int) -> Case:
    data = Data(space.random_rows(rng, n), rng.normal(size=n))
    return Case(space, build(kernel, [random_hyper(rng, kernel) for _ in range(SAMPLES)], data), data)


def any_case(seed: int, name: str) -> Case:
    """1 to 5 variables of any kind, orders up to 5, fewer or more observations than FEW, fantasies in some cases."""
    rng = np.random.default_rng(seed)
    space = space_of(rng, any_kinds(rng, 5))
    c = case_of(rng, space, kernel_of(name, space, int(rng.integers(1, 6))), int(rng.integers(1, 2 * FEW)))
    if rng.random() < 0.3:
        c = c._replace(model=c.model.extend(rng, space.random_rows(rng, 3)))
    return c


def recombined(rng: np.random.Generator, space: Space, blocks: int = 2, pool: int = 5) -> Recombined:
    left, right = (rng.integers(0, space.sizes, size=(blocks, pool, space.dim)) for _ in range(2))
    return Recombined(left, right, rng.random((blocks, space.dim)) < 0.5)


def weight(c: Case, rows: Ints) -> Floats:
    """The largest sum_n |K| |alpha| of a row, (S, 1): the unit of errors of means."""
    each = np.einsum("svn,sn->sv", np.abs(c.model.covariances(rows)), np.abs(c.model.alpha))
    return np.asarray(each.max(axis=1, initial=0.0)[:, None])


seeds = st.integers(0, 10**6)
every_kernel = pytest.mark.parametrize("name", KERNELS)


def wide() -> Space:
    return Space({"a": Integer(1, 700), "b": Binary(), "c": Categorical(range(300)), "d": Categorical(["u", "v", "w"])})


# -- many random rows ------------------------------------------------------------------------------------------------


def assert_spread(c: Case, starts: Recombined) -> None:
    """Means are those of the rows written out; bounds lie between the exact sd and the prior's."""
    rows = starts.rows(np.arange(len(starts)))
    mu, bound = c.neighbours.bound_recombined(starts)
    expected, sd = c.model.predict(rows)
    prior = c.model.prior_variance(rows)
    assert mu.shape == bound.shape == expected.shape
    assert np.all(np.abs(mu - expected) <= EXACT * (1.0 + weight(c, rows)))
    assert np.all(bound**2 >= sd**2 - 1e-9 * prior)
    assert np.all(bound**2 <= prior * (1.0 + 1e-9))


@every_kernel
@given(seed=seeds)
@settings(max_examples=25)
def test_means_of_recombined_rows_are_exact_and_spreads_are_bounded(name: str, seed: int) -> None:
    c = any_case(seed, name)
    assert_spread(c, recombined(np.random.default_rng(seed), c.space))


@pytest.mark.parametrize("name", ["product", "orders", "adjacent"])
@pytest.mark.parametrize("n", [1, FEW - 1, FEW, FEW + 1, 60])
def test_the_bound_of_recombined_rows_is_the_spread_given_the_first_few_observations(name: str, n: int) -> None:
    rng = np.random.default_rng(n)
    space = space_of(rng, ["binary", "levels", "categorical", "cycle", "binary", "binary"])
    c, starts = case_of(rng, space, kernel_of(name, space, 3), n), recombined(rng, space)
    rows = starts.rows(np.arange(len(starts)))
    _, bound = c.neighbours.bound_recombined(starts)
    given_few = c.model.sd(c.model.covariances(rows)[:, :, :FEW], c.model.prior_variance(rows))
    np.testing.assert_allclose(bound, given_few, rtol=0, atol=1e-3 if name == "product" else 1e-7)


@every_kernel
def test_halves_that_own_everything_or_nothing(name: str) -> None:
    rng = np.random.default_rng(0)
    space = space_of(rng, ["binary", "categorical", "levels"])
    c, (left, right, _) = case_of(rng, space, kernel_of(name, space), 20), recombined(rng, space, blocks=2)
    assert_spread(c, Recombined(left, right, np.array([[True] * 3, [False] * 3])))


@every_kernel
def test_more_recombined_rows_than_a_piece_holds(name: str) -> None:
    rng = np.random.default_rng(1)
    space = space_of(rng, ["binary", "categorical", "levels"])
    c = case_of(rng, space, kernel_of(name, space), 10)
    assert_spread(c, recombined(rng, space, blocks=3, pool=19))


def test_where_float32_would_not_do_the_product_kernel_takes_float64() -> None:
    """A signal 1e10 times the noise: single precision would leave nothing of means or bounds."""
    rng = np.random.default_rng(2)
    space = space_of(rng, ["binary"] * 8)
    data = Data(space.random_rows(rng, 40), rng.normal(size=40))
    h = Hyper(0.0, -20.0, np.array([4.0]), Scales(np.full(8, 0.5), np.zeros(8)))
    c = Case(space, build(kernel_of("product", space), [h], data), data)
    starts = recombined(rng, space)
    mu, bound = c.neighbours.bound_recombined(starts)
    assert mu.dtype == bound.dtype == np.float64
    rows = starts.rows(np.arange(len(starts)))
    expected, sd = c.model.predict(rows)
    assert np.all(np.abs(mu - expected) <= 1e-9 * weight(c, rows))
    assert np.all(bound**2 >= sd**2 - 1e-6 * c.model.prior_variance(rows))


# -- neighbours ------------------------------------------------------------------------------------------------------


def assert_around(c: Case, near: NeighbourPredictions, rows: Ints, exact: float = EXACT) -> None:
    """Means, prior variances, covariances, spreads and bounds are those computed from scratch."""
    every, model = np.arange(len(rows)), c.model
    expected, sd = model.predict(rows)
    K, prior = model.covariances(rows), model.prior_variance(rows)
    scale = np.array([[[w.sum()]] for w in model.w])  # of covariances: their mean diagonal
    assert near.mu.shape == expected.shape
    assert np.all(np.abs(near.mu - expected) <= exact * (1.0 + weight(c, rows)))
    np.testing.assert_allclose(near.prior_variance, prior, rtol=1e-12)
    assert np.all(np.abs(near.covariances(every, None) - K) <= exact * scale)
    assert np.all(np.abs(near.covariances(every, FEW) - K[:, :, :FEW]) <= exact * scale)
    given_few = model.sd(K[:, :, :FEW].copy(), prior)
    slack = 1e4 * exact * (prior + scale[:, 0])
    assert np.all(np.abs(near.sd(every) ** 2 - sd**2) <= slack)
    assert np.all(np.abs(near.sd(every, FEW) ** 2 - given_few**2) <= slack)
    assert np.all(near.sd(every, FEW) ** 2 >= sd**2 - slack)
    assert np.all(near.sd_bound**2 >= sd**2 - slack)
    assert np.all(near.sd_bound**2 <= prior * (1.0 + 1e-12))


def parents_of(c: Case, rng: np.random.Generator) -> Ints:
    """Fresh rows and evaluated ones."""
    return np.concatenate([c.space.random_rows(rng, 3), c.data.X[:2]])


@every_kernel
@pytest.mark.parametrize("leaps", [False, True])
@given(seed=seeds)
@settings(max_examples=25)
def test_what_is_known_around_parents_is_what_a_fresh_computation_gives(name: str, leaps: bool, seed: int) -> None:
    c = any_case(seed, name)
    parents = parents_of(c, np.random.default_rng(seed))
    rows, owner = c.space.rows.neighbours(parents, leaps)
    assert_around(c, c.neighbours.predict_neighbours(parents, rows, owner), rows)


@pytest.mark.parametrize("name", ["orders", "adjacent"])
@pytest.mark.parametrize("highest", range(1, 6))
@pytest.mark.parametrize("kinds", [["binary"] * 6, ["categorical"] * 3, ["levels", "cycle", "weighted"]],
                         ids=["binary", "categorical", "graphs"])  # fmt: skip
def test_every_order_over_spaces_of_one_sort(kinds: Sequence[str], highest: int, name: str) -> None:
    rng = np.random.default_rng(highest)
    space = space_of(rng, kinds)
    c = case_of(rng, space, kernel_of(name, space, highest), 45)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents, True)
    assert_around(c, c.neighbours.predict_neighbours(parents, rows, owner), rows)
    assert_spread(c, recombined(rng, space))


@every_kernel
def test_a_change_of_one_variable_need_not_be_a_step(name: str) -> None:
    """Neighbours from any value to any other, and rows that equal their parent."""
    rng = np.random.default_rng(4)
    space = space_of(rng, ["levels", "weighted", "categorical", "binary", "cycle"])
    c = case_of(rng, space, kernel_of(name, space, 3), 40)
    parents = parents_of(c, rng)
    owner = rng.integers(0, len(parents), 200)
    rows, column = parents[owner], rng.integers(0, space.dim, 200)
    rows[np.arange(200), column] = rng.integers(0, space.sizes[column])
    assert np.any(np.all(rows == parents[owner], axis=1))
    assert_around(c, c.neighbours.predict_neighbours(parents, rows, owner), rows)


@every_kernel
def test_the_first_bound_is_what_the_parent_leaves_open(name: str) -> None:
    """f(x') = (k / v) f(x) + e: the spread of the parent and the prior's of e, with covariances from scratch."""
    rng = np.random.default_rng(7)
    space = space_of(rng, ["levels", "weighted", "categorical", "binary", "cycle"])
    c = case_of(rng, space, kernel_of(name, space, 3), 40)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents, True)
    _, sd = c.model.predict(parents)
    cap = c.neighbours.predict_neighbours(parents, rows, owner).sd_bound
    for s, (h, w) in enumerate(zip(c.model.hypers, c.model.w, strict=True)):
        k = np.diagonal(cross(c.model.kernel, h.scales, w, parents[owner], rows))
        v, after = (prior_variances(c.model.kernel, h.scales, w, r) for r in (parents[owner], rows))
        bound = np.abs(k) / v * sd[s, owner] + np.sqrt(after - k**2 / v)
        np.testing.assert_allclose(cap[s], np.minimum(bound, np.sqrt(after)), rtol=1e-4)


@every_kernel
def test_any_of_the_neighbours_may_be_asked_about_in_any_order_and_again(name: str) -> None:
    rng = np.random.default_rng(5)
    space = space_of(rng, ["levels", "weighted", "categorical", "binary"])
    c = case_of(rng, space, kernel_of(name, space, 3), 40)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents)
    near = c.neighbours.predict_neighbours(parents, rows, owner)
    _, sd = c.model.predict(rows)
    some = np.append(rng.permutation(len(rows))[:9], [3, 3])
    for _ in range(2):  # sd overwrites covariances, which must not belong to anyone else
        np.testing.assert_allclose(near.sd(some), sd[:, some], rtol=0, atol=1e-7)
        assert np.all(near.sd(some, FEW) >= sd[:, some] - 1e-7)
        np.testing.assert_allclose(near.covariances(some, None), c.model.covariances(rows[some]), rtol=0, atol=1e-9)
    assert near.sd(some[:0]).shape == (SAMPLES, 0)


@every_kernel
def test_parents_without_neighbours_have_none(name: str) -> None:
    rng = np.random.default_rng(0)
    space = space_of(rng, ["constant", "constant level"])
    c = case_of(rng, space, kernel_of(name, space, 1), 3)
    parents = np.zeros((2, 2), dtype=np.intp)
    rows, owner = space.rows.neighbours(parents)
    near = c.neighbours.predict_neighbours(parents, rows, owner)
    assert near.mu.shape == near.prior_variance.shape == (SAMPLES, 0)
    assert_spread(c, recombined(rng, space))


@pytest.mark.parametrize("name", ["product", "orders", "adjacent"])
def test_around_parents_the_oracles_agree(name: str) -> None:
    """Inverses of covariances built without the package."""
    rng = np.random.default_rng(6)
    space = space_of(rng, ["levels", "weighted", "categorical", "binary"])
    c = case_of(rng, space, kernel_of(name, space, 3), 20)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents, True)
    near = c.neighbours.predict_neighbours(parents, rows, owner)
    sd = near.sd(np.arange(len(rows)))
    known = test_ensemble.Case([v.graph for v in space.variables.values()], c.model, c.data, rows)
    for s in range(SAMPLES):
        mean, cov = test_ensemble.exact(known, s, rows)
        np.testing.assert_allclose(near.mu[s], mean, rtol=0, atol=1e-7)
        np.testing.assert_allclose(sd[s] ** 2, np.diagonal(cov), rtol=0, atol=1e-7)


@pytest.mark.parametrize("sparse_from", [0, 256])
def test_neighbours_from_the_features_that_differ_from_their_parents(sparse_from: int) -> None:
    """Whether features are few or many, predictions of neighbours are the same."""
    rng = np.random.default_rng(8)
    space = space_of(rng, ["binary", "categorical", "binary", "levels", "categorical", "binary", "binary"])
    c = case_of(rng, space, kernel_of("adjacent", space, 3), 40)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents, True)
    assert len(c.model.tables.windows) > 0
    assert_around(c, NeighbourPredictor(c.model, sparse_from).predict_neighbours(parents, rows, owner), rows)


def test_without_its_own_way_a_model_is_wrong_where_rows_are_not_neighbours() -> None:
    """The check can fail: rows that differ from their parent in two variables are no neighbours."""
    rng = np.random.default_rng(7)
    space = space_of(rng, ["binary", "categorical", "levels"])
    c = case_of(rng, space, kernel_of("orders", space), 30)
    parents = parents_of(c, rng)
    rows = (parents + 1) % space.sizes
    with pytest.raises(AssertionError):
        assert_around(c, c.neighbours.predict_neighbours(parents, rows, np.arange(len(parents))), rows)


# -- extremes --------------------------------------------------------------------------------------------------------


def at_the_ends(rng: np.random.Generator, kernel: Kernel) -> Hyper:
    """Every scale at an end of its support."""
    d = len(kernel.spectra)
    scales = Scales(rng.choice([-12.0, 4.6], d), rng.choice([-6.0, 3.0], d))
    return Hyper(0.0, -3.0, rng.choice([-10.0, 2.0], kernel.size), scales)


@every_kernel
@given(seed=seeds)
@settings(max_examples=20)
def test_scales_at_the_ends_of_their_supports(name: str, seed: int) -> None:
    """Factors of 1e-5 are divided out, and one relevance may be 8,000 times another."""
    rng = np.random.default_rng(seed)
    space = space_of(rng, any_kinds(rng, 6))
    kernel = kernel_of(name, space, 3)
    data = Data(space.random_rows(rng, 40), rng.normal(size=40))
    c = Case(space, build(kernel, [at_the_ends(rng, kernel) for _ in range(SAMPLES)], data), data)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents, True)
    assert_around(c, c.neighbours.predict_neighbours(parents, rows, owner), rows, exact=1e-6)
    starts = recombined(rng, space)
    mu, bound = c.neighbours.bound_recombined(starts)
    all_rows = starts.rows(np.arange(len(starts)))
    expected, sd = c.model.predict(all_rows)
    assert np.all(np.abs(mu - expected) <= 1e-4 * (1.0 + weight(c, all_rows)))
    assert np.all(bound**2 >= sd**2 - 1e-3 * c.model.prior_variance(all_rows))


@pytest.mark.parametrize("name", ["product", "orders"])
def test_many_variables(name: str) -> None:
    rng = np.random.default_rng(8)
    space = space_of(rng, ["binary"] * 50 + ["categorical"] * 5 + ["levels"] * 5)
    c = case_of(rng, space, kernel_of(name, space, 3), 60)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents, True)
    assert_around(c, c.neighbours.predict_neighbours(parents, rows, owner), rows, exact=1e-9)
    assert_spread(c, recombined(rng, space))


# -- wide spaces -----------------------------------------------------------------------------------------------------


@every_kernel
def test_a_wide_space_gives_the_same_answers(name: str) -> None:
    rng, space = np.random.default_rng(9), wide()
    c = case_of(rng, space, kernel_of(name, space), 45)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents, True)
    assert len(rows) > 100
    assert_around(c, c.neighbours.predict_neighbours(parents, rows, owner), rows, exact=1e-9)
    assert_spread(c, recombined(rng, space))


@every_kernel
@pytest.mark.parametrize("most", [1, 4])
@given(seed=seeds)
@settings(max_examples=25)
def test_wide_variables_are_computed_like_all_others(name: str, most: int, seed: int) -> None:
    """All variables wide, or only those of more than four values; of any kind, in any order."""
    with wide_above(most):
        c = any_case(seed, name)
        parents = parents_of(c, np.random.default_rng(seed))
        rows, owner = c.space.rows.neighbours(parents, True)
        near, starts = (
            c.neighbours.predict_neighbours(parents, rows, owner),
            recombined(np.random.default_rng(seed), c.space),
        )
        assert_around(c, near, rows)
        assert_spread(c, starts)
        mean, sd = c.model.predict(rows)
    narrow = Ensemble(c.model.kernel, c.model.hypers, c.model.X, c.model.values)
    expected, expected_sd = narrow.predict(rows)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=float(EXACT * (1.0 + weight(c, rows)).max(initial=1.0)))
    np.testing.assert_allclose(sd**2, expected_sd**2, rtol=0, atol=1e-7)


@every_kernel
@pytest.mark.parametrize("room", [1, 999, 10**6])
def test_answers_in_pieces_are_the_answers(name: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    space = space_of(rng, ["levels", "categorical", "binary", "weighted"])
    c = case_of(rng, space, kernel_of(name, space, 3), 40)
    parents = parents_of(c, rng)
    rows, owner = space.rows.neighbours(parents, True)
    whole, sd = c.model.predict(rows)
    monkeypatch.setattr(ensemble, "ROOM", room)
    monkeypatch.setattr("carbo.surrogate.neighbours.ROOM", room)
    assert c.model.piece == max(room // (SAMPLES * 40), 1)
    near = c.neighbours.predict_neighbours(parents, rows, owner)
    assert_around(c, near, rows)
    np.testing.assert_allclose(c.model.predict(rows), (whole, sd), rtol=0, atol=1e-9)
    assert near.sd(np.arange(0)).shape == (SAMPLES, 0)


def test_few_is_what_bounds_are_given() -> None:
    """The first FEW observations of an ensemble are those that `order_by_information` puts there."""
    rng = np.random.default_rng(11)
    space = space_of(rng, ["levels", "categorical"])
    c = case_of(rng, space, kernel_of("orders", space), 50)
    np.testing.assert_array_equal(c.model.X, c.data.X[ensemble.order_by_information(dataclasses.replace(c.data))])


def test_informative_observations_are_the_best_and_those_far_from_all_before() -> None:
    rng, n = np.random.default_rng(13), 150
    X, y = rng.integers(0, 3, size=(n, 8)), rng.normal(size=n)
    order = ensemble.order_by_information(Data(X, y)).tolist()
    assert sorted(order) == list(range(n))
    by_value = np.argsort(y).tolist()
    assert order[: FEW // 2] == by_value[: FEW // 2]
    for at in range(FEW // 2, int(ensemble.CLOSEST * n)):
        before, left = order[:at], order[at:]
        apart = {i: min(int(np.count_nonzero(X[i] != X[j])) for j in before) for i in left}
        if at < FEW or at % 2 == 0:
            assert apart[order[at]] == max(apart.values())
        else:
            assert order[at] == next(i for i in by_value if i in apart)
    rest = order[int(ensemble.CLOSEST * n) :]
    assert rest == [i for i in by_value if i in rest]
