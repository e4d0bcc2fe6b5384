"""The sampler of the kernel's parameters: its bounds bound, its shortcuts change nothing, its chain has the right law.

The law is tested as Geweke (2004, JASA 99:799) proposes, made exact: every replicate draws parameters from the prior
and values from the model, alternates sweeps with fresh values, and must still stand on the prior at the end.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from carbo.errors import NumericalError
from carbo.inference import conditionals
from carbo.inference.data import Data, Hyper, Model, Sampling
from carbo.inference.gibbs import State, draw, initial_hyper, start, sweep
from carbo.inference.priors import Priors
from carbo.kernels.base import Scales
from carbo.kernels.product import Product
from carbo.kernels.spectra import spectrum
from carbo.numerics import linalg
from carbo.numerics.types import Floats
from carbo.settings import STANDARD as DEFAULT
from carbo.space import graphs
from carbo.space.graphs import Graph
from tests import oracles
from tests.checks import assert_plausible, assert_rejected, p_value, p_value_two
from tests.models import (
    GEWEKE_ROWS,
    GEWEKE_SPACE,
    MIXED,
    PAPER,
    STANDARD,
    Laws,
    assert_sane,
    flat,
    hard_cases,
    joint_p_values,
    kernels,
    model_covariance,
    models,
    parameter,
    parameter_laws,
    prior_draws,
    some_data,
)

MODELS = tuple(models(MIXED))


# -- bounds ----------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """C(t) = base + t slope, positive definite for t in [low, high], and residuals."""

    base: Floats
    slope: Floats
    r: Floats
    low: float
    high: float

    def fit(self, t: float) -> linalg.Fit:
        C = self.base + t * self.slope
        return linalg.Fit(
            -0.5 * float(np.linalg.slogdet(C).logabsdet), -0.5 * float(self.r @ np.linalg.solve(C, self.r))
        )


def random_line(rng: np.random.Generator) -> Line:
    """A line as for a weight or the noise (slope positive semidefinite), or for a complete graph (slope indefinite)."""
    n = int(rng.integers(1, 8))
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, int(rng.integers(1, n + 1))))
    base, r = A @ A.T / n + 0.05 * np.eye(n), 3.0 * rng.normal(size=n)
    if rng.random() < 0.5:
        return Line(base, B @ B.T, r, 0.0, 20.0)
    unequal = np.not_equal.outer(labels := rng.integers(0, 3, n), labels)
    return Line(np.where(unequal, 0.0, base), np.where(unequal, base, 0.0), r, 0.0, 1.0)


@given(seed=st.integers(0, 10**6), known=st.integers(1, 6))
def test_bounds_hold_the_likelihood_all_along_the_line(seed: int, known: int) -> None:
    rng = np.random.default_rng(seed)
    line = random_line(rng)
    ts = sorted(rng.uniform(line.low, line.high, known).tolist())
    fits = [line.fit(t) for t in ts]
    for t in [*rng.uniform(line.low, line.high, 20).tolist(), *ts]:
        low, high = conditionals.bounds(t, ts, fits)
        exact = line.fit(t).log_likelihood
        slack = 1e-9 * (1.0 + abs(exact))
        assert low <= exact + slack
        assert exact <= high + slack


@given(seed=st.integers(0, 10**6))
def test_bounds_are_exact_at_known_points_and_close_between_near_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    line = random_line(rng)
    ts = np.linspace(line.low + 0.3 * line.high, line.high, 200).tolist()
    fits = [line.fit(t) for t in ts]
    assert conditionals.bounds(ts[7], ts, fits) == (fits[7].log_likelihood, fits[7].log_likelihood)
    low, high = conditionals.bounds((ts[50] + ts[51]) / 2, ts, fits)
    assert high - low < 0.05 * (1.0 + abs(low))


def test_bounds_stay_honest_outside_all_known_points() -> None:
    line = random_line(np.random.default_rng(0))
    low, high = conditionals.bounds(0.9 * line.high, [0.1 * line.high], [line.fit(0.1 * line.high)])
    assert (low, high) == (-math.inf, math.inf)


# -- one coordinate --------------------------------------------------------------------------------------------------


class CountedPath:
    """A likelihood path of the noise that records its evaluations."""

    def __init__(self, line: Line) -> None:
        self.line, self.asked = line, list[float]()

    def t(self, theta: float) -> float:
        return math.exp(theta)

    def fit(self, theta: float) -> linalg.Fit:
        self.asked.append(theta)
        return self.line.fit(math.exp(theta))


def noise_line(n: int = 6) -> Line:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(n, n))
    return Line(A @ A.T / n, np.eye(n), rng.normal(size=n), 0.0, math.inf)


def test_a_conditional_answers_as_the_exact_density_would_and_evaluates_each_point_once() -> None:
    line, rng = noise_line(), np.random.default_rng(2)
    prior = conditionals.Prior(lambda theta: -0.5 * theta * theta, (-6.0, 4.0))
    path = CountedPath(line)
    density = conditionals.Conditional(path, prior, 0.0, line.fit(1.0))

    def exact(theta: float) -> float:
        inside = prior.support[0] <= theta <= prior.support[1]
        return line.fit(math.exp(theta)).log_likelihood - 0.5 * theta * theta if inside else -math.inf

    answers = 0
    for _ in range(400):
        theta, level = float(rng.uniform(-7.0, 5.0)), exact(float(rng.uniform(-6.0, 4.0)))
        quick = density.above_if_known(theta, level)
        assert quick in (None, exact(theta) > level)
        assert density.above(theta, level) == (exact(theta) > level)
        answers += 1
    assert len(path.asked) == len(set(path.asked))
    assert 0.0 not in path.asked  # the fit at the current value is known
    assert len(path.asked) < answers / 2
    assert density.value(1.0) == pytest.approx(exact(1.0), rel=1e-12)


def test_a_slice_of_a_conditional_returns_the_fit_of_the_point_it_returns() -> None:
    line, rng = noise_line(), np.random.default_rng(3)
    theta, fit = 0.0, line.fit(1.0)
    prior = conditionals.Prior(lambda x: -0.5 * x * x, (-6.0, 4.0))
    for _ in range(100):
        path = CountedPath(line)
        theta, fit = conditionals.Conditional(path, prior, theta, fit).slice(rng, 1.0, 10)
        np.testing.assert_allclose(fit, line.fit(math.exp(theta)), rtol=1e-12)
        assert len(path.asked) == len(set(path.asked))


# -- shortcuts change nothing ----------------------------------------------------------------------------------------

SHORT = Sampling(samples=6, burn_in=6)


@pytest.mark.parametrize("name", MODELS)
def test_bounds_save_evaluations_and_change_no_draw(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = models(MIXED)[name], some_data(MIXED, 20)
    _, with_bounds = draw(np.random.default_rng(0), None, model, data, SHORT)
    asked = []

    def know_nothing(*args: object) -> tuple[float, float]:
        asked.append(args)
        return -math.inf, math.inf

    monkeypatch.setattr(conditionals, "bounds", know_nothing)
    _, without = draw(np.random.default_rng(0), None, model, some_data(MIXED, 20), SHORT)
    assert asked
    for a, b in zip(with_bounds, without, strict=True):
        np.testing.assert_allclose(flat(a), flat(b), rtol=0, atol=1e-9)


def as_weights(graph: Graph) -> Graph:
    """The same graph given as a weight matrix, so that every evaluation factors the whole covariance."""
    return (
        graphs.from_weights(np.ones((graph.size, graph.size)), graph.size, "w") if graph.kind == "complete" else graph
    )


@pytest.mark.parametrize("priors", [PAPER, DEFAULT], ids=["paper", "default"])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_eliminating_the_commonest_value_changes_no_draw(priors: Priors, n: int) -> None:
    space = (*MIXED, graphs.complete(1), graphs.complete(4))
    data = some_data(space, max(n, 2))
    X, y = data.X[:n], data.y[:n]
    quick, plain = (
        draw(np.random.default_rng(1), None, Model(Product(tuple(map(spectrum, of))), priors), Data(X, y), SHORT)[1]
        for of in (space, tuple(map(as_weights, space)))
    )
    for a, b in zip(quick, plain, strict=True):
        np.testing.assert_allclose(flat(a), flat(b), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_what_a_chain_remembers_is_what_a_fresh_start_would_compute(name: str) -> None:
    model, data = models(MIXED)[name], some_data(MIXED, 15)
    rng, first = np.random.default_rng(0), initial_hyper(model, data)
    state = start(model, data, first._replace(scales=Scales(np.full(5, 0.1), np.full(5, 0.1))))
    for _ in range(30):
        state = sweep(rng, state, model, data, Sampling())
    fresh = start(model, data, state.hyper)
    np.testing.assert_array_equal(flat(fresh.hyper), flat(state.hyper))
    np.testing.assert_allclose(state.parts, fresh.parts, rtol=0, atol=1e-6)
    np.testing.assert_allclose(state.fit, fresh.fit, rtol=1e-5, atol=1e-5)
    C = model_covariance(model.kernel, MIXED, data.X, state.hyper)
    exact = oracles.log_normal_density(C, data.y - state.hyper.mean)
    assert fresh.fit.log_likelihood - 0.5 * 15 * math.log(2.0 * math.pi) == pytest.approx(exact, rel=1e-7, abs=1e-7)


# -- the law of the chain: Geweke's test -----------------------------------------------------------------------------

ROUNDS = 2
Sweep = Callable[[np.random.Generator, State, Model, Data, Sampling], State]


def geweke(seed: int, model: Model, move: Sweep, laws: Laws, replicates: int) -> dict[str, float]:
    """p-values of every parameter against its prior, and of the whitened residuals against standard normals."""
    rng = np.random.default_rng(seed)
    ends: dict[str, list[float]] = {name: [] for name in laws}
    residuals: list[Floats] = []
    quadratic_forms: list[float] = []
    X, n = GEWEKE_ROWS, len(GEWEKE_ROWS)
    for first in prior_draws(rng, model.kernel, laws, replicates):
        h, C = first, model_covariance(model.kernel, GEWEKE_SPACE, X, first)
        for _ in range(ROUNDS):
            data = Data(X, h.mean + np.linalg.cholesky(C) @ rng.normal(size=n))
            h = move(rng, start(model, data, h), model, data, Sampling()).hyper
            C = model_covariance(model.kernel, GEWEKE_SPACE, X, h)
        for name, kept in ends.items():
            kept.append(parameter(h, name))
        residuals.append(oracles.whiten(C, data.y - h.mean))
        quadratic_forms.append(float(residuals[-1] @ residuals[-1]))
    p = {name: p_value(np.array(kept), laws[name].cdf) for name, kept in ends.items()} | joint_p_values(laws, ends)
    p["residuals"] = p_value(np.concatenate(residuals), lambda z: np.asarray(stats.norm.cdf(z)))
    p["quadratic form"] = p_value(np.array(quadratic_forms), lambda q: np.asarray(stats.chi2(n).cdf(q)))
    return p


@pytest.mark.parametrize("name", ["product", "orders", "windows"])
def test_a_sweep_leaves_the_joint_law_of_parameters_and_values_invariant(name: str) -> None:
    kernel = kernels(GEWEKE_SPACE)[name]
    assert_plausible(geweke(1, Model(kernel, STANDARD), sweep, parameter_laws(kernel, STANDARD), 250))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "beta"),
    [
        ("product", "published"),
        ("product", "gamma"),
        ("orders", "published"),
        ("orders", "gamma"),
        ("windows", "published"),
    ],
)
def test_a_sweep_leaves_the_joint_law_invariant_under_every_prior(
    name: str, beta: Literal["published", "gamma"]
) -> None:
    kernel = kernels(GEWEKE_SPACE)[name]
    priors = Priors(level="standard", noise_scale=0.1, beta=beta)
    assert_plausible(geweke(2, Model(kernel, priors), sweep, parameter_laws(kernel, priors), 2_000))


class NoJacobian(Priors):
    """A half-Cauchy prior of the noise without the Jacobian of its logarithm."""

    def log_noise(self, theta: float) -> float:
        return super().log_noise(theta) - theta


class WrongBeta(Priors):
    """A prior of log beta that is shifted by one unit."""

    def log_beta(self, theta: float) -> float:
        return super().log_beta(theta - 1.0)


def halved(rng: np.random.Generator, state: State, model: Model, data: Data, sampling: Sampling) -> State:
    """A sweep with residuals divided by the root of two: the quadratic form is halved."""
    shrunk = Data(data.X, state.hyper.mean + (data.y - state.hyper.mean) / math.sqrt(2.0))
    return sweep(rng, start(model, shrunk, state.hyper), model, shrunk, sampling)


def stale(rng: np.random.Generator, state: State, model: Model, data: Data, sampling: Sampling) -> State:
    """A sweep that starts from a wrong fit: the first level is drawn too low."""
    wrong = state.fit._replace(log_det_half=state.fit.log_det_half - 4.0)
    return sweep(rng, state._replace(fit=wrong), model, data, sampling)


BROKEN: dict[str, tuple[type[Priors], Sweep]] = {
    "Jacobian of the noise dropped": (NoJacobian, sweep),
    "prior of beta shifted": (WrongBeta, sweep),
    "quadratic form halved": (Priors, halved),
    "density remembered wrongly": (Priors, stale),
}


class FewRelevances(Priors):
    """Pooled relevances with the prior of their spread alone."""

    def log_relevance(self, theta: float, others: Floats) -> float:
        return 2.0 / (3.0 + len(others)) * super().log_relevance(theta, others)


def test_pooled_relevances_that_are_not_counted_are_seen() -> None:
    wrong, kernel = FewRelevances(**vars(STANDARD)), kernels(GEWEKE_SPACE)["orders"]
    assert_rejected(geweke(1, Model(kernel, wrong), sweep, parameter_laws(kernel, STANDARD), 250))


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_sweep_is_seen(what: str) -> None:
    priors, move = BROKEN[what]
    kernel = kernels(GEWEKE_SPACE)["product"]
    assert_rejected(geweke(1, Model(kernel, priors(**vars(STANDARD))), move, parameter_laws(kernel, STANDARD), 250))


# -- the law of the chain: the paper's priors, which depend on the data ----------------------------------------------


class Tiny(NamedTuple):
    """Three observations of a pair and a path, small enough for exact draws by rejection."""

    space: tuple[Graph, ...]
    data: Data
    level: tuple[float, float]
    mean: tuple[float, float]


def tiny() -> Tiny:
    space = (graphs.complete(2), graphs.path(3))
    data = Data(np.array([[0, 0], [1, 1], [1, 2]]), np.array([-1.2, 0.2, 1.0]))
    K = oracles.product_gram(space, "connectivity", np.ones(2), data.X)
    log_variance = math.log(float(np.var(data.y)))
    low, high = log_variance - math.log(K.max()), log_variance - math.log(K.min())
    return Tiny(space, data, (low, max(high, low + 1.0)), (-1.2, 1.0))


@functools.cache
def exact_draws(seed: int, count: int) -> Floats:
    """Exact draws (count, 5) of mean, log w, log noise, log beta of pair and path, by rejection of prior draws."""
    rng, problem = np.random.default_rng(seed), tiny()
    beta = oracles.published_law(5.0, PAPER.supports.beta)
    noise = oracles.published_law(0.1 / math.sqrt(2.0), PAPER.supports.noise)
    laws = [_quarter(problem.mean), _quarter(problem.level), noise, beta, beta]
    kept: list[Floats] = []
    found, ceiling = 0, -math.inf
    for batch in range(40):
        theta = np.stack([law.draw(rng, 50_000) for law in laws], axis=1)
        log_l = _log_likelihoods(problem, theta)
        if batch == 0:
            ceiling = float(log_l.max()) + 1.0
            continue
        assert log_l.max() <= ceiling
        kept.append(theta[np.log(rng.random(len(theta))) < log_l - ceiling])
        found += len(kept[-1])
        if found >= count:
            break
    assert found >= count
    return np.concatenate(kept)[:count]


def _quarter(interval: tuple[float, float]) -> oracles.Law:
    low, high = interval
    return oracles.normal_law((low + high) / 2, (high - low) / 4, interval)


def _log_likelihoods(problem: Tiny, theta: Floats) -> Floats:
    """Log likelihoods (N,) of many parameters at once, from the eigenvectors of the two Laplacians."""
    C = np.exp(theta[:, 1])[:, None, None] * np.ones((1, 3, 3))
    for i, g in enumerate(problem.space):
        lam, U = np.linalg.eigh(oracles.laplacian(g, "connectivity"))
        decay = np.exp(-np.exp(theta[:, 3 + i])[:, None] * np.maximum(lam, 0.0))
        table = np.einsum("aj,nj,bj->nab", U, decay * (g.size / decay.sum(axis=1, keepdims=True)), U)
        x = problem.data.X[:, i]
        C *= table[:, x[:, None], x]
    C += np.exp(theta[:, 2])[:, None, None] * np.eye(3)
    r = problem.data.y - theta[:, :1]
    quad = np.einsum("ni,ni->n", r, np.linalg.solve(C, r[..., None])[..., 0])
    return np.asarray(-0.5 * (np.linalg.slogdet(C).logabsdet + quad))


NAMES = ("mean", "log_w", "log_noise", "log_beta 0", "log_beta 1")


def swept(seed: int, priors: Priors) -> dict[str, float]:
    """Exact posterior draws, swept twice, against other exact draws."""
    problem, rng = tiny(), np.random.default_rng(seed)
    exact = exact_draws(seed + 1, 3_000)
    model = Model(Product(tuple(spectrum(g) for g in problem.space)), priors)
    ends = []
    for theta in exact[:500]:
        h = Hyper(float(theta[0]), float(theta[2]), theta[1:2], Scales(theta[3:], np.zeros(2)))
        for _ in range(2):
            h = sweep(rng, start(model, problem.data, h), model, problem.data, Sampling()).hyper
        ends.append([h.mean, float(h.log_w[0]), h.log_noise, *h.scales.log_beta])
    return {name: p_value_two(np.array(ends)[:, j], exact[500:, j]) for j, name in enumerate(NAMES)}


def test_a_sweep_leaves_the_papers_posterior_invariant() -> None:
    assert_plausible(swept(1, PAPER))


def test_a_sweep_under_another_prior_of_beta_does_not() -> None:
    assert_rejected(swept(1, Priors(beta="gamma")))


# -- the chain survives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", hard_cases())
@pytest.mark.parametrize("name", MODELS)
def test_a_chain_survives_hard_data(name: str, case: str) -> None:
    model, data = models(MIXED)[name], hard_cases()[case]
    _, samples = draw(np.random.default_rng(0), None, model, data, Sampling(samples=4, burn_in=8))
    assert len(samples) == 4
    assert_sane(model, data, samples)


@pytest.mark.parametrize("name", MODELS)
def test_a_chain_goes_on_when_data_arrive_that_move_its_supports(name: str) -> None:
    model, data = models(MIXED)[name], some_data(MIXED, 12)
    rng = np.random.default_rng(0)
    chain, _ = draw(rng, None, model, Data(data.X[:5], data.y[:5]), SHORT)
    for n, scale in ((6, 1.0), (7, 0.01), (12, 100.0)):
        today = Data(data.X[:n], scale * data.y[:n])
        chain, samples = draw(rng, chain, model, today, SHORT)
        assert_sane(model, today, samples)
        np.testing.assert_array_equal(flat(samples[-1]), flat(chain))


@pytest.mark.parametrize("name", MODELS)
def test_a_warm_chain_is_not_burnt_in_again_and_the_same_seed_gives_the_same_draws(name: str) -> None:
    model, data = models(MIXED)[name], some_data(MIXED, 10)
    whole, samples = draw(np.random.default_rng(5), None, model, data, Sampling(samples=3, burn_in=4))
    again, repeated = draw(np.random.default_rng(5), None, model, Data(data.X, data.y), Sampling(samples=3, burn_in=4))
    np.testing.assert_array_equal(flat(whole), flat(again))
    np.testing.assert_array_equal([flat(h) for h in samples], [flat(h) for h in repeated])
    rng = np.random.default_rng(6)
    one, _ = draw(rng, whole, model, data, Sampling(samples=2, burn_in=1_000_000))
    two, _ = draw(rng, one, model, data, Sampling(samples=2, burn_in=1_000_000))
    together, _ = draw(np.random.default_rng(6), whole, model, data, Sampling(samples=4))
    np.testing.assert_allclose(flat(two), flat(together), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_variables_without_coordinates_keep_their_scales(name: str) -> None:
    space = (*MIXED, graphs.complete(1))
    model, data = models(space)[name], some_data(space, 10)
    moves = {(at.name, at.variable) for at in model.kernel.coordinates()}
    end, _ = draw(np.random.default_rng(0), None, model, data, SHORT)
    for kind, values in (("beta", end.scales.log_beta), ("relevance", end.scales.log_relevance)):
        for i, value in enumerate(values):
            assert (value != 0.0) == ((kind, i) in moves)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_numbers_raise(name: str, bad: float) -> None:
    model, data = models(MIXED)[name], some_data(MIXED, 5)
    y = data.y.copy()
    y[2] = bad
    with np.errstate(invalid="ignore"), pytest.raises(NumericalError, match="covariance of 5 observations"):
        draw(np.random.default_rng(0), None, model, Data(data.X, y), SHORT)


# -- learning --------------------------------------------------------------------------------------------------------


def test_the_posterior_finds_the_one_variable_that_matters() -> None:
    space = (graphs.complete(2),) * 6
    rng = np.random.default_rng(0)
    X = oracles.random_rows(rng, space, 40)
    y = np.where(X[:, 3] == 1, 1.0, -1.0) + 0.05 * rng.normal(size=40)
    data = Data(X, (y - y.mean()) / y.std())
    model = models(space)["default"]
    _, samples = draw(np.random.default_rng(1), None, model, data, Sampling(samples=20, burn_in=50))
    relevance = np.median([h.scales.log_relevance for h in samples], axis=0)
    assert np.argmax(relevance) == 3
    assert relevance[3] - np.sort(relevance)[-2] > 1.0
