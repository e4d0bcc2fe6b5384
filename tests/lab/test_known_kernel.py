"""The default preset with a known kernel: its predictions, its estimates, and how it is asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from carbo import Binary, Categorical, Space
from carbo.errors import SettingsError
from carbo.numerics.types import Floats, Ints
from carbo.surrogate.ensemble import Ensemble
from carbo.surrogate.surrogate import Belief, Observations, View
from lab.methods import method
from lab.methods.known_kernel import SETTINGS
from lab.methods.known_kernel_model import NOISE, Pairs
from lab.problems.maxsat import random_maxcut
from lab.runs.grid import METHOD_GROUPS

SPACE = Space({f"b{i}": Binary() for i in range(8)})
PAIRS = list(itertools.combinations(range(8), 2))


def features(rows: Ints) -> Floats:
    """(n, 28) products of two signs, over the square root of their number."""
    signs = 1.0 - 2.0 * rows
    return np.asarray(np.stack([signs[:, i] * signs[:, j] for i, j in PAIRS], axis=1) / np.sqrt(len(PAIRS)))


def evaluated(n: int, single: float = 0.0) -> tuple[Ints, Floats]:
    """Rows, and the values of a sum of pairs; with `single`, of single variables besides."""
    rng = np.random.default_rng(3)
    rows = SPACE.random_rows(rng, n)
    weights, alone = rng.normal(size=len(PAIRS)), rng.normal(size=SPACE.dim)
    return rows, 7.0 + 4.0 * features(rows) @ weights + single * (1.0 - 2.0 * rows) @ alone


def conditioned(rows: Ints, values: Floats) -> tuple[Ensemble, View]:
    _, posterior = Pairs(SPACE.rows, SETTINGS).advance(np.random.default_rng(0), Belief(), Observations(rows, values))
    return posterior.model, posterior.view


def test_predictions_are_those_of_a_regression_on_all_pairs() -> None:
    rows, values = evaluated(25)
    model, view = conditioned(rows[:20], values[:20])
    (hyper,) = model.hypers
    w, X, new = float(np.exp(hyper.log_w[1])), features(rows[:20]), features(rows[20:])
    precision = np.linalg.inv(np.eye(len(PAIRS)) / w + X.T @ X / (NOISE * w))
    weights = precision @ X.T @ (view.data.y - hyper.mean) / (NOISE * w)
    mean, sd = model.predict(rows[20:])
    assert mean[0] == pytest.approx(hyper.mean + new @ weights, abs=1e-4)
    assert sd[0] ** 2 == pytest.approx(np.einsum("na,ab,nb->n", new, precision, new), abs=1e-5)


def test_mean_and_variance_are_the_likeliest() -> None:
    rows, values = evaluated(20)
    model, view = conditioned(rows, values)
    (hyper,) = model.hypers
    P = features(rows) @ features(rows).T + NOISE * np.eye(20)

    def likelihood(mean: float, log_w: float) -> float:
        return float(multivariate_normal.logpdf(view.data.y, np.full(20, mean), np.exp(log_w) * P))

    there = hyper.mean, float(hyper.log_w[1])
    for mean, log_w in itertools.product((-0.02, 0.0, 0.02), repeat=2):
        if (mean, log_w) != (0.0, 0.0):
            assert likelihood(there[0] + mean, there[1] + log_w) < likelihood(*there)


@pytest.mark.parametrize(("single", "known"), [(0.0, True), (1.0, False)])
def test_a_sum_of_pairs_is_known_exactly_from_more_values_than_weights(single: float, known: bool) -> None:
    rows, values = evaluated(100, single)
    model, view = conditioned(rows[:60], values[:60])
    mean, _ = view.scale.moments(*model.predict(rows[60:]))
    assert (np.abs(mean - values[60:]).max() < 1e-3) == known


def test_values_that_are_all_the_same_do_no_harm() -> None:
    run = method("default-told").start(SPACE, 1, 30)
    rows = SPACE.random_rows(np.random.default_rng(0), 5)
    for row in rows:
        run.tell(row, 2.0)
    assert not (run.ask() == rows).all(axis=1).any()


@pytest.mark.parametrize("name", ["default-told", "default-told:acquisition=ucb+doubt=0.0"])
def test_the_known_kernel_finds_the_largest_cut(name: str) -> None:
    problem = random_maxcut(seed=5, nodes=9, density=1.0)  # 36 weights: known after 40 evaluations, whatever the seed
    run, best = method(name).start(problem.space, 1, 60), np.inf
    for row in problem.design(1):
        run.tell(row, problem.objective(row))
    for _ in range(40):
        row = run.ask()
        value = problem.objective(row)
        run.tell(row, value)
        best = min(best, value)
    assert best == problem.optimum


def test_the_known_kernel_is_asked_for_by_name_and_says_what_it_is() -> None:
    assert all("default-told" not in names for names in METHOD_GROUPS.values())
    plain, changed = method("default-told"), method("default-told:acquisition=ucb+doubt=0.0")
    assert plain.settings["acquisition"] == "ei"
    assert changed.settings["acquisition"] == "ucb"
    assert (changed.name, plain.settings["told"]) == ("default-told:acquisition=ucb+doubt=0.0", "pairs")
    assert changed.title == f"{plain.title}, acquisition=ucb, doubt=0.0"
    assert plain.objection(Space({"a": Categorical(["x", "y", "z"])})) == "it takes binary variables only"


@pytest.mark.parametrize("changes", ["doubt", "doubt=", "=3", "doubt=0.0+", "no_such=1"])
def test_a_wrong_change_is_refused(changes: str) -> None:
    with pytest.raises(SettingsError) as refused:
        method(f"default-told:{changes}")
    assert ("no_such" if "no_such" in changes else f"'default-told:{changes}'") in str(refused.value)
