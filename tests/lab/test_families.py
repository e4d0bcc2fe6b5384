"""The problem families that are not the paper's, against plain Python, full searches and integer programmes."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from carbo.errors import DataError, SettingsError, SpaceError
from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab.methods import METHODS, method
from lab.problems import Problem, assignment, knapsack, labs, mixed, nk, problem, seeds, sparse
from lab.problems.assignment import CROWDING, layout
from lab.problems.factors import LARGEST, Factor, Factors
from lab.problems.knapsack import items
from lab.problems.labs import ENERGIES
from lab.problems.nk import landscape
from lab.problems.sparse import function
from lab.runs.grid import PROBLEM_GROUPS, Wanted, grid
from lab.runs.runner import perform
from tests.programmes import best_layout, best_packing

FAMILIES = PROBLEM_GROUPS["families"]


def some_rows(p: Problem, n: int = 50) -> Ints:
    return p.space.random_rows(np.random.default_rng(0), n)


def climbed(p: Problem, starts: int) -> float:
    """The least value that descent to the best neighbour finds from random rows, all in step."""
    objective: Any = p.objective
    rows = some_rows(p, starts)
    values = objective.many(rows)
    least = float(values.min())
    while len(rows):
        near, owner = p.space.rows.neighbours(rows)
        reached = objective.many(near)
        order = np.lexsort((reached, owner))
        _, first = np.unique(owner[order], return_index=True)
        best = order[first]  # of each row that has neighbours, the best of these
        better = reached[best] < values[owner[best]]
        rows, values = near[best[better]], reached[best[better]]
        least = min(least, float(values.min(initial=np.inf)))
    return least


# -- what they have in common ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_a_run_decides_instance_and_start(name: str) -> None:
    each = [problem(name, run) for run in range(1, seeds.RUNS + 1)]
    assert [p.instance.get("seed", (p.run - 1) // 5) for p in each] == [(run - 1) // 5 for run in range(1, 26)]
    assert len({str(p.initial()) for p in each}) == seeds.RUNS
    row = each[0].design(1)[0]
    values = {p.objective(row) for p in each[::5]}
    assert len(values) == (1 if name == "labs" else 5)
    assert all(p.optimum is not None and 150 <= p.budget <= 200 for p in each)


@pytest.mark.parametrize("name", FAMILIES)
def test_many_rows_at_once_have_the_values_of_each(name: str) -> None:
    p = problem(name, 13)
    objective: Any = p.objective
    rows = some_rows(p)
    assert objective.many(rows).tolist() == pytest.approx([p.objective(row) for row in rows], rel=1e-13)


def test_the_tags_have_streams_of_their_own() -> None:
    tags = [seeds.NK, seeds.LABS, seeds.ASSIGNMENT, seeds.MIXED, seeds.KNAPSACK, seeds.MAXSAT, seeds.BRANIN]
    assert len({sum(map(ord, tag)) for tag in tags}) == len(tags)


# -- sums of tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_elimination_finds_what_listing_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, size=7)
    scopes = [tuple(rng.permutation(7)[: rng.integers(0, 4)].tolist()) for _ in range(9)]
    tables = Factors(tuple(Factor(scope, rng.normal(size=sizes[list(scope)])) for scope in scopes))
    rows = np.array(list(itertools.product(*map(range, sizes))))
    values = [sum(float(f.table[tuple(row[list(f.scope)])]) for f in tables.each) for row in rows]
    np.testing.assert_allclose(tables.many(rows), values, atol=1e-12)
    assert tables.least() == pytest.approx(min(values), abs=1e-12)


def test_tables_that_would_be_too_large_are_left_alone() -> None:
    pairs = itertools.combinations(range(40), 2)
    dense = Factors(tuple(Factor(pair, np.zeros((2, 2))) for pair in pairs))
    assert LARGEST < 2**40
    assert dense.least() is None


# -- NK landscapes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "k"), [(1, 0), (9, 0), (12, 2), (13, 4), (6, 5)])
def test_the_least_value_of_a_landscape_is_that_of_a_full_search(bits: int, k: int) -> None:
    p = nk(3, bits=bits, k=k)
    values = [p.objective(row) for row in p.space.all_rows()]
    assert p.optimum == pytest.approx(min(values), abs=1e-12)
    assert 0 <= min(values) <= max(values) < 1


@pytest.mark.parametrize("run", [1, 6, 11, 16, 21])
def test_climbing_a_landscape_reaches_its_least_value_and_no_less(run: int) -> None:
    p = problem("nk", run)
    assert p.optimum == pytest.approx(climbed(p, 1_500), abs=1e-12)


def test_a_bit_counts_with_its_k_others_only() -> None:
    tables = landscape(0, 30, 4).each
    assert [factor.scope[0] for factor in tables] == list(range(30))
    assert all(len(set(factor.scope)) == 5 == factor.table.ndim for factor in tables)
    p = nk(0)
    row = some_rows(p, 1)[0]
    for bit in range(30):
        flipped = row.copy()
        flipped[bit] ^= 1
        change = sum(f.table[tuple(flipped[list(f.scope)])] - f.table[tuple(row[list(f.scope)])]
                     for f in tables if bit in f.scope)  # fmt: skip
        assert p.objective(flipped) - p.objective(row) == pytest.approx(change, abs=1e-12)


# -- sparse functions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("matter", [1, 3, 8, 40])
def test_only_the_variables_that_matter_count_and_each_of_them_does(matter: int) -> None:
    p = sparse(matter, 2)
    row = some_rows(p, 1)[0]
    changes = []
    for bit in range(40):
        flipped = row.copy()
        flipped[bit] ^= 1
        changes.append(p.objective(flipped) != p.objective(row))
    assert sum(changes) == matter


@pytest.mark.parametrize("matter", [1, 3, 8])
def test_the_least_value_of_a_sparse_function_is_that_of_a_full_search(matter: int) -> None:
    p = sparse(matter, 1)
    those = sorted({i for factor in function(matter, 1).each for i in factor.scope})
    rows = np.zeros((2**matter, 40), dtype=np.intp)
    rows[:, those] = np.array(list(itertools.product((0, 1), repeat=matter)))
    assert p.optimum == pytest.approx(min(p.objective(row) for row in rows), abs=1e-12)


@pytest.mark.parametrize("run", [1, 7, 11, 17, 21])
def test_climbing_a_sparse_function_reaches_its_least_value_and_no_less(run: int) -> None:
    p = problem("sparse-40", run)
    assert p.optimum == pytest.approx(climbed(p, 600), abs=1e-9)


# -- low-autocorrelation binary sequences ----------------------------------------------------------------------------


def energy(signs: list[int]) -> int:
    n = len(signs)
    return sum(sum(signs[i] * signs[i + k] for i in range(n - k)) ** 2 for k in range(1, n))


def least_energy(n: int, block: int = 20) -> int:
    """Full search by counting the bits that a word and its shift differ in; negation and alternation fix two bits."""
    best = n**3
    free = max(n - 2, 1)
    for start in range(0, 2**free, 2**block):
        words = np.arange(start, min(start + 2**block, 2**free), dtype=np.uint32)
        total = np.zeros(len(words), dtype=np.int32)
        for k in range(1, n):
            differing = np.bitwise_count((words ^ (words >> k)) & np.uint32(2 ** (n - k) - 1))
            total += (n - k - 2 * differing.astype(np.int32)) ** 2
        best = min(best, int(total.min()))
    return best


def test_the_energy_is_that_of_plain_python_and_barker_sequences_have_the_least() -> None:
    p = labs(1)
    for row in some_rows(p):
        assert p.objective(row) == energy((2 * row - 1).tolist())
    for code in ("+++-", "+++-+", "+++--+-", "+++---+--+-", "+++++--++-+-+"):  # side lobes of at most 1
        barker = labs(1, length=len(code))
        assert barker.objective(np.array([sign == "+" for sign in code], dtype=np.intp)) == barker.optimum


@pytest.mark.parametrize("n", range(2, 19))
def test_the_least_energies_are_those_of_a_full_search(n: int) -> None:
    assert labs(1, length=n).optimum == least_energy(n) == ENERGIES[n - 2]


@pytest.mark.slow
@pytest.mark.parametrize("n", range(19, 31))
def test_the_least_energies_of_long_sequences_are_those_of_a_full_search(n: int) -> None:
    assert labs(1, length=n).optimum == least_energy(n)


def test_symmetric_sequences_have_the_same_energy_and_longer_ones_no_known_optimum() -> None:
    p = labs(1)
    for row in some_rows(p, 5):
        others = [row[::-1], 1 - row, row ^ (np.arange(30) % 2)]
        assert {p.objective(other) for other in others} == {p.objective(row)}
    assert labs(1, length=31).optimum is None


# -- assignment ------------------------------------------------------------------------------------------------------


def test_the_cost_of_an_assignment_is_that_of_plain_python() -> None:
    made, p = layout(2, 15, 6), assignment(2)
    pairs = list(itertools.combinations(range(15), 2))
    for row in some_rows(p).tolist():
        own = sum(made.c[i, row[i]] for i in range(15))
        flows = sum(made.f[i, j] * made.g[row[i], row[j]] for i, j in pairs)
        crowded = sum(row[i] == row[j] for i, j in pairs)
        params = {f"task{i + 1}": row[i] + 1 for i in range(15)}
        assert p.evaluate(params) == own + flows + CROWDING * crowded
    np.testing.assert_array_equal(made.g, made.g.T)
    assert not np.diag(made.g).any()


@pytest.mark.parametrize("seed", range(3))
def test_the_programme_of_an_assignment_finds_what_listing_finds(seed: int) -> None:
    made, p = layout(seed, 6, 3), assignment(seed, tasks=6, sites=3)
    assert p.optimum == min(p.objective(row) for row in p.space.all_rows())
    assert p.optimum == p.objective(best_layout(made.c, made.f, made.g, CROWDING))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow) for seed in range(5)])
def test_the_known_optimum_of_an_assignment_is_proved(seed: int) -> None:
    made, p = layout(seed, 15, 6), assignment(seed)
    assert p.optimum == p.objective(best_layout(made.c, made.f, made.g, CROWDING))


def test_climbing_assignments_finds_nothing_below_the_known_optimum() -> None:
    for seed in range(5):
        p = assignment(seed)
        assert p.optimum is not None
        assert p.optimum <= climbed(p, 60) <= 1.1 * p.optimum
    assert assignment(5).optimum is None


# -- the mixed machine -----------------------------------------------------------------------------------------------


def test_the_machine_has_every_kind_of_knob() -> None:
    kinds = [type(variable).__name__ for variable in mixed(0).space.variables.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "Binary": 4, "Categorical": 3, "Ordinal": 3, "Integer": 3, "Float": 1,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_climbing_with_two_knobs_reaches_the_machines_least_value_and_no_less(seed: int) -> None:
    """Descent where each step sets two knobs, to any values, as is best: far more than one-knob steps."""
    p = mixed(seed)
    objective: Any = p.objective
    pairs = list(itertools.combinations(range(p.space.dim), 2))
    best = np.inf
    for row in some_rows(p, 25):
        value, here, idle = p.objective(row), row.copy(), 0
        for i, j in itertools.cycle(pairs):
            grid_ = np.array(list(itertools.product(range(p.space.sizes[i]), range(p.space.sizes[j]))))
            rows = np.repeat(here[None], len(grid_), axis=0)
            rows[:, [i, j]] = grid_
            values = objective.many(rows)
            idle = 0 if values.min() < value - 1e-12 else idle + 1
            if idle == 0:
                value, here = float(values.min()), rows[int(values.argmin())]
            if idle == len(pairs):
                break
        best = min(best, value)
    assert p.optimum == pytest.approx(best, abs=1e-9)


def test_a_level_behind_a_closed_gate_does_not_count_through_it() -> None:
    gates = [factor for factor in mixed(1).objective.each if factor.table.ndim == 3 and factor.scope[0] < 4]  # type: ignore[attr-defined]
    assert sorted(factor.scope[0] for factor in gates) == [0, 1, 2, 3]
    for factor in gates:
        assert np.ptp(factor.table[0]) == 0
        assert (np.ptp(factor.table[1], axis=1) > 0).all()


# -- the constrained knapsack ----------------------------------------------------------------------------------------


def test_profit_and_weight_are_those_of_plain_python() -> None:
    made, p = items(1, 40), knapsack(1)
    rows = np.random.default_rng(1).integers(0, 2, size=(200, 40))
    weights = [sum(int(made.w[i]) for i in range(40) if row[i]) for row in rows]
    assert p.space.feasible(rows).tolist() == [weight <= made.capacity for weight in weights]
    assert 0 < p.space.feasible(rows).sum() < 100
    for row in rows[p.space.feasible(rows)].tolist():
        packed = [i for i in range(40) if row[i]]
        profit = sum(int(made.p[i, j]) for i in packed for j in packed)
        params = dict(zip(reversed(p.space.names), reversed(p.space.decode(row).values()), strict=True))
        assert p.evaluate(params) == -profit  # in whatever order the items are named


def test_a_row_that_is_too_heavy_is_not_evaluated() -> None:
    p = knapsack(0)
    with pytest.raises(SpaceError, match="knapsack: expected params that the constraint permits"):
        p.evaluate(dict.fromkeys(p.space.names, True))


@pytest.mark.parametrize("run", range(1, 26))
def test_the_initial_points_are_feasible_in_both_forms(run: int) -> None:
    for p in (problem("knapsack", run), problem("knapsack", run).relocated(run)):
        assert len(p.initial()) == 20
        assert p.space.feasible(p.design(run)).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_programme_of_a_knapsack_finds_what_listing_finds(seed: int) -> None:
    made, p = items(seed, 12), knapsack(seed, count=12)
    light = [row for row in itertools.product((0, 1), repeat=12) if np.dot(row, made.w) <= made.capacity]
    assert p.optimum == min(p.objective(np.array(row)) for row in light)
    assert p.optimum == p.objective(best_packing(*made))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 4))])
def test_the_known_optimum_of_a_knapsack_is_proved(seed: int) -> None:
    p = knapsack(seed)
    row = best_packing(*items(seed, 40))
    assert p.evaluate(p.space.decode(row)) == p.optimum


def test_climbing_knapsacks_finds_nothing_below_the_known_optimum() -> None:
    for seed in range(5):
        p = knapsack(seed)
        assert p.optimum is not None
        assert p.optimum <= climbed(p, 10) < 0
    assert knapsack(5).optimum is None


@pytest.mark.parametrize("seed", range(4))
def test_a_relocated_knapsack_permits_what_stands_for_the_permitted(seed: int) -> None:
    p = knapsack(0, count=10)
    moved = pickle.loads(pickle.dumps(p.relocated(seed)))
    flip = p.design(1)[0] ^ moved.design(1)[0]  # for bits, a mask
    rows = np.array(list(itertools.product((0, 1), repeat=10)))
    feasible = p.space.feasible(rows)
    assert moved.space.feasible(rows ^ flip).tolist() == feasible.tolist()
    values = [moved.evaluate(moved.space.decode(row)) for row in rows[feasible] ^ flip]
    assert values == [p.objective(row) for row in rows[feasible]]
    assert min(values) == moved.optimum
    assert any(p.relocated(other).space.feasible(rows).tolist() != feasible.tolist() for other in range(4))


# -- the laboratory on them ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relocated", [False, True])
@pytest.mark.parametrize("name", ["random", "annealing", "evolution", "genetic", "tpe",
                                  pytest.param("tpe-hyperopt", marks=pytest.mark.slow)])  # fmt: skip
def test_methods_run_on_every_family_within_its_constraint(name: str, relocated: bool) -> None:
    for package in METHODS[name].packages:
        pytest.importorskip(package)
    for task in grid(Wanted(FAMILIES, [name], [3], [relocated], budget=26)).tasks:
        built = task.build()
        done = perform(task, built, lambda _n, _best: None)
        assert len(done.values) == 26
        assert built.space.feasible(done.rows).all()
        assert done.values.tolist() == [built.objective(row) for row in done.rows]


def test_bocs_is_left_out_of_what_it_cannot_take() -> None:
    made = grid(Wanted(FAMILIES, ["bocs-sa3"], [1]))
    assert [task.problem for task in made.tasks] == ["nk", "labs"]
    assert made.skipped == (
        "bocs-sa3 is left out of assignment: it takes binary variables only",
        "bocs-sa3 is left out of mixed: it takes binary variables only",
        "bocs-sa3 is left out of knapsack: it takes no constraint",
    )


def test_a_method_that_breaks_the_constraint_leaves_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    class Greedy:
        def __init__(self, space: Space, _seed: int, _budget: int) -> None:
            self.row = np.ones(space.dim, dtype=np.intp)

        def tell(self, row: Ints, value: float) -> None:
            pass

        def ask(self) -> Ints:
            return self.row

    monkeypatch.setitem(METHODS, "random", type(method("random"))("random", "Greedy", Greedy))
    task = grid(Wanted(["knapsack"], ["random"], [1], budget=30)).tasks[0]
    with pytest.raises(DataError, match="method 'random': expected a row that the constraint of knapsack permits"):
        perform(task, task.build(), lambda _n, _best: None)


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nk(0, k=30), "nk: expected 0 <= k < bits, got k=30 and bits=30"),
        (lambda: sparse(41, 0), "sparse: expected 1 to 40 variables that matter, got 41"),
        (lambda: nk(-1), "seed: expected a whole number from 0 on, got -1"),
        (lambda: labs(1, length=1), "labs: expected a length of at least 2, got 1"),
        (lambda: assignment(0, sites=1), "assignment: expected at least 2 tasks and 2 sites"),
        (lambda: knapsack(0, count=1), "knapsack: expected at least 2 items, got 1"),
        (lambda: mixed(True), "seed: expected a whole number from 0 on, got True"),
        (lambda: mixed(0, run=26), "run: expected a whole number from 1 to 25"),
    ],
)
def test_impossible_arguments_are_refused_with_a_way_out(call: Any, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        call()
    assert message in str(caught.value)
