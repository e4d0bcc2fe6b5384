"""The order kernel's covariance and its slopes, against sums over subsets and difference quotients of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbo.kernels.base import Scales
from carbo.kernels.orders import Orders
from carbo.kernels.spectra import spectrum
from carbo.numerics.types import Floats, Ints
from carbo.space import graphs
from carbo.space.graphs import Graph
from tests import oracles

seeds = st.integers(0, 10**6)


class Setting(NamedTuple):
    """One value of all parameters of a kernel over a space, with observations."""

    space: list[Graph]
    kernel: Orders
    X: Ints
    scales: Scales
    log_w: Floats
    constant: float
    noise: float

    def covariance(self) -> Floats:
        """The covariance computed by the oracles."""
        highest, r = self.kernel.highest, np.exp(self.scales.log_relevance)
        parts = oracles.order_parts(self.space, "connectivity", np.exp(self.scales.log_beta), r, self.X, highest)
        if self.kernel.windowed:
            windows = oracles.adjacent_parts(self.space, r, self.X, highest)[: self.kernel.windows.orders]
            parts = np.concatenate([parts, windows])
        signal = np.tensordot(np.exp(self.log_w), parts, 1)
        return np.asarray(signal + self.constant + self.noise * np.eye(len(self.X)))

    def moved(self, name: str, i: int, t: float) -> Setting:
        """The case with one parameter moved by t."""
        if name == "log_w":
            return self._replace(log_w=self.log_w + t * (np.arange(len(self.log_w)) == i))
        values = getattr(self.scales, name)
        moved = {name: values + t * (np.arange(len(values)) == i)}
        return self._replace(scales=self.scales._replace(**moved))


def any_setting(seed: int, windowed: bool) -> Setting:
    """Kinds of variables, mostly categories, because they alone have windows."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    categories = [graphs.complete(int(k)) for k in rng.integers(1, 5, count)]
    space = [g if rng.random() < 0.6 else oracles.random_graph(rng) for g in categories]
    kernel = Orders(tuple(spectrum(g) for g in space), int(rng.integers(1, 5)), windowed)
    X = oracles.random_rows(rng, space, int(rng.integers(1, 12)))
    scales = Scales(rng.uniform(-2.5, 1.5, count), rng.uniform(-3.0, 2.0, count))
    return Setting(space, kernel, X, scales, rng.uniform(-2.0, 1.0, kernel.size), float(rng.uniform(0.0, 2.0)), 0.3)


def slope(at: Setting, W: Floats, name: str, i: int) -> float:
    return oracles.richardson(lambda t: float(np.sum(W * at.moved(name, i, t).covariance())))


@pytest.mark.parametrize("windowed", [False, True])
@given(seed=seeds)
@settings(max_examples=40)
def test_covariance_and_slopes_for_any_weights(windowed: bool, seed: int) -> None:
    at = any_setting(seed, windowed)
    gradient, W = at.kernel.gradient(at.X), np.random.default_rng(seed).normal(size=(len(at.X), len(at.X)))
    W += W.T
    C = gradient.covariance(at.scales, at.log_w, at.constant, at.noise)
    np.testing.assert_allclose(C, at.covariance(), rtol=0, atol=1e-8 * (1.0 + np.exp(at.log_w).sum()))
    found, allowed = gradient.slopes(W), 1e-6 * (1.0 + np.abs(W).sum() * np.exp(at.log_w).sum())
    for name, got in found._asdict().items():
        expected = [slope(at, W, name, i) for i in range(len(got))]
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=allowed, err_msg=name)


def test_slopes_are_where_the_covariance_was_computed_last() -> None:
    one = any_setting(3, windowed=True)
    W = np.ones((len(one.X), len(one.X)))
    other = one._replace(
        scales=Scales(one.scales.log_beta - 1.0, one.scales.log_relevance + 0.5), log_w=one.log_w - 2.0
    )
    gradient = one.kernel.gradient(one.X)
    by = []
    for at in (one, other, one):
        C = gradient.covariance(at.scales, at.log_w, at.constant, at.noise).copy()
        by.append(np.concatenate([C.reshape(-1), *gradient.slopes(W)]))
    np.testing.assert_array_equal(by[0], by[2])
    assert not np.allclose(by[0], by[1])


def test_constant_and_noise_are_where_they_belong() -> None:
    at = any_setting(5, windowed=False)
    gradient = at.kernel.gradient(at.X)
    plain = gradient.covariance(at.scales, at.log_w, 0.0, 0.0).copy()
    n = len(plain)
    with_both = gradient.covariance(at.scales, at.log_w, 2.0, 0.5)
    np.testing.assert_allclose(with_both, plain + 2.0 + 0.5 * np.eye(n), rtol=0, atol=1e-12 * math.exp(at.log_w.max()))
