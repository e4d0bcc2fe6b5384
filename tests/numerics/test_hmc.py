"""Trajectories retrace themselves, keep volume and leave their density invariant, walls included; broken ones do not.

Invariance is tested as in `checks`: every replicate starts at an exact draw, makes a few transitions on its own, and
must still stand on the exact law at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from carbo.numerics.hmc import Box, Place, Target, Transition, transition
from carbo.numerics.types import Floats
from tests.checks import assert_plausible, assert_rejected, p_value

PRECISION = np.array([[2.0, -0.9, 0.3], [-0.9, 1.0, 0.2], [0.3, 0.2, 0.7]])
OPEN = Box(np.full(3, -np.inf), np.full(3, np.inf))
TIGHT = Box(np.array([-0.4, -0.1, 0.0]), np.array([0.3, 0.5, 0.6]))


def place(x: Floats, log_f: float, gradient: Floats) -> Place:
    return Place(x, float(log_f), np.asarray(gradient, dtype=np.float64))


def normal(x: Floats) -> Place:
    """A correlated normal density with a fixed precision matrix."""
    return place(x, -0.5 * x @ PRECISION @ x, -PRECISION @ x)


def bent(x: Floats) -> Place:
    """A log density that is not quadratic, so that the dynamics are not linear."""
    gradient = -PRECISION @ x - 0.5 * x**3
    gradient[0] += math.cos(x[0] + 2.0 * x[1])
    gradient[1] += 2.0 * math.cos(x[0] + 2.0 * x[1])
    return place(x, -0.5 * x @ PRECISION @ x - 0.125 * np.sum(x**4) + math.sin(x[0] + 2.0 * x[1]), gradient)


# -- one trajectory, its momentum chosen by the test ------------------------------------------------------------------


class Scripted(np.random.Generator):
    """A generator that returns one momentum and one uniform number chosen by the test."""

    def __init__(self, p: Floats, u: float = 1e-300) -> None:
        super().__init__(np.random.PCG64(0))
        self._p, self._u = p, u

    def standard_normal(self, *_: Any, **__: Any) -> Any:
        return self._p.copy()

    def random(self, *_: Any, **__: Any) -> Any:
        return self._u


class Watched(Box):
    """A box that remembers the momenta it returned, and how often it turned each coordinate."""

    momenta: list[Floats]
    turns: list[Floats]

    def reflect(self, x: Floats, p: Floats) -> tuple[Floats, Floats]:
        inside, turned = super().reflect(x, p)
        self.momenta.append(turned)
        self.turns.append((np.sign(turned) != np.sign(p)) + 2.0 * ((x < self.low) | (x > self.high)))
        return inside, turned


class End(NamedTuple):
    """Position and momentum after some steps, the energy gained, and the number of bounces."""

    x: Floats
    p: Floats
    gain: float
    turns: Floats


def run(x: Floats, p: Floats, target: Target, box: Box, size: Floats, leaps: int) -> End:
    """The end of the trajectory of `transition` from (x, p), accepted whatever its energy."""
    watched = Watched(*box)
    watched.momenta, watched.turns = [], []
    here = target(x)
    assert here is not None
    move = transition(Scripted(p), here, target, watched, size, leaps)
    there, p_end = move.place, watched.momenta[-1] + 0.5 * size * move.place.gradient
    gain = float(there.log_f - 0.5 * p_end @ p_end - here.log_f + 0.5 * p @ p)
    assert gain > -600.0  # otherwise it would have stayed
    assert move.acceptance == pytest.approx(math.exp(min(gain, 0.0)), rel=1e-9)
    return End(there.x, p_end, gain, np.array(watched.turns))


TARGETS: dict[str, Callable[[Floats], Place]] = {"normal": normal, "bent": bent}
BOXES = {"open": OPEN, "tight": TIGHT}


def beginning(seed: int, box: Box) -> tuple[Floats, Floats, Floats]:
    """A position in the box, a momentum, and a step size for each coordinate."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(np.maximum(box.low, -1.5), np.minimum(box.high, 1.5))
    return x, rng.normal(size=3), rng.uniform(0.05, 0.4, 3)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("target", TARGETS)
@given(seed=st.integers(0, 10**6), leaps=st.integers(1, 12))
@settings(max_examples=25)
def test_a_trajectory_with_its_momentum_turned_round_retraces_itself(
    target: str, box: str, seed: int, leaps: int
) -> None:
    x, p, size = beginning(seed, BOXES[box])
    there = run(x, p, TARGETS[target], BOXES[box], size, leaps)
    back = run(there.x, -there.p, TARGETS[target], BOXES[box], size, leaps)
    np.testing.assert_allclose(back.x, x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(-back.p, p, rtol=0, atol=1e-10)
    assert back.gain == pytest.approx(-there.gain, abs=1e-9)


def jacobian(x: Floats, p: Floats, target: Target, box: Box, size: Floats, leaps: int) -> Floats | None:
    """Jacobian (6, 6) from (x, p) to its end, by central differences; None if only some of the points meet a wall."""
    columns, h = [], 1e-5
    walls = run(x, p, target, box, size, leaps).turns
    for unit in np.eye(6):
        ends = [run(x + s * h * unit[:3], p + s * h * unit[3:], target, box, size, leaps) for s in (1.0, -1.0)]
        if not all(np.array_equal(end.turns, walls) for end in ends):
            return None
        one, two = (np.concatenate([end.x, end.p]) for end in ends)
        columns.append((one - two) / (2.0 * h))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("target", TARGETS)
@given(seed=st.integers(0, 10**6), leaps=st.integers(1, 6))
@settings(max_examples=8)
def test_a_trajectory_keeps_volume(target: str, box: str, seed: int, leaps: int) -> None:
    J = jacobian(*beginning(seed, BOXES[box])[:2], TARGETS[target], BOXES[box], np.full(3, 0.25), leaps)
    assume(J is not None)
    assert J is not None
    assert np.linalg.det(J) == pytest.approx(1.0, abs=1e-6)


def test_walls_are_met_in_the_tight_box() -> None:
    """Otherwise the claims about walls would be empty."""
    met = [np.count_nonzero(run(x, p, normal, TIGHT, size, 12).turns) for x, p, size in
           (beginning(seed, TIGHT) for seed in range(10))]  # fmt: skip
    assert np.mean(met) > 5.0


@pytest.mark.parametrize("target", TARGETS)
def test_the_error_of_the_energy_falls_with_the_square_of_the_step(target: str) -> None:
    errors = []
    for leaps in (10, 20, 40):  # the same time in smaller steps
        gains = [run(*beginning(s, OPEN)[:2], TARGETS[target], OPEN, np.full(3, 1.0 / leaps), leaps).gain
                 for s in range(20)]  # fmt: skip
        errors.append(math.sqrt(np.mean(np.square(gains))))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.03)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_a_trajectory_is_accepted_below_its_probability_and_not_above(seed: int) -> None:
    x, p, _ = beginning(seed, OPEN)
    here, size = normal(x), np.full(3, 1.1)
    acceptance = transition(Scripted(p), here, normal, OPEN, size, 3).acceptance
    below = transition(Scripted(p, acceptance * (1 - 1e-9)), here, normal, OPEN, size, 3)
    assert below.place is not here
    np.testing.assert_array_equal(below.place.gradient, normal(below.place.x).gradient)
    if acceptance < 1.0:
        assert transition(Scripted(p, acceptance * (1 + 1e-9)), here, normal, OPEN, size, 3).place is here


# -- walls -----------------------------------------------------------------------------------------------------------


def folded(x: float, low: float, high: float) -> tuple[float, int]:
    """The end of a ball that flies to x between two walls, and whether it then flies back: by unfolding the walls."""
    turn, rest = divmod(x - low, high - low)
    odd = int(turn) % 2
    return (high - rest if odd else low + rest), -1 if odd else 1


@given(seed=st.integers(0, 10**6), widths=st.sampled_from([0.3, 1.0, 5.0, 60.0]))
def test_a_bounce_is_a_ball_between_two_walls(seed: int, widths: float) -> None:
    rng = np.random.default_rng(seed)
    x, p = TIGHT.low + rng.uniform(-widths, widths + 1.0, 3) * (TIGHT.high - TIGHT.low), rng.normal(size=3)
    before = x.copy(), p.copy()
    inside, turned = TIGHT.reflect(x, p)
    for i in range(3):
        expected, sign = folded(float(x[i]), float(TIGHT.low[i]), float(TIGHT.high[i]))
        assert inside[i] == pytest.approx(expected, abs=1e-12)
        assert turned[i] == sign * p[i]
    np.testing.assert_array_equal((x, p), before)


@pytest.mark.parametrize("far", [1e2, 1e6, 1e300, math.inf])
def test_no_step_is_so_long_that_it_leaves_the_box(far: float) -> None:
    for direction in (1.0, -1.0):
        inside, turned = TIGHT.reflect(direction * np.array([far, 0.0, far]), np.ones(3))
        assert np.all((inside >= TIGHT.low) & (inside <= TIGHT.high))
        assert np.all(np.abs(turned) == 1.0)
    rng, here = np.random.default_rng(0), normal(np.array([0.0, 0.1, 0.2]))
    for _ in range(50):
        here = transition(rng, here, normal, TIGHT, np.full(3, min(far, 1e6)), 3).place
        assert np.all((here.x >= TIGHT.low) & (here.x <= TIGHT.high))


def test_a_wall_on_one_side_only_is_a_wall() -> None:
    box = Box(np.array([0.0, -np.inf]), np.array([np.inf, 1.0]))
    inside, turned = box.reflect(np.array([-2.5, 4.0]), np.array([-1.0, 3.0]))
    np.testing.assert_allclose(inside, [2.5, -2.0])
    np.testing.assert_array_equal(turned, [1.0, -3.0])


# -- invariance ------------------------------------------------------------------------------------------------------

REPLICATES, TRANSITIONS, LEAPS = 1_000, 3, 4


class Law(NamedTuple):
    """A density with exact draws (n, k), a transformation of them to (n, j), and the laws of the transformed draws."""

    target: Callable[[Floats], Place | None]
    box: Box
    size: Floats
    draw: Callable[[np.random.Generator, int], Floats]
    transform: Callable[[Floats], Floats]
    cdfs: tuple[Callable[[Floats], Any], ...]


def correlated() -> Law:
    """A normal without walls; its whitened draws, and their squared length."""
    C = np.linalg.cholesky(np.linalg.inv(PRECISION))

    def transform(x: Floats) -> Floats:
        z = np.linalg.solve(C, x.T).T
        return np.concatenate([z, np.sum(z**2, axis=1, keepdims=True)], axis=1)

    cdfs = (stats.norm.cdf, stats.norm.cdf, stats.norm.cdf, stats.chi2(3).cdf)
    return Law(normal, OPEN, np.array([0.6, 1.1, 0.9]), lambda rng, n: rng.normal(size=(n, 3)) @ C.T, transform, cdfs)


def flat() -> Law:
    """Uniform over a box, which every trajectory crosses several times."""
    return Law(
        lambda x: place(x, 0.0, np.zeros(3)), TIGHT, np.array([0.2, 0.5, 1.0]),
        lambda rng, n: rng.uniform(TIGHT.low, TIGHT.high, (n, 3)),
        lambda x: (x - TIGHT.low) / (TIGHT.high - TIGHT.low), (stats.uniform.cdf,) * 3,
    )  # fmt: skip


def against_walls() -> Law:
    """An exponential against a wall on its left, one against a wall on its right, and a normal cut on both sides."""
    cut = stats.truncnorm(-1.5, 0.5)

    def target(x: Floats) -> Place:
        return place(x, -2.0 * x[0] + x[1] - 0.5 * x[2] ** 2, np.array([-2.0, 1.0, -x[2]]))

    return Law(
        target, Box(np.array([0.0, -np.inf, -1.5]), np.array([np.inf, 3.0, 0.5])), np.array([0.2, 0.4, 0.3]),
        lambda rng, n: np.stack([rng.exponential(0.5, n), 3.0 - rng.exponential(1.0, n),
                                 cut.rvs(n, random_state=rng)], axis=1),
        lambda x: np.stack([2.0 * x[:, 0], 3.0 - x[:, 1], x[:, 2]], axis=1),
        (stats.expon.cdf, stats.expon.cdf, cut.cdf),
    )  # fmt: skip


def with_a_hole() -> Law:
    """The correlated normal where its first coordinate is below 0.3; the target has no answer elsewhere."""
    law = correlated()

    def draw(rng: np.random.Generator, n: int) -> Floats:
        x = law.draw(rng, 4 * n)
        return x[x[:, 0] < 0.3][:n]

    sd = math.sqrt(float(np.linalg.inv(PRECISION)[0, 0]))

    def rest(x: Floats) -> Floats:
        """The parts that are independent of the first coordinate, whitened."""
        mean = -np.linalg.solve(PRECISION[1:, 1:], PRECISION[1:, :1] @ x[:, :1].T).T
        return np.concatenate([x[:, :1], (x[:, 1:] - mean) @ np.linalg.cholesky(PRECISION[1:, 1:])], axis=1)

    cdfs = (stats.truncnorm(-np.inf, 0.3 / sd, scale=sd).cdf, stats.norm.cdf, stats.norm.cdf)
    return Law(lambda x: normal(x) if x[0] < 0.3 else None, OPEN, law.size, draw, rest, cdfs)


LAWS = {"correlated": correlated, "flat": flat, "against walls": against_walls, "with a hole": with_a_hole}
Sampler = Callable[[np.random.Generator, Place, Target, Box, Floats, int], Transition]


def after(seed: int, law: Law, step: Sampler, leaps: int = LEAPS) -> dict[str, float]:
    """p-values of the replicates' ends."""
    rng = np.random.default_rng(seed)
    starts, ends = law.draw(rng, REPLICATES), []
    assert len(starts) == REPLICATES
    for x in starts:
        here = law.target(x)
        assert here is not None
        for _ in range(TRANSITIONS):
            here = step(rng, here, law.target, law.box, law.size, leaps).place
        ends.append(here.x)
    assert np.mean(np.array(ends) != starts) > 0.7  # standing still would leave any law invariant
    columns = law.transform(np.array(ends)).T
    return {f"{j}": p_value(column, cdf) for j, (column, cdf) in enumerate(zip(columns, law.cdfs, strict=True))}


@pytest.mark.parametrize("name", LAWS)
def test_a_transition_leaves_its_density_invariant(name: str) -> None:
    assert_plausible(after(1, LAWS[name](), transition))


class Accepting(np.random.Generator):
    def random(self, *_: Any, **__: Any) -> Any:
        return 1e-300


class Hot(np.random.Generator):
    def standard_normal(self, *args: Any, **kwargs: Any) -> Any:
        return 1.3 * super().standard_normal(*args, **kwargs)


class Straight(Box):
    """A box that reflects x, but does not turn the momentum."""

    def reflect(self, x: Floats, p: Floats) -> tuple[Floats, Floats]:
        return super().reflect(x, p)[0], p


class Clipped(Box):
    """A box that stops x at the wall."""

    def reflect(self, x: Floats, p: Floats) -> tuple[Floats, Floats]:
        return np.clip(x, self.low, self.high), p


def of_generator(kind: type[np.random.Generator]) -> Sampler:
    def step(rng: np.random.Generator, here: Place, target: Target, box: Box, size: Floats, leaps: int) -> Transition:
        return transition(kind(rng.bit_generator), here, target, box, size, leaps)

    return step


def of_box(kind: type[Box]) -> Sampler:
    return lambda rng, here, target, box, size, leaps: transition(rng, here, target, kind(*box), size, leaps)


def without_last_half(
    rng: np.random.Generator, here: Place, target: Target, box: Box, size: Floats, leaps: int
) -> Transition:
    """The leapfrog steps of `transition`, the last half step of the momentum left out."""
    p = rng.standard_normal(len(here.x))
    energy, there = here.log_f - 0.5 * p @ p, here
    for i in range(leaps):
        p = p + (0.5 if i == 0 else 1.0) * size * there.gradient
        x, p = box.reflect(there.x + size * p, p)
        arrived = target(x)
        assert arrived is not None
        there = arrived
    gain = there.log_f - 0.5 * p @ p - energy
    return Transition(there if math.log(rng.random()) < gain else here, 1.0)


def of_size_here(
    rng: np.random.Generator, here: Place, target: Target, box: Box, size: Floats, leaps: int
) -> Transition:
    """A step size that depends on the start, so that the way back differs."""
    return transition(rng, here, target, box, size * math.exp(-0.5 * abs(float(here.x[0]))), leaps)


BROKEN: dict[str, tuple[str, Sampler, int]] = {
    "every move accepted": ("correlated", of_generator(Accepting), LEAPS),
    "momenta too large": ("correlated", of_generator(Hot), LEAPS),
    "last half step left out": ("correlated", without_last_half, 1),
    "step size of the starting point": ("correlated", of_size_here, LEAPS),
    "momentum not turned at walls": ("against walls", of_box(Straight), 3),
    "stopped at walls": ("against walls", of_box(Clipped), 3),
}
"""The mistake, the law that shows it, and the number of steps: with more, most of these would hardly move."""


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_transition_is_seen(what: str) -> None:
    name, step, leaps = BROKEN[what]
    assert_rejected(after(1, LAWS[name](), step, leaps))


def test_a_wrong_gradient_costs_acceptance_and_not_the_law() -> None:
    """A wrong gradient leaves the density invariant: it needs its own tests, because no test of invariance sees it."""
    law, acceptances = correlated(), []

    def wrong(x: Floats) -> Place:
        right = normal(x)
        return right._replace(gradient=0.6 * right.gradient)

    def step(rng: np.random.Generator, here: Place, target: Target, box: Box, size: Floats, leaps: int) -> Transition:
        move = transition(rng, here, target, box, size, leaps)
        acceptances.append(move.acceptance)
        return move

    assert_plausible(after(1, law._replace(target=wrong), step))
    spoilt = np.mean(acceptances)
    acceptances.clear()
    assert_plausible(after(1, law, step))
    assert spoilt < 0.9 * np.mean(acceptances)


# -- where there is no density ---------------------------------------------------------------------------------------


def test_where_the_target_has_no_answer_nobody_goes() -> None:
    law, rng = with_a_hole(), np.random.default_rng(0)
    here, stopped = normal(np.array([0.2, 0.0, 0.0])), 0
    for _ in range(300):
        move = transition(rng, here, law.target, law.box, law.size, LEAPS)
        stopped += move.acceptance == 0.0
        assert move.place.x[0] < 0.3
        assert move.acceptance > 0.0 or move.place is here
        here = move.place
    assert stopped > 30


@pytest.mark.parametrize("worth", [math.nan, -math.inf])
def test_a_place_without_a_finite_density_is_not_entered(worth: float) -> None:
    here = normal(np.zeros(3))
    move = transition(np.random.default_rng(0), here, lambda x: normal(x)._replace(log_f=worth), OPEN, np.ones(3), 2)
    assert move == Transition(here, 0.0)


# -- repeats ---------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_chain_and_another_seed_another() -> None:
    def chain(seed: int) -> Floats:
        rng, here, xs = np.random.default_rng(seed), bent(np.zeros(3)), []
        for _ in range(20):
            here = transition(rng, here, bent, TIGHT, np.full(3, 0.3), 5).place
            xs.append(here.x)
        return np.array(xs)

    np.testing.assert_array_equal(chain(4), chain(4))
    assert np.all(chain(4) != chain(5))


def test_a_note_of_the_target_comes_with_the_place() -> None:
    def noted(x: Floats) -> Place:
        return normal(x)._replace(note=tuple(x))

    here = transition(Scripted(np.ones(3)), noted(np.zeros(3)), noted, OPEN, np.full(3, 0.1), 3).place
    assert here.note == tuple(here.x)
    assert here.x[0] != 0.0
