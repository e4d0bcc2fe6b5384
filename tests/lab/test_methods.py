"""The laboratory's methods through their one contract: tell rows and values, ask for the next row.

The common problem is additive: how many of some binary variables differ from a hidden row. The values of uniform rows
are binomial, so that "better than random search" is an exact test, with random search as its broken twin.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import logging
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from carbo import Binary, Categorical, Float, Integer, Ordinal, Space
from carbo.errors import CarboError, SettingsError, SpaceExhausted
from carbo.numerics.types import Floats, Ints
from carbo.settings import DEFAULT, PAPER, Settings
from carbo.space.graphs import Graph, cycle, path
from lab.methods import METHODS, Method, Strategy, method, smac
from lab.methods.annealing import COLD, HOT, mean_hops
from lab.methods.evolution import POPULATION, SAMPLE
from lab.methods.third_party import TRIES, is_ordered, within_constraint
from lab.runs.grid import Wanted, grid, settings_key
from tests.checks import assert_plausible, assert_rejected

LOCAL = ("annealing", "evolution", "genetic")
PACKAGED = ("tpe-hyperopt", "tpe", "smac", "gp-optuna")
OWN = ("paper", "default", "combo-gm")
SLOW = ("smac", "gp-optuna", *OWN)
"""A tenth of a second a suggestion or more."""
EACH = ("random", *LOCAL, *PACKAGED, "default")
"""One of OWN stands for the three: they differ in settings alone."""
BITS, RELEVANT = 20, 6
BINARY = Space({f"b{i}": Binary() for i in range(BITS)})
MIXED = Space(
    {
        "flag": Binary(),
        "kind": Categorical(["a", "b", "c", "d", "e"]),
        "size": Ordinal([16, 32, 64]),
        "hour": Categorical(range(24), graph="cycle"),
        "rate": Float(0.0, 1.0),
        "count": Integer(1, 7),
        "only": Categorical(["one"]),
    }
)
FEWER = Space({f"b{i}": Binary() for i in range(8)})
SMALLER = Space(
    {
        "flag": Binary(),
        "kind": Categorical(["a", "b", "c"]),
        "size": Ordinal([16, 32, 64]),
        "hour": Categorical(range(4), graph="cycle"),
        "rate": Float(0.0, 1.0, points=5),
        "only": Categorical(["one"]),
    }
)


def installed_method(name: str) -> Method:
    """The method; the test is skipped where a package of it is not installed."""
    for package in METHODS[name].packages:
        pytest.importorskip(package)
    return method(name)


def distance(row: Ints) -> float:
    """How many of the RELEVANT first variables differ from 1, 0, 1, 0, ...; the others do not count."""
    return float(np.sum(row[:RELEVANT] == np.arange(RELEVANT) % 2))


def tell_random_rows(strategy: Strategy, space: Space, evaluate: Callable[[Ints], float], n: int, seed: int) -> None:
    """n random rows with their values."""
    for row in space.random_rows(np.random.default_rng([2, seed]), n):
        strategy.tell(row, evaluate(row))


def ask_for(strategy: Strategy, evaluate: Callable[[Ints], float], n: int) -> Ints:
    """n rows asked for, told in turn."""
    rows = []
    for _ in range(n):
        rows.append(strategy.ask())
        strategy.tell(rows[-1], evaluate(rows[-1]))
    return np.array(rows)


# ---------------------------------------------------------------- every method


@pytest.mark.parametrize("name", EACH)
def test_rows_lie_inside_a_mixed_space_and_a_seed_repeats_them(name: str) -> None:
    space = SMALLER if name in ("smac", "default") else MIXED  # they look at every neighbour of many points

    def value(row: Ints) -> float:
        return float(np.sum(row / space.sizes))

    def rows(seed: int) -> Ints:
        strategy = installed_method(name).start(space, seed, 20)
        tell_random_rows(strategy, space, value, 12, seed=0)
        return ask_for(strategy, value, 2 if name in SLOW else 8)

    once = rows(5)
    assert space.decode_many(once)  # SpaceError for a row outside
    np.testing.assert_array_equal(once, rows(5))
    if name not in SLOW:  # a model may find the same best point from any seed
        assert not np.array_equal(once, rows(6))


def chance(name: str, seed: int) -> float:
    """The probability that uniform rows have as small a sum of values as the method's latest ones: exact.

    SMAC trains its model at every eighth suggestion, slowly, and draws a fifth of them and more at random: the first
    batches of three runs are pooled.
    """
    runs, first, n = (3, 120, 8) if name == "smac" else (1, 80, 5) if name in SLOW else (1, 120, 100)
    latest: list[float] = []
    for run in range(runs * seed, runs * seed + runs):
        strategy = installed_method(name).start(BINARY, run, first + n)
        tell_random_rows(strategy, BINARY, distance, first, run)
        latest += [distance(row) for row in ask_for(strategy, distance, n)[-50:]]
    return float(stats.binom.cdf(sum(latest), len(latest) * RELEVANT, 0.5))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("smac", "paper", "combo-gm") else ())
        for name in [*LOCAL, *PACKAGED, *OWN]
    ],
)
def test_a_method_beats_random_search(name: str) -> None:
    assert_rejected({name: chance(name, seed=1)})


def test_random_search_does_not_beat_itself() -> None:
    assert_plausible({str(seed): chance("random", seed) for seed in range(20)})


@pytest.mark.parametrize("name", [name for name in EACH[1:] if name != "smac"])  # slow: seen in its first batch above
def test_initial_values_decide_the_first_suggestion(name: str) -> None:
    def first(sign: float) -> Ints:
        strategy = installed_method(name).start(BINARY, 3, 80)
        tell_random_rows(strategy, BINARY, lambda row: sign * distance(row), 40, seed=3)
        return strategy.ask()

    assert not np.array_equal(first(1.0), first(-1.0))


@pytest.mark.parametrize("name", EACH)
def test_a_method_takes_values_of_points_that_it_did_not_suggest(name: str) -> None:
    space = FEWER if name in SLOW else BINARY
    strategy = installed_method(name).start(space, 4, 40)
    tell_random_rows(strategy, space, distance, 3, seed=4)
    for other in space.random_rows(np.random.default_rng(4), 2):
        strategy.ask()
        strategy.tell(other, distance(other))
        strategy.tell(other, distance(other))
    assert space.decode(strategy.ask())


@pytest.mark.parametrize("name", [name for name in EACH if name not in OWN])
def test_a_space_smaller_than_the_budget_is_no_trouble(name: str) -> None:
    space = Space({"a": Binary(), "b": Binary()})
    strategy = installed_method(name).start(space, 5, 20)
    tell_random_rows(strategy, space, lambda row: float(row.sum()), 2, seed=5)
    assert len(space.decode_many(ask_for(strategy, lambda row: float(row.sum()), 8))) == 8


@pytest.mark.parametrize("name", ["random", *LOCAL])
def test_a_constraint_is_honoured(name: str) -> None:
    space = Space(BINARY.variables, constraint=lambda params: sum(params.values()) <= 4)
    strategy = method(name).start(space, 6, 60)
    tell_random_rows(strategy, space, lambda row: -float(row.sum()), 20, seed=6)
    assert space.feasible(ask_for(strategy, lambda row: -float(row.sum()), 100)).all()


@pytest.mark.parametrize("name", [*PACKAGED, "default"])
def test_packages_that_know_no_constraint_are_kept_within_it(name: str) -> None:
    variables = (FEWER if name in SLOW else BINARY).variables
    space = Space(variables, constraint=lambda params: sum(params.values()) <= 0.4 * len(variables))
    strategy = installed_method(name).start(space, 6, 60)
    tell_random_rows(strategy, space, lambda row: -float(row.sum()), 20, seed=6)
    assert space.feasible(ask_for(strategy, lambda row: -float(row.sum()), 2 if name in SLOW else 20)).all()


class Stubborn:
    """Suggests the rows it was given, one after the other; remembers what it was told."""

    def __init__(self, rows: list[Ints]) -> None:
        self.rows, self.tell_random_rows = list(rows), list[tuple[list[int], float]]()

    def tell(self, row: Ints, value: float) -> None:
        self.tell_random_rows.append((row.tolist(), value))

    def ask(self) -> Ints:
        return self.rows.pop(0)


def test_a_forbidden_row_is_told_as_the_worst_so_far_and_another_asked_for() -> None:
    space = Space({"a": Binary(), "b": Binary()}, constraint=lambda params: not params["a"])
    forbidden, good = np.array([1, 0]), np.array([0, 1])
    inner = Stubborn([forbidden, forbidden, good, *[forbidden] * TRIES, good])
    given: list[Space] = []

    def start(free: Space, _seed: int, _budget: int) -> Strategy:
        given.append(free)
        return inner

    strategy = within_constraint(start)(space, 0, 10)
    assert given[0].constraint is None
    assert not strategy.ask()[0]  # nothing is the worst yet: a random row, and the method is left alone
    assert len(inner.rows) == TRIES + 4
    strategy.tell(good, 3.0)
    strategy.tell(np.array([0, 0]), 2.0)
    assert strategy.ask().tolist() == [0, 1]
    assert inner.tell_random_rows == [([0, 1], 3.0), ([0, 0], 2.0), ([1, 0], 3.0), ([1, 0], 3.0)]
    assert not strategy.ask()[0]  # after TRIES forbidden rows a random one
    assert len(inner.rows) == 1
    assert within_constraint(start)(Space(space.variables), 0, 10) is inner  # no constraint: the method itself


@pytest.mark.parametrize("name", PACKAGED)
def test_packages_are_silent_and_leave_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    chosen = installed_method(name)
    __import__(chosen.packages[0])

    def snapshot() -> list[Any]:
        loggers = logging.getLogger(), logging.getLogger(chosen.packages[0])
        return [(logger.level, logger.disabled, logger.propagate, list(logger.handlers)) for logger in loggers]

    before = snapshot()
    strategy = chosen.start(FEWER, 7, 40)
    tell_random_rows(strategy, FEWER, distance, 20, seed=7)
    ask_for(strategy, distance, 2)
    assert capfd.readouterr() == ("", "")
    assert before == snapshot()
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- the table of methods


def test_a_name_that_is_nearly_right_is_recognised() -> None:
    with pytest.raises(SettingsError, match=r"^method: expected one of .*, got 'aneal'; did you mean 'annealing'\?$"):
        method("aneal")
    with pytest.raises(SettingsError, match=r"got 'qqqq'; choose one of these$"):
        method("qqqq")


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].packages])
def test_an_absent_package_is_one_line_that_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(distribution: str) -> str:
        raise importlib.metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(CarboError) as caught:
        method(name)
    package = METHODS[name].packages[0]
    assert str(caught.value) == (
        f"method {name!r}: expected the package {package} to be installed, got none; pip install 'carbo[bench]'"
    )


def test_a_package_outside_the_extra_has_its_own_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def without_torch(distribution: str) -> str:
        if distribution == "torch":
            raise importlib.metadata.PackageNotFoundError(distribution)
        return "5.0" if distribution == "optuna" else real(distribution)

    monkeypatch.setattr(importlib.metadata, "version", without_torch)
    with pytest.raises(SettingsError, match=r"expected the package torch .*; pip install torch"):
        method("gp-optuna")


def test_the_table_needs_none_of_the_packages() -> None:
    packages = sorted({package for chosen in METHODS.values() for package in chosen.packages})
    code = f"import sys, lab.methods; assert not set(sys.modules) & set({packages})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_and_titles_tell_methods_apart() -> None:
    assert all(name == chosen.name for name, chosen in METHODS.items())
    assert len({chosen.title for chosen in METHODS.values()}) == len(METHODS)


# ---------------------------------------------------------------- this package's presets


@pytest.mark.parametrize(("name", "preset"), [("paper", PAPER), ("default", DEFAULT)])
def test_a_preset_is_recorded_in_full_and_differs_in_its_initial_points_alone(name: str, preset: Settings) -> None:
    # Branin has two initial points: twenty random ones of the preset's own would be a fifth of its budget.
    assert recorded(name) == unlimited(dataclasses.replace(preset, initial=1))


def recorded(name: str) -> Settings:
    """The settings that a record of the method's first run will hold."""
    return Settings.from_saved(json.loads(settings_key(method(name))))


def unlimited(settings: Settings) -> Settings:
    """Without the limits that no problem's budget reaches, which records leave out."""
    return dataclasses.replace(settings, learn_from=None, predict_from=None)


def test_where_values_are_noisy_the_default_preset_may_evaluate_again() -> None:
    changes = {"default": True, "default:doubt=0.0": True, "default:initial=5": True,
               "default:replicate=false": False, "paper": False, "paper:samples=3": False}  # fmt: skip
    for name, again in changes.items():
        usual, noisy = method(name).version_for(noisy=False), method(name).version_for(noisy=True)
        assert (usual.settings["replicate"], noisy.settings["replicate"]) == (False, again)
        assert {**usual.settings, "replicate": again} == noisy.settings
        assert usual.initial == noisy.initial
    assert method("default:replicate=true").version_for(noisy=False).settings["replicate"]


def test_a_noisy_problem_is_evaluated_again_and_another_is_not() -> None:
    noisy, usual = (grid(Wanted([name], ["default"], [1])).tasks[0] for name in ("pest-control", "branin"))
    assert (json.loads(noisy.settings)["replicate"], json.loads(usual.settings)["replicate"]) == (True, False)
    one = Space({"a": Binary()})
    run = method("default").version_for(noisy=True).start(one, 1, 5)
    for row in ([0], [1], [0]):
        run.tell(np.array(row), 1.0)
    assert int(run.ask()[0]) in (0, 1)
    once = method("default").start(one, 1, 5)
    for row in ([0], [1]):
        once.tell(np.array(row), 1.0)
    with pytest.raises(SpaceExhausted):
        once.ask()


def test_combo_gm_is_the_paper_preset_with_the_gamma_prior() -> None:
    found = recorded("combo-gm")
    assert found.priors.beta == "gamma"
    published = dataclasses.replace(found.priors, beta="published")
    assert dataclasses.replace(found, priors=published) == dataclasses.replace(PAPER, initial=1)


# ---------------------------------------------------------------- annealing


FLIPS = Space({f"b{i}": Binary() for i in range(6)})
INITIAL = [0.0, 2.0, 2.0, 0.0]
UNIT = math.sqrt(2 / 6) * 1.0
"""Of FLIPS and INITIAL, whose standard deviation is one."""
STEPS = 3


def accepted(seed: int, step: int, rise: float) -> bool:
    """Is a proposal worse by `rise` accepted at one of STEPS steps, all before it having been refused?"""
    strategy = method("annealing").start(FLIPS, seed, len(INITIAL) + STEPS)
    start = np.array([1, 0, 1, 0, 1, 0])
    for value in INITIAL:
        strategy.tell(start if value == 0 else 1 - start, value)
    for _ in range(step):
        strategy.tell(strategy.ask(), 1e9)
    proposed = strategy.ask()
    assert np.sum(proposed != start) == 1
    strategy.tell(proposed, rise)
    return bool(np.sum(strategy.ask() != proposed) == 1)  # one flip from where it stands: else it is 0 or 2


@pytest.mark.parametrize(("step", "units"), [(0, HOT), (1, math.sqrt(HOT * COLD)), (2, COLD)])
@pytest.mark.parametrize("probability", [0.3, 0.6])
def test_worse_moves_are_accepted_with_the_metropolis_probability(step: int, units: float, probability: float) -> None:
    temperature, runs = UNIT * units, 400
    rise = -temperature * math.log(probability)
    count = sum(accepted(seed, step, rise) for seed in range(runs))

    def p_value(claimed: float) -> float:
        return float(stats.binomtest(count, runs, math.exp(-rise / claimed)).pvalue)

    assert_plausible({"as claimed": p_value(temperature)})
    assert_rejected({"twice as hot": p_value(2 * temperature)})


def test_the_rate_of_worse_moves_falls() -> None:
    rise = UNIT * HOT / 2
    rates = [np.mean([accepted(seed, step, rise) for seed in range(100)]) for step in range(STEPS)]
    assert rates[0] > rates[1] > rates[2]  # 0.61, 0.03, 1e-11: a tie or turn has less than 1e-20


def test_better_moves_are_always_accepted() -> None:
    assert all(accepted(seed, step, -1e-9) for seed in range(50) for step in range(STEPS))


def test_annealing_starts_next_to_the_best_initial_point() -> None:
    values = {row.tobytes(): float(i) for i, row in enumerate(BINARY.random_rows(np.random.default_rng(9), 20))}
    strategy = method("annealing").start(BINARY, 9, 40)
    for key, value in reversed(values.items()):
        strategy.tell(np.frombuffer(key, dtype=np.intp), value)
    best = np.frombuffer(min(values, key=lambda key: values[key]), dtype=np.intp)
    assert np.sum(strategy.ask() != best) == 1


def test_initial_values_that_are_all_equal_make_annealing_greedy() -> None:
    strategy = method("annealing").start(FLIPS, 10, 20)
    start = np.zeros(6, dtype=np.intp)
    strategy.tell(start, 1.0)
    strategy.tell(1 - start, 1.0)
    for _ in range(10):
        row = strategy.ask()
        assert np.sum(row != start) == 1
        strategy.tell(row, 1.0 + 1e-12)


def ring_or_line(kind: str, k: int) -> Floats:
    """Distances between k values, by plain counting."""
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)
    return apart if kind == "line" else np.minimum(apart, k - apart)


def weighted_line(k: int) -> Graph:
    return Graph("weighted", k, 50.0 * (np.eye(k, k=1) + np.eye(k, k=-1)))


@pytest.mark.parametrize(
    ("graph", "kind"), [(path(51), "line"), (path(3), "line"), (cycle(24), "ring"), (weighted_line(9), "line")]
)
def test_hops_are_the_mean_distance_between_different_values(graph: Graph, kind: str) -> None:
    k = graph.size
    assert mean_hops(graph) == pytest.approx(ring_or_line(kind, k).sum() / (k * (k - 1)))


# ---------------------------------------------------------------- evolution


def champions(others: int, asks: int) -> int:
    """How many of `asks` children descend from a champion told before `others` worse points."""
    space = Space({f"b{i}": Binary() for i in range(10)})
    strategy = method("evolution").start(space, 11, 1_000)
    strategy.tell(np.ones(10, dtype=np.intp), -1.0)
    for _ in range(others):
        strategy.tell(np.zeros(10, dtype=np.intp), 0.0)
    return sum(int(np.sum(strategy.ask()) == 9) for _ in range(asks))


def test_the_oldest_member_dies_however_good_it_is() -> None:
    assert champions(POPULATION - 1, 500) > 0
    assert champions(POPULATION, 500) == 0


def test_a_parent_is_the_best_of_a_sample_without_replacement() -> None:
    asks = 4_000
    count = champions(POPULATION - 1, asks)

    def p_value(share: float) -> float:
        return float(stats.binomtest(count, asks, share).pvalue)

    assert_plausible({"sample": p_value(SAMPLE / POPULATION)})
    assert_rejected({"with replacement": p_value(1 - (1 - 1 / POPULATION) ** SAMPLE)})


def test_the_initial_points_are_the_first_population() -> None:
    strategy = method("evolution").start(BINARY, 12, 40)
    rows = BINARY.random_rows(np.random.default_rng(12), 5)
    for i, row in enumerate(rows):
        strategy.tell(row, float(i))
    assert all(np.sum(strategy.ask() != rows[0]) == 1 for _ in range(20))  # all five are the sample


# ---------------------------------------------------------------- the genetic algorithm


def test_children_take_their_genes_from_their_parents_but_for_one_in_d() -> None:
    def p_value(rate: float) -> float:
        rng = np.random.default_rng(13)
        space = Space({f"c{i}": Categorical(range(5)) for i in range(20)})
        strategy = method("genetic").start(space, 13, 1_000)
        for _ in range(10):
            strategy.tell(rng.integers(0, 2, 20), 0.0)  # genes 2, 3 and 4 come by mutation alone
        foreign = sum(int(np.sum(strategy.ask() >= 2)) for _ in range(1_000))
        return float(stats.binomtest(foreign, 20_000, rate * 3 / 4).pvalue)

    assert_plausible({"1/d": p_value(1 / 20)})
    assert_rejected({"1.5/d": p_value(1.5 / 20)})


def test_the_best_are_never_lost() -> None:
    space = Space({f"b{i}": Binary() for i in range(40)})
    strategy = method("genetic").start(space, 14, 1_000)
    good = np.ones(40, dtype=np.intp)
    for _ in range(30):
        strategy.tell(good, -1.0)
    for _ in range(100):
        strategy.tell(np.zeros(40, dtype=np.intp), 0.0)
    assert all(np.sum(strategy.ask()) > 30 for _ in range(20))


# ---------------------------------------------------------------- what packages are told of a variable


def test_values_on_a_path_are_ordered_whatever_its_weights() -> None:
    assert is_ordered(path(5))
    assert is_ordered(weighted_line(4))
    shuffled = weighted_line(4).weights
    assert shuffled is not None
    assert not is_ordered(Graph("weighted", 4, shuffled[[0, 2, 1, 3]][:, [0, 2, 1, 3]]))
    assert not any(is_ordered(graph) for graph in (path(2), cycle(6)))


@pytest.mark.parametrize("name", ["tpe-hyperopt", "tpe"])
def test_levels_reach_a_package_in_their_order(name: str) -> None:
    """Two variables of 51 levels, best in the middle of a wide bowl: only an order makes unseen levels promising."""
    space = Space({"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)})

    def bowl(row: Ints) -> float:
        return float(np.sum((row - 20.0) ** 2))

    strategy = installed_method(name).start(space, 15, 60)
    tell_random_rows(strategy, space, bowl, 30, seed=15)
    rows = ask_for(strategy, bowl, 100)[-50:]
    assert np.median(np.abs(rows - 20)) < 8  # 12.5 for uniform levels


def test_levels_reach_smac_as_integers_and_the_rest_as_categories() -> None:
    pytest.importorskip("smac")
    kinds = [type(parameter).__name__ for parameter in smac.configurations(MIXED).values()]
    category, integer = "CategoricalHyperparameter", "UniformIntegerHyperparameter"
    assert kinds == [category, category, integer, category, integer, integer, category]


# ---------------------------------------------------------------- variants


def test_a_variant_is_the_preset_with_what_it_names_changed() -> None:
    name = "default:doubt=0.0+warp=none+priors.weight_sd=3.0"
    priors = dataclasses.replace(DEFAULT.priors, weight_sd=3.0)
    changed = dataclasses.replace(DEFAULT, initial=1, doubt=0.0, warp="none", priors=priors)
    assert recorded(name) == unlimited(changed)
    assert method(name).name == name


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("default:", "default:doubt=0.0"),
        ("default:doubt", "default:doubt=0.0"),
        ("default:doubt=", "default:doubt=0.0"),
        ("annealing:doubt=0.0", "presets are default, paper"),
        ("default:patient=0", "'patient'"),
        ("default:doubt=-1", "doubt"),
        ("default:priors.weight=3", "'weight'"),
        ("default:warp=sideways", "'sideways'"),
        ("default:design=spread", "'design'"),
    ],
)
def test_a_wrong_variant_is_refused_by_name(name: str, named: str) -> None:
    with pytest.raises(CarboError, match=named):
        method(name)


def test_a_variant_may_start_from_fewer_points() -> None:
    assert method("default:doubt=0.0").initial is None
    fewer = method("default:initial=5")
    assert (fewer.initial, fewer.settings["initial"], recorded(fewer.name).initial) == (5, 5, 5)
