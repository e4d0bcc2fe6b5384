"""Conditioned Gaussian processes against covariances built by the oracles and plain inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from carbo.inference.data import Data, Hyper
from carbo.kernels.base import Kernel, Scales
from carbo.kernels.cross import cross
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import spectrum
from carbo.numerics import linalg
from carbo.numerics.types import Floats, Ints
from carbo.space import graphs
from carbo.space.graphs import Graph
from carbo.surrogate.ensemble import Ensemble, Recombined, build
from tests import oracles
from tests.checks import assert_plausible, assert_rejected, p_value
from tests.models import gram, predict, prior_variances

NOMINAL = (graphs.complete(2), graphs.complete(3), graphs.complete(2), graphs.complete(4))
MIXED = (graphs.complete(3), graphs.path(5), oracles.random_weighted(np.random.default_rng(5), 4), graphs.cycle(6))
WIDE = (graphs.path(700), graphs.complete(2), graphs.path(400))
"""Too many values for dense one-hot rows."""
SPACES = {"nominal": NOMINAL, "mixed": MIXED, "wide": WIDE}
KERNELS = ("product", "orders", "adjacent")
EXACT = 1e-9
"""Allowed difference of two float64 routes."""


class Case(NamedTuple):
    space: Sequence[Graph]
    model: Ensemble
    data: Data
    rows: Ints


def make_kernel(name: str, space: Sequence[Graph]) -> Kernel:
    spectra = tuple(spectrum(g) for g in space)
    if name == "adjacent":
        return Orders(spectra, 3, True)
    return Product(spectra) if name == "product" else Orders(spectra, 2)


def random_hyper(rng: np.random.Generator, kernel: Kernel, log_noise: float | None = None) -> Hyper:
    d = len(kernel.spectra)
    return Hyper(
        float(rng.normal()),
        float(rng.uniform(-4.0, -1.0)) if log_noise is None else log_noise,
        rng.normal(0.0, 0.5, kernel.size),
        Scales(rng.normal(-0.5, 0.8, d), rng.normal(0.0, 0.7, d)),
    )


def case(space: str, name: str, n: int = 45, samples: int = 3, seed: int = 0) -> Case:
    rng, graphs_ = np.random.default_rng(seed), SPACES[space]
    kernel = make_kernel(name, graphs_)
    data = Data(oracles.random_rows(rng, graphs_, n), rng.normal(size=n))
    hypers = [random_hyper(rng, kernel) for _ in range(samples)]
    return Case(graphs_, build(kernel, hypers, data), data, oracles.random_rows(rng, graphs_, 30))


def exact(c: Case, s: int, rows: Ints) -> tuple[Floats, Floats]:
    """Posterior mean (N,) and covariance (N, N) of sample s at rows, by the oracles alone."""
    h, kernel = c.model.hypers[s], c.model.kernel
    together = np.concatenate([c.data.X, rows])
    w, beta, r = np.exp(h.log_w), np.exp(h.scales.log_beta), np.exp(h.scales.log_relevance)
    if isinstance(kernel, Orders):
        parts = oracles.order_parts(c.space, "connectivity", beta, r, together, kernel.highest)[: kernel.highest]
        if kernel.windowed:
            windows = oracles.adjacent_parts(c.space, r, together, kernel.highest)
            parts = np.concatenate([parts, windows[: kernel.windows.orders]])
    else:
        parts = oracles.product_gram(c.space, "connectivity", beta, together)[None]
    K, n = np.tensordot(w, parts, 1), len(c.data.y)
    C = K[:n, :n] + math.exp(h.log_noise) * np.eye(n)
    mean, cov = oracles.conditional(C, K[n:, :n], K[n:, n:], c.data.y - h.mean)
    return h.mean + mean, cov


# -- predictions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("space", ["nominal", "mixed"])
def test_predictions_equal_inverses_of_covariances_built_without_the_package(space: str, name: str) -> None:
    c = case(space, name)
    mu, sd = c.model.predict(c.rows)
    for s in range(c.model.size):
        mean, cov = exact(c, s, c.rows)
        np.testing.assert_allclose(mu[s], mean, rtol=0, atol=1e-7)
        np.testing.assert_allclose(sd[s] ** 2, np.diagonal(cov), rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("space", SPACES)
def test_predictions_equal_one_gaussian_process_at_a_time(space: str, name: str) -> None:
    c = case(space, name)
    X, y, kernel = c.data.X, c.data.y, c.model.kernel
    mu, sd = c.model.predict(c.rows)
    for s, h in enumerate(c.model.hypers):
        w = np.exp(h.log_w)
        C = gram(kernel, h.scales, w, X) + math.exp(h.log_noise) * np.eye(len(y))
        Ks, prior = cross(kernel, h.scales, w, c.rows, X), prior_variances(kernel, h.scales, w, c.rows)
        mean, variance = predict(linalg.condition(C, y, h.mean), Ks, prior)
        np.testing.assert_allclose(mu[s], mean, rtol=0, atol=EXACT)
        np.testing.assert_allclose(sd[s], np.sqrt(variance), rtol=0, atol=1e-7)
        np.testing.assert_allclose(c.model.prior_variance(c.rows)[s], prior, rtol=EXACT)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("space", ["nominal", "mixed"])
def test_the_joint_posterior_is_the_conditional_normal(space: str, name: str) -> None:
    c = case(space, name)
    for s in range(c.model.size):
        for got, expected in zip(c.model.joint_prediction(s, c.rows), exact(c, s, c.rows), strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_the_order_of_the_data_does_not_matter(name: str) -> None:
    c = case("mixed", name)
    shuffled = np.random.default_rng(1).permutation(len(c.data.y))
    other = build(c.model.kernel, c.model.hypers, Data(c.data.X[shuffled], c.data.y[shuffled]))
    for a, b in zip(c.model.predict(c.rows), other.predict(c.rows), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=EXACT)


@pytest.mark.parametrize("n", [1, 2, 5, 40, 70])
def test_the_ensemble_holds_every_observation_once(n: int) -> None:
    c = case("mixed", "product", n=n)
    held = sorted((*row, y) for row, y in zip(c.model.X.tolist(), c.model.values[0].tolist(), strict=True))
    assert held == sorted((*row, y) for row, y in zip(c.data.X.tolist(), c.data.y.tolist(), strict=True))


def test_a_far_row_under_a_rough_kernel_has_the_prior_back() -> None:
    kernel = make_kernel("product", NOMINAL)
    h = Hyper(0.4, -3.0, np.array([0.3]), Scales(np.full(4, -12.0), np.zeros(4)))
    model = build(kernel, [h], Data(np.zeros((3, 4), dtype=np.intp), np.array([1.0, 2.0, 3.0])))
    mu, sd = model.predict(np.array([[1, 1, 1, 1]]))
    assert mu[0, 0] == pytest.approx(0.4, abs=1e-9)
    assert sd[0, 0] == pytest.approx(math.exp(0.15), rel=1e-9)


# -- many random rows ------------------------------------------------------------------------------------------------


def recombined(c: Case, seed: int = 1, blocks: int = 2, pool: int = 6) -> Recombined:
    rng, d = np.random.default_rng(seed), len(c.space)
    sizes = [g.size for g in c.space]
    left, right = (rng.integers(0, sizes, size=(blocks, pool, d)) for _ in range(2))
    cut = rng.random((blocks, d)) < 0.5
    return Recombined(left, right, cut)


def test_recombined_rows_take_each_variable_from_the_half_that_owns_it() -> None:
    starts = recombined(case("mixed", "product"))
    rows = starts.rows(np.arange(len(starts)))
    expected = [
        [starts.left[b, i, v] if starts.cut[b, v] else starts.right[b, j, v] for v in range(4)]
        for b in range(2)
        for i in range(6)
        for j in range(6)
    ]
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(starts.rows(np.array([70, 3])), rows[[70, 3]])


# -- bounds of sd ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_sd_given_more_observations_is_never_larger(name: str) -> None:
    c = case("mixed", name)
    K, prior = c.model.covariances(c.rows), c.model.prior_variance(c.rows)
    last = np.sqrt(prior)
    for m in range(1, len(c.data.y) + 1):
        sd = c.model.sd(np.array(K[:, :, :m]), prior)
        assert np.all(sd <= last + 1e-9)
        last = sd
    np.testing.assert_allclose(last, c.model.predict(c.rows)[1], rtol=0, atol=EXACT)


# -- pending rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_an_extended_ensemble_is_conditioned_on_its_fantasies_as_on_data(name: str) -> None:
    c = case("mixed", name)
    pending = c.rows[:4]
    extended = c.model.extend(np.random.default_rng(0), pending)
    np.testing.assert_array_equal(extended.X[-4:], pending)
    np.testing.assert_array_equal(extended.values[:, :-4], c.model.values)
    mu, sd = extended.predict(c.rows[4:])
    for s, h in enumerate(c.model.hypers):
        alone = build(c.model.kernel, [h], Data(extended.X, extended.values[s]))
        for got, expected in zip((mu[s], sd[s]), alone.predict(c.rows[4:]), strict=True):
            np.testing.assert_allclose(got, expected[0], rtol=0, atol=EXACT)


@pytest.mark.parametrize("name", KERNELS)
def test_without_noise_the_mean_goes_through_the_fantasies(name: str) -> None:
    rng = np.random.default_rng(0)
    kernel = make_kernel(name, MIXED)
    hypers = [random_hyper(rng, kernel, log_noise=-18.0) for _ in range(3)]
    every = np.unique(oracles.random_rows(rng, MIXED, 14), axis=0)
    model = build(kernel, hypers, Data(every[:8], rng.normal(size=8)))
    extended = model.extend(rng, every[8:])
    mu, sd = extended.predict(every[8:])
    np.testing.assert_allclose(mu, extended.values[:, 8:], rtol=0, atol=1e-3)
    assert np.all(sd < 1e-3)


def fantasies(seed: int, count: int) -> tuple[Case, Floats, Ints]:
    """Many fantasies of one Gaussian process at four rows, two of them the same, (count, 4)."""
    c = case("mixed", "product", n=6, samples=1)
    c = c._replace(model=build(c.model.kernel, [c.model.hypers[0]._replace(log_noise=-3.0)], c.data))
    pending = c.rows[[0, 1, 2, 2]]
    many = Ensemble(c.model.kernel, c.model.hypers * count, c.model.X, np.tile(c.model.values, (count, 1)))
    return c, many.extend(np.random.default_rng(seed), pending).values[:, -4:], pending


def test_fantasies_are_joint_draws_of_the_noisy_posterior() -> None:
    c, drawn, pending = fantasies(0, 2_000)
    mean, cov = exact(c, 0, pending)
    noisy = cov + math.exp(c.model.hypers[0].log_noise) * np.eye(4)

    def whitened(C: Floats, values: Floats) -> dict[str, float]:
        z = oracles.whiten(C, (values - mean).T)
        return {
            "whitened": p_value(z.ravel(), lambda x: np.asarray(stats.norm.cdf(x))),
            "together": p_value(np.sum(z**2, axis=0), lambda q: np.asarray(stats.chi2(4).cdf(q))),
        }

    assert_plausible(whitened(noisy, drawn))
    assert_rejected(whitened(cov + 1e-9 * np.eye(4), drawn))
    rng = np.random.default_rng(1)
    row_by_row = np.stack([rng.permutation(column) for column in drawn.T], axis=1)
    assert_rejected(whitened(noisy, row_by_row))


def test_each_sample_has_its_own_fantasies_and_the_same_seed_the_same() -> None:
    _, drawn, _ = fantasies(3, 5)
    assert len(np.unique(drawn[:, 0])) == 5
    np.testing.assert_array_equal(drawn, fantasies(3, 5)[1])
