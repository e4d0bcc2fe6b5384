"""The Hamiltonian chain of the kernel's parameters: its density is the posterior, its law is right, it survives, and
it goes on where it stood.

The law is tested as in `test_gibbs`, by Geweke's (2004) exact variant, and against the slice sampler's draws.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from carbo import Binary, Categorical, Integer, Optimizer, Space
from carbo.errors import NumericalError, StateError
from carbo.inference import chain, gibbs
from carbo.inference.chain import Chain, PosteriorDensity, Tuning, draw, layout_of, mode
from carbo.inference.data import Data, Hyper, Model, Sampling
from carbo.inference.gibbs import initial_hyper
from carbo.inference.priors import Priors, Slopes, Supports
from carbo.kernels.base import Kernel, Scales
from carbo.kernels.orders import Orders
from carbo.kernels.spectra import spectrum
from carbo.numerics import hmc
from carbo.numerics.hmc import Place
from carbo.numerics.types import Floats
from carbo.settings import STANDARD as DEFAULT
from carbo.space import graphs
from carbo.space.graphs import Graph
from tests import oracles
from tests.checks import assert_plausible, assert_rejected, p_value
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
from tests.presets import CHEAP

SHORT = Sampling(samples=4, burn_in=9, leapfrogs=4)


def orders(space: tuple[Graph, ...], highest: int = 3) -> Orders:
    active = max(1, min(highest, sum(g.size > 1 for g in space)))
    return Orders(tuple(spectrum(g) for g in space), active)


def default(space: tuple[Graph, ...]) -> Model:
    return Model(orders(space), DEFAULT)


def tuned(kernel: Kernel, step: float) -> Tuning:
    k = layout_of(kernel).size
    return Tuning(step, np.zeros(k), np.ones(k))


# -- x ---------------------------------------------------------------------------------------------------------------


def test_x_holds_what_moves_and_the_rest_stays_as_it_was() -> None:
    space = (graphs.complete(3), graphs.complete(1), graphs.path(5), graphs.cycle(6))
    lay = layout_of(orders(space, 2))
    assert (lay.relevance.tolist(), lay.beta.tolist(), lay.weights, lay.size) == ([0, 2, 3], [2, 3], 2, 8)
    base = Hyper(0.5, -1.0, np.array([-2.0, -3.0]), Scales(np.arange(4.0), 10.0 + np.arange(4.0)))
    np.testing.assert_array_equal(lay.vector(base), [10.0, 12.0, 13.0, 2.0, 3.0, -2.0, -3.0, -1.0])
    moved = lay.hyper(100.0 + np.arange(8.0), base)
    assert moved.mean == 0.5
    assert moved.log_noise == 107.0
    np.testing.assert_array_equal(moved.log_w, [105.0, 106.0])
    np.testing.assert_array_equal(moved.scales.log_beta, [0.0, 1.0, 103.0, 104.0])
    np.testing.assert_array_equal(moved.scales.log_relevance, [100.0, 11.0, 101.0, 102.0])
    np.testing.assert_array_equal(flat(lay.hyper(lay.vector(base), base)), flat(base))


def log_prior(priors: Priors, kernel: Kernel, h: Hyper) -> float:
    """Log prior of all parameters but the mean, by one scalar function for each."""
    total = priors.log_noise(h.log_noise) - 0.5 * float(np.sum((h.log_w / priors.weight_sd) ** 2))
    some = kernel.coordinates()
    log_r = h.scales.log_relevance[[at.variable for at in some if at.name == "relevance"]]
    total += oracles.log_pooled(log_r, priors.relevance_scale)
    total -= oracles.log_pooled(np.zeros(len(log_r)), priors.relevance_scale)
    total -= (2.0 + len(log_r)) * math.log(priors.relevance_scale)
    return total + sum(priors.log_beta(float(h.scales.log_beta[at.variable])) for at in some if at.name == "beta")


def exact_log_density(model: Model, space: tuple[Graph, ...], data: Data, h: Hyper) -> float:
    C = model_covariance(model.kernel, space, data.X, h) + 1.0
    return oracles.log_normal_density(C, data.y) + log_prior(model.priors, model.kernel, h)


PRIORS = {
    "default": DEFAULT,
    "standard": dataclasses.replace(STANDARD, relevance_scale=0.6),
    "published": Priors(level="standard", beta="published"),
    "gamma": Priors(level="standard", beta="gamma", weight_sd=0.7),
}


@pytest.mark.parametrize("name", PRIORS)
def test_the_density_is_the_posterior_with_the_mean_integrated_out(name: str) -> None:
    space, data = (*MIXED, graphs.complete(1)), some_data((*MIXED, graphs.complete(1)), 12)
    model, rng = Model(orders(space), PRIORS[name]), np.random.default_rng(0)
    base = initial_hyper(model, data)
    density, missing = PosteriorDensity(model, data, base), []
    for _ in range(5):
        x = rng.uniform(np.maximum(density.box.low, -3.0), np.minimum(density.box.high, 1.5))
        here = density(x)
        assert here is not None
        missing.append(here.log_f - exact_log_density(model, space, data, density.layout.hyper(x, base)))
    np.testing.assert_allclose(missing, missing[0], rtol=0, atol=1e-6)
    assert missing[0] == pytest.approx(0.5 * 12 * math.log(2.0 * math.pi), abs=1e-6)


def test_the_mode_comes_with_its_density_and_stands_on_level_ground() -> None:
    model, data = Model(orders(MIXED), PRIORS["published"]), some_data(MIXED, 20)
    log_density, top = mode(model, data)
    density = PosteriorDensity(model, data, initial_hyper(model, data))
    place = density(density.layout.vector(top))
    assert place is not None
    assert place.log_f == pytest.approx(log_density, rel=1e-9, abs=1e-9)
    inside = (place.x > density.box.low + 1e-6) & (place.x < density.box.high - 1e-6)
    foot = density(density.layout.vector(initial_hyper(model, data)))
    assert foot is not None
    assert np.linalg.norm(place.gradient[inside]) < 1e-3 * np.linalg.norm(foot.gradient)


@pytest.mark.parametrize("name", PRIORS)
def test_the_gradient_is_that_of_the_density(name: str) -> None:
    data = some_data(MIXED, 12)
    model, rng = Model(orders(MIXED), PRIORS[name]), np.random.default_rng(1)
    density = PosteriorDensity(model, data, initial_hyper(model, data))
    x = rng.uniform(-2.0, 1.5, density.layout.size)
    here = density(x)
    assert here is not None
    for j, unit in enumerate(np.eye(len(x))):
        values = {}
        for step in (1e-3, -1e-3, 5e-4, -5e-4):
            there = density(x + step * unit)
            assert there is not None
            values[step] = there.log_f
        wide, narrow = (values[1e-3] - values[-1e-3]) / 2e-3, (values[5e-4] - values[-5e-4]) / 1e-3
        assert here.gradient[j] == pytest.approx((4.0 * narrow - wide) / 3.0, rel=1e-6, abs=1e-6)


def test_the_box_is_the_supports_of_the_priors() -> None:
    ends = Supports(beta=(-3.0, 4.0), noise=(-7.0, 8.0), weight=(-5.0, 6.0), relevance=(-1.0, 2.0))
    model = Model(orders(GEWEKE_SPACE, 2), Priors(level="standard", supports=ends))
    data = some_data(GEWEKE_SPACE, 5)
    box = PosteriorDensity(model, data, initial_hyper(model, data)).box
    np.testing.assert_array_equal(box.low, [-1.0] * 3 + [-3.0] + [-5.0] * 2 + [-7.0])
    np.testing.assert_array_equal(box.high, [2.0] * 3 + [4.0] + [6.0] * 2 + [8.0])


def test_the_mean_is_drawn_from_its_law_given_all_else() -> None:
    model, data = default(GEWEKE_SPACE), some_data(GEWEKE_SPACE, 7)
    h = initial_hyper(model, data)
    density = PosteriorDensity(model, data, h)
    here = density(density.layout.vector(h))
    assert here is not None
    P = np.linalg.inv(model_covariance(model.kernel, GEWEKE_SPACE, data.X, h))
    precision = 1.0 + P.sum()
    law = stats.norm(float(P.sum(axis=0) @ data.y) / precision, precision**-0.5)
    rng = np.random.default_rng(0)
    drawn = np.array([density.hyper(rng, here).mean for _ in range(2_000)])
    assert_plausible({"mean": p_value(drawn, lambda x: np.asarray(law.cdf(x)))})
    assert_rejected({"mean": p_value(2.0 * drawn, lambda x: np.asarray(law.cdf(x)))})


# -- the law of the chain: Geweke's test -----------------------------------------------------------------------------

ROUNDS, COARSE = 2, 0.7
Transition = Callable[[np.random.Generator, Hyper, Model, Data], Hyper]


def transition(rng: np.random.Generator, h: Hyper, model: Model, data: Data, step: float = COARSE) -> Hyper:
    """One draw of a warm chain with a fixed tuning; the step is so long that some trajectories are rejected."""
    warm = Chain(h, tuned(model.kernel, step))
    return draw(rng, warm, model, data, Sampling(samples=1, leapfrogs=4))[1][0]


def geweke(seed: int, model: Model, move: Transition, laws: Laws, replicates: int) -> dict[str, float]:
    """p-values of every parameter against its prior, and of the whitened residuals against standard normals."""
    rng, X, n = np.random.default_rng(seed), GEWEKE_ROWS, len(GEWEKE_ROWS)
    ends: dict[str, list[float]] = {name: [] for name in laws}
    residuals: list[Floats] = []
    stayed = 0
    for first in prior_draws(rng, model.kernel, laws, replicates):
        h, C = first, model_covariance(model.kernel, GEWEKE_SPACE, X, first)
        for _ in range(ROUNDS):
            data, before = Data(X, h.mean + np.linalg.cholesky(C) @ rng.normal(size=n)), h
            h = move(rng, h, model, data)
            stayed += h.log_noise == before.log_noise
            C = model_covariance(model.kernel, GEWEKE_SPACE, X, h)
        for name, kept in ends.items():
            kept.append(parameter(h, name))
        residuals.append(oracles.whiten(C, data.y - h.mean))
    assert stayed < 0.5 * ROUNDS * replicates  # standing still would leave any law invariant
    p = {name: p_value(np.array(kept), laws[name].cdf) for name, kept in ends.items()} | joint_p_values(laws, ends)
    p["residuals"] = p_value(np.concatenate(residuals), lambda z: np.asarray(stats.norm.cdf(z)))
    p["quadratic form"] = p_value(np.sum(np.square(residuals), axis=1), lambda q: np.asarray(stats.chi2(n).cdf(q)))
    return p


@pytest.mark.parametrize("name", ["orders", "windows"])
def test_a_draw_leaves_the_joint_law_of_parameters_and_values_invariant(name: str) -> None:
    kernel = kernels(GEWEKE_SPACE)[name]
    assert_plausible(geweke(1, Model(kernel, STANDARD), transition, parameter_laws(kernel, STANDARD), 250))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beta", "highest"), [("published", 3), ("gamma", 3), ("normal", 1), ("normal", 2), ("normal", 3)]
)
def test_a_draw_leaves_the_joint_law_invariant_under_every_prior(
    beta: Literal["published", "gamma", "normal"], highest: int
) -> None:
    kernel = orders(GEWEKE_SPACE, highest)
    priors = Priors(level="standard", noise_scale=0.1, beta=beta)
    assert_plausible(geweke(2, Model(kernel, priors), transition, parameter_laws(kernel, priors), 2_000))


class NoJacobian(Priors):
    """A half-Cauchy prior of the noise without the Jacobian of its logarithm."""

    def noise_slope(self, theta: Floats) -> Slopes:
        value, by = super().noise_slope(theta)
        return value - theta, by - 1.0


class WrongRelevance(Priors):
    """A prior of log relevance that is shifted by two units."""

    def relevance_slope(self, theta: Floats) -> Slopes:
        return super().relevance_slope(theta - 2.0)


class FewRelevances(Priors):
    """Pooled relevances with the prior of their spread alone."""

    def relevance_slope(self, theta: Floats) -> Slopes:
        value, by = super().relevance_slope(theta)
        return 2.0 / (2.0 + len(theta)) * value, 2.0 / (2.0 + len(theta)) * by


def shrunk(rng: np.random.Generator, h: Hyper, model: Model, data: Data) -> Hyper:
    """A likelihood of halved values: a quarter of the quadratic form."""
    return transition(rng, h, model, Data(data.X, data.y / 2.0))


def uneven(rng: np.random.Generator, h: Hyper, model: Model, data: Data) -> Hyper:
    """A tuning that depends on the position, so that the way back differs."""
    return transition(rng, h, model, data, COARSE * (1.2 if h.log_noise > -1.2 else 0.1))


class Unsure(np.random.Generator):
    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        return 3.0 * super().standard_normal() if size is None else super().standard_normal(size)


def unsure(rng: np.random.Generator, h: Hyper, model: Model, data: Data) -> Hyper:
    """A density that draws the mean with three times its standard deviation."""
    return transition(Unsure(rng.bit_generator), h, model, data)


class Accepting(np.random.Generator):
    def random(self, *_: Any, **__: Any) -> Any:
        return 1e-300


def accepting(rng: np.random.Generator, h: Hyper, model: Model, data: Data) -> Hyper:
    """A draw that accepts every trajectory."""
    return transition(Accepting(rng.bit_generator), h, model, data, 3.0 * COARSE)


BROKEN: dict[str, tuple[type[Priors], Transition]] = {
    "Jacobian of the noise dropped": (NoJacobian, transition),
    "prior of the relevances shifted": (WrongRelevance, transition),
    "quadratic form quartered": (Priors, shrunk),
    "step size of the starting point": (Priors, uneven),
    "mean drawn too widely": (Priors, unsure),
    "every move accepted": (Priors, accepting),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_draw_is_seen(what: str) -> None:
    kind, move = BROKEN[what]
    wrong, kernel = kind(**vars(STANDARD)), kernels(GEWEKE_SPACE)["orders"]
    assert_rejected(geweke(1, Model(kernel, wrong), move, parameter_laws(kernel, STANDARD), 250))


def test_pooled_relevances_that_are_not_counted_are_seen() -> None:
    wrong, kernel = FewRelevances(**vars(STANDARD)), kernels(GEWEKE_SPACE)["orders"]
    assert_rejected(geweke(1, Model(kernel, wrong), transition, parameter_laws(kernel, STANDARD), 250))


# -- the law of the chain: the slice sampler's draws -----------------------------------------------------------------

CHAINS = 24


Draws = Callable[[np.random.Generator, Model, Data, Sampling], list[Hyper]]


def leaping(rng: np.random.Generator, model: Model, data: Data, sampling: Sampling) -> list[Hyper]:
    """Samples of all parameters at once."""
    return draw(rng, None, model, data, sampling)[1]


def slicing(rng: np.random.Generator, model: Model, data: Data, sampling: Sampling) -> list[Hyper]:
    """Samples of one parameter at a time."""
    return gibbs.draw(rng, None, model, data, sampling)[1]


def chain_means(seed: int, model: Model, draws: Draws) -> dict[str, Floats]:
    """Mean and mean square of every parameter over each of CHAINS independent chains, (CHAINS,) each."""
    data, names = some_data(GEWEKE_SPACE, 8), list(parameter_laws(model.kernel, STANDARD))
    means: dict[str, list[float]] = {}
    for rng in np.random.default_rng(seed).spawn(CHAINS):
        samples = draws(rng, model, data, Sampling(samples=150, burn_in=60))
        for name in names:
            values = np.array([parameter(h, name) for h in samples])
            means.setdefault(name, []).append(float(values.mean()))
            means.setdefault(f"{name}, squared", []).append(float(np.mean(values**2)))
    return {name: np.array(each) for name, each in means.items()}


@functools.cache
def sliced() -> dict[str, Floats]:
    """The means over chains of slice updates."""
    return chain_means(2, Model(kernels(GEWEKE_SPACE)["orders"], STANDARD), slicing)


def agreement(priors: Priors) -> dict[str, float]:
    """p-values of Welch's test between chains of both kinds. Chains are independent, so that the autocorrelation in
    them needs no estimate; a mean of so many draws is as good as normal.
    """
    one, other = chain_means(1, Model(kernels(GEWEKE_SPACE)["orders"], priors), leaping), sliced()
    return {name: float(stats.ttest_ind(one[name], other[name], equal_var=False).pvalue) for name in one}


@pytest.mark.slow
def test_both_samplers_draw_from_the_same_posterior() -> None:
    assert_plausible(agreement(STANDARD))


@pytest.mark.slow
def test_samplers_of_different_posteriors_are_told_apart() -> None:
    assert_rejected(agreement(NoJacobian(**vars(STANDARD))))


# -- tuning ----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), count=st.integers(1, 400))
@settings(max_examples=20)
def test_centre_and_variance_are_those_of_what_was_seen_with_fading_weights(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    first, xs = Tuning(0.3, rng.normal(size=2), rng.exponential(size=2)), rng.normal(3.0, 2.0, (count, 2))
    tuning = first
    for x in xs:
        tuning = tuning.adapt_spread(x)
    fade = 1.0 - 1.0 / 200.0
    weight = (1.0 - fade) * fade ** np.arange(count - 1, -1, -1.0)
    rest = fade**count
    centre = weight @ xs + rest * first.centre
    variance = weight @ (xs - centre) ** 2 + rest * (first.variance + (first.centre - centre) ** 2)
    np.testing.assert_allclose(tuning.centre, centre, rtol=1e-9)
    np.testing.assert_allclose(tuning.variance, variance, rtol=1e-9)
    assert tuning.step == first.step


def test_the_step_grows_with_acceptance_within_bounds() -> None:
    tuning = Tuning(0.3, np.zeros(1), np.ones(1))
    assert tuning.adapt_step(0.8, 1.0).step == pytest.approx(0.3)
    assert tuning.adapt_step(0.9, 1.0).step == pytest.approx(0.3 * math.exp(0.1))
    assert tuning.adapt_step(0.0, 0.5).step == pytest.approx(0.3 * math.exp(-0.4))
    for acceptance, last in ((1.0, 2.0), (0.0, 1e-4)):
        for _ in range(200):
            tuning = tuning.adapt_step(acceptance, 1.0)
        assert tuning.step == last


def test_the_step_of_a_coordinate_follows_its_spread_as_far_as_that_is_believed() -> None:
    size = Tuning(0.5, np.zeros(4), np.array([1e-8, 0.25, 4.0, 1e4])).size
    np.testing.assert_allclose(size, 0.5 * np.array([chain.NARROW, 0.5, 2.0, chain.WIDE]))


class Recorder:
    """A stand-in for `hmc.transition` that remembers its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[Floats] = []
        self.leaps: list[int] = []
        self.acceptances: list[float] = []
        self.starts: list[Place] = []
        self._plain = hmc.transition
        monkeypatch.setattr(hmc, "transition", self.transition)

    def transition(self, rng: Any, here: Place, target: Any, box: Any, size: Floats, leaps: int) -> hmc.Transition:
        move = self._plain(rng, here, target, box, size, leaps)
        self.starts.append(here)
        self.sizes.append(size)
        self.leaps.append(leaps)
        self.acceptances.append(move.acceptance)
        return move


def test_all_transitions_of_a_draw_have_one_tuning_and_the_next_draw_has_what_it_taught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, data = default(MIXED), some_data(MIXED, 10)
    warm, _ = draw(np.random.default_rng(0), None, model, data, SHORT)
    assert warm.tuning is not None
    seen, rng = Recorder(monkeypatch), np.random.default_rng(1)
    after, samples = draw(rng, warm, model, data, SHORT._replace(samples=7))
    assert after.tuning is not None
    np.testing.assert_array_equal(seen.sizes, [warm.tuning.size] * 7)
    expected, lay = warm.tuning, layout_of(model.kernel)
    for h in samples:
        expected = expected.adapt_spread(lay.vector(h))
    expected = expected.adapt_step(float(np.mean(seen.acceptances)), 0.3)
    assert after.tuning.step == pytest.approx(expected.step, rel=1e-12)
    np.testing.assert_allclose(after.tuning.centre, expected.centre, rtol=1e-12)
    np.testing.assert_allclose(after.tuning.variance, expected.variance, rtol=1e-12)
    draw(rng, after, model, data, SHORT)
    np.testing.assert_array_equal(seen.sizes[7], after.tuning.size)


@pytest.mark.parametrize("leapfrogs", [1, 2, 5, 10])
def test_trajectories_have_from_half_of_the_most_steps_to_all_of_them(
    leapfrogs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = default(GEWEKE_SPACE), some_data(GEWEKE_SPACE, 4)
    seen, h = Recorder(monkeypatch), initial_hyper(model, data)
    draw(np.random.default_rng(0), Chain(h, tuned(model.kernel, 0.1)), model, data,
         Sampling(samples=60, leapfrogs=leapfrogs))  # fmt: skip
    assert set(seen.leaps) == set(range((leapfrogs + 1) // 2, leapfrogs + 1))


@pytest.mark.parametrize("n", [3, 25])
def test_burn_in_finds_a_step_that_is_mostly_and_not_always_accepted(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target is 0.8; with twice the step a fifth would be accepted, with half the step nearly all."""
    model, data = default(MIXED), some_data(MIXED, n)
    kept = []
    for seed in range(3):
        warm, _ = draw(np.random.default_rng(seed), None, model, data, Sampling(1, 60, leapfrogs=4))
        with monkeypatch.context() as patch:
            seen = Recorder(patch)
            draw(np.random.default_rng(seed), warm, model, data, Sampling(30, leapfrogs=4))
        kept += seen.acceptances
    assert 0.4 < np.mean(kept) < 0.93


@pytest.mark.parametrize("seed", range(3))
def test_a_new_chain_climbs_before_it_moves_and_a_warm_one_does_not(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = default(MIXED), some_data(MIXED, 20, seed)
    first = initial_hyper(model, data)
    density = PosteriorDensity(model, data, first)
    foot = density(density.layout.vector(first))
    assert foot is not None
    top = chain._climb(density, foot)
    higher = chain._climb(density, chain._climb(density, top))
    assert foot.log_f + 1.0 < top.log_f <= higher.log_f < top.log_f + 1.0
    assert np.all((top.x >= density.box.low) & (top.x <= density.box.high))
    again = density(top.x)
    assert again is not None
    assert (again.log_f, *again.gradient) == (top.log_f, *top.gradient)
    seen, rng = Recorder(monkeypatch), np.random.default_rng(seed)
    warm, samples = draw(rng, None, model, data, SHORT._replace(burn_in=0))
    np.testing.assert_array_equal(seen.starts[0].x, top.x)
    draw(rng, warm, model, data, SHORT)
    np.testing.assert_array_equal(seen.starts[SHORT.samples].x, density.layout.vector(samples[-1]))


# -- the chain goes on -----------------------------------------------------------------------------------------------


def as_rows(samples: list[Hyper]) -> Floats:
    return np.array([flat(h) for h in samples])


def assert_same_chain(one: Chain, two: Chain) -> None:
    np.testing.assert_array_equal(flat(one.hyper), flat(two.hyper))
    assert one.tuning is not None
    assert two.tuning is not None
    for a, b in zip(one.tuning, two.tuning, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_same_seed_gives_the_same_draws_and_another_seed_others() -> None:
    model, data = default(MIXED), some_data(MIXED, 10)
    one, samples = draw(np.random.default_rng(5), None, model, data, SHORT)
    two, repeated = draw(np.random.default_rng(5), None, model, Data(data.X, data.y), SHORT)
    assert_same_chain(one, two)
    np.testing.assert_array_equal(as_rows(samples), as_rows(repeated))
    _, others = draw(np.random.default_rng(6), None, model, data, SHORT)
    assert not np.array_equal(as_rows(samples), as_rows(others))
    np.testing.assert_array_equal(flat(samples[-1]), flat(one.hyper))
    assert len(samples) == SHORT.samples


def test_a_warm_chain_is_not_burnt_in_again() -> None:
    model, data = default(MIXED), some_data(MIXED, 10)
    warm, _ = draw(np.random.default_rng(5), None, model, data, SHORT)
    one, samples = draw(np.random.default_rng(6), warm, model, data, SHORT._replace(burn_in=1_000_000))
    two, others = draw(np.random.default_rng(6), warm, model, data, SHORT._replace(burn_in=0))
    assert_same_chain(one, two)
    np.testing.assert_array_equal(as_rows(samples), as_rows(others))


def test_a_chain_without_tuning_is_burnt_in_from_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of slice updates that continues with Hamiltonian ones, and back."""
    model, data = default(MIXED), some_data(MIXED, 10)
    by_slices = Model(model.kernel, PAPER)
    cold, _ = draw(np.random.default_rng(0), None, by_slices, data, Sampling(samples=2, burn_in=2))
    assert cold.tuning is None
    seen = Recorder(monkeypatch)
    warm, samples = draw(np.random.default_rng(1), cold, model, data, SHORT)
    assert warm.tuning is not None
    assert len(seen.sizes) == SHORT.burn_in + SHORT.samples
    assert_sane(model, data, samples)
    back, _ = draw(np.random.default_rng(2), warm, by_slices, data, Sampling(samples=2, burn_in=1_000_000))
    assert back.tuning is None


@pytest.mark.parametrize("name", ["paper", "product, standard", "orders, published"])
def test_models_that_are_not_differentiable_are_sampled_by_slices(name: str) -> None:
    """Models whose kernel or whose priors have no gradient."""
    model, data = models(MIXED)[name], some_data(MIXED, 8)
    assert not model.differentiable
    sampling = Sampling(samples=3, burn_in=2)
    end, samples = draw(np.random.default_rng(3), None, model, data, sampling)
    hyper, expected = gibbs.draw(np.random.default_rng(3), None, model, data, sampling)
    assert end.tuning is None
    np.testing.assert_array_equal(flat(end.hyper), flat(hyper))
    np.testing.assert_array_equal(as_rows(samples), as_rows(expected))


@pytest.mark.parametrize("name", ["default", "windows"])
def test_differentiable_models_are_sampled_by_trajectories(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = models(MIXED)[name], some_data(MIXED, 8)
    assert model.differentiable
    seen = Recorder(monkeypatch)
    end, _ = draw(np.random.default_rng(3), None, model, data, SHORT)
    assert len(seen.sizes) == SHORT.burn_in + SHORT.samples
    assert end.tuning is not None


def test_a_chain_goes_on_when_data_arrive() -> None:
    model, data = default(MIXED), some_data(MIXED, 12)
    rng = np.random.default_rng(0)
    here, _ = draw(rng, None, model, Data(data.X[:5], data.y[:5]), SHORT)
    for n, scale in ((6, 1.0), (7, 0.01), (12, 100.0), (3, 1.0)):
        today = Data(data.X[:n], scale * data.y[:n])
        here, samples = draw(rng, here, model, today, SHORT)
        assert_sane(model, today, samples)
        np.testing.assert_array_equal(flat(samples[-1]), flat(here.hyper))


def test_a_chain_outside_todays_supports_is_moved_in() -> None:
    model, data = default(GEWEKE_SPACE), some_data(GEWEKE_SPACE, 6)
    warm, _ = draw(np.random.default_rng(0), None, model, data, SHORT)
    ends = Supports(beta=(1.0, 1.5), noise=(-1.0, -0.5), weight=(2.0, 2.5), relevance=(0.5, 0.6))
    narrow = Priors(level="standard", beta="normal", supports=ends)
    _, samples = draw(np.random.default_rng(1), warm, Model(model.kernel, narrow), data, SHORT)
    assert_sane(Model(model.kernel, narrow), data, samples)
    assert len(np.unique(as_rows(samples), axis=0)) > 1


# -- the chain survives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", hard_cases())
def test_a_chain_survives_hard_data(case: str) -> None:
    model, data = default(MIXED), hard_cases()[case]
    warm, samples = draw(np.random.default_rng(0), None, model, data, SHORT)
    assert len(samples) == SHORT.samples
    assert_sane(model, data, samples)
    assert_sane(model, data, draw(np.random.default_rng(1), warm, model, data, SHORT)[1])


SPACES = {
    "many binaries": (graphs.complete(2),) * 80,
    "a thousand levels": (graphs.path(1_000), graphs.complete(2), graphs.cycle(500)),
    "many categories": (graphs.complete(300),) * 3,
    "a single pair": (graphs.complete(2),),
    "a single path": (graphs.path(7),),
    "one value each": (graphs.complete(1), graphs.complete(1)),
    "a graph in pieces": (
        graphs.complete(2),
        Graph("weighted", 4, np.kron(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]))),
    ),
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("n", [1, 12])
def test_a_chain_survives_spaces_large_and_small(name: str, n: int) -> None:
    space, model, rng = SPACES[name], default(SPACES[name]), np.random.default_rng(0)
    data = Data(oracles.random_rows(rng, space, n), rng.normal(size=n))
    warm, samples = draw(rng, None, model, data, SHORT)
    assert_sane(model, data, samples)
    assert_sane(model, data, draw(rng, warm, model, data, SHORT)[1])


@pytest.mark.parametrize("burn_in", [0, 1, 2, 3])
def test_a_chain_survives_hardly_any_burn_in(burn_in: int) -> None:
    model, data = default(MIXED), some_data(MIXED, 6)
    end, samples = draw(np.random.default_rng(0), None, model, data, SHORT._replace(burn_in=burn_in))
    assert_sane(model, data, samples)
    assert end.tuning is not None
    assert np.all(end.tuning.variance > 0.9 * chain.NARROW**2)  # a saved variance of zero would be refused


def test_noise_is_raised_as_far_as_the_covariance_needs_it() -> None:
    """Equal rows, and a chain whose noise is too small to factor their covariance."""
    priors = Priors(level="standard", beta="normal", supports=Supports(noise=(-60.0, 5.0)))
    model = Model(orders(MIXED), priors)
    data = Data(np.zeros((10, 5), dtype=np.intp), np.random.default_rng(0).normal(size=10))
    h = initial_hyper(model, data)._replace(log_noise=-60.0)
    density = PosteriorDensity(model, data, h)
    x = density.layout.vector(h)
    assert density(x) is None
    begun = chain._start(density, x).x
    below = np.append(begun[:-1], begun[-1] - 1.0)
    assert density(below) is None
    assert -60.0 < begun[-1] < 0.0
    np.testing.assert_array_equal(begun[:-1], x[:-1])
    _, samples = draw(np.random.default_rng(0), Chain(h, tuned(model.kernel, 0.1)), model, data, SHORT)
    assert_sane(model, data, samples)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_numbers_raise(bad: float) -> None:
    model, data = default(MIXED), some_data(MIXED, 5)
    y = np.append(data.y[:-1], bad)
    with np.errstate(invalid="ignore"), pytest.raises(NumericalError, match="are values infinite or NaN"):
        draw(np.random.default_rng(0), None, model, Data(data.X, y), SHORT)


def test_variables_without_coordinates_keep_their_scales() -> None:
    space = (*MIXED, graphs.complete(1))
    model, data = default(space), some_data(space, 10)
    moves = {(at.name, at.variable) for at in model.kernel.coordinates()}
    end, _ = draw(np.random.default_rng(0), None, model, data, SHORT)
    for kind, values in (("beta", end.hyper.scales.log_beta), ("relevance", end.hyper.scales.log_relevance)):
        for i, value in enumerate(values):
            assert (value != 0.0) == ((kind, i) in moves)


def test_the_posterior_finds_the_one_variable_that_matters() -> None:
    space, rng = (graphs.complete(2),) * 6, np.random.default_rng(0)
    X = oracles.random_rows(rng, space, 40)
    y = np.where(X[:, 3] == 1, 1.0, -1.0) + 0.05 * rng.normal(size=40)
    data = Data(X, (y - y.mean()) / y.std())
    _, samples = draw(np.random.default_rng(1), None, default(space), data, Sampling(20, 50, leapfrogs=10))
    relevance = np.median([h.scales.log_relevance for h in samples], axis=0)
    assert np.argmax(relevance) == 3
    assert relevance[3] - np.sort(relevance)[-2] > 1.0


# -- at the public door ----------------------------------------------------------------------------------------------


def some_space() -> Space:
    return Space(
        {"a": Binary(), "b": Categorical(list("uvwx")), "c": Integer(0, 6), "d": Binary(), "e": Categorical(["one"])}
    )


def value(params: dict[str, Any]) -> float | None:
    if params["b"] == "w" and params["a"]:
        return None
    return float((params["c"] - 3) ** 2 + 2.0 * params["a"] - ("uvwx".index(params["b"])) * params["d"])


def told() -> Optimizer:
    """An optimiser with two warm chains: some of its few evaluations have failed."""
    opt = Optimizer(some_space(), seed=3, preset="default", settings=CHEAP)
    for _ in range(9):
        params = opt.ask()
        opt.tell(params, value(params))
    return opt


@functools.cache
def saved() -> str:
    """The saved state of the optimiser."""
    return json.dumps(told().state(), allow_nan=False)


def continued(opt: Optimizer, rounds: int) -> list[Any]:
    asked = []
    for _ in range(rounds):
        asked.append(opt.ask())
        opt.tell(asked[-1], value(asked[-1]))
    return [*asked, opt.state()]


def test_tuning_survives_a_round_trip_through_a_saved_state() -> None:
    opt, state = told(), json.loads(saved())
    for key in ("chain", "failure_chain"):
        step, centre, variance = state[key]["tuning"]
        assert step > 0
        assert len(centre) == len(variance) == 4 + 1 + 3 + 1  # relevances, beta, signal variances, noise
    restored = Optimizer.from_state(some_space(), state)
    assert json.dumps(restored.state()) == saved()
    assert continued(restored, 3) == continued(opt, 3)


@pytest.mark.parametrize("change", ["step", "variance", "none"])
def test_a_chain_restored_with_another_tuning_goes_another_way(change: str) -> None:
    """The round trip above would fail if the tuning were lost."""
    opt, state = Optimizer.from_state(some_space(), json.loads(saved())), json.loads(saved())
    step, centre, variance = state["chain"]["tuning"]
    state["chain"]["tuning"] = {
        "step": [0.5 * step, centre, variance],
        "variance": [step, centre, [4.0 * v for v in variance]],
        "none": None,
    }[change]
    opt.ask()
    other = Optimizer.from_state(some_space(), state)
    other.ask()
    assert other.state()["chain"]["log_w"] != opt.state()["chain"]["log_w"]


@pytest.mark.parametrize(
    "tuning", [[], [0.1], [0.1, [0.0], [1.0]], [-0.1, [0.0] * 9, [1.0] * 9], [0.1, [0.0] * 9, [0.0] * 9], "text", 5]
)
def test_a_damaged_tuning_is_refused(tuning: Any) -> None:
    state = json.loads(saved())
    state["chain"]["tuning"] = tuning
    with pytest.raises(StateError, match="damaged"):
        Optimizer.from_state(some_space(), state)
