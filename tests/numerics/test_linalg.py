"""Gaussian process algebra against scipy's multivariate normal, plain inverses and the golden file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbo.errors import NumericalError
from carbo.numerics import linalg
from carbo.numerics.types import Floats
from carbo.space import graphs
from tests import oracles
from tests.models import predict

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden_gp.json").read_text())
GOLDEN_MEAN, GOLDEN_SIGNAL, GOLDEN_NOISE = 0.1, math.exp(0.4), math.exp(-3.0)
GOLDEN_JITTER = 1e-6 * GOLDEN_SIGNAL
GOLDEN_ROUNDING = 1e-8
"""How closely the file's numbers follow from its own Gram matrix and its note."""


def random_covariance(rng: np.random.Generator, n: int, noise: float = 0.1) -> Floats:
    A = rng.normal(size=(n, n))
    return np.asarray(A @ A.T / n + noise * np.eye(n))


def golden_covariance() -> Floats:
    K = np.array(GOLDEN["gram"])
    return np.asarray(K + (GOLDEN_NOISE + GOLDEN_JITTER) * np.eye(len(K)))


def fit(C: Floats, r: Floats) -> linalg.Fit:
    """The fit of residuals under a covariance that keeps its values."""
    found = linalg.fit_in_place(np.array(C, order="F"), r)
    assert found is not None
    return found


def log_likelihood(C: Floats, r: Floats) -> float:
    """The log likelihood of residuals, its constant included."""
    return fit(C, r).log_likelihood - 0.5 * len(r) * math.log(2.0 * math.pi)


# -- likelihood ------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12))
def test_log_likelihood_is_the_multivariate_normal_log_density(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    C, r = random_covariance(rng, n), rng.normal(size=n)
    assert log_likelihood(C, r) == pytest.approx(oracles.log_normal_density(C, r), rel=1e-9, abs=1e-9)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12))
def test_a_fit_is_the_halves_of_determinant_and_quadratic_form(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    C, r = random_covariance(rng, n), rng.normal(size=n)
    log_det_half = -0.5 * float(np.linalg.slogdet(C).logabsdet)
    quad_half = -0.5 * float(r @ np.linalg.inv(C) @ r)
    found = fit(C, r)
    assert found.log_det_half == pytest.approx(log_det_half, rel=1e-9, abs=1e-9)
    assert found.quad_half == pytest.approx(quad_half, rel=1e-9)
    assert found.log_likelihood == pytest.approx(log_det_half + quad_half, rel=1e-9, abs=1e-9)


def test_fit_in_place_says_none_where_the_covariance_is_not_positive_definite() -> None:
    r = np.ones(3)
    assert linalg.fit_in_place(np.asfortranarray(np.diag([1.0, -1.0, 1.0])), r) is None
    assert linalg.fit_in_place(np.zeros((3, 3), order="F"), r) is None
    assert linalg.fit_in_place(np.full((3, 3), np.nan, order="F"), r) is None


def test_independent_residuals_add_up() -> None:
    rng = np.random.default_rng(0)
    A, B, r = random_covariance(rng, 3), random_covariance(rng, 4), rng.normal(size=7)
    both = np.zeros((7, 7))
    both[:3, :3], both[3:, 3:] = A, B
    together = fit(A, r[:3]).plus(fit(B, r[3:]))
    np.testing.assert_allclose(together, fit(both, r), rtol=1e-12)


def test_log_likelihood_matches_the_golden_file() -> None:
    got = log_likelihood(golden_covariance(), np.array(GOLDEN["y"]) - GOLDEN_MEAN)
    assert -got == pytest.approx(GOLDEN["negative_log_likelihood"], abs=GOLDEN_ROUNDING)


# -- prediction ------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), n=st.integers(1, 10))
def test_predictions_equal_the_formulas_with_the_inverse(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    K = random_covariance(rng, n + 5, noise=0.0)
    C, Ks, Kss = K[:n, :n] + 0.1 * np.eye(n), K[n:, :n], K[n:, n:]
    y, mean = rng.normal(size=n), 0.7
    expected_mean, expected_cov = oracles.conditional(C, Ks, Kss, y - mean)
    got_mean, got_variance = predict(linalg.condition(C, y, mean), Ks, np.diagonal(Kss))
    np.testing.assert_allclose(got_mean, mean + expected_mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(got_variance, np.diagonal(expected_cov), rtol=0, atol=1e-9)


def test_predictions_match_the_golden_file() -> None:
    make = {"complete": graphs.complete, "path": graphs.path}
    space = [make[kind](size) for kind, size in zip(GOLDEN["graphs"], GOLDEN["sizes"], strict=True)]
    beta, X, rows = np.exp(GOLDEN["log_beta"]), np.array(GOLDEN["X"]), np.array(GOLDEN["X_star"])
    Ks = GOLDEN_SIGNAL * oracles.product_gram(space, "published", beta, rows, X)
    prior = GOLDEN_SIGNAL * np.diagonal(oracles.product_gram(space, "published", beta, rows)) + GOLDEN_JITTER
    mean, variance = predict(linalg.condition(golden_covariance(), np.array(GOLDEN["y"]), GOLDEN_MEAN), Ks, prior)
    np.testing.assert_allclose(mean, GOLDEN["mean"], rtol=0, atol=GOLDEN_ROUNDING)
    np.testing.assert_allclose(variance, GOLDEN["variance"], rtol=0, atol=GOLDEN_ROUNDING)


# -- elimination -----------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), n1=st.integers(1, 7), n2=st.integers(1, 7))
def test_eliminating_some_observations_leaves_the_schur_complement(seed: int, n1: int, n2: int) -> None:
    rng = np.random.default_rng(seed)
    C, r = random_covariance(rng, n1 + n2), rng.normal(size=n1 + n2)
    C11, A, r1 = C[:n1, :n1], C[:n1, n1:], r[:n1]
    room = np.empty((n2, n2), order="F")
    head = linalg.eliminate(np.array(C11, order="F"), np.array(A, order="F"), r1, room)
    assert head is not None
    inverse = np.linalg.inv(C11)
    np.testing.assert_allclose(np.tril(head.H), np.tril(A.T @ inverse @ A), rtol=0, atol=1e-9)
    np.testing.assert_allclose(head.g, A.T @ inverse @ r1, rtol=0, atol=1e-9)
    np.testing.assert_allclose(head.fit, fit(C11, r1), rtol=1e-9, atol=1e-9)
    H = np.tril(head.H) + np.tril(head.H, -1).T
    tail = fit(C[n1:, n1:] - H, r[n1:] - head.g)
    np.testing.assert_allclose(head.fit.plus(tail), fit(C, r), rtol=1e-8, atol=1e-8)


def test_elimination_says_none_where_the_block_is_not_positive_definite() -> None:
    room = np.empty((3, 3), order="F")
    assert linalg.eliminate(np.asfortranarray(-np.eye(2)), np.ones((2, 3), order="F"), np.ones(2), room) is None


def test_elimination_of_all_observations_leaves_none() -> None:
    rng = np.random.default_rng(0)
    C, r = random_covariance(rng, 4), rng.normal(size=4)
    nobody = np.empty((4, 0), order="F")
    head = linalg.eliminate(np.array(C, order="F"), nobody, r, np.empty((0, 0), order="F"))
    assert head is not None
    assert head.g.size == 0
    np.testing.assert_allclose(head.fit, fit(C, r), rtol=1e-12)


# -- the jitter ladder -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1.0, 1e8, 1e200])
def test_singular_covariances_are_factored_with_a_little_jitter(scale: float) -> None:
    rank_one = scale * np.ones((6, 6))
    L = linalg.cholesky(rank_one)
    assert np.all(np.triu(L, 1) == 0.0)
    np.testing.assert_allclose(L @ L.T / scale, rank_one / scale, rtol=0, atol=1.1e-4)


def test_the_smallest_rung_that_works_is_taken_and_the_matrix_is_left_alone() -> None:
    C = random_covariance(np.random.default_rng(0), 6)
    before = C.copy()
    L = linalg.cholesky(C)
    np.testing.assert_array_equal(C, before)
    np.testing.assert_allclose(L @ L.T, C, rtol=0, atol=1e-14)
    slightly_negative = np.ones((4, 4)) - 1e-9 * np.eye(4)
    L = linalg.cholesky(slightly_negative)
    np.testing.assert_allclose(np.diagonal(L @ L.T) - np.diagonal(slightly_negative), 1e-8, rtol=1e-4)


@pytest.mark.parametrize(
    "hopeless",
    [
        -np.eye(3),
        np.diag([1.0, -1.0, 1.0]),
        np.full((3, 3), np.nan),
        np.diag([1.0, np.nan, 1.0]),
        np.diag([1.0, np.inf, 1.0]),
        np.diag([np.inf, 1.0, 1.0]),
    ],
    ids=["negative", "indefinite", "nan", "one-nan", "one-infinity", "first-infinity"],
)
def test_hopeless_covariances_raise_and_say_how_many_observations(hopeless: Floats) -> None:
    for use in (linalg.cholesky, lambda C: linalg.condition(C, np.ones(3), 0.0)):
        with pytest.raises(NumericalError, match="covariance of 3 observations: expected a positive definite matrix"):
            use(hopeless)


# -- triangles -------------------------------------------------------------------------------------------------------


def test_triangular_solves_invert_the_factor_and_its_transpose() -> None:
    rng = np.random.default_rng(0)
    L = linalg.cholesky(random_covariance(rng, 5))
    for b in (rng.normal(size=5), rng.normal(size=(5, 3))):
        np.testing.assert_allclose(L @ linalg.solve_lower(L, b), b, atol=1e-12)
        np.testing.assert_allclose(L.T @ linalg.solve_upper(L, b), b, atol=1e-12)
