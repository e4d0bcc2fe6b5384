"""Faults that were found once, each as the smallest claim that it broke."""

from __future__ import annotations

import numpy as np

from carbo.acquisition import functions
from carbo.inference.data import Data, Hyper, Model, Sampling
from carbo.inference.priors import Priors
from carbo.kernels.base import Scales
from carbo.kernels.cross import cross
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import spectrum
from carbo.space import graphs
from carbo.surrogate import ensemble
from carbo.surrogate.neighbours import NeighbourPredictor
from tests import oracles
from tests.models import gram

BINARY = spectrum(graphs.complete(2))


def test_cross_equals_gram_where_the_highest_order_exceeds_the_variables() -> None:
    """e_3 of two variables is rounding noise / 1e-300. (Optimizer clamps highest_order, so only direct use is hit.)"""
    kernel, X = Orders((BINARY, BINARY), 3, False), np.array([[0, 0], [0, 1], [1, 1]])
    scales, w = Scales(np.zeros(2), np.array([0.3, 0.2])), np.ones(3)
    np.testing.assert_allclose(cross(kernel, scales, w, X, X), gram(kernel, scales, w, X), atol=1e-9)


def test_every_observation_is_held_once_when_rows_repeat() -> None:
    """All distances 0 made argmax give 0, which was chosen already: 21 indices for 20 observations."""
    data = Data(np.zeros((20, 3), dtype=np.intp), np.arange(20.0))
    assert sorted(ensemble.order_by_information(data).tolist()) == list(range(20))


def test_bounds_of_sd_hold_at_low_noise() -> None:
    """float32 at noise e^-12 and signal e^4, both inside the published supports: bound / exact = 0.003."""
    rng, d = np.random.default_rng(0), 8
    space = (graphs.complete(2),) * d
    kernel = Product((BINARY,) * d)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = oracles.random_rows(rng, space, 60)
        h = Hyper(0.0, -12.0, np.array([4.0]), Scales(rng.normal(0, 1, d), np.zeros(d)))
        model = ensemble.build(kernel, [h], Data(X, rng.normal(size=60)))
        rows, owner = np.repeat(X[:3], d, 0), np.repeat(np.arange(3), d)
        rows[np.arange(3 * d), np.tile(np.arange(d), 3)] ^= 1
        near, every = NeighbourPredictor(model).predict_neighbours(X[:3], rows, owner), np.arange(3 * d)
        assert np.all(near.sd(every, ensemble.FEW) >= near.sd(every))


def test_log_ei_is_exact_to_rounding_beyond_fifty_standard_deviations() -> None:
    """Two terms of the series at v = 50 leave 15 / v^4 = 2.4e-6 in the logarithm; the docstring says rounding."""
    for z in (-50.5, -60.0, -100.0):
        got = float(functions.log_h(np.array([z]))[0])
        assert abs(got - oracles.log_h(z)) < 1e-9


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
