"""Prior densities against the exact distribution functions of `oracles`: each integrates to its law; and slopes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

from carbo.errors import SettingsError
from carbo.inference import priors
from carbo.inference.priors import Priors, Supports
from carbo.numerics.types import Floats
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


def test_horseshoe_bound_is_read_at_x_without_a_jacobian() -> None:
    """The published experiments sample log beta against the bound at beta."""
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
        (Priors(beta="gamma"), oracles.gamma_law(1.0, 3.0, BETA)),
        (Priors(beta="normal", beta_mean=1.0, beta_sd=0.5), oracles.normal_law(1.0, 0.5, BETA)),
    ],
    ids=["published", "gamma", "normal"],
)
def test_the_prior_of_beta_is_the_one_its_name_says(chosen: Priors, law: Law) -> None:
    assert_density_of(chosen.log_beta, law)


@pytest.mark.parametrize(
    ("chosen", "law"),
    [
        (Priors(level="published"), oracles.published_law(0.1 / math.sqrt(2.0), NOISE)),
        (Priors(level="standard", noise_scale=0.2), oracles.half_cauchy_law(0.2, NOISE)),
    ],
    ids=["published", "standard"],
)
def test_the_prior_of_the_noise_is_the_one_of_its_level(chosen: Priors, law: Law) -> None:
    assert_density_of(chosen.log_noise, law)


def test_the_prior_of_a_single_relevance_is_students_with_two_degrees_of_freedom() -> None:
    assert_density_of(
        lambda t: Priors(relevance_scale=1.5).log_relevance(t, np.zeros(0)), oracles.t_law(2, 1.5, RELEVANCE)
    )


def test_supports_are_those_that_the_laws_here_are_cut_off_at() -> None:
    assert Priors().supports == Supports(beta=BETA, noise=NOISE, weight=(-10.0, 10.0), relevance=RELEVANCE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("level", "paper"), ("beta", "horseshoe"), ("beta_sd", 0.0), ("weight_sd", -1.0), ("noise_scale", "small"),
        ("relevance_scale", math.nan), ("supports", (0.0, 1.0)), ("supports", Supports(beta=(1.0, 1.0))),
        ("supports", Supports(noise=(0.0, math.nan))), ("supports", Supports(weight=(0.0,))),  # type: ignore[arg-type]
        ("supports", Supports(relevance="ab")),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_prior_that_does_not_exist_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"prior '{name}'"):
        Priors(**{name: value})  # type: ignore[arg-type]


def test_a_pooled_relevance_given_others_is_as_wide_as_they_are() -> None:
    """Conditionals of Student's t with two degrees of freedom: two and k more, scale by the others' squares."""
    others = np.array([2.0, -1.0, 0.5, 3.0])
    width = math.sqrt((2.0 * 0.7**2 + others @ others) / 6)
    law = oracles.t_law(6, width, RELEVANCE)
    assert_density_of(lambda t: Priors(relevance_scale=0.7).log_relevance(t, others), law)


def test_published_noise_prior_is_the_papers_formula() -> None:
    """log(1 + (0.1 / noise)^2), on log noise."""
    for noise in (1e-4, 0.1, 5.0):
        expected = math.log(math.log1p((0.1 / noise) ** 2))
        assert Priors(level="published").log_noise(math.log(noise)) == pytest.approx(expected, rel=1e-12)


# -- slopes -----------------------------------------------------------------------------------------------------------

Scalar = Callable[[float], float]
Sloped = Callable[[Floats], priors.Slopes]


def assert_slope_of(scalar: Scalar, slope: Sloped, support: tuple[float, float]) -> None:
    """Values and slopes on a grid over the support, ends included; and of no numbers at all."""
    theta = np.linspace(*support, 41)
    value, by = slope(theta)
    np.testing.assert_allclose(value, [scalar(t) for t in theta.tolist()], rtol=1e-10, atol=1e-12)

    def along(t: float) -> float:
        return oracles.richardson(lambda h: scalar(t + h))

    expected = [along(t) for t in theta.tolist()]
    np.testing.assert_allclose(by, expected, rtol=1e-7, atol=1e-7)
    assert [part.shape for part in slope(np.zeros(0))] == [(0,), (0,)]


@pytest.mark.parametrize("tau", [0.07, 1.0, 5.0])
def test_slopes_of_the_horseshoe(tau: float) -> None:
    bound = priors.horseshoe_bound
    assert_slope_of(lambda t: bound(math.exp(t), tau), lambda t: priors.horseshoe_bound_slope(t, tau), (-12.0, 9.0))


@pytest.mark.parametrize("scale", [0.05, 1.0, 3.0])
def test_slopes_of_the_half_cauchy_the_gamma_and_the_normal(scale: float) -> None:
    half_cauchy, gamma, normal = priors.half_cauchy_on_log, priors.gamma_on_log, priors.normal
    assert_slope_of(lambda t: half_cauchy(t, scale), lambda t: priors.half_cauchy_on_log_slope(t, scale), (-12.0, 9.0))
    assert_slope_of(lambda t: gamma(t, 2.0, scale), lambda t: priors.gamma_on_log_slope(t, 2.0, scale), (-12.0, 4.0))
    assert_slope_of(lambda t: normal(t, 0.7, scale), lambda t: priors.normal_slope(t, 0.7, scale), (-6.0, 6.0))


@pytest.mark.parametrize("name", get_args(get_type_hints(Priors)["beta"]))
def test_every_prior_of_beta_that_can_be_chosen_has_the_slope_of_its_density(name: str) -> None:
    chosen = Priors(beta=name, beta_mean=0.6, beta_sd=0.8)  # type: ignore[arg-type]
    assert_slope_of(chosen.log_beta, chosen.beta_slope, BETA)


def test_the_prior_of_the_noise_has_the_slope_of_its_density() -> None:
    chosen = Priors(level="standard", noise_scale=0.3)
    assert_slope_of(chosen.log_noise, chosen.noise_slope, NOISE)


@given(theta=arrays(np.float64, st.integers(1, 6), elements=st.floats(-6.0, 3.0)), scale=st.floats(0.3, 3.0))
def test_the_slope_of_pooled_relevances_is_that_of_their_joint_density(theta: Floats, scale: float) -> None:
    chosen = Priors(relevance_scale=scale)
    (value,), by = chosen.relevance_slope(theta)
    level = oracles.log_pooled(0.0 * theta, scale) + (2.0 + len(theta)) * math.log(scale)
    assert value == pytest.approx(oracles.log_pooled(theta, scale) - level, rel=1e-9, abs=1e-9)

    def along(unit: Floats) -> float:
        return oracles.richardson(lambda h: oracles.log_pooled(theta + h * unit, scale))

    for i, unit in enumerate(np.eye(len(theta))):
        assert by[i] == pytest.approx(along(unit), rel=1e-5, abs=1e-5)
        given_others = chosen.log_relevance(float(theta[i]), np.delete(theta, i))
        assert given_others == pytest.approx(value, rel=1e-12, abs=1e-12)
