"""Faults that were found once, each as the smallest claim that it broke."""

from __future__ import annotations

import math

import numpy as np

from carbo.acquisition import functions as acq
from carbo.acquisition import search
from carbo.acquisition.knowledge_gradient import log_fall
from carbo.inference.data import Data, Hyper
from carbo.inference.gibbs import initial, start, sweep
from carbo.inference.data import Model, Sampling
from carbo.inference.priors import Priors
from carbo.kernels.base import Coordinate, Scales
from carbo.kernels.cross import cross, gram
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import spectrum
from carbo.space import graphs
from carbo.surrogate import ensemble as ens
from carbo.surrogate.moves import moves
from tests import oracles

BINARY = spectrum(graphs.complete(2))


def test_a_product_term_comes_back_after_a_factor_was_exactly_zero() -> None:
    """r = 1, z = -1 of a pair: 1 + r z = 0, and dividing the factor out again gave 0 for ever. Chains start there."""
    kernel, X = Orders((BINARY, BINARY), 2, True), np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    scales, at = Scales(np.zeros(2), np.zeros(2)), Coordinate("relevance", 0)
    new = kernel.parts(Scales(np.zeros(2), np.array([1.0, 0.0])), X)
    np.testing.assert_allclose(kernel.swapped(kernel.parts(scales, X), scales, X, at, 1.0), new, atol=1e-9)


def test_a_new_chain_with_a_product_term_remembers_the_truth() -> None:
    rng = np.random.default_rng(0)
    space = (graphs.complete(2),) * 4
    data = Data(oracles.random_rows(rng, space, 15), rng.normal(size=15))
    model = Model(Orders((BINARY,) * 4, 2, True), Priors(level="standard", noise="half-cauchy", beta="normal"))
    state = start(model, data, initial(model, data))
    for _ in range(10):
        state = sweep(rng, state, model, data, Sampling())
    fresh = start(model, data, state.hyper)
    np.testing.assert_allclose(state.parts, fresh.parts, atol=1e-6)
    np.testing.assert_allclose(state.fit, fresh.fit, rtol=1e-5, atol=1e-5)


def test_cross_equals_gram_where_the_highest_order_exceeds_the_variables() -> None:
    """e_3 of two variables is rounding noise / 1e-300. (Optimizer clamps highest_order, so only direct use is hit.)"""
    kernel, X = Orders((BINARY, BINARY), 3, False), np.array([[0, 0], [0, 1], [1, 1]])
    scales, w = Scales(np.zeros(2), np.array([0.3, 0.2])), np.ones(3)
    np.testing.assert_allclose(cross(kernel, scales, w, X, X), gram(kernel, scales, w, X), atol=1e-9)


def test_every_observation_is_held_once_when_rows_repeat() -> None:
    """`telling`: all distances 0 -> argmax gives 0, which is chosen already: 21 indices for 20 observations."""
    data = Data(np.zeros((20, 3), dtype=np.intp), np.arange(20.0))
    assert sorted(ens.telling(data).tolist()) == list(range(20))


def test_bounds_of_sd_hold_at_low_noise() -> None:
    """float32 at noise e^-12 and signal e^4, both inside the published supports: bound / exact = 0.003."""
    rng, d = np.random.default_rng(0), 8
    space = (graphs.complete(2),) * d
    kernel = Product((BINARY,) * d)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = oracles.random_rows(rng, space, 60)
        h = Hyper(0.0, -12.0, np.array([4.0]), Scales(rng.normal(0, 1, d), np.zeros(d)))
        model = ens.build(kernel, [h], Data(X, rng.normal(size=60)))
        rows, owner = np.repeat(X[:3], d, 0), np.repeat(np.arange(3), d)
        rows[np.arange(3 * d), np.tile(np.arange(d), 3)] ^= 1
        near, every = moves(model).around(X[:3], rows, owner), np.arange(3 * d)
        assert np.all(near.sd(every, ens.FEW) >= near.sd(every))


def test_rough_order_kernels_are_rough_and_not_noise() -> None:
    """Newton's identities in float32 cancel where one relevance dominates: covariances of order 1 are off by 5."""
    rng, d = np.random.default_rng(0), 20
    space = (graphs.complete(2),) * d
    h = Hyper(0.0, -3.0, np.zeros(3), Scales(np.zeros(d), np.array([4.0] + [-8.0] * (d - 1))))
    model = ens.build(
        Orders((BINARY,) * d, 3, False), [h], Data(oracles.random_rows(rng, space, 40), rng.normal(size=40))
    )
    rows = oracles.random_rows(rng, space, 50)
    np.testing.assert_allclose(model.covariances(rows, rough=True), model.covariances(rows), atol=1e-2)


def test_rough_predictions_of_drawn_parameters_are_good_to_a_tenth() -> None:
    """The same with parameters from a real chain: 4 binary variables, one matters; mu off by several sd of y."""
    from carbo.inference.gibbs import draw

    rng, d = np.random.default_rng(0), 4
    space = (graphs.complete(2),) * d
    X = oracles.random_rows(rng, space, 60)
    y = 2.0 * X[:, 3] - 1.0 + 0.02 * rng.normal(size=60)
    data = Data(X, (y - y.mean()) / y.std())
    model = Model(Orders((BINARY,) * d, 3, False), Priors(level="standard", noise="half-cauchy", beta="normal"))
    _, hypers = draw(np.random.default_rng(1), None, model, data, Sampling(samples=10, burn_in=50))
    model_ = ens.build(model.kernel, hypers, data)
    rows = oracles.random_rows(rng, space, 200)
    for rough, fine in zip(model_.predict(rows, rough=True), model_.predict(rows), strict=True):
        np.testing.assert_allclose(rough, fine, atol=0.1)


def test_the_knowledge_gradient_survives_slopes_that_differ_by_almost_nothing() -> None:
    """(a_j - a_i) / 1e-310 overflows to -inf. Underflowed covariances do this to the knowledge gradient."""
    assert log_fall(np.array([0.0, -1.0]), np.array([0.0, 1e-310])) == -np.inf
    assert log_fall(np.array([0.0, 1.0]), np.array([0.0, 1e-310])) == -np.inf


def test_of_lines_that_are_as_good_as_parallel_the_lowest_counts() -> None:
    """All cross at -inf; the steepest of them was taken, and the lowest never looked at again."""
    a, b = np.array([0.0, -1.0, -0.1, 0.0]), np.array([0.0, -1e-310, -2e-310, -1.0])
    assert math.isclose(float(log_fall(a, b)), oracles.log_h(-1.0), rel_tol=1e-9)  # a flat line at -1 and -Z


def test_log_ei_is_exact_to_rounding_beyond_fifty_standard_deviations() -> None:
    """Two terms of the series at v = 50 leave 15 / v^4 = 2.4e-6 in the logarithm; the docstring says rounding."""
    for z in (-50.5, -60.0, -100.0):
        got = float(acq.log_h(np.array([z]))[0])
        assert abs(got - oracles.log_h(z)) < 1e-9


def test_annealing_survives_a_start_that_scores_minus_infinity() -> None:
    """-inf - -inf = nan, a RuntimeWarning; 'scores -inf is forbidden' says the notation, so such rows may come in."""

    class Forbidden:
        def score(self, rows: np.ndarray) -> np.ndarray:
            return np.where(rows[:, 0] == 2, 1.0, -np.inf)

        rough = score

        def around(self, parents: np.ndarray, rows: np.ndarray, owner: np.ndarray) -> search.Neighbours:
            raise NotImplementedError

    domain = search.Domain(
        lambda rows: (np.repeat(np.arange(3), len(rows))[:, None], np.tile(np.arange(len(rows)), 3)),
        lambda rows: np.ones(len(rows), dtype=bool),
    )
    starts = search.Found(np.array([[0]]), np.array([-np.inf]))
    got = search.anneal(np.random.default_rng(0), Forbidden(), domain, starts)
    assert got.scores[0] == 1.0
    assert math.isfinite(got.scores[0])


class Dirty(Data):
    """Memory that nobody has written to yet holds the largest float: np.empty may give that any day."""

    def scratch(self, name: str, *shape: int, dtype: object = np.float64) -> np.ndarray:
        before = self._scratch.get(name)
        super().scratch(name, *shape, dtype=dtype)
        if self._scratch[name] is not before and self._scratch[name].dtype == np.float64:
            self._scratch[name].fill(1.7e308)
        return super().scratch(name, *shape, dtype=dtype)


def test_memory_nobody_wrote_to_never_takes_part() -> None:
    """Scratch memory that LAPACK left half unwritten was once multiplied, and overflowed now and then."""
    from carbo.inference.gibbs import draw

    rng = np.random.default_rng(0)
    space = (graphs.complete(3),) * 3
    X, y = oracles.random_rows(rng, space, 20), rng.normal(size=20)
    model = Model(Product(tuple(map(spectrum, space))), Priors())
    clean, _ = draw(np.random.default_rng(0), None, model, Data(X, y), Sampling(2, 5))
    dirty, _ = draw(np.random.default_rng(0), None, model, Dirty(X, y), Sampling(2, 5))
    np.testing.assert_array_equal(clean.scales.log_beta, dirty.scales.log_beta)
