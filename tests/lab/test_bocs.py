"""BOCS draws its coefficients from the posterior it claims, and its searches find what a full search finds.

Claims about laws are made at the false-alarm rate of `checks`, claims about rates of success at the same rate
through the binomial distribution; both have broken twins.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import carbo
from carbo.errors import SettingsError
from carbo.numerics.types import Floats, Ints
from carbo.space.space import Space
from lab.methods import bocs_model as model
from lab.methods import bocs_search as search
from lab.methods.base import Method
from lab.methods.bocs import BOCS_SA3, BOCS_SDP
from lab.methods.bocs_model import Chain, Regression
from lab.methods.bocs_search import Polynomial
from tests.checks import FALSE_ALARM, assert_plausible, assert_rejected, p_value, p_value_two

Objective = Polynomial | Callable[[Floats], float]
Minimiser = Callable[[np.random.Generator, Polynomial], Ints]


def binary(d: int) -> Space:
    return Space({f"x{i}": carbo.Binary() for i in range(d)})


def corners(d: int) -> Floats:
    """Every row of d binary variables."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=d)))


# -- the polynomial --------------------------------------------------------------------------------------------------


def value_by_terms(a: Floats, order: int, x: Floats) -> float:
    """sum of coefficient times product of variables, term by term."""
    total, coefficients = 0.0, iter(a.tolist())
    for degree in range(1, order + 1):
        for variables in itertools.combinations(range(len(x)), degree):
            total += next(coefficients) * math.prod(x[i] for i in variables)
    assert next(coefficients, None) is None
    return total


def number_of_terms(d: int, order: int) -> int:
    return sum(variables.shape[1] for variables in model.monomials(d, order))


@pytest.mark.parametrize(("d", "order"), [(1, 2), (2, 3), (5, 2), (6, 3)])
def test_features_and_tensors_are_the_polynomial_written_out(d: int, order: int) -> None:
    a = np.random.default_rng(d).normal(size=number_of_terms(d, order))
    rows = corners(d)
    expected = [value_by_terms(a, order, x) for x in rows]
    np.testing.assert_allclose(model.features(rows, order) @ a, expected, atol=1e-12)
    np.testing.assert_allclose(model.polynomial(a, d, order).values(rows), expected, atol=1e-12)


@pytest.mark.parametrize(("d", "p"), [(28, 3_683), (43, 13_288), (60, 36_051)])
def test_a_third_order_model_has_as_many_terms_as_the_paper_counts_with_the_constant(d: int, p: int) -> None:
    assert number_of_terms(d, 3) + 1 == p


@pytest.mark.parametrize("order", [2, 3])
def test_a_derivative_is_what_a_flip_adds(order: int) -> None:
    d = 5
    f = model.polynomial(np.random.default_rng(1).normal(size=number_of_terms(d, order)), d, order)
    rows = corners(d)
    first, second = f.slopes(rows)
    for i in range(d):
        flipped = rows.copy()
        flipped[:, i] = 1.0 - flipped[:, i]
        step = flipped[:, i] - rows[:, i]
        np.testing.assert_allclose(f.values(flipped) - f.values(rows), step * first[:, i], atol=1e-12)
        np.testing.assert_allclose(f.slopes(flipped)[0] - first, step[:, None] * second[:, i], atol=1e-12)


def test_values_of_any_scale_are_standardised() -> None:
    rows, values = corners(3), np.random.default_rng(2).normal(size=8)
    plain = model.regression(rows, values, 2)
    assert abs(plain.y.mean()) < 1e-12
    assert plain.y.std() == pytest.approx(1.0)
    np.testing.assert_allclose(plain.X.mean(axis=0), 0.0, atol=1e-15)
    for scale, shift in ((1e300, 0.0), (1e-300, 0.0), (3.0, -1e3)):
        np.testing.assert_allclose(model.regression(rows, scale * values + shift, 2).y, plain.y, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.regression(rows, np.full(8, 0.3), 2).y.round(9), 0.0)


# -- the coefficients' normal law ------------------------------------------------------------------------------------


def whitened(seed: int, draws: int, rng_kind: type[np.random.Generator]) -> dict[str, float]:
    """p-values of the sampler against the dense formulas: any projection of whitened draws is standard normal."""
    rng = np.random.default_rng(seed)
    n, p, sigma2 = 4, 7, 0.3
    data = Regression(rng.normal(size=(n, p)), rng.normal(size=n))
    D = rng.exponential(size=p) ** 3
    precision = (data.X.T @ data.X + np.diag(1.0 / D)) / sigma2
    mean = np.linalg.solve(precision, data.X.T @ data.y / sigma2)
    sampler = rng_kind(np.random.PCG64(seed + 1))
    a = np.array([model.coefficients(sampler, data, D, sigma2) for _ in range(draws)])
    z = (a - mean) @ np.linalg.cholesky(precision)
    directions = np.vstack([np.eye(p), stats.ortho_group(p, seed=seed).rvs()])
    found = {f"direction {i}": p_value(z @ direction, stats.norm.cdf) for i, direction in enumerate(directions)}
    return found | {"length": p_value(np.sum(z**2, axis=1), stats.chi2(p).cdf)}


def test_coefficients_follow_the_normal_law_of_the_dense_formulas() -> None:
    for seed in (0, 1):
        assert_plausible(whitened(seed, 4_000, np.random.Generator))


def test_without_the_noise_of_the_data_the_normal_law_is_lost() -> None:
    class Noiseless(np.random.Generator):
        def standard_normal(self, size: Any = None, *args: Any, **kwargs: Any) -> Any:
            drawn = super().standard_normal(size, *args, **kwargs)
            return drawn if size == 7 else 0.0 * drawn

    assert_rejected(whitened(0, 4_000, Noiseless))


# -- the Gibbs sampler -----------------------------------------------------------------------------------------------

REPLICATES, TRUTHS, PASSES = 1_500, 6_000, 3


def tiny() -> Regression:
    """Five observations of the polynomial x1 + x2: four degrees of freedom, some signal."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    y = np.array([-0.9, 0.8, -0.7, 1.6, -0.1])
    return Regression(X - X.mean(axis=0), y - y.mean())


def exact_draws(rng: np.random.Generator, data: Regression, draws: int) -> tuple[list[Chain], Floats]:
    """Chains and coefficients from the posterior itself, by rejection: no conditional of the sampler is used.

    With coefficients, constant and sigma2 integrated out the likelihood of the scales is
    |M|^(-1/2) (y'M^-1 y)^(-(n-1)/2), M = I + X D X'; it is at most that of least squares with |M| = 1.
    """
    n, p = data.X.shape
    residual = data.y - data.X @ np.linalg.lstsq(data.X, data.y)[0]
    chains: list[Chain] = []
    coefficients = []
    while len(chains) < draws:
        scales = rng.standard_cauchy((draws, p + 1)) ** 2
        D = scales[:, 1:] * scales[:, :1]
        M = np.eye(n) + np.einsum("ik,rk,jk->rij", data.X, D, data.X)
        quadratic = np.einsum("i,rij,j->r", data.y, np.linalg.inv(M), data.y)
        likelihood = np.linalg.det(M) ** -0.5 * (residual @ residual / quadratic) ** ((n - 1) / 2)
        for r in np.flatnonzero(rng.random(draws) < likelihood):
            sigma2 = quadratic[r] / rng.chisquare(n - 1)
            precision = data.X.T @ data.X + np.diag(1.0 / D[r])
            spread = np.linalg.cholesky(sigma2 * np.linalg.inv(precision))
            coefficients.append(np.linalg.solve(precision, data.X.T @ data.y) + spread @ rng.standard_normal(p))
            tau2, beta2 = scales[r, 0], scales[r, 1:]
            auxiliary = (1.0 + 1.0 / scales[r]) / rng.exponential(size=p + 1)
            chains.append(Chain(beta2, auxiliary[1:], float(tau2), float(auxiliary[0]), float(sigma2)))
    return chains[:draws], np.array(coefficients[:draws])


def summaries(chains: list[Chain], a: Floats) -> dict[str, Floats]:
    """What the laws are compared in."""
    return {
        "a1": a[:, 0],
        "a2": a[:, 1],
        "length": np.sum(a**2, axis=1),
        "beta2": np.array([chain.beta2[0] for chain in chains]),
        "nu": np.array([chain.nu[0] for chain in chains]),
        "tau2": np.array([chain.tau2 for chain in chains]),
        "xi": np.array([chain.xi for chain in chains]),
        "sigma2": np.array([chain.sigma2 for chain in chains]),
        "signal": np.array([chain.tau2 * chain.beta2[1] / chain.sigma2 for chain in chains]),
    }


@cache
def posterior(seed: int) -> tuple[list[Chain], Floats]:
    """Exact draws that tests share; none of them changes a chain."""
    return exact_draws(np.random.default_rng(seed), tiny(), REPLICATES + TRUTHS)


def after_sweeps(seed: int) -> dict[str, float]:
    """p-values: exact draws, each moved on by a few sweeps of its own, against other exact draws."""
    rng = np.random.default_rng(seed + 1)
    chains, a = posterior(seed)
    moved = [model.draw(rng, start, tiny(), PASSES) for start in chains[:REPLICATES]]
    ends, after = [chain for chain, _ in moved], np.array([drawn for _, drawn in moved])
    assert np.all(after != a[:REPLICATES])  # standing still would leave any law invariant
    truth = summaries(chains[REPLICATES:], a[REPLICATES:])
    return {name: p_value_two(found, truth[name]) for name, found in summaries(ends, after).items()}


def test_sweeps_leave_the_posterior_invariant() -> None:
    assert_plausible(after_sweeps(3))


BROKEN: dict[str, Callable[[float, Any], tuple[float, Any]]] = {
    "a degree of freedom for the constant": lambda shape, rate: (shape + 0.5 if shape == 3.0 else shape, rate),
    "tau2 of a flat prior": lambda shape, rate: (shape - 0.5 if shape == 1.5 else shape, rate),
    "scales of half-Cauchys twice as wide": lambda shape, rate: (shape, 2.0 * rate if shape == 1.0 else rate),
}
"""Shapes for `tiny`: 3 for sigma2, 3/2 for tau2, 1 for the others."""


@pytest.mark.parametrize("fault", BROKEN)
def test_a_sampler_with_a_wrong_conditional_loses_the_posterior(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = model.inverse_gamma

    def wrong(rng: np.random.Generator, shape: float, rate: Any) -> Floats:
        return right(rng, *BROKEN[fault](shape, rate))

    monkeypatch.setattr(model, "inverse_gamma", wrong)
    assert_rejected(after_sweeps(3))


# -- searches --------------------------------------------------------------------------------------------------------


def random_polynomial(rng: np.random.Generator, d: int, order: int, heavy: bool) -> Polynomial:
    """Normal coefficients, or ones with tails as heavy as the horseshoe's."""
    p = number_of_terms(d, order)
    scales = np.abs(rng.standard_cauchy(p)) if heavy else 1.0
    return model.polynomial(rng.normal(size=p) * scales, d, order)


def least(f: Polynomial) -> float:
    """By full search."""
    return float(f.values(corners(len(f.linear))).min())


def successes(seed: int, minimise: Minimiser, instances: list[Polynomial]) -> int:
    """How many of the polynomials it minimises."""
    rng = np.random.default_rng(seed)
    values = [float(f.values(minimise(rng, f)[None].astype(np.float64))[0]) for f in instances]
    return sum(value <= least(f) + 1e-9 for value, f in zip(values, instances, strict=True))


def quota(trials: int, rate: float) -> int:
    """Successes that a method which succeeds at `rate` falls short of with a probability below FALSE_ALARM."""
    return int(stats.binom(trials, rate).ppf(FALSE_ALARM))


def instances(order: int, heavy: bool, number: int = 40, d: int = 12) -> list[Polynomial]:
    rng = np.random.default_rng(7)
    return [random_polynomial(rng, d, order, heavy) for _ in range(number)]


@pytest.mark.parametrize("heavy", [False, True])
def test_no_row_lies_below_the_bound_of_the_relaxation(heavy: bool) -> None:
    pytest.importorskip("scs")
    for f in instances(2, heavy):
        assert search.relax(f).bound <= least(f)


@pytest.mark.parametrize("d", [1, 2, 12, 24])
def test_the_relaxation_is_solved_its_matrix_attains_its_bound(d: int) -> None:
    pytest.importorskip("scs")
    f = random_polynomial(np.random.default_rng(d), d, 2, heavy=True)
    found = search.relax(f)
    cost, constant = search.as_signs(f)
    scale = float(np.abs(cost).max())
    np.testing.assert_allclose(np.diagonal(found.matrix), 1.0, atol=1e-3)
    assert np.linalg.eigvalsh(found.matrix)[0] > -1e-3
    assert constant + float(np.sum(cost * found.matrix)) == pytest.approx(found.bound, abs=1e-2 * scale)


def test_the_bound_is_the_minimum_where_variables_do_not_interact() -> None:
    pytest.importorskip("scs")
    linear = np.random.default_rng(8).normal(size=10)
    f = Polynomial(linear, np.zeros((10, 10)))
    assert search.relax(f).bound == pytest.approx(np.minimum(linear, 0.0).sum(), abs=1e-2)
    assert search.relax(Polynomial(0.0 * linear, f.pairs)).bound == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("heavy", [False, True])
def test_rounding_the_relaxation_finds_the_minimum_nine_times_in_ten(heavy: bool) -> None:
    pytest.importorskip("scs")
    assert successes(1, search.by_relaxation, instances(2, heavy)) >= quota(40, 0.9)


def test_rounding_an_unsolved_relaxation_does_not() -> None:
    def unsolved(rng: np.random.Generator, f: Polynomial) -> Ints:
        rows = search.round_relaxation(rng, np.eye(len(f.linear) + 1))
        best: Ints = rows[np.argmin(f.values(rows.astype(np.float64)))]
        return best

    assert successes(1, unsolved, instances(2, heavy=False)) < quota(40, 0.9)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("heavy", [False, True])
def test_annealing_finds_the_minimum_ninety_nine_times_in_a_hundred(order: int, heavy: bool) -> None:
    assert successes(2, search.by_annealing, instances(order, heavy)) >= quota(40, 0.99)


def test_annealing_that_is_not_cooled_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "COLD", 100.0)
    monkeypatch.setattr(search, "HOT", 100.0)
    monkeypatch.setattr(search, "SWEEPS", 5)
    assert successes(2, search.by_annealing, instances(3, heavy=False)) < quota(40, 0.99)


# -- whole runs ------------------------------------------------------------------------------------------------------

METHODS = pytest.mark.parametrize("method", [BOCS_SDP, BOCS_SA3], ids=["sdp", "sa3"])


def run(
    method: Method, f: Objective, seed: int, budget: int, d: int = 10, enough: float = -math.inf
) -> tuple[Ints, Floats]:
    """Rows and values of a run with ten random initial points, which ends with a value that is enough."""
    if "scs" in method.packages:
        pytest.importorskip("scs")
    strategy = method.start(binary(d), seed, budget)
    initial = list(np.random.default_rng(seed).integers(0, 2, size=(10, d)))
    rows, values = [], []
    for i in range(budget):
        row = initial[i] if i < 10 else strategy.ask()
        assert row.shape == (d,)
        rows.append(row)
        values.append(f(row.astype(np.float64)) if callable(f) else float(f.values(row[None].astype(np.float64))[0]))
        strategy.tell(row, values[-1])
        if values[-1] <= enough:
            break
    return np.array(rows), np.array(values)


def sparse_objective(seed: int, d: int) -> Polynomial:
    """A quadratic polynomial with every linear term and about a twentieth of the others."""
    rng = np.random.default_rng(seed)
    p = number_of_terms(d, 2)
    kept = (np.arange(p) < d) | (rng.random(p) < 0.05)
    return model.polynomial(rng.normal(size=p) * kept, d, 2)


@METHODS
def test_nearly_all_suggestions_are_among_the_better_half(method: Method) -> None:
    better, by_chance, asked = 0, 0, 0
    for seed in range(5):
        f = sparse_objective(seed, 7)
        middle = np.median(f.values(corners(7)))
        values = run(method, f, seed, 20, 7)[1][10:]
        rows = np.random.default_rng(seed).integers(0, 2, size=(len(values), 7)).astype(np.float64)
        better, asked = better + int(np.sum(values < middle)), asked + len(values)
        by_chance += int(np.sum(f.values(rows) < middle))
    assert_rejected({"the method": float(stats.binom.sf(better - 1, asked, 0.5))})
    assert_plausible({"chance": float(stats.binom.sf(by_chance - 1, asked, 0.5))})


@pytest.mark.parametrize("method", [BOCS_SDP, pytest.param(BOCS_SA3, marks=pytest.mark.slow)], ids=["sdp", "sa3"])
def test_the_best_of_1024_points_is_found_in_40_evaluations_four_times_in_five(method: Method) -> None:
    trials, budget, found, found_by_chance = 12, 40, 0, 0
    for seed in range(trials):
        f = sparse_objective(seed, 10)
        best = least(f) + 1e-9
        _, values = run(method, f, seed, budget, enough=best)
        found += values.min() <= best
        rows = np.random.default_rng(seed).integers(0, 2, size=(budget, 10)).astype(np.float64)
        found_by_chance += f.values(rows).min() <= best
    assert found >= quota(trials, 0.8)
    assert found_by_chance < quota(trials, 0.8)


@METHODS
def test_the_seed_decides_the_run(method: Method) -> None:
    one, two, other = (run(method, sparse_objective(1, 6), seed, 16, 6)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert np.any(one[10:] != other[10:])


@METHODS
@pytest.mark.parametrize(
    "f",
    [lambda x: 1.0, lambda x: 1e300 * float(x.sum()), lambda x: 1e-300 * float(x[0])],
    ids=["constant", "huge", "minute"],
)
def test_values_of_any_size_can_be_told(method: Method, f: Callable[[Floats], float]) -> None:
    rows, _ = run(method, f, 1, 14, 5)
    assert set(np.unique(rows)) <= {0, 1}


@METHODS
def test_a_single_variable_and_no_observation_are_enough(method: Method) -> None:
    if "scs" in method.packages:
        pytest.importorskip("scs")
    strategy = method.start(binary(1), 0, 6)
    for _ in range(6):
        row = strategy.ask()
        assert row.tolist() in ([0], [1])
        strategy.tell(row, float(row[0]))


@METHODS
def test_other_variables_and_constraints_are_refused(method: Method) -> None:
    assert method.binary_only
    mixed = Space({"flag": carbo.Binary(), "colour": carbo.Categorical(["red", "green", "blue"])})
    with pytest.raises(SettingsError, match=r"two values, got 'colour' with 3"):
        method.start(mixed, 0, 10)
    constrained = Space({"a": carbo.Binary(), "b": carbo.Binary()}, lambda p: p["a"] or p["b"])
    with pytest.raises(SettingsError, match="without a constraint"):
        method.start(constrained, 0, 10)


def test_an_absent_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scs", None)
    with pytest.raises(SettingsError, match=r"package scs .* pip install 'carbo\[bench\]'"):
        search.relax(Polynomial(np.ones(2), np.zeros((2, 2))))
