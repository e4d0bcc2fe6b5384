"""The laboratory's problems against golden values of the published runs, full searches and plain Python.

The paper's .wcnf files are not part of the package. Tests of them need CARBO_WCNF, a folder that has them.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carbo.errors import CarboError, DataError, SettingsError, SpaceError
from carbo.numerics.types import Floats, Ints
from lab.problems import (
    FILES,
    PROBLEMS,
    Problem,
    branin,
    contamination,
    ising,
    maxsat,
    pest_control,
    problem,
    random_maxcut,
    random_maxsat,
    seeds,
)
from lab.problems.base import LAMBDAS
from lab.problems.contamination import chain
from lab.problems.ising import HORIZONTAL, model
from lab.problems.maxsat import standardise
from lab.problems.pest_control import cost
from lab.problems.wcnf import Formula, read
from lab.runs.grid import PROBLEM_GROUPS

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden_problems.json").read_text())
MAKERS = {"ising": ising, "contamination": contamination}
APART = (*FILES, "nas-", "table-", *PROBLEM_GROUPS["new"])
LOCAL = [name for name in PROBLEMS if not name.startswith(APART)]
"""Problems that need no files and train nothing, with twenty initial points; test_new_families has the others."""
BEST_MAXSAT = {
    "maxsat28": "1011101100101000010100010110",
    "maxsat28-raw": "0110010010111111111110000000",
    "maxsat43": "1010011001101100000001111011011111000111110",
    "maxsat43-raw": "0110101110101000111110000001110100011010101",
    "maxsat60": "0" * 60,
    "maxsat60-raw": "000001010000010000001000000001000001100000000100010000000001",
}


def golden(values: Any) -> Any:
    """Equal but for the last figure: golden values are float32, whose spacing is 2e-6 at 20 and 3e-5 at 300."""
    return pytest.approx(values, rel=1e-7, abs=1e-5)


def digits(text: str) -> list[int]:
    return [int(c) for c in text]


def at(p: Problem, row: list[int] | Ints) -> float:
    return p.evaluate(p.space.decode(np.asarray(row)))


def start(p: Problem) -> list[str]:
    return ["".join(map(str, row)) for row in p.space.encode_many(p.initial()).tolist()]


def wcnf_folder() -> Path:
    folder = os.environ.get("CARBO_WCNF")
    if folder is None:
        pytest.skip(f"CARBO_WCNF: expected a folder with {', '.join(FILES.values())}, got nothing")
    return Path(folder)


# -- seeds and golden values -----------------------------------------------------------------------------------------


def test_the_seeds_are_those_of_the_published_runs() -> None:
    assert [list(pair) for pair in seeds.seed_pairs(seeds.ISING)] == GOLDEN["ising"]["pairs"]
    assert [list(pair) for pair in seeds.seed_pairs(seeds.CONTAMINATION)] == GOLDEN["contamination"]["pairs"]
    assert seeds.single_seeds(seeds.PEST_CONTROL) == GOLDEN["pest_control"]["seeds"]
    assert seeds.single_seeds(seeds.MAXSAT) == GOLDEN["maxsat"]["seeds"]


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("run", [1, 8, 25])
@pytest.mark.parametrize("family", MAKERS)
def test_ising_and_contamination_match_the_golden_file(family: str, run: int, lam: str) -> None:
    expected = GOLDEN[family]["runs"][str(run)]
    p = problem(f"{family}-{lam}", run)
    assert (p.instance["case_seed"], p.instance["start_seed"]) == (expected["case"], expected["start"])
    assert start(p) == expected["points"]
    values = expected["values"][lam]
    assert [p.evaluate(params) for params in p.initial()] == golden(values["initial"])
    assert at(p, [0] * p.space.dim) == golden(values["all_zero"])
    assert at(p, [1] * p.space.dim) == golden(values["all_one"])


@pytest.mark.parametrize("config", GOLDEN["pest_control"]["configs"], ids=lambda c: f"run{c['run']}")
def test_pest_control_matches_the_golden_file(config: dict[str, Any]) -> None:
    assert start(pest_control(config["run"])) == config["points"]
    rows = [np.array(digits(point)) for point in config["points"]]
    values = [cost(np.random.RandomState(1000 + i), row) for i, row in enumerate(rows)]
    assert values == golden(config["values"])


def test_branin_matches_the_golden_file_and_its_grid_has_that_minimum() -> None:
    p, expected = branin(1), GOLDEN["branin"]
    assert [at(p, point) for point in expected["points"]] == golden(expected["values"])
    grid = {tuple(row): at(p, row) for row in p.space.all_rows().tolist()}
    least = min(grid, key=lambda row: grid[row])
    assert list(least) == expected["grid_minimum"]["point"]
    assert p.optimum == golden(grid[least]) == golden(expected["grid_minimum"]["value"])
    assert p.space.encode(p.initial()[0]).tolist() == [25, 25]
    published = branin(1, graph="published")
    np.testing.assert_array_equal(
        published.space.variables["a"].graph.weights, 50 * (abs(np.subtract.outer(range(51), range(51))) == 1)
    )
    assert published.initial() == p.initial()


@pytest.mark.parametrize("config", GOLDEN["maxsat"]["configs"], ids=lambda c: f"{c['name']}-run{c['run']}")
def test_maxsat_matches_the_golden_file(config: dict[str, Any]) -> None:
    p = problem(config["name"], config["run"], wcnf_folder())
    assert start(p) == config["points"]
    assert [p.evaluate(params) for params in p.initial()] == golden(config["values"])


@pytest.mark.parametrize("name", BEST_MAXSAT)
def test_the_known_optimum_of_a_maxsat_file_is_reached(name: str) -> None:
    p = problem(name, 1, wcnf_folder())
    assert p.optimum is not None
    assert at(p, digits(BEST_MAXSAT[name])) == golden(p.optimum)
    rows = p.space.random_rows(np.random.default_rng(0), 2_000)
    assert min(p.objective(row) for row in rows) > p.optimum


# -- optima, by full search ------------------------------------------------------------------------------------------


def outer_sum(parts: list[Floats]) -> Floats:
    """All sums of one entry of each part, the last part changing fastest."""
    return np.array([sum(each) for each in itertools.product(*parts)])


def least_ising(case: int) -> dict[float, float]:
    """lambda -> least value over all 2^24 points: Z by transfer matrices, from row to row of the grid.

    Edge covariances are the module's own, which the golden values check; its log Z counts half of the states.
    """
    J, log_Z, m = model(case)
    kinds = [np.isin(np.arange(24), HORIZONTAL), ~np.isin(np.arange(24), HORIZONTAL)]
    (across, down), (cost_across, cost_down) = (
        [a[kind].reshape(shape) for kind, shape in zip(kinds, ((4, 3), (3, 4)), strict=True)] for a in (J, J * m)
    )
    z, three, four = (
        np.array(list(itertools.product(v, repeat=n))) for v, n in (((-1, 1), 4), ((0, 1), 3), ((0, 1), 4))
    )
    D = [np.exp(three * across[r] @ (z[:, 1:] * z[:, :-1]).T) for r in range(4)]
    V = [np.exp(np.einsum("pk,ak,bk->pab", four * down[r], z, z)) for r in range(3)]
    top = np.einsum("ha,pab,gb,qbc->hpgqc", D[0], V[0], D[1], V[1], optimize=True).reshape(-1, 16)
    bottom = np.einsum("hc,pcd,gd->hpgc", D[2], V[2], D[3], optimize=True).reshape(-1, 16)
    order = [(three, cost_across[0]), (four, cost_down[0]), (three, cost_across[1]), (four, cost_down[1]),
             (three, cost_across[2]), (four, cost_down[2]), (three, cost_across[3])]  # fmt: skip
    lost, kept = [(1 - x) @ c for x, c in order], [x.sum(axis=1) for x, _ in order]
    best = dict.fromkeys(LAMBDAS.values(), np.inf)
    upper = zip(*(np.split(a, 16) for a in (top, outer_sum(lost[:4]), outer_sum(kept[:4]))), strict=True)
    for part, its_lost, its_kept in upper:
        kl = np.log(part @ bottom.T / 2) - log_Z + its_lost[:, None] + outer_sum(lost[4:])
        for lam in best:
            best[lam] = min(best[lam], float((kl + lam * (its_kept[:, None] + outer_sum(kept[4:]))).min()))
    return best


def least_contamination(case: int, lam: float) -> float:
    """Branch and bound: what later stages cost at least is what they cost a chain that arrives clean."""
    bound = np.zeros(26)
    for stage in range(24, 0, -1):
        bound[stage] = _search(case, lam, stage, np.zeros(100), bound)
    return _search(case, lam, 0, chain(case).first, bound)


def _search(case: int, lam: float, stage: int, z: Floats, bound: Floats) -> float:
    best, stack = np.inf, [(stage, z[None], np.zeros(1))]
    while stack:
        i, Z, spent = stack.pop()
        open_ = spent + bound[i] < best - 1e-9
        Z, spent = Z[open_], spent[open_]
        if len(spent) == 0:
            continue
        if i == 25:
            best = float(spent.min())
        elif len(spent) > 4_000:
            stack += [(i, Z[part], spent[part]) for part in np.array_split(np.argsort(-spent), 2)]
        else:
            Z = np.concatenate([(1 - chain(case).restore[i]) * Z, chain(case).spread[i] * (1 - Z) + Z])
            cost_now = np.repeat([1 + lam, 0], len(spent)) + np.mean(Z >= 0.1, axis=1) - 0.05
            stack.append((i + 1, Z, np.tile(spent, 2) + cost_now))
    return best


@pytest.mark.parametrize("run", [1, 6, 11, 16, 21])
def test_the_ising_optima_are_least(run: int) -> None:
    case = ising(run, 0.0).instance["case_seed"]
    for lam, least in least_ising(case).items():
        assert ising(run, lam).optimum == pytest.approx(least, abs=1e-10)
    assert at(ising(run, 0.0), [1] * 24) == 0.0
    assert ising(run, 0.5).optimum is None


@pytest.mark.parametrize(("run", "lam"), [(1, 0.0), (1, 1e-2), (6, 1e-2), (11, 1e-4), (16, 0.0), (21, 1e-2)])
def test_the_contamination_optima_are_least(run: int, lam: float) -> None:
    p = contamination(run, lam)
    assert p.optimum == pytest.approx(least_contamination(p.instance["case_seed"], lam), abs=1e-9)


@pytest.mark.parametrize("name", [n for n in LOCAL if not n.startswith("pest")])
def test_no_random_point_beats_the_optimum(name: str) -> None:
    p = problem(name, 3)
    n = 500 if name.startswith("ising") else 2_000
    rows = p.space.random_rows(np.random.default_rng(1), n)
    assert p.optimum is not None
    assert min(map(p.objective, rows)) >= p.optimum - 1e-9


# -- the contract of every problem -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOCAL)
def test_a_problem_is_what_its_name_and_run_say(name: str) -> None:
    p = problem(name, 7)
    assert (p.name, p.run, p.relocation) == (name, 7, None)
    assert len(p.initial()) == (2 if name.startswith("branin") else 20)
    assert p.initial() == problem(name, 7).initial() == p.initial(7) != p.initial(8)
    assert json.loads(json.dumps(dict(p.instance))) == dict(p.instance)
    with pytest.raises(SpaceError):
        p.evaluate({})


@pytest.mark.parametrize("name", LOCAL)
def test_evaluation_is_pure_unless_the_problem_says_that_it_is_noisy(name: str) -> None:
    p, copy = problem(name, 2), pickle.loads(pickle.dumps(problem(name, 2)))
    points = p.initial()
    first, again = ([p.evaluate(params) for params in points] for _ in range(2))
    assert [copy.evaluate(params) for params in points] == first
    assert (first != again) == p.noisy == (name in {"pest-control", "pest-control-path"})


def test_the_budgets_are_the_papers() -> None:
    expected = {"ising": 170, "contamination": 270, "branin": 100, "pest": 320, "maxcut": 270, "maxsat": 270}
    own = (*PROBLEM_GROUPS["families"], *PROBLEM_GROUPS["sparse"])
    papers = [name for name in LOCAL if name not in own]
    assert {name: problem(name, 1).budget for name in papers} == {n: expected[n.split("-")[0]] for n in papers}


def test_pest_control_is_nominal_unless_the_papers_path_is_asked_for() -> None:
    assert {v.graph.kind for v in pest_control(1).space.variables.values()} == {"complete"}
    assert {v.graph.kind for v in pest_control(1, graph="path").space.variables.values()} == {"path"}


def test_the_best_setting_known_of_pest_control_costs_what_the_page_of_results_says() -> None:
    """12.0085 with a standard deviation of 0.0233, by 20,000 evaluations of another stream; false alarm below 1e-6."""
    rng, row = np.random.RandomState(1), np.array([3] * 24 + [0])
    values = [cost(rng, row) for _ in range(1_500)]
    assert abs(np.mean(values) - 12.0085) < 5 * 0.0233 / math.sqrt(1_500)
    assert np.std(values) == pytest.approx(0.0233, rel=0.1)
    neighbours = pest_control(1).space.neighbours(row)
    worse = [np.mean([cost(rng, each) for _ in range(4)]) for each in neighbours]
    assert min(worse) > 12.1


def test_noisy_pest_control_varies_about_what_the_fixed_variant_is_one_draw_of() -> None:
    noisy, fixed = pest_control(4), pest_control(4, variant="fixed")
    row = np.array([4, 3] * 12 + [3])
    draws = [noisy.objective(row) for _ in range(400)]
    assert draws[0] == fixed.objective(row)
    assert abs(np.mean(draws) - fixed.objective(row)) < 6 * np.std(draws)  # 6 sigma: false alarm below 1e-6


# -- relocation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOCAL)
def test_relocation_keeps_the_values_of_the_initial_points(name: str) -> None:
    p, moved = problem(name, 9), problem(name, 9).relocated(3)
    assert (moved.relocation, moved.instance["relocated"], moved.optimum) == (3, 3, p.optimum)
    assert moved.space == p.space
    assert [moved.evaluate(q) for q in moved.initial()] == [p.evaluate(q) for q in p.initial()]
    assert moved.initial() == pickle.loads(pickle.dumps(problem(name, 9).relocated(3))).initial()
    assert any(moved.initial() != p.relocated(seed).initial() for seed in range(4, 20))
    with pytest.raises(SettingsError, match="expected the original problem"):
        moved.relocated(1)


@pytest.mark.parametrize("seed", range(5))
def test_relocation_is_a_bijection_that_changes_one_variable_at_a_time(seed: int) -> None:
    p = random_maxsat(0, variables=8, clause_count=30)
    rows = p.space.all_rows()
    moved = p.relocated(seed)
    assert sorted(map(moved.objective, rows)) == sorted(map(p.objective, rows))
    flip = p.space.encode(p.initial()[0]) ^ p.space.encode(moved.initial()[0])  # for bits, a mask
    assert [moved.objective(row ^ flip) for row in rows] == [p.objective(row) for row in rows]


def images(p: Problem, seed: int) -> list[dict[int, int]]:
    """For each variable, original position -> relocated position, as the initial rows of ten runs show it."""
    was, now = (np.concatenate([q.design(run) for run in range(1, 11)]).T for q in (p, p.relocated(seed)))
    return [dict(zip(a.tolist(), b.tolist(), strict=True)) for a, b in zip(was, now, strict=True)]


def test_relocation_permutes_categories() -> None:
    seen = {tuple(image[v] for v in range(5)) for seed in range(60) for image in images(pest_control(1), seed)}
    assert seen == set(itertools.permutations(range(5)))


@pytest.mark.parametrize(
    "p", [branin(1), branin(1, graph="published"), pest_control(1, graph="path")], ids=lambda p: p.name
)
def test_relocation_keeps_or_reverses_paths(p: Problem) -> None:
    top = int(p.space.sizes[0]) - 1
    seen = [image for seed in range(20) for image in images(p, seed)]
    kept = [all(a == b for a, b in image.items()) for image in seen]
    reversed_ = [all(a == top - b for a, b in image.items()) for image in seen]
    assert all(np.logical_xor(kept, reversed_))
    assert 0 < sum(kept) < len(kept)


def test_a_relocated_optimum_leaves_the_structured_point() -> None:
    assert all(at(ising(1, 0.0).relocated(seed), [1] * 24) > 0.1 for seed in range(20))


# -- weighted MaxSAT -------------------------------------------------------------------------------------------------

SMALL = "c a comment\n\np wcnf 4 5 100\n3 1 -2 0\n5 2 3 -4 0\n  2 -1 0\nc another\n7 4 -3 0\n9 1 2 3 4 0\n"
SMALL_NEW = "c 2022 form\n3 1 -2 0\n5 2 3 -4 0\n\n2 -1 0\n7 4 -3 0\n9 1 2 3 4 0\n"
SMALL_CLAUSES = [(3, [1, -2]), (5, [2, 3, -4]), (2, [-1]), (7, [4, -3]), (9, [1, 2, 3, 4])]


def written(folder: Path, text: str) -> Path:
    path = folder / "small.wcnf"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [SMALL, SMALL.replace(" 100", ""), SMALL_NEW, SMALL.replace("\n", "\r\n")])
@pytest.mark.parametrize("weights", ["raw", "standardised"])
def test_the_objective_of_a_file_is_that_of_plain_python(tmp_path: Path, text: str, weights: str) -> None:
    p = maxsat(written(tmp_path, text), 1, weights)
    raw = [w for w, _ in SMALL_CLAUSES]
    mean = sum(raw) / 5
    deviation = (sum((w - mean) ** 2 for w in raw) / 5) ** 0.5
    for bits in itertools.product([False, True], repeat=4):
        held = [w for w, clause in SMALL_CLAUSES if any(bits[abs(v) - 1] == (v > 0) for v in clause)]
        expected = -sum(held if weights == "raw" else [(w - mean) / deviation for w in held])
        assert p.evaluate(dict(zip(["x1", "x2", "x3", "x4"], bits, strict=True))) == pytest.approx(expected, abs=1e-6)
    assert (p.budget, p.optimum, len(p.initial())) == (270, None, 20)


def test_both_forms_are_the_same_formula(tmp_path: Path) -> None:
    old, new = read(written(tmp_path, SMALL)), read(written(tmp_path, SMALL_NEW))
    assert (
        old == new == Formula(4, tuple(tuple(c) for _, c in SMALL_CLAUSES), tuple(float(w) for w, _ in SMALL_CLAUSES))
    )
    assert old.fingerprint() == new.fingerprint() != read(written(tmp_path, SMALL.replace("9 1", "8 1"))).fingerprint()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p wcnf 2 1 5\n5 1 0\n", "line 2: expected a soft clause, got a hard one (weight 5, top 5)"),
        ("1 1 0\nh 1 2 0\n", "line 2: expected a soft clause, got a hard one (h)"),
        ("p cnf 2 1\n1 0\n", 'line 1: expected "p wcnf'),
        ("p wcnf 2\n1 1 0\n", 'line 1: expected "p wcnf'),
        ("p wcnf two 1\n1 1 0\n", 'line 1: expected "p wcnf'),
        ("p wcnf 2 1\np wcnf 2 1\n1 1 0\n", "line 2: expected one p line"),
        ("1 1 0\np wcnf 2 1\n", "line 2: expected one p line"),
        ("c\np wcnf 2 3\n1 1 0\n", "line 2: expected 3 clauses, as the p line says, got 1"),
        ("p wcnf 2 1\n1 1 3 0\n", "line 2: expected variables 1 to 2, as the p line says, got literal 3"),
        ("1 1 0\n1 1 2\n", "line 2: expected one clause: weight, literals, 0, got '1 1 2'"),
        ("1 1 0 2 0\n", "line 1: expected one clause"),
        ("1 0\n", "line 1: expected one clause"),
        ("1\n", "line 1: expected one clause"),
        ("1 1 x 0\n", "line 1: expected whole numbers as literals, got 'x'"),
        ("1 1.5 0\n", "line 1: expected whole numbers as literals, got '1.5'"),
        ("-1 1 0\n", "line 1: expected a weight above 0 first, got '-1'"),
        ("nan 1 0\n", "line 1: expected a weight above 0 first, got 'nan'"),
        ("<html>\n", "line 1: expected a weight above 0 first, got '<html>'"),
        ("", "expected at least one clause, got none"),
        ("c nothing\n", "expected at least one clause, got none"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        maxsat(written(tmp_path, text), 1)
    assert str(tmp_path / "small.wcnf") in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused_or_ignored_in_comments(tmp_path: Path) -> None:
    (tmp_path / "a.wcnf").write_bytes(b"c caf\xe9\n1 1 0\n")
    assert read(tmp_path / "a.wcnf").variables == 1
    (tmp_path / "b.wcnf").write_bytes(bytes(range(128, 256)))
    with pytest.raises(DataError, match="line 1"):
        read(tmp_path / "b.wcnf")


def test_weights_that_are_all_the_same_cannot_be_standardised(tmp_path: Path) -> None:
    with pytest.raises(DataError, match='use weights="raw"'):
        maxsat(written(tmp_path, "2 1 0\n2 2 0\n"), 1)
    w = standardise((1.0, 2.0, 6.0))
    assert w.dtype == np.float32
    np.testing.assert_allclose(w, np.array([-2.0, -1.0, 3.0]) / np.sqrt(14 / 3), rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_random_maxcut_is_minus_the_cut(seed: int) -> None:
    p = random_maxcut(seed, nodes=7, density=0.6)
    rows = p.space.all_rows()
    values = np.array([p.objective(row) for row in rows])
    weight = np.zeros((7, 7))  # read off the function: w_uv = (cut{u} + cut{v} - cut{u, v}) / 2
    cut = {tuple(row): -value for row, value in zip(rows.tolist(), values.tolist(), strict=True)}
    units = np.eye(7, dtype=int)
    for u, v in itertools.combinations(range(7), 2):
        weight[u, v] = (cut[tuple(units[u])] + cut[tuple(units[v])] - cut[tuple(units[u] + units[v])]) / 2
    assert set(weight.ravel()) <= set(range(11))
    assert np.count_nonzero(weight) == p.instance["edges"]
    np.testing.assert_allclose(
        values, [-sum(weight[u, v] * (r[u] != r[v]) for u in range(7) for v in range(7)) for r in rows]
    )
    assert p.optimum == values.min()


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_of_random_maxsat_is_least(seed: int) -> None:
    p = random_maxsat(seed, variables=9, clause_count=60)
    values = [p.objective(row) for row in p.space.all_rows()]
    assert p.optimum == min(values) < max(values)
    assert random_maxsat(seed, variables=21).optimum is None
    assert random_maxsat(seed + 1, variables=9, clause_count=60).instance["formula"] != p.instance["formula"]


def test_the_random_problems_have_five_instances() -> None:
    for name in ("maxcut-random", "maxsat-random"):
        assert [problem(name, run).instance["seed"] for run in (1, 5, 6, 25)] == [0, 0, 1, 4]


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [0, 26, 1.0, True, "1"])
def test_a_run_number_that_the_paper_does_not_have_is_refused(run: Any) -> None:
    for make in (
        lambda: ising(run, 0.0),
        lambda: branin(run),
        lambda: random_maxcut(0, run),
        lambda: branin(1).initial(run),
    ):
        with pytest.raises(SettingsError, match="run: expected a whole number from 1 to 25"):
            make()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ising(1, -1.0), "lam: expected a number from 0 on, got -1.0"),
        (lambda: contamination(1, float("nan")), "lam: expected a number from 0 on, got nan"),
        (lambda: pest_control(1, variant="loud"), "variant: expected 'noisy' or 'fixed', got 'loud'"),
        (lambda: pest_control(1, graph="star"), "graph: expected 'complete' or 'path', got 'star'"),
        (lambda: branin(1, graph="star"), "graph: expected 'path' or 'published', got 'star'"),
        (lambda: maxsat("nowhere.wcnf", 1, "unit"), "weights: expected 'standardised' or 'raw', got 'unit'"),
        (lambda: maxsat("nowhere.wcnf", 1), "nowhere.wcnf: expected a readable .wcnf file, got No such file"),
        (lambda: random_maxcut(-1), "seed: expected a whole number from 0 on, got -1"),
        (lambda: random_maxcut(0, nodes=1), "expected nodes >= 2"),
        (lambda: random_maxcut(0, nodes=2, density=1e-9), "expected a graph with edges"),
        (lambda: random_maxsat(0, variables=2), "expected 1 <= width <= variables"),
        (lambda: branin(1).relocated(-1), "relocated: expected a whole number from 0 on as seed, got -1"),
        (lambda: problem("isnig-0", 1), "got 'isnig-0'; did you mean 'ising-0'?"),
        (lambda: problem("nas", 1), "problem: expected one of ising-0, "),
        (
            lambda: problem("maxsat28", 1),
            "maxsat28: expected a folder with maxcut-johnson8-2-4.clq.wcnf, got no",
        ),
        (lambda: problem("maxsat60-raw", 1, "."), "download the file from the MaxSAT Evaluation 2018, weighted track"),
    ],
)
def test_impossible_arguments_are_refused_with_a_way_out(call: Any, message: str) -> None:
    with pytest.raises(CarboError) as caught:
        call()
    assert message in str(caught.value)
