"""Prior densities against the exact distribution functions of `oracles`: each integrates to its law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, stats

from carbo.inference import priors
from carbo.inference.priors import Priors
from tests import oracles
from tests.oracles import Law

BETA, NOISE, RELEVANCE = (-12.0, math.log(100.0)), (-12.0, math.log(1e4)), (-6.0, 3.0)


def assert_density_of(log_density: Callable[[float], float], law: Law) -> None:
    """exp(log_density), integrated piece by piece, is proportional to the law's probabilities."""
    edges = np.linspace(*law.support, 25)
    pieces = [
        integrate.quad(lambda x: math.exp(log_density(x)), low, high, epsabs=0.0, epsrel=1e-10)[0]
        for low, high in itertools.pairwise(edges.tolist())
    ]
    np.testing.assert_allclose(np.array(pieces) / sum(pieces), np.diff(law.cdf(edges)), rtol=1e-7, atol=1e-12)


def test_horseshoe_on_log_is_the_bound_as_a_density_of_x() -> None:
    assert_density_of(lambda t: priors.horseshoe_on_log(t, 0.7), oracles.horseshoe_law(0.7, RELEVANCE))


def test_horseshoe_bound_is_read_at_x_without_a_jacobian() -> None:
    """The published experiments sample log beta against the bound at beta (DESIGN section 5)."""
    assert_density_of(lambda t: priors.horseshoe_bound(math.exp(t), 5.0), oracles.published_law(5.0, BETA))


def test_horseshoe_bound_is_an_upper_bound_of_the_horseshoe() -> None:
    """Carvalho, Polson and Scott (2010), theorem 1: K/2 log(1 + 4/x^2) < p(x) < K log(1 + 2/x^2), K = (2 pi^3)^-1/2."""
    K = (2.0 * math.pi**3) ** -0.5
    for x in (0.05, 0.5, 1.0, 3.0):
        density, _ = integrate.quad(
            lambda lam, x=x: stats.norm.pdf(x, 0.0, lam) * stats.halfcauchy.pdf(lam), 0.0, np.inf, limit=200
        )
        bound = K * math.exp(priors.horseshoe_bound(x, 1.0))
        assert 0.4 * bound < density < bound


def test_half_cauchy_and_gamma_on_log_carry_the_jacobian() -> None:
    assert_density_of(lambda t: priors.half_cauchy_on_log(t, 0.05), oracles.half_cauchy_law(0.05, NOISE))
    assert_density_of(lambda t: priors.gamma_on_log(t, 2.0, 3.0), oracles.gamma_law(2.0, 3.0, BETA))


def test_normal_is_normal() -> None:
    assert_density_of(lambda t: priors.normal(t, 1.0, 0.8), oracles.normal_law(1.0, 0.8, (-4.0, 6.0)))


def test_truncated_normal_sits_in_the_middle_with_a_quarter_of_the_width_and_ends_at_the_ends() -> None:
    assert_density_of(lambda t: priors.truncated_normal(t, -1.0, 3.0), oracles.normal_law(1.0, 1.0, (-1.0, 3.0)))
    assert priors.truncated_normal(-1.0 - 1e-12, -1.0, 3.0) == -math.inf
    assert priors.truncated_normal(3.0 + 1e-12, -1.0, 3.0) == -math.inf
    assert math.isfinite(priors.truncated_normal(-1.0, -1.0, 3.0))
    assert priors.truncated_normal(2.0, 2.0, 2.0) == 0.0


@pytest.mark.parametrize(
    ("chosen", "law"),
    [
        (Priors(beta="published"), oracles.published_law(5.0, BETA)),
        (Priors(beta="horseshoe"), oracles.horseshoe_law(5.0, BETA)),
        (Priors(beta="gamma"), oracles.gamma_law(1.0, 3.0, BETA)),
        (Priors(beta="normal", beta_mean=1.0, beta_sd=0.5), oracles.normal_law(1.0, 0.5, BETA)),
    ],
    ids=["published", "horseshoe", "gamma", "normal"],
)
def test_the_prior_of_beta_is_the_one_its_name_says(chosen: Priors, law: Law) -> None:
    assert chosen.beta_support == law.support
    assert_density_of(chosen.log_beta, law)


@pytest.mark.parametrize(
    ("chosen", "law"),
    [
        (Priors(noise="published"), oracles.published_law(0.1 / math.sqrt(2.0), NOISE)),
        (Priors(noise="half-cauchy", noise_scale=0.2), oracles.half_cauchy_law(0.2, NOISE)),
    ],
    ids=["published", "half-cauchy"],
)
def test_the_prior_of_the_noise_is_the_one_its_name_says(chosen: Priors, law: Law) -> None:
    assert chosen.noise_support == law.support
    assert_density_of(chosen.log_noise, law)


@pytest.mark.parametrize(
    ("chosen", "law"),
    [
        (Priors(relevance="horseshoe", relevance_scale=0.5), oracles.horseshoe_law(0.5, RELEVANCE)),
        (Priors(relevance="half-cauchy", relevance_scale=2.0), oracles.half_cauchy_law(2.0, RELEVANCE)),
        (Priors(relevance="normal", relevance_scale=1.5), oracles.normal_law(0.0, 1.5, RELEVANCE)),
        (Priors(relevance="pooled", relevance_scale=1.5), oracles.t_law(2, 1.5, RELEVANCE)),
    ],
    ids=["horseshoe", "half-cauchy", "normal", "pooled"],
)
def test_the_prior_of_a_relevance_is_the_one_its_name_says(chosen: Priors, law: Law) -> None:
    assert chosen.relevance_support == law.support
    assert_density_of(chosen.log_relevance, law)


def test_a_pooled_relevance_given_others_is_as_wide_as_they_are() -> None:
    """Conditionals of Student's t with two degrees of freedom: two and k more, scale by the others' squares."""
    others = np.array([2.0, -1.0, 0.5, 3.0])
    width = math.sqrt((2.0 * 0.7**2 + others @ others) / 6)
    law = oracles.t_law(6, width, RELEVANCE)
    assert_density_of(lambda t: Priors(relevance="pooled", relevance_scale=0.7).log_relevance(t, others), law)


def test_published_noise_prior_is_the_papers_formula() -> None:
    """log(1 + (0.1 / noise)^2), on log noise."""
    for noise in (1e-4, 0.1, 5.0):
        expected = math.log(math.log1p((0.1 / noise) ** 2))
        assert Priors(noise="published").log_noise(math.log(noise)) == pytest.approx(expected, rel=1e-12)
