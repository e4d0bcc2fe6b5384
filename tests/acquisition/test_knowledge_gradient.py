"""The knowledge gradient against quadrature, thought experiments and brute force."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import carbo
from carbo.acquisition import functions as acq
from carbo.acquisition import policy as suggest
from carbo.acquisition.knowledge_gradient import log_fall, log_knowledge_gradient
from carbo.acquisition.policy import Question, propose
from carbo.kernels.orders import Orders
from carbo.kernels.spectra import spectrum
from carbo.numerics.types import Floats, Ints
from carbo.surrogate.ensemble import Ensemble
from tests import oracles
from tests.acquisition.test_functions import SPACE, ensemble, neighbours, some_rows

KERNELS = ("product", "orders")


@given(seed=st.integers(0, 10**6), count=st.integers(1, 7))
def test_the_expected_fall_of_the_lowest_line_is_its_integral(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=count), rng.normal(size=count)
    if count > 2:
        b[1] = b[0]  # equal slopes
    expected = a.min() + oracles.expected_max(-a, -b)
    assert math.exp(log_fall(a, b)) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("a", "b", "expected"), [
    ([1.5], [2.0], 0.0),
    ([0.0, 0.0], [1.0, -1.0], math.sqrt(2.0 / math.pi)),
    ([0.0, 0.0, 5.0], [0.0, 1.0, 0.5], 1.0 / math.sqrt(2.0 * math.pi)),
    ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 0.0),
    ([1.0, 3.0, 2.0], [0.5, 0.5, 0.5], 0.0),
    ([0.0, 0.0, 0.0], [1.0, 0.0, -1.0], math.sqrt(2.0 / math.pi)),
])  # fmt: skip
def test_the_expected_fall_is_right_where_it_is_known(a: list[float], b: list[float], expected: float) -> None:
    assert math.exp(log_fall(np.array(a), np.array(b))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("gap", [3.0, 30.0, 300.0])
def test_a_fall_too_small_for_a_float_has_its_logarithm(gap: float) -> None:
    """Two lines that cross at z = gap / 2: twice the expected improvement of a normal that far out."""
    got = float(log_fall(np.array([0.0, gap]), np.array([1.0, -1.0])))
    assert got == pytest.approx(math.log(2.0) + oracles.log_h(-gap / 2.0), rel=1e-9)


def test_many_sets_of_lines_are_answered_as_one_by_one() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 5, 9)), rng.normal(size=(4, 5, 9)) * rng.integers(0, 2, size=(4, 5, 9))
    each = [[log_fall(a[i, j], b[i, j]) for j in range(5)] for i in range(4)]
    np.testing.assert_allclose(log_fall(a, b), each)


def kernelled(name: str) -> Ensemble:
    return ensemble(3, kernel=Orders(tuple(spectrum(g) for g in SPACE), 3, False) if name == "orders" else None)


@pytest.mark.parametrize("name", KERNELS)
def test_all_samples_together_have_the_joint_posteriors_of_each(name: str) -> None:
    model, rows = kernelled(name), some_rows(7)
    mean, cov = model.joints(rows)
    for s in range(model.size):
        own_mean, own_cov = model.joint(s, rows)
        np.testing.assert_allclose(mean[s], own_mean, atol=1e-10)
        np.testing.assert_allclose(cov[s], own_cov, atol=1e-10)


def brute_force_gradient(model: Ensemble, rows: Ints, x: int, others: Ints) -> float:
    """Evaluate row x in thought, with every value it may take; fit anew; how much lower is the lowest mean?"""
    gain, among = 0.0, np.concatenate([rows, others])
    for s, h in enumerate(model.hypers):
        w, beta = np.exp(h.log_w), np.exp(h.scales.log_beta)
        together = np.concatenate([model.X, rows[x : x + 1], among])
        K = w[0] * oracles.product_gram(SPACE, "connectivity", beta, together)
        n, noise = len(model.X), math.exp(h.log_noise)
        old = K[:n, :n] + noise * np.eye(n)
        residual = model.values[s] - h.mean
        before, _ = oracles.conditional(old, K[n + 1 :, :n], K[n + 1 :, n + 1 :], residual)
        mean, cov = oracles.conditional(old, K[n : n + 1, :n], K[n : n + 1, n : n + 1], residual)
        values = np.linspace(-9.0, 9.0, 20_001)
        told = mean[0] + values * math.sqrt(cov[0, 0] + noise)
        new = K[: n + 1, : n + 1] + noise * np.eye(n + 1)
        weights = K[n + 1 :, : n + 1] @ np.linalg.inv(new)
        after = weights[:, :n] @ residual + told[:, None] * weights[:, n]
        density = stats.norm.pdf(values)
        gain += before.min() - integrate.trapezoid(after.min(axis=1) * density, values)
    return gain / model.size


def test_the_knowledge_gradient_is_what_a_thought_experiment_gives() -> None:
    model, rows = ensemble(samples=2), some_rows(6)
    expected = [brute_force_gradient(model, rows, x, model.X) for x in range(6)]
    np.testing.assert_allclose(np.exp(log_knowledge_gradient(model, rows, model.X)), expected, rtol=0, atol=1e-6)


@given(seed=st.integers(0, 10**6), count=st.integers(1, 7), above=st.floats(0.0, 3.0), slope=st.floats(-3.0, 3.0))
def test_one_more_row_that_may_turn_out_lowest_is_worth_no_less(
    seed: int, count: int, above: float, slope: float
) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=count), rng.normal(size=count)
    alone, beside = log_fall(a, b), log_fall(np.append(a, a.min() + above), np.append(b, slope))
    assert math.exp(beside) >= math.exp(alone) * (1.0 - 1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_the_lowest_mean_is_searched_for_as_it_is(name: str) -> None:
    model, parents = kernelled(name), some_rows(3)
    lowest = acq.Lowest(model)
    mean = model.predict(parents)[0].mean(axis=0)
    np.testing.assert_allclose(lowest.score(parents), -mean, atol=1e-10)
    rows, owner = neighbours(parents)
    near = lowest.around(parents, rows, owner)
    np.testing.assert_allclose(near.bounds(), -model.predict(rows)[0].mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(near.score(np.array([4, 2])), near.bounds()[[4, 2]])


def question(seed: int, binary: int = 6, told: int = 20, **changes: object) -> Question:
    """What is asked of the model after random values at some points of a space of binary variables."""
    space = carbo.Space({f"x{i}": carbo.Binary() for i in range(binary)})
    settings = {"acquisition": "kg", "burn_in": 5, "samples": 2, "patience": 0, **changes}
    opt = carbo.Optimizer(space, seed=seed, settings=settings)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(space.all_rows(2**binary))[:told]
    opt.tell([space.decode(row) for row in rows], list(rng.normal(size=told)))
    return opt._asker().question(opt._excluded())


def by(scores: Floats, rows: Ints) -> list[int]:
    return list(map(int, rows[np.argmax(scores)]))


def log_ei(asked: Question, rows: Ints) -> Floats:
    best = suggest.reference(asked)
    return acq.Pointwise(asked.ensemble, acq.log_expected_improvement, best, True).score(rows)


def test_a_small_space_is_searched_whole() -> None:
    """The suggestion has the largest gradient of all rows that are left. Expected improvement, the broken twin, would
    often suggest another one: over many functions it cannot always be the same.
    """
    same = 0
    for seed in range(30):
        asked = question(seed)
        left = suggest.remaining(asked)
        best = by(log_knowledge_gradient(asked.ensemble, left, asked.ensemble.X), left)
        assert propose(np.random.default_rng(0), asked).tolist() == best
        same += by(log_ei(asked, left), left) == best
    assert same < 30


def test_of_many_rows_those_of_largest_ei_and_lowest_mean_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """512 points, 40 told: of the 472 left 128 each, and of the told ones the 32 of lowest mean."""
    asked = question(1, binary=9, told=40)
    left, seen = suggest.remaining(asked), spied(monkeypatch)
    propose(np.random.default_rng(0), asked)
    rows, others = ({tuple(row) for row in some} for some in seen[0])
    for scores in (log_ei(asked, left), -asked.ensemble.predict(left)[0].mean(axis=0)):
        assert {tuple(row) for row in left[np.argsort(-scores)[:120]]} <= rows
    assert len(rows) <= 256
    X, mean = asked.ensemble.X, asked.ensemble.predict(asked.ensemble.X)[0].mean(axis=0)
    assert others == {tuple(row) for row in X[np.argsort(mean)[:32]]}


def spied(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Ints, Ints]]:
    """What the gradient is asked about from now on; the last row is always the best."""
    seen: list[tuple[Ints, Ints]] = []

    def last_is_best(_: Ensemble, rows: Ints, others: Ints) -> Floats:
        seen.append((rows, others))
        return np.arange(len(rows), dtype=np.float64)

    monkeypatch.setattr(suggest, "log_knowledge_gradient", last_is_best)
    return seen


@pytest.mark.parametrize("seed", range(8))
def test_a_large_space_is_judged_by_the_summits_of_ei_and_the_valleys_of_the_mean(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What EI would suggest and the lowest mean are among the rows, no excluded one is, and the scores decide."""
    asked = question(seed, samples=1, exhaustive=0)
    left = suggest.remaining(asked._replace(settings=dataclasses.replace(asked.settings, exhaustive=64)))
    seen = spied(monkeypatch)
    got = propose(np.random.default_rng(0), asked)
    rows = seen[0][0].tolist()
    assert got.tolist() == rows[-1]
    assert by(log_ei(asked, left), left) in rows
    everywhere = np.concatenate([left, asked.ensemble.X])
    lowest = by(acq.Lowest(asked.ensemble).score(everywhere), everywhere)
    assert lowest in rows or lowest in asked.ensemble.X.tolist()
    assert asked.permitted(seen[0][0]).all()


def test_replicates_do_not_crowd_out_what_else_was_evaluated() -> None:
    """One row told forty times, all the best values: it counts once."""
    space = carbo.Space({f"x{i}": carbo.Binary() for i in range(6)})
    opt = carbo.Optimizer(space, seed=0, settings={"acquisition": "kg", "burn_in": 5, "samples": 2, "replicate": True})
    rows = [space.decode(row) for row in space.all_rows(64)[:21]]
    opt.tell(rows[:1] * 40 + rows[1:], [-5.0] * 40 + [float(i) for i in range(20)])
    told = suggest.evaluated(opt._asker().question(opt._excluded()).ensemble)
    assert len(told) == len(np.unique(told, axis=0)) == 21
    assert space.decode(told[0]) == rows[0]


def test_one_sample_alone_predicts_as_it_did_among_the_others() -> None:
    model, rows = ensemble(samples=3), some_rows(9)
    for got, all_ in zip(model.only(1).predict(rows), model.predict(rows), strict=True):
        np.testing.assert_allclose(got[0], all_[1], atol=1e-12)


def test_the_lowest_mean_of_very_many_rows_is_computed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = ensemble(samples=2), some_rows(40)
    whole, most = acq.Lowest(model).score(rows), list[int]()
    covariances = Ensemble.covariances

    def counted(self: Ensemble, some: Ints) -> Floats:
        most.append(len(some))
        return covariances(self, some)

    monkeypatch.setattr(Ensemble, "piece", 7)
    monkeypatch.setattr(Ensemble, "covariances", counted)
    np.testing.assert_allclose(acq.Lowest(model).score(rows), whole, atol=1e-12)
    assert max(most) == 7


def test_a_chance_of_failure_is_taken_off_the_gradient() -> None:
    """The logarithm of the probability of success is added to that of the gradient; the product is what counts."""
    for seed in range(10):
        asked = question(seed)
        left = suggest.remaining(asked)
        penalty = -np.random.default_rng(seed).exponential(3.0, size=64)

        def of(rows: Ints, penalty: Floats = penalty) -> Floats:
            return np.asarray(penalty[rows @ (2 ** np.arange(6))])

        expected = by(log_knowledge_gradient(asked.ensemble, left, asked.ensemble.X) + of(left), left)
        assert propose(np.random.default_rng(0), asked._replace(penalty=of)).tolist() == expected


def test_where_nothing_can_be_learned_expected_improvement_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question(8)
    monkeypatch.setattr(suggest, "log_knowledge_gradient", lambda _, rows, __: np.full(len(rows), -np.inf))
    left = suggest.remaining(asked)
    assert propose(np.random.default_rng(0), asked).tolist() == by(log_ei(asked, left), left)
