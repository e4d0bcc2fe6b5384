"""Problems with dead variables, conjunctions, flat values and failures, and measured tables, against plain Python."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carbo.errors import DataError, SettingsError, SpaceError
from carbo.numerics.types import Floats, Ints
from carbo.space.variables import Binary, Categorical, Ordinal
from lab import cli
from lab.methods import METHODS, Method
from lab.problems import (
    PROBLEMS,
    SHAPES,
    TABLES,
    Problem,
    ackley,
    colouring,
    ehrlich,
    feature_selection,
    flags,
    measured,
    problem,
    quantised,
    rna,
    seeds,
    sparse_categories,
    third_order,
)
from lab.problems.colouring import graph
from lab.problems.ehrlich import Ehrlich, Shape
from lab.problems.ehrlich import function as sequence_function
from lab.problems.flags import build
from lab.problems.quantised import instance as levels_of
from lab.problems.rna import TARGET, pairs
from lab.problems.sparse_categories import instance as categories_of
from lab.problems.third_order import Cubic
from lab.problems.third_order import function as cubic
from lab.runs import runner
from lab.runs.grid import PROBLEM_GROUPS, Task, Wanted, grid
from lab.runs.record import line, parse, read
from lab.tables.results import optimum
from tests.lab.test_families import climbed

NEW = PROBLEM_GROUPS["new"]
PACKAGES = {"feature-selection": "sklearn", "rna": "RNA"}
"""Problem -> the module that it needs."""
INSTANCES = [name for name in NEW if name not in ("ackley53", "rna")]
"""Problems with an instance for each run."""
VECTORISED = [name for name in NEW if name not in PACKAGES]


def made(name: str, run: int) -> Problem:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    return problem(name, run)


def some_rows(p: Problem, n: int = 50, seed: int = 0) -> Ints:
    return p.space.random_rows(np.random.default_rng(seed), n)


def values(p: Problem, rows: Ints) -> Floats:
    return np.array([p.objective(row) for row in rows])


def flipped(row: Ints, *places: int) -> Ints:
    turned = row.copy()
    turned[list(places)] ^= 1
    return turned


# -- what they have in common ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NEW)
def test_a_problem_is_what_its_name_and_run_say(name: str) -> None:
    p = problem(name, 7)
    assert (p.name, p.run, p.budget, p.noisy, p.relocation) == (name, 7, 200, False, None)
    assert len(p.initial()) == 10
    assert p.initial() == problem(name, 7).initial() == p.initial(7) != p.initial(8)
    assert json.loads(json.dumps(dict(p.instance))) == dict(p.instance)
    with pytest.raises(SpaceError):
        p.evaluate({})
    with pytest.raises(SettingsError, match="run: expected"):
        problem(name, 26)


@pytest.mark.parametrize("name", INSTANCES)
def test_every_run_has_an_instance_of_its_own_so_that_choosing_and_reporting_share_none(name: str) -> None:
    each = [problem(name, run) for run in range(1, seeds.RUNS + 1)]
    assert [p.instance["seed"] for p in each] == list(range(1, 26))
    told = {p.instance.get("numbers", p.instance["seed"]) for p in each}
    assert len(told) == seeds.RUNS


@pytest.mark.parametrize("name", NEW)
def test_evaluation_is_pure_and_relocation_keeps_the_values_of_the_initial_points(name: str) -> None:
    p = made(name, 2)
    moved = pickle.loads(pickle.dumps(p.relocated(3)))
    first = [p.evaluate(params) for params in p.initial()]
    np.testing.assert_array_equal([p.evaluate(params) for params in p.initial()], first)
    np.testing.assert_array_equal([moved.evaluate(params) for params in moved.initial()], first)
    assert (moved.relocation, moved.optimum, moved.fails) == (3, p.optimum, p.fails)
    assert moved.initial() != p.initial()


@pytest.mark.parametrize("name", VECTORISED)
def test_many_rows_at_once_have_the_values_of_each(name: str) -> None:
    p = problem(name, 5)
    objective: Any = p.objective
    rows = np.concatenate([some_rows(p), p.design(5)])
    np.testing.assert_allclose(objective.many(rows), values(p, rows), rtol=1e-12)


@pytest.mark.parametrize("name", NEW)
def test_a_run_begins_with_a_success_and_not_with_the_optimum_and_no_random_row_beats_it(name: str) -> None:
    for run in range(1, seeds.RUNS + 1):
        p = made(name, run)
        first = values(p, p.design(run))
        rows = np.concatenate([some_rows(p, 200), p.design(run)])
        found = values(p, rows)
        assert np.isfinite(first).any()
        assert p.fails or np.isfinite(found).all()
        assert np.nanmin(found) >= (-math.inf if p.optimum is None else p.optimum - 1e-9)
        assert p.optimum is None or np.nanmin(first) > p.optimum


def test_instances_and_starts_are_the_same_in_another_process() -> None:
    code = (
        "import json, sys\nfrom lab.problems import problem\n"
        "each = [problem(name, run) for name in sys.argv[1:] for run in (3, 8)]\n"
        "print(json.dumps([[dict(p.instance), p.design(p.run).tolist(), p.optimum] for p in each]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-c", code, *NEW], capture_output=True, text=True, env=environment, check=True
    )
    here = [problem(name, run) for name in NEW for run in (3, 8)]
    assert json.loads(done.stdout) == [[dict(p.instance), p.design(p.run).tolist(), p.optimum] for p in here]


def test_the_tags_have_streams_of_their_own() -> None:
    makers = (colouring, ehrlich, feature_selection, flags, quantised, rna, sparse_categories, third_order)
    new = [ackley.TAG, measured.TAG, *(sys.modules[maker.__module__].TAG for maker in makers)]
    old = [seeds.NK, seeds.LABS, seeds.ASSIGNMENT, seeds.MIXED, seeds.KNAPSACK, seeds.SPARSE, seeds.MAXSAT,
           seeds.BRANIN, seeds.ISING, seeds.CONTAMINATION, seeds.PEST_CONTROL]  # fmt: skip
    assert len({sum(map(ord, tag)) for tag in [*new, *old]}) == len(new) + len(old)


# -- sparse functions of categories ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_combination_is_worth_a_standard_deviation_and_the_rest_is_dead(seed: int) -> None:
    p = sparse_categories(seed)
    sizes, function = categories_of(seed)
    *alone, together = function.each
    those = [factor.scope[0] for factor in alone]
    assert len(set(those)) == 6
    assert set(together.scope) < set(those)
    settings = list(itertools.product(*(range(sizes[i]) for i in those)))
    rows = np.zeros((len(settings), 30), dtype=np.intp)
    rows[:, those] = settings
    found = function.many(rows)
    combination = np.argwhere(together.table < 0)
    assert len(combination) == 1
    has = (rows[:, list(together.scope)] == combination[0]).all(axis=1)
    assert p.optimum == pytest.approx(found[has].min(), abs=1e-12)
    spread = math.sqrt(sum(np.mean((f.table - f.table.mean()) ** 2) for f in alone))
    assert found[~has].min() - found[has].min() == pytest.approx(spread, abs=1e-9)
    for run in range(1, 26):
        first = sparse_categories(seed, run).design(run)
        assert len(first) == 10
        assert not (first[:, list(together.scope)] == combination[0]).all(axis=1).any()
    row = some_rows(p, 1)[0]
    for i in set(range(30)) - set(those):
        assert {p.objective(np.where(np.arange(30) == i, v, row)) for v in range(sizes[i])} == {p.objective(row)}
    assert p.space.sizes.tolist() == list(sizes)
    assert set(sizes) <= {3, 4, 5, 6, 7}


# -- flags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_full_search_of_the_flags_that_do_anything_finds_the_optimum(seed: int) -> None:
    p = flags(seed)
    costs, conflicts = build(seed).costs, build(seed).conflicts.tolist()
    alive = sorted({i for factor in costs.each for i in factor.scope} | {c[k] for c in conflicts for k in (0, 2)})
    assert len(alive) == 12
    rows = np.tile(some_rows(p, 1), (2**12, 1))
    rows[:, alive] = list(itertools.product((0, 1), repeat=12))
    found = values(p, rows)
    crashes = [any(row[i] == v and row[j] == w for i, v, j, w in conflicts) for row in rows.tolist()]
    assert np.isnan(found).tolist() == crashes
    assert np.nanmin(found) == p.optimum
    assert found[~np.isnan(found)].tolist() == np.round(found[~np.isnan(found)], 2).tolist()
    dead = [i for i in range(40) if i not in alive]
    np.testing.assert_array_equal([p.objective(flipped(row, *dead)) for row in rows[::7]], found[::7])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_from_every_local_optimum_of_the_flags_two_flips_lead_on(seed: int) -> None:
    costs = build(seed).costs
    those = sorted({i for factor in costs.each for i in factor.scope})
    rows = np.zeros((2**8, 40), dtype=np.intp)
    rows[:, those] = list(itertools.product((0, 1), repeat=8))
    local = 0
    for row in rows:
        here = costs(row)
        one = min(costs(flipped(row, i)) for i in those)
        two = min(costs(flipped(row, i, j)) for i, j in itertools.combinations(those, 2))
        if here < one:
            local += 1
            assert here == costs.least() or two <= here - 0.05 + 1e-12
    assert local == 2**4


# -- quantised functions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_levels_are_whole_numbers_that_half_of_the_rows_share_the_last_of(seed: int) -> None:
    p = quantised(seed)
    sizes, ordered, levels = levels_of(seed)
    rows = some_rows(p, 2_000)
    found = values(p, rows)
    sums = [sum(f.table[tuple(row[list(f.scope)])] for f in levels.sums.each) for row in rows]
    expected = [min(10, math.floor(10 * (s - levels.least) / (levels.high - levels.least) + 1e-9)) for s in sums]
    assert found.tolist() == expected
    assert 0.4 < np.mean(found == 10) < 0.6  # the shares of two samples of 2,000: their difference's deviation is 0.016
    matter = {i for factor in levels.sums.each for i in factor.scope}
    assert len(matter) == 12
    kinds = [type(variable) for variable in p.space.variables.values()]
    assert kinds == [Binary if k == 2 else Ordinal if o else Categorical for k, o in zip(sizes, ordered, strict=True)]


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_the_lowest_level_of_a_quantised_function_is_reached(seed: int) -> None:
    """Descent of the sum behind the levels where each step sets two variables to any values."""
    sizes, _, levels = levels_of(seed)
    pairs = list(itertools.combinations(sorted({i for f in levels.sums.each for i in f.scope}), 2))
    best = None
    for row in some_rows(quantised(seed), 12):
        here, value, idle = row, levels.sums(row), 0
        for i, j in itertools.cycle(pairs):
            near = np.repeat(here[None], sizes[i] * sizes[j], axis=0)
            near[:, [i, j]] = list(itertools.product(range(sizes[i]), range(sizes[j])))
            sums = levels.sums.many(near)
            idle = 0 if sums.min() < value - 1e-12 else idle + 1
            if idle == 0:
                here, value = near[sums.argmin()], float(sums.min())
            if idle == len(pairs):
                break
        best = value if best is None else min(best, value)
        if levels(here) == 0.0:
            return
    pytest.fail(f"the least sum found is {best}, the one of elimination {levels.least}")


# -- Ehrlich functions -----------------------------------------------------------------------------------------------

FORBIDDING = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
"""Of three states, 0 is followed by 0 or 1, 1 by 1 or 2, 2 by 2 or 0."""


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ([0, 0, 1, 1, 2, 2], -1.0),  # 0 . 1 at 0 and at 1, 1 2 at 3
        ([0, 0, 0, 0, 0, 0], 0.0),  # half of the first motif, none of the second
        ([1, 1, 1, 1, 1, 1], -0.25),  # half of each
        ([2, 0, 0, 0, 1, 1], -0.5),  # all of the first, half of the second
        ([0, 1, 2, 2, 2, 2], -0.5),  # half of the first, all of the second
        ([1, 2, 2, 2, 0, 0], 0.0),  # none of the first, where it would have to end in time
        ([0, 2, 2, 2, 0, 0], math.nan),  # 0 to 2 is forbidden
        ([0, 1, 0, 1, 2, 2], math.nan),  # so is 1 to 0
    ],
)
def test_ehrlich_values_computed_by_hand(row: list[int], value: float) -> None:
    """Motif 0 . 1 (offset 2) and motif 1 2 (offset 1)."""
    function = Ehrlich(FORBIDDING, np.array([[0, 1], [1, 2]]), np.array([[0, 2], [0, 1]]), 2)
    np.testing.assert_equal(function(np.array(row)), value)


@pytest.mark.parametrize(("quantisation", "value"), [(4, -0.75), (2, -0.5), (1, 0.0)])
def test_three_of_four_elements_count_as_the_quantisation_says(quantisation: int, value: float) -> None:
    function = Ehrlich(np.full((5, 5), 0.2), np.array([[0, 1, 2, 3]]), np.array([[0, 1, 2, 3]]), quantisation)
    assert function(np.array([4, 0, 1, 2, 4, 4])) == value


def by_definition(function: Ehrlich, x: list[int]) -> float:
    """As Stanton et al. write it, in plain Python."""
    if any(function.transitions[x[i], x[i + 1]] == 0 for i in range(len(x) - 1)):
        return math.nan
    product = 1.0
    for motif, offsets in zip(function.motifs.tolist(), function.offsets.tolist(), strict=True):
        k, q = len(motif), function.quantisation
        hits = [sum(x[at + s] == a for a, s in zip(motif, offsets, strict=True)) for at in range(len(x) - offsets[-1])]
        product *= (max(hits) // (k // q)) / q
    return -product


@pytest.mark.parametrize("shape", [*SHAPES, Shape(8, 14, 2, 4, 2), Shape(5, 9, 3, 3, 1)], ids=lambda s: s.name)
def test_ehrlich_functions_are_as_their_paper_defines_them(shape: Shape) -> None:
    for seed in range(1, 6):
        p, function = ehrlich(shape, seed), sequence_function(shape, seed)
        best = function.best(shape.positions)
        one_off = np.repeat(best[None], 200, axis=0)
        rng = np.random.default_rng(seed)
        one_off[np.arange(200), rng.integers(shape.positions, size=200)] = rng.integers(shape.states, size=200)
        rows = np.concatenate([some_rows(p, 100), p.design(1), one_off])
        np.testing.assert_allclose(function.many(rows), [by_definition(function, row) for row in rows.tolist()])
        assert function(best) == by_definition(function, best.tolist()) == p.optimum == -1.0


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_the_optimum_is_feasible_by_construction_in_every_run(shape: Shape) -> None:
    for seed in range(1, 26):
        function = sequence_function(shape, seed)
        A, width = function.transitions, 2 * int(0.4 * shape.states) + 1
        assert by_definition(function, function.best(shape.positions).tolist()) == -1.0
        np.testing.assert_allclose(A.sum(axis=1), 1.0)
        assert (np.diag(A) > 0).all()
        assert set((A > 0).sum(axis=1).tolist()) <= {width, width + 1}  # the band, and staying
        assert (np.linalg.matrix_power(A, (shape.states - 1) ** 2 + 1) > 0).all()  # Perron and Frobenius
        assert (function.offsets[:, 0] == 0).all()
        assert (np.diff(function.offsets, axis=1) >= 1).all()
        assert (function.offsets[:, -1] + 1).sum() <= shape.positions


def test_a_full_search_of_a_small_ehrlich_function_finds_nothing_better() -> None:
    for seed in (1, 2, 3):
        p = ehrlich(Shape(4, 8, 2, 3, 3), seed)
        objective: Any = p.objective
        found = objective.many(p.space.all_rows())
        assert np.nanmin(found) == p.optimum == -1.0
        assert 0 < np.isnan(found).sum() < len(found)


# -- Ackley53 --------------------------------------------------------------------------------------------------------


def test_ackley_is_the_papers_formula_and_least_at_zero() -> None:
    p = problem("ackley53", 1)
    for row in some_rows(p).tolist():
        z = [float(v) for v in row[:50]] + [-1 + v / 10 for v in row[50:]]
        squares = math.sqrt(sum(v * v for v in z) / 53)
        waves = sum(math.cos(2 * math.pi * v) for v in z) / 53
        expected = 20 + math.e - 20 * math.exp(-0.2 * squares) - math.exp(waves)
        assert p.objective(np.array(row)) == pytest.approx(expected, abs=1e-12)
    zero = np.array([0] * 50 + [10] * 3)
    assert p.space.sizes.tolist() == [2] * 50 + [21] * 3
    assert p.objective(zero) == p.optimum == 0.0
    assert min(values(p, p.space.neighbours(zero))) > 0.05


# -- dense functions of the third order ------------------------------------------------------------------------------


def test_a_third_order_function_is_that_of_plain_python() -> None:
    p, (a, b, c) = third_order(2, bits=7), cubic(2, 7).__dict__.values()
    for row in some_rows(p, 20):
        s = (2 * row - 1).tolist()
        total = sum(
            weight * math.prod(s[i] for i in those)
            for order, weights in ((1, a), (2, b), (3, c))
            for those, weight in zip(itertools.combinations(range(7), order), weights.tolist(), strict=True)
        )
        assert p.objective(row) == pytest.approx(total / (100 * math.sqrt(7 + 21 + 35)), abs=1e-12)


@pytest.mark.parametrize("bits", [3, 8, 11])
def test_the_least_value_of_few_bits_is_that_of_a_full_search(bits: int) -> None:
    p = third_order(4, bits=bits)
    assert p.optimum == pytest.approx(values(p, p.space.all_rows()).min(), abs=1e-12)


@pytest.mark.parametrize("run", [1, 8, 16, 25])
def test_climbing_a_third_order_function_comes_near_its_least_value_and_not_below(run: int) -> None:
    p = problem("third-order", run)
    assert p.optimum is not None
    assert p.optimum - 1e-9 <= climbed(p, 50) <= 0.85 * p.optimum


def test_the_least_value_is_known_in_every_run_and_not_for_other_seeds() -> None:
    assert all(problem("third-order", run).optimum is not None for run in range(1, 26))
    assert third_order(26).optimum is None


def least_cubic(function: Cubic, low: int = 18) -> int:
    """Full search by Walsh transforms: the upper bits are listed, the lower ones transformed at once."""
    bits = len(function.a)
    masks, weights = [], []
    for order, each in ((1, function.a), (2, function.b), (3, function.c)):
        masks += [sum(1 << i for i in those) for those in itertools.combinations(range(bits), order)]
        weights += ((-1) ** order * each).tolist()
    inner, outer = np.array(masks) % 2**low, np.array(masks) >> low
    best = 0
    for top in range(2 ** (bits - low)):
        signs = 1 - 2 * (np.bitwise_count(outer & top).astype(np.intp) % 2)
        table = np.bincount(inner, weights=signs * np.array(weights), minlength=2**low).astype(np.int32)
        for bit in range(low):
            halves = table.reshape(-1, 2, 2**bit)
            table = np.stack([halves[:, 0] + halves[:, 1], halves[:, 0] - halves[:, 1]], axis=1)
        best = min(best, int(table.min()))
    return best


@pytest.mark.parametrize("bits", [5, 12, pytest.param(30, marks=pytest.mark.slow)])
def test_the_known_least_value_is_that_of_walsh_transforms(bits: int) -> None:
    p, function = third_order(1, bits=bits), cubic(1, bits)
    assert p.optimum == least_cubic(function, low=min(18, bits - 2)) / function.unit


# -- graph colouring -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 25])
def test_conflicts_are_edges_between_nodes_of_one_colour_and_can_be_avoided(seed: int) -> None:
    p, drawn = colouring(seed), graph(seed)
    edges = {tuple(edge) for edge in drawn.edges.tolist()}
    assert len(edges) == 135
    assert all(i < j for i, j in edges)
    for row in some_rows(p, 20).tolist():
        assert p.objective(np.array(row)) == sum(row[i] == row[j] for i, j in edges)
    assert p.objective(drawn.hidden) == p.optimum == 0.0
    assert p.objective(np.array([2, 0, 3, 1])[drawn.hidden]) == 0.0


# -- feature selection -----------------------------------------------------------------------------------------------


def test_the_error_is_that_of_scikit_learns_classifier() -> None:
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    order = seeds.instance_stream(sys.modules[feature_selection.__module__].TAG, 4).permutation(len(y))
    p = problem("feature-selection", 4)
    for row in some_rows(p, 15):
        those, wrong = np.flatnonzero(row), 0
        for k in range(5):
            tried = order[k::5]
            learnt = np.setdiff1d(order, tried)
            classifier = make_pipeline(StandardScaler(), RidgeClassifier(alpha=1.0))
            classifier.fit(X[np.ix_(learnt, those)], y[learnt])
            wrong += int((classifier.predict(X[np.ix_(tried, those)]) != y[tried]).sum())
        assert p.objective(row) == pytest.approx(wrong / len(y) + 0.001 * len(those), abs=1e-12)
    without = p.objective(np.zeros(30, dtype=np.intp))
    assert without == pytest.approx((y == 0).mean(), abs=1e-12)  # the less frequent label


# -- RNA -------------------------------------------------------------------------------------------------------------

DESIGN = "CGGAUGUUCGUUUCAUUCAACAAACUGCACUGUUCUGGUGUGCUUCGGGUCGCUUCGGAUGCGGCAUAUUCGCUCC"
"""A sequence that ViennaRNA's own search found."""


def test_the_clover_leaf_has_76_places_and_a_design() -> None:
    vienna = pytest.importorskip("RNA")
    p = problem("rna", 1)
    assert p.space.dim == 76
    row = np.array(["ACGU".index(base) for base in DESIGN])
    assert p.objective(row) == p.optimum == 0.0
    for other in some_rows(p, 20):
        structure, _ = vienna.fold("".join("ACGU"[base] for base in other))
        assert p.objective(other) == vienna.bp_distance(structure, TARGET)


def test_pairs_are_those_of_brackets_that_match() -> None:
    assert pairs("((..)).()") == {(0, 5), (1, 4), (7, 8)}
    assert len(pairs(TARGET)) == 7 + 4 + 4 + 5


def test_a_package_that_is_missing_is_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "RNA", None)
    with pytest.raises(SettingsError, match="rna: expected the package ViennaRNA to be installed, got none; pip"):
        problem("rna", 1).evaluate(problem("rna", 1).initial()[0])
    monkeypatch.setattr("lab.methods._installed", lambda name: name != "ViennaRNA")
    assert cli.main(["run", "--problem", "rna", "--method", "random"]) == 2
    assert "pip install ViennaRNA\n" in capsys.readouterr().err


# -- measured tables -------------------------------------------------------------------------------------------------

LINES = """\
compiler,threads,size,fast,on,red,green,blue,coloured,kind_a,kind_b,again,time
gcc,1,0.5,1,1,1,0,0,1,0,1,1,4.0
gcc,2,0.5,1,1,0,1,0,1,1,0,1,
clang,8,2,1,1,0,0,1,1,1,0,1,2.5
clang,8,1.5,0,1,0,0,0,0,1,0,0,3.5
icc,2,0.5,0,1,1,0,0,1,1,0,0,6.0
"""


def table_file(folder: Path, text: str = LINES, name: str = "made.csv.gz") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def test_columns_become_the_variables_that_they_are(tmp_path: Path) -> None:
    p = measured.table(table_file(tmp_path), 1)
    assert {name: (type(v), list(v.choices)) for name, v in p.space.variables.items()} == {
        "compiler": (Categorical, ["clang", "gcc", "icc"]),
        "threads": (Ordinal, [1, 2, 8]),
        "size": (Ordinal, [0.5, 1.5, 2]),
        "fast": (Binary, [False, True]),
        "red/green/...": (Categorical, ["blue", "green", "none", "red"]),
        "kind_a/kind_b": (Categorical, ["kind_a", "kind_b"]),
    }


def test_the_lines_are_the_space_and_their_values_the_objective(tmp_path: Path) -> None:
    p = measured.table(table_file(tmp_path, name="made.csv"), 1)
    rows = p.space.all_rows()
    assert p.space.feasible(rows).sum() == len(rows) == 5
    by_compiler = [(p.space.decode(row)["compiler"], p.objective(row)) for row in rows]
    expected = [("clang", 2.5), ("clang", 3.5), ("gcc", 4.0), ("gcc", math.nan), ("icc", 6.0)]
    assert sorted(map(str, by_compiler)) == sorted(map(str, expected))
    assert (p.name, p.optimum, p.fails, p.budget) == ("table-made", 2.5, True, 100)
    with pytest.raises(SpaceError, match="the constraint permits"):
        p.evaluate({**p.initial()[0], "compiler": "icc", "threads": 1})
    assert measured.percent_behind(3.5, 2.5) == pytest.approx(40)


def test_where_larger_is_better_values_are_negated(tmp_path: Path) -> None:
    p = measured.table(table_file(tmp_path), 1, better=measured.LARGER)
    assert p.optimum == p.instance["best"] == -6.0
    assert sorted(values(p, p.space.all_rows()).tolist())[:3] == [-6.0, -4.0, -3.5]
    assert measured.percent_behind(-3.0, -6.0) == pytest.approx(50)
    assert {name for name, better in TABLES.items() if better == measured.LARGER} == {
        "table-config-apache", "table-chemistry-direct-arylation",
    }  # fmt: skip


def test_a_complete_table_has_no_constraint_and_a_relocated_one_keeps_its_values(tmp_path: Path) -> None:
    whole = "a,b,t\n" + "".join(f"{a},{b},{a + b / 10}\n" for a in range(5) for b in range(4))
    p = measured.table(table_file(tmp_path, whole), 3)
    assert p.space.constraint is None
    assert p.objective(np.array([3, 2])) == 3.2
    assert (len(p.initial()), len(np.unique(p.design(3), axis=0))) == (10, 10)
    sparse = measured.table(table_file(tmp_path, name="other.csv.gz"), 3)
    moved = pickle.loads(pickle.dumps(sparse.relocated(5)))
    assert moved.space.feasible(moved.design(3)).all()
    np.testing.assert_array_equal(values(moved, moved.design(3)), values(sparse, sparse.design(3)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a header of two or more names"),
        ("a,t\n", "expected a header of two or more names, each once, and lines under it"),
        ("a,a,t\n1,2,3\n", "each once"),
        ("a,t\n1\n", "line 2: expected 2 fields"),
        ("a,t\n1,3\n2,fast\n", "line 3: expected 2 fields, the last a number or empty, got '2,fast'"),
        ("a,t\n1,inf\n", "line 2"),
        ("a,t\n1,3\n2,4\n1,5\n", "expected every configuration once"),
        ("a,t\n1,\n2,\n", "expected some values, got none"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_its_name(text: str, said: str, tmp_path: Path) -> None:
    path = table_file(tmp_path, text, name="bad.csv")
    with pytest.raises(DataError) as caught:
        measured.table(path, 1)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cut_file_and_a_missing_one_are_said(tmp_path: Path) -> None:
    path = table_file(tmp_path)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match=r"made\.csv\.gz: expected a readable table"):
        measured.table(path, 1)
    with pytest.raises(DataError, match=r"expected a folder with config-llvm\.csv\.gz as data=, got no folder"):
        problem("table-config-llvm", 1)
    with pytest.raises(DataError, match="without it"):
        problem("table-config-llvm", 1, data=tmp_path)


@pytest.mark.parametrize("name", TABLES)
def test_the_best_line_of_a_file_is_the_optimum_and_its_lines_are_the_space(name: str) -> None:
    """Needs CARBO_TABLES, a folder with the measured tables."""
    folder = os.environ.get("CARBO_TABLES")
    if folder is None:
        pytest.skip("CARBO_TABLES: expected a folder with measured tables, got nothing")
    text = gzip.decompress(Path(folder, name.removeprefix("table-") + ".csv.gz").read_bytes()).decode()
    last = [each.rsplit(",", 1)[1] for each in text.splitlines()[1:]]
    p = problem(name, 2, data=folder)
    numbers = [float(word) for word in last if word]
    assert p.optimum == (min(numbers) if TABLES[name] == "smaller" else -max(numbers))
    assert p.fails == ("" in last)
    if p.space.cardinality <= 100_000:
        assert len(p.space.all_rows()) == len(last)
    assert p.space.feasible(p.design(2)).all()


# -- failures in the laboratory --------------------------------------------------------------------------------------


class Spy:
    """A method that asks for the rows of a list and keeps what it is told."""

    told: list[float]

    def __init__(self, space: Any, _seed: int, _budget: int) -> None:
        self.space, self.asked = space, 0
        type(self).told = []

    def tell(self, row: Ints, value: float) -> None:
        type(self).told.append(value)

    def ask(self) -> Ints:
        self.asked += 1
        return np.full(self.space.dim, self.asked % 2)


def performed(monkeypatch: pytest.MonkeyPatch, outcomes: list[float], learns: bool) -> Any:
    """A run of the spy on flags whose evaluations come out so; the first ten are the initial ones."""
    monkeypatch.setitem(METHODS, "spy", Method("spy", "Spy", Spy, learns_failures=learns))
    task = grid(Wanted(["flags"], ["spy"], [1], budget=len(outcomes))).tasks[0]
    stream = iter(outcomes)
    broken = problem("flags", 1).__dict__ | {"objective": lambda row: next(stream)}
    return runner.perform(task, Problem(**broken), lambda *_: None)


FAIL = math.nan


def test_a_method_that_learns_failures_is_told_nan_and_another_the_worst_value_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = [FAIL, 1.0, *[2.0] * 8, FAIL, 5.0, FAIL, 3.0]
    record = performed(monkeypatch, outcomes, learns=True)
    np.testing.assert_array_equal(Spy.told, outcomes[:-1])
    performed(monkeypatch, outcomes, learns=False)
    assert Spy.told == [2.0, 1.0, *[2.0] * 8, 2.0, 5.0, 5.0]
    np.testing.assert_array_equal(record.values, outcomes)
    np.testing.assert_array_equal(record.best, [FAIL, *[1.0] * 13])


def test_penalties_wait_for_the_first_success(monkeypatch: pytest.MonkeyPatch) -> None:
    record = performed(monkeypatch, [*[FAIL] * 11, 4.0, FAIL, 7.0], learns=False)
    assert Spy.told == [*[4.0] * 11, 4.0, 4.0]
    assert math.isnan(record.best[10])
    assert record.best[-1] == 4.0


def test_optuna_learns_failures_by_a_constraint_that_all_of_its_trials_have() -> None:
    pytest.importorskip("optuna")
    p = problem("flags", 1)
    study: Any = METHODS["tpe"].start(p.space, 1, 20)
    rows, told = p.design(1), [FAIL, FAIL, 3.0, 5.0, FAIL, 4.0]
    for row, value in zip(rows, told, strict=False):
        study.tell(row, value)
    for value in (FAIL, 2.0):
        study.tell(study.ask(), value)
    trials = study._study.trials
    assert [trial.value for trial in trials] == [3.0, 3.0, 3.0, 5.0, 5.0, 4.0, 5.0, 2.0]
    assert [list(trial.constraints.values()) for trial in trials] == [[1], [1], [-1], [-1], [1], [-1], [1], [-1]]
    found = [[trial.params[name] for name in p.space.names] for trial in trials[:6]]
    np.testing.assert_array_equal(found, rows[:6])


def test_optuna_has_no_constraint_where_nothing_fails() -> None:
    pytest.importorskip("optuna")
    p = problem("sparse-categories", 1)
    study: Any = METHODS["tpe"].start(p.space, 1, 20)
    for row in p.design(1):
        study.tell(row, p.objective(row))
    study.tell(study.ask(), 0.0)
    assert not any(trial.constraints for trial in study._study.trials)


def test_the_default_preset_is_told_a_penalty_when_its_name_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    real = METHODS["default-penalty"].start

    class Listener:
        def __init__(self, *arguments: Any) -> None:
            self.inner = real(*arguments)
            self.ask = self.inner.ask

        def tell(self, row: Ints, value: float) -> None:
            told.append(value)
            self.inner.tell(row, value)

    monkeypatch.setitem(METHODS, "default-penalty", dataclasses.replace(METHODS["default-penalty"], start=Listener))
    task = grid(Wanted(["flags"], ["default-penalty"], [1], budget=13)).tasks[0]
    record = runner.perform(task, task.build(), lambda *_: None)
    failed = np.isnan(record.values[:10])
    assert failed.any()
    assert told[:10] == np.where(failed, np.nanmax(record.values[:10]), record.values[:10]).tolist()
    assert METHODS["default"].learns_failures


def test_failures_are_null_on_disk_and_come_back(tmp_path: Path) -> None:
    assert cli.main(["run", "--problem", "flags,ehrlich-8x10", "--method", "random,genetic", "--runs", "2",
                     "--budget", "30", "--out", str(tmp_path)]) == 0  # fmt: skip
    found = read(tmp_path)
    assert len(found) == 4
    for record in found:
        p = problem(record.problem, record.run)
        np.testing.assert_array_equal(record.values, values(p, record.rows))
        assert np.isnan(record.values).any()
        assert record.best[-1] == np.nanmin(record.values)
        text = line(record)
        assert "null" in text
        assert "NaN" not in text
        np.testing.assert_array_equal(parse(text).values, record.values)


def test_a_table_is_run_from_the_folder_that_data_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = rng.permutation(list(itertools.product(range(2), repeat=10)))[:700]
    lines = "\n".join(",".join(map(str, [*row, "" if row[:2].all() else 1 + row.sum()])) for row in rows)
    (tmp_path / "data").mkdir()
    header = ",".join(f"f{i}" for i in range(10)) + ",PERF\n"
    table_file(tmp_path / "data", header + lines + "\n", "config-llvm.csv.gz")
    options = ["--runs", "1", "--budget", "14", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    assert cli.main(["run", "--problem", "table-config-llvm", "--method", "random,default", *options]) == 0
    for record in read(tmp_path / "out"):
        assert optimum(record) == min(1.0 + row.sum() for row in rows if not row[:2].all())  # without the file
        measured_ = {tuple(row): FAIL if row[:2].all() else 1.0 + row.sum() for row in rows}
        np.testing.assert_array_equal(record.values, [measured_[tuple(row)] for row in record.rows])


@pytest.mark.parametrize("name", ["random", "annealing", "evolution", "genetic", "tpe", "default"])
def test_methods_run_where_evaluations_fail(name: str) -> None:
    for package in METHODS[name].packages:
        pytest.importorskip(package)
    for task in grid(Wanted(["flags", "ehrlich-20x15"], [name], [3], [True], budget=14)).tasks:
        assert isinstance(task, Task)
        built = task.build()
        done = runner.perform(task, built, lambda *_: None)
        np.testing.assert_array_equal(done.values, values(built, done.rows))


def test_the_groups_name_problems_that_there_are() -> None:
    assert set(PROBLEM_GROUPS["tables"]) == set(TABLES) - {"table-config-sql"}
    assert set(NEW) <= set(PROBLEMS)
