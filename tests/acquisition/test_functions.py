"""Acquisition functions against quadrature, a hundred and fifty decimal digits, and models fitted from scratch."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import carbo
from carbo.acquisition import functions, search
from carbo.acquisition.objective import Pointwise
from carbo.errors import SettingsError
from carbo.inference.data import Data, Hyper
from carbo.kernels.base import Kernel, Scales
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import spectrum
from carbo.numerics.types import Ints
from carbo.space import graphs
from carbo.surrogate.ensemble import Ensemble, Recombined, build
from tests import oracles
from tests.presets import CHEAP

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden_gp.json").read_text())
SPACE = (graphs.complete(2), graphs.path(4), graphs.complete(3), graphs.cycle(5))


def ensemble(samples: int = 2, n: int = 8, kernel: Kernel | None = None, seed: int = 0) -> Ensemble:
    rng = np.random.default_rng(seed)
    kernel = Product(tuple(spectrum(g) for g in SPACE)) if kernel is None else kernel
    hypers = [
        Hyper(
            float(rng.normal(0.0, 0.3)),
            float(rng.uniform(-3.0, -1.0)),
            rng.normal(0.0, 0.3, kernel.size),
            Scales(rng.normal(-0.5, 0.5, 4), rng.normal(0.0, 0.5, 4)),
        )
        for _ in range(samples)
    ]
    return build(kernel, hypers, Data(oracles.random_rows(rng, SPACE, n), rng.normal(size=n)))


def some_rows(count: int, seed: int = 1) -> Ints:
    rows = np.unique(oracles.random_rows(np.random.default_rng(seed), SPACE, 3 * count), axis=0)
    return np.random.default_rng(seed).permutation(rows)[:count]


# -- expected improvement --------------------------------------------------------------------------------------------


@given(mu=st.floats(-5.0, 5.0), sd=st.floats(0.01, 10.0), best=st.floats(-5.0, 5.0))
def test_expected_improvement_is_the_integral_of_the_improvement(mu: float, sd: float, best: float) -> None:
    got = functions.expected_improvement(np.array([[mu]]), np.array([[sd]]), np.array([best]))[0]
    assert got == pytest.approx(oracles.expected_improvement(mu, sd, best), rel=1e-8, abs=1e-13 * sd)


def test_expected_improvement_matches_the_golden_file() -> None:
    mu, sd = np.array([GOLDEN["mean"]]), np.sqrt([GOLDEN["variance"]])
    best = np.array([GOLDEN["best"]])
    np.testing.assert_allclose(functions.expected_improvement(mu, sd, best), GOLDEN["expected_improvement"], rtol=1e-10)
    log_ei = functions.log_expected_improvement(mu, sd, best)
    np.testing.assert_allclose(log_ei, np.log(GOLDEN["expected_improvement"]), rtol=1e-10)


@pytest.mark.parametrize(
    "z", [10.0, 3.0, 0.5, 0.0, -0.5, -0.999, -1.0, -1.001, -3.0, -10.0, -20.0, -21.5, -30.0, -49.0]
)
def test_log_expected_improvement_has_all_its_digits(z: float) -> None:
    sd = 0.7
    got = functions.log_expected_improvement(np.array([[-z * sd]]), np.array([[sd]]), np.array([0.0]))[0]
    assert got == pytest.approx(oracles.log_h(z) + math.log(sd), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("z", [-51.0, -100.0, -300.0, -1000.0])
def test_log_expected_improvement_is_finite_and_right_in_the_far_tail(z: float) -> None:
    sd = 0.7
    got = functions.log_expected_improvement(np.array([[-z * sd]]), np.array([[sd]]), np.array([0.0]))[0]
    assert got == pytest.approx(oracles.log_h(z) + math.log(sd), rel=1e-8)


def test_the_oracle_of_the_tail_agrees_with_quadrature_and_with_itself() -> None:
    for z in (-8.0, -1.0, 0.0, 2.0):
        value, _ = integrate.quad(stats.norm.cdf, -40.0, z, epsabs=0.0, epsrel=1e-12, limit=500)
        assert oracles.log_h(z) == pytest.approx(math.log(value), rel=1e-10)  # the integral of Phi is phi + z Phi
    assert oracles.log_h(-12.0) == pytest.approx(oracles.log_h(math.nextafter(-12.0, -13.0)), rel=1e-13)


def test_log_expected_improvement_never_falls_as_the_mean_falls_or_the_spread_grows() -> None:
    z = -np.geomspace(1e-3, 1e6, 4_000)
    along_mu = functions.log_expected_improvement(-z[None], np.ones((1, len(z))), np.zeros(1))
    assert np.all(np.isfinite(along_mu))
    assert np.all(np.diff(along_mu) < 0)
    sd = np.geomspace(1e-4, 1e2, 4_000)[None]
    along_sd = functions.log_expected_improvement(np.ones_like(sd), sd, np.zeros(1))
    assert np.all(np.diff(along_sd) > 0)


def test_samples_are_averaged_outside_the_logarithm() -> None:
    rng = np.random.default_rng(0)
    mu, sd, best = rng.normal(size=(5, 8)), rng.exponential(size=(5, 8)), rng.normal(size=5)
    pairs = [zip(mu[s], sd[s], strict=True) for s in range(5)]
    one = np.array([[oracles.expected_improvement(m, v, best[s]) for m, v in pairs[s]] for s in range(5)])
    np.testing.assert_allclose(functions.expected_improvement(mu, sd, best), one.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(
        functions.log_expected_improvement(mu, sd, best), np.log(one.mean(axis=0)), rtol=0, atol=1e-8
    )


def test_samples_are_averaged_where_all_of_them_underflow() -> None:
    z = np.array([[-40.0], [-41.0], [-45.0]])
    got = functions.log_expected_improvement(-z, np.ones_like(z), np.zeros(3))[0]
    logs = np.array([oracles.log_h(v) for v in z[:, 0]])
    assert got == pytest.approx(float(np.logaddexp.reduce(logs)) - math.log(3.0), rel=1e-12)
    one_dominates = np.array([[-40.0], [1.0]])
    got = functions.log_expected_improvement(-one_dominates, np.ones((2, 1)), np.zeros(2))[0]
    assert got == pytest.approx(oracles.log_h(1.0) - math.log(2.0), rel=1e-12)


# -- confidence bound ---------------------------------------------------------------------------------------


def test_the_confidence_bound_is_the_spread_minus_the_mean() -> None:
    rng = np.random.default_rng(0)
    mu, sd = rng.normal(size=(4, 9)), rng.exponential(size=(4, 9))
    expected = [np.mean([2.0 * sd[s, j] - mu[s, j] for s in range(4)]) for j in range(9)]
    np.testing.assert_allclose(functions.confidence_bound(mu, sd, np.zeros(4)), expected, rtol=1e-12)


# -- scores as the search sees them ----------------------------------------------------------------------------------


def pointwise(
    model: Ensemble, function: functions.Score = functions.log_expected_improvement, rises: bool = True
) -> Pointwise:
    return Pointwise(model, functions.Acquisition(function, rises), model.values.min(axis=1))


def neighbours(parents: Ints) -> tuple[Ints, Ints]:
    rows, owner = [], []
    for v, parent in enumerate(parents):
        for i, g in enumerate(SPACE):
            for value in set(range(g.size)) - {int(parent[i])}:
                rows.append([*parent[:i], value, *parent[i + 1 :]])
                owner.append(v)
    return np.array(rows), np.array(owner)


SCORES: dict[str, functions.Score] = {"log EI": functions.log_expected_improvement, "UCB": functions.confidence_bound}
KERNELS = ("product", "orders")


def model_of(name: str, n: int) -> Ensemble:
    spectra = tuple(spectrum(g) for g in SPACE)
    return ensemble(3, n, Product(spectra) if name == "product" else Orders(spectra, 2, False))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("score", SCORES)
def test_a_score_is_the_function_of_mean_and_spread_plus_the_penalty(kernel: str, score: str) -> None:
    model, rows = model_of(kernel, 40), some_rows(20)
    plain = pointwise(model, SCORES[score])
    mu, sd = model.predict(rows)
    np.testing.assert_allclose(plain.score(rows), SCORES[score](mu, sd, plain.best), rtol=1e-9)
    punished = dataclasses.replace(plain, penalty=lambda r: -0.1 * r[:, 1].astype(np.float64))
    np.testing.assert_allclose(punished.score(rows), plain.score(rows) - 0.1 * rows[:, 1], rtol=1e-9)
    assert plain.score(rows[:0]).shape == (0,)


@pytest.mark.parametrize("kernel", KERNELS)
def test_long_lists_of_rows_are_scored_as_short_ones(kernel: str) -> None:
    objective = pointwise(model_of(kernel, 20))
    rows = oracles.random_rows(np.random.default_rng(0), SPACE, 2_500)
    whole = objective.score(rows)
    picked = [0, 1023, 1024, 2047, 2048, 2499]
    np.testing.assert_allclose(whole[picked], objective.score(rows[picked]), rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("n", [8, 60])
def test_around_parents_scores_are_exact_and_both_kinds_of_bounds_hold(kernel: str, score: str, n: int) -> None:
    objective = pointwise(model_of(kernel, n), SCORES[score])
    objective = dataclasses.replace(objective, penalty=lambda r: -0.2 * (r[:, 0] == 1))
    parents = np.concatenate([some_rows(4), objective.ensemble.X[:2]])
    rows, owner = neighbours(parents)
    near, every = objective.neighbour_scores(parents, rows, owner), np.arange(len(rows))
    exact = objective.score(rows)
    np.testing.assert_allclose(near.score(every), exact, rtol=1e-6)
    np.testing.assert_allclose(near.score(every[3:9]), exact[3:9], rtol=1e-6)
    assert np.all(near.bounds() >= exact - 1e-9)
    for sharpen in near.tighter_bounds:
        assert np.all(sharpen(every) >= exact - 1e-9)
    assert len(near.tighter_bounds) == (n == 60)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("score", SCORES)
def test_bounds_of_recombined_rows_hold(kernel: str, score: str) -> None:
    objective = pointwise(model_of(kernel, 50), SCORES[score])
    rng = np.random.default_rng(0)
    left, right = (rng.integers(0, [g.size for g in SPACE], size=(2, 8, 4)) for _ in range(2))
    starts = Recombined(left, right, rng.random((2, 4)) < 0.5)
    exact = objective.score(starts.rows(np.arange(len(starts))))
    bounds = objective.bound_starts(starts)
    assert np.all(bounds >= exact - 1e-9 * (1.0 + np.abs(exact)))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("score", SCORES)
def test_climbing_an_acquisition_ends_where_no_neighbour_scores_higher(kernel: str, score: str) -> None:
    objective = pointwise(model_of(kernel, 40), SCORES[score])
    taken = {tuple(r) for r in objective.ensemble.X.tolist()}
    domain = search.Domain(
        neighbours, lambda rows: np.array([tuple(r) not in taken for r in rows.tolist()], dtype=bool)
    )
    starts = some_rows(12)
    starts = starts[domain.permitted(starts)]
    summits = search.climb(objective, domain, search.Found(starts, objective.score(starts)))
    np.testing.assert_allclose(summits.scores, objective.score(summits.rows), rtol=1e-6)
    for row, value in zip(summits.rows, summits.scores, strict=True):
        near, _ = neighbours(row[None])
        near = near[domain.permitted(near)]
        assert objective.score(near).max() <= value + 1e-6 * (1.0 + abs(value))
    best = oracles.all_rows(SPACE)
    best = best[domain.permitted(best)]
    assert summits.scores[0] >= np.quantile(objective.score(best), 0.95)


def test_a_score_that_may_fall_as_the_spread_grows_is_never_bounded() -> None:
    objective = pointwise(model_of("product", 20), rises=False)
    parents = some_rows(2)
    rows, owner = neighbours(parents)
    near = objective.neighbour_scores(parents, rows, owner)
    assert np.all(near.bounds() == np.inf)
    assert near.tighter_bounds == []
    rng = np.random.default_rng(0)
    half = rng.integers(0, 2, size=(1, 3, 4))
    starts = Recombined(half, half, np.array([[True, False, True, False]]))
    assert np.all(objective.bound_starts(starts) == np.inf)


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(SettingsError, match=r"setting 'acquisition': expected one of ei, ucb, or a function .*'pi'"):
        functions.acquisition("pi")


def test_a_new_acquisition_is_a_name_in_the_table_and_every_door_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new acquisition needs one entry in the table, as the contributor's guide says."""
    monkeypatch.setitem(
        functions.ACQUISITIONS, "certain", functions.Acquisition(lambda mu, sd, best: -mu.mean(axis=0), True)
    )
    space = carbo.Space({f"x{i}": carbo.Binary() for i in range(6)})
    optimizer = carbo.Optimizer(space, seed=0, settings={**CHEAP, "acquisition": "certain"})
    optimizer.tell(
        rows := space.decode_many(space.random_rows(np.random.default_rng(0), 12)), [sum(r.values()) for r in rows]
    )
    asked = optimizer.ask()
    told = [space.decode(row) for row in space.all_rows() if space.decode(row) not in [*rows, asked]]
    assert optimizer.predict(asked)[0] <= min(optimizer.predict(told)[0]) + 1.0
