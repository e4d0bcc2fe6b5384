"""Slice updates leave their target invariant: exact draws stay exact draws. Broken twins do not, and are seen.

Every replicate starts at an exact draw of the target and is updated a few times on its own; the ends are compared
with the exact distribution function at the false-alarm rate of `checks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from carbo.numerics import slice_sampling
from carbo.numerics.slice_sampling import Draw, Function, update
from carbo.numerics.types import Floats
from tests import oracles
from tests.checks import assert_plausible, assert_rejected, p_value

REPLICATES, UPDATES = 2_000, 4


class Target(NamedTuple):
    log_f: Callable[[float], float]
    support: tuple[float, float]
    draw: Callable[[np.random.Generator, int], Floats]
    cdf: Callable[[Floats], Floats]


def skewed() -> Target:
    """The logarithm of a Gamma(1/2) variable: a long left tail."""
    return Target(
        lambda t: 0.5 * t - math.exp(min(t, 700.0)),
        (-math.inf, math.inf),
        lambda rng, n: np.log(rng.gamma(0.5, size=n)),
        lambda x: np.asarray(stats.gamma(0.5).cdf(np.exp(x))),
    )


def bimodal() -> Target:
    """A broad mode, whose bracket often spans both, and a narrow one, whose bracket seldom does."""
    share, modes = (0.6, 0.4), (stats.norm(0.0, 2.0), stats.norm(7.0, 0.3))

    def log_f(t: float) -> float:
        broad = math.log(share[0] / 2.0) - 0.5 * (t / 2.0) ** 2
        narrow = math.log(share[1] / 0.3) - 0.5 * ((t - 7.0) / 0.3) ** 2
        return max(broad, narrow) + math.log1p(math.exp(-abs(broad - narrow)))

    def draw(rng: np.random.Generator, n: int) -> Floats:
        first = rng.random(n) < share[0]
        return np.where(first, rng.normal(0.0, 2.0, n), rng.normal(7.0, 0.3, n))

    def cdf(x: Floats) -> Floats:
        return np.asarray(share[0] * modes[0].cdf(x) + share[1] * modes[1].cdf(x))

    return Target(log_f, (-math.inf, math.inf), draw, cdf)


def truncated() -> Target:
    """A normal cut off on both sides of where most of it would lie: the density jumps to zero."""
    law = stats.truncnorm(-2.5, -0.5, 2.0, 1.0)
    return Target(
        lambda t: -0.5 * (t - 2.0) ** 2,
        (-0.5, 1.5),
        lambda rng, n: np.asarray(law.rvs(n, random_state=rng)),
        lambda x: np.asarray(law.cdf(x)),
    )


def from_prior() -> Target:
    """A prior of the model: half-Cauchy noise on its log scale, cut off at both ends."""
    law = oracles.half_cauchy_law(0.05, (-12.0, math.log(1e4)))
    return Target(lambda t: t - math.log1p((math.exp(t) / 0.05) ** 2), law.support, law.draw, law.cdf)


TARGETS = {"skewed": skewed, "bimodal": bimodal, "truncated": truncated, "prior": from_prior}
Step = Callable[[np.random.Generator, Draw, slice_sampling.Density], Draw]


def after_updates(seed: int, target: Target, step: Step) -> dict[str, float]:
    """p-values of the replicates' ends."""
    rng = np.random.default_rng(seed)
    starts = target.draw(rng, REPLICATES)
    ends = np.empty(REPLICATES)
    for i, x in enumerate(starts):
        density = Function(target.log_f, target.support)
        current = Draw(float(x), density.value(float(x)))
        for _ in range(UPDATES):
            current = step(rng, current, density)
        ends[i] = current.x
    assert np.mean(ends != starts) > 0.95  # standing still would leave any law invariant
    return {"ends": p_value(ends, target.cdf)}


def plain(width: float, doublings: int) -> Step:
    return lambda rng, current, density: update(rng, current, density, width, doublings)


# -- invariance ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("width", "doublings"), [(1.0, 10), (0.2, 2), (5.0, 0)])
def test_an_update_leaves_the_target_invariant(name: str, width: float, doublings: int) -> None:
    assert_plausible(after_updates(1, TARGETS[name](), plain(width, doublings)))


def test_without_the_acceptance_test_of_figure_6_a_bimodal_target_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_sampling, "is_acceptable", lambda *_: True)
    assert_rejected(after_updates(1, bimodal(), plain(1.0, 10)))


@pytest.mark.parametrize("name", TARGETS)
def test_with_the_level_drawn_too_high_every_target_is_lost(name: str) -> None:
    class HalfExponential(np.random.Generator):
        def exponential(self, *args: object, **kwargs: object) -> float:  # type: ignore[override]
            return 0.5 * super().exponential()

    def step(rng: np.random.Generator, current: Draw, density: slice_sampling.Density) -> Draw:
        return update(HalfExponential(rng.bit_generator), current, density, 1.0, 10)

    assert_rejected(after_updates(1, TARGETS[name](), step))


def test_with_a_bracket_that_is_not_placed_at_random_a_skewed_target_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def beside(rng: np.random.Generator, x0: float, *_: object) -> slice_sampling.Bracket:
        return slice_sampling.Bracket(x0 - 0.2, 2.0, 0, 1)

    monkeypatch.setattr(slice_sampling, "double", beside)
    assert_rejected(after_updates(1, skewed(), plain(2.0, 10)))


def test_the_harness_itself_accepts_exact_draws_and_sees_a_shift_of_a_tenth() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=10_000)
    assert_plausible({"normal": p_value(z, lambda x: np.asarray(stats.norm.cdf(x)))})
    assert_rejected({"shifted": p_value(z + 0.1, lambda x: np.asarray(stats.norm.cdf(x)))})
    assert_rejected({"wider": p_value(1.1 * z, lambda x: np.asarray(stats.norm.cdf(x)))})


def test_p_values_of_exact_draws_are_not_too_small_too_often() -> None:
    """Of 300 p-values of true claims, those below 0.1 should be about 30: at most 57 at a false-alarm rate of 1e-6."""
    rng = np.random.default_rng(1)
    p = np.array([p_value(rng.random(1_000), lambda u: u) for _ in range(300)])
    assert np.count_nonzero(p < 0.1) <= stats.binom(300, 0.1).isf(1e-6)


@pytest.mark.parametrize("law", [
    oracles.horseshoe_law(1.0, (-8.0, 4.0)), oracles.published_law(5.0, (-12.0, math.log(100.0))),
    oracles.half_cauchy_law(0.05, (-12.0, math.log(1e4))), oracles.gamma_law(1.0, 3.0, (-12.0, math.log(100.0))),
    oracles.normal_law(0.0, 1.0, (-10.0, 10.0)),
])  # fmt: skip
def test_exact_draws_of_the_priors_follow_their_laws(law: oracles.Law) -> None:
    draws = law.draw(np.random.default_rng(0), 5_000)
    assert_plausible({"draws": p_value(draws, law.cdf)})
    assert law.support[0] <= draws.min()
    assert draws.max() <= law.support[1]


# -- what is evaluated -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
def test_no_point_is_evaluated_twice_and_none_outside_the_support(name: str) -> None:
    target, rng, asked = TARGETS[name](), np.random.default_rng(0), list[float]()

    def log_f(x: float) -> float:
        asked.append(x)
        return target.log_f(x)

    density = Function(log_f, target.support)
    x = float(target.draw(rng, 1)[0])
    current = Draw(x, density.value(x))
    for _ in range(300):
        current = update(rng, current, density, 1.0, 10)
        assert current.log_f == target.log_f(current.x)
    assert len(asked) == len(set(asked))
    assert target.support[0] <= min(asked)
    assert max(asked) <= target.support[1]


def test_ends_of_the_bracket_are_asked_only_until_one_is_inside() -> None:
    """A slice that holds everything: each doubling needs one evaluation, not two."""
    asked: list[float] = []

    def flat(x: float) -> float:
        asked.append(x)
        return 0.0

    density = Function(flat)
    bracket = slice_sampling.double(np.random.default_rng(0), 0.0, -1.0, density, 1.0, doublings=10)
    assert bracket.hi - bracket.lo == 2**10
    assert len(asked) <= 10


def test_a_density_that_knows_the_answer_is_not_evaluated() -> None:
    class Oracle(Function):
        def above_if_known(self, x: float, level: float) -> bool | None:
            return -0.5 * x * x > level

    asked: dict[str, list[float]] = {"known": [], "ordinary": []}

    def counted(name: str) -> Callable[[float], float]:
        def log_f(x: float) -> float:
            asked[name].append(x)
            return -0.5 * x * x

        return log_f

    known, ordinary = Oracle(counted("known")), Function(counted("ordinary"))
    one = two = Draw(0.3, -0.045)
    rngs = [np.random.default_rng(4), np.random.default_rng(4)]
    for _ in range(200):
        one, two = update(rngs[0], one, known, 1.0, 10), update(rngs[1], two, ordinary, 1.0, 10)
        assert one == two
    assert len(asked["known"]) < 0.8 * len(asked["ordinary"])


def test_the_bracket_holds_the_current_point_and_both_its_ends_are_outside_the_slice() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        x0 = float(rng.normal())
        level = -0.5 * x0 * x0 - float(rng.exponential())
        density = Function(lambda x: -0.5 * x * x)
        bracket = slice_sampling.double(rng, x0, level, density, 0.7, 10)
        assert bracket.at(bracket.lo) <= x0 <= bracket.at(bracket.hi)
        size = bracket.hi - bracket.lo
        assert size in {2**k for k in range(11)}
        if size < 2**10:
            assert not density.above(bracket.at(bracket.lo), level)
            assert not density.above(bracket.at(bracket.hi), level)


def could_have_started_at(x1: float, level: float, density: Function, bracket: slice_sampling.Bracket) -> bool:
    """Figure 6 by its meaning: from x1's cell, no interval on the way to the bracket would have stopped."""
    cell = math.floor((x1 - bracket.origin) / bracket.width) - bracket.lo
    size = 1
    while size < bracket.hi - bracket.lo:
        low = bracket.lo + cell // size * size
        if not (density.above(bracket.at(low), level) or density.above(bracket.at(low + size), level)):
            return False
        size *= 2
    return True


def test_the_acceptance_test_says_whether_the_doubling_could_have_started_there() -> None:
    rng, answers = np.random.default_rng(0), []
    for _ in range(3_000):
        heights = rng.normal(size=64)
        density = Function(lambda x, heights=heights: float(heights[int(4 * x) % 64]))  # type: ignore[misc]
        x0 = float(rng.uniform(0.0, 16.0))
        level = density.value(x0) - float(rng.exponential())
        bracket = slice_sampling.double(rng, x0, level, density, 0.7, 5)
        x1 = float(rng.uniform(bracket.at(bracket.lo), bracket.at(bracket.hi)))
        answers.append(slice_sampling.is_acceptable(x0, x1, level, density, bracket))
        assert answers[-1] == could_have_started_at(x1, level, density, bracket)
    assert 0.05 < np.mean(answers) < 0.95


def test_an_update_on_a_single_point_stays_there() -> None:
    density = Function(lambda _: 0.0, (2.0, 2.0))
    assert update(np.random.default_rng(0), Draw(2.0, 0.0), density, 1.0, 10) == Draw(2.0, 0.0)


def test_the_same_seed_gives_the_same_chain() -> None:
    def chain() -> list[float]:
        rng, density, current = np.random.default_rng(9), Function(bimodal().log_f), Draw(0.0, bimodal().log_f(0.0))
        out = []
        for _ in range(50):
            current = update(rng, current, density, 1.0, 10)
            out.append(current.x)
        return out

    assert chain() == chain()
