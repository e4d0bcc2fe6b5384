"""Odd values, odd spaces, every acquisition and search, and thousands of random cases: nothing breaks."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

import carbo
from carbo import Binary, Categorical, Float, Integer, Optimizer, Ordinal, Space
from carbo.space.space import Params
from carbo.space.variables import Variable
from tests.presets import CHEAP, PRESETS

ACQUISITIONS = ("ei", "ucb")

both_presets = pytest.mark.parametrize("preset", PRESETS)
both_ways = pytest.mark.parametrize("exhaustive", [4_096, 0], ids=["listed", "searched"])


def binary(d: int, constraint: Callable[[Params], bool] | None = None) -> Space:
    return Space({f"x{i}": Binary() for i in range(d)}, constraint)


def cheap(space: Space, preset: str = "default", *, seed: int = 0, **changes: Any) -> Optimizer:
    return Optimizer(space, seed=seed, preset=preset, settings=CHEAP | changes)


def distinct(points: list[Params]) -> bool:
    return len({tuple(p.items()) for p in points}) == len(points)


def told(opt: Optimizer, values: list[Any]) -> list[Params]:
    """Random points with these values, told to the optimiser."""
    points = opt.space.decode_many(opt.space.random_rows(np.random.default_rng(0), len(values)))
    opt.tell(points, values)
    return points


# ---------------------------------------------------------------- the scale of values


@functools.cache
def steps(preset: str, seed: int, a: float = 1.0, b: float = 0.0) -> list[Params]:
    """Twelve suggestions where the values told are a f(x) + b for one random quadratic function f."""
    weights = np.random.default_rng(seed).normal(size=(10, 10))
    opt, asked = cheap(binary(10), preset, seed=seed, warp="auto"), []
    for _ in range(12):
        asked.append(opt.ask())
        x = np.array(list(asked[-1].values()), dtype=float)
        opt.tell(asked[-1], a * float(x @ weights @ x) + b)
    return asked


@both_presets
@pytest.mark.parametrize("exponent", [-900, 1, 900])
def test_suggestions_do_not_depend_on_the_unit(preset: str, exponent: int) -> None:
    """Exactly: a power of two changes no digit of any value."""
    assert steps(preset, 0, 2.0**exponent) == steps(preset, 0)


@both_presets
@pytest.mark.parametrize(("a", "b"), [(3.0, 0.0), (1.0, 5.0), (1e-3, -7.0), (1e200, 1e202)])
def test_suggestions_do_not_depend_on_unit_and_zero(preset: str, a: float, b: float) -> None:
    """Rounding moves standardised values by about 1e-16 (1 + |b/a|), here at most 1e-12. A run makes some 1e5
    comparisons with random levels; a change of 1e-12, magnified perhaps a thousandfold by the covariance, turns one
    of them in about 1e-4 of all runs. So all runs agree, and none by luck: the values have no ties.
    """
    for seed in range(2):
        assert steps(preset, seed, a, b) == steps(preset, seed)


@both_presets
def test_predictions_move_with_unit_and_zero(preset: str) -> None:
    one, other = cheap(binary(6), preset), cheap(binary(6), preset)
    values = np.random.default_rng(3).normal(size=12)
    points = told(one, list(values))
    told(other, list(1e6 * values - 3e7))
    mean, std = one.predict(points)
    other_mean, other_std = other.predict(points)
    np.testing.assert_allclose(other_mean, 1e6 * mean - 3e7, rtol=1e-5)
    np.testing.assert_allclose(other_std, 1e6 * std, rtol=1e-5)


ODD_VALUES: dict[str, list[Any]] = {
    "one": [3.0],
    "one and failures": [None, 3.0, None, None],
    "zeros": [0.0] * 6,
    "constant": [-7.25] * 6,
    "constant 0.1": [0.1] * 7,
    "huge constant": [1e300] * 6,
    "tiny constant": [1e-300] * 6,
    "huge": [1e300, -1e300, 5e299, 0.0, 1e300, -2e299],
    "huge and ordinary": [1e300, 1.0, 2.0, 3.0, -1.0, -1e300],
    "one outlier": [1.0, 2.0, 1e12, 1.5, 0.5, 1.2],
    "tiny": [1e-300, 3e-300, -2e-300, 5e-301, 0.0, 1e-300],
    "smallest": [5e-324, 0.0, 1e-323, 5e-324, 0.0, 2e-323],
    "far from zero": [1e6 + 1e-9 * i for i in range(7)],
    "integers": [1, 2, 3, 5, 8, 13],
    "two values": [0, 1, 1, 0, 1, 0, 0],
    "orders of magnitude": [10.0**e for e in (-300, -100, -1, 1, 100, 290)],
}


@both_presets
@pytest.mark.parametrize("name", ODD_VALUES)
def test_odd_values_give_suggestions_and_predictions(preset: str, name: str) -> None:
    opt = cheap(binary(6), preset, exhaustive=0, initial=1, warp="auto")
    points = told(opt, ODD_VALUES[name])
    asked = opt.ask(2)
    assert distinct(asked)
    assert not [p for p in asked if p in points]
    opt.tell(asked, [ODD_VALUES[name][0]] * 2)
    mean, std = opt.predict(points + asked)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std))
    assert np.all(std >= 0.0)
    assert opt.best is not None
    assert opt.best.value == min(v for v in ODD_VALUES[name] if v is not None)
    assert opt.ask() not in points + asked


@both_presets
@pytest.mark.parametrize("value", [0.0, 5.0, -1e300, 1e-300])
def test_a_constant_is_predicted(preset: str, value: float) -> None:
    opt = cheap(binary(6), preset)
    points = told(opt, [value] * 20)
    mean, _ = opt.predict(points)
    np.testing.assert_allclose(mean, value, atol=0.2 * abs(value) + 0.2 * (value == 0.0))


@both_presets
@both_ways
def test_one_point_told_many_times(preset: str, exhaustive: int) -> None:
    """Duplicates make a covariance without noise singular."""
    point = {f"x{i}": i % 2 == 0 for i in range(6)}
    for values in ([1.0] * 12, [1.0, 2.0, 3.0, 2.0] * 4, [1.0, None] * 5):
        opt = cheap(binary(6), preset, exhaustive=exhaustive)
        opt.tell([point] * len(values), values)
        assert point not in opt.ask(4)
        assert len(opt) == len(values)


@both_presets
def test_repeated_noisy_values_are_averaged(preset: str) -> None:
    """Two points, each 30 times, with noise of standard deviation 1: the standard error of a mean is 0.18."""
    rng = np.random.default_rng(0)
    low, high = {"x0": False, "x1": False}, {"x0": True, "x1": True}
    opt = cheap(binary(2), preset, burn_in=30, samples=5)
    for _ in range(30):
        opt.tell([low, high], [float(rng.normal(0.0)), float(rng.normal(5.0))])
    mean, std = opt.predict([low, high])
    np.testing.assert_allclose(mean, [0.0, 5.0], atol=4 * 0.18 + 0.1)
    assert np.all(std < 1.0)


# ---------------------------------------------------------------- odd spaces


@both_presets
@both_ways
def test_variables_of_one_value_change_nothing_and_break_nothing(preset: str, exhaustive: int) -> None:
    space = Space(
        {
            "a": Categorical(["only"]),
            "b": Integer(0, 5),
            "c": Float(2.5, 2.5),
            "d": Integer(3, 3),
            "e": Ordinal([None]),
            "f": Binary(),
        }
    )
    opt = cheap(space, preset, exhaustive=exhaustive)
    asked = []
    for _ in range(12):
        asked.append(opt.ask())
        opt.tell(asked[-1], asked[-1]["b"] + asked[-1]["f"])
    assert distinct(asked)
    assert all((p["a"], p["c"], p["d"], p["e"]) == ("only", 2.5, 3, None) for p in asked)
    assert set(opt.relevance().variables) == set(space.names)
    with pytest.raises(carbo.SpaceExhausted):
        opt.ask()


@both_presets
@both_ways
def test_a_space_of_a_single_point(preset: str, exhaustive: int) -> None:
    opt = cheap(Space({"a": Categorical(["only"]), "b": Integer(3, 3)}), preset, exhaustive=exhaustive)
    assert opt.ask() == {"a": "only", "b": 3}
    with pytest.raises(carbo.SpaceExhausted):
        opt.ask()
    opt.tell(opt.pending[0], 2.0)
    with pytest.raises(carbo.SpaceExhausted):
        opt.ask()
    mean, std = opt.predict({"a": "only", "b": 3})
    assert math.isfinite(mean)
    assert math.isfinite(std)
    assert opt.best == ({"a": "only", "b": 3}, 2.0)
    assert "a" in opt.relevance().variables


@both_presets
def test_a_single_point_may_be_replicated(preset: str) -> None:
    opt = Optimizer(Space({"a": Ordinal([1])}), seed=0, preset=preset, settings=CHEAP, replicate=True)
    for i in range(8):
        assert opt.ask() == {"a": 1}
        opt.tell({"a": 1}, float(i))
    assert len(opt) == 8


def every_kind() -> Space:
    similar = np.array([[0, 2, 0.1], [2, 0, 0.1], [0.1, 0.1, 0]])
    ring: Any = nx.Graph()
    ring.add_edge("x", "y", weight=2.0)
    ring.add_edge("y", "z")
    ring.add_edge("z", "w", weight=0.5)
    return Space(
        {
            "binary": Binary(),
            "complete": Categorical(["adam", "sgd", None, 3]),
            "matrix": Categorical(["gcc", "g++", "clang"], graph=similar),
            "networkx": Categorical(["x", "y", "z", "w"], graph=ring),
            "cycle": Categorical(["N", "E", "S", "W"], graph="cycle"),
            "ordinal": Ordinal([16, 32, "many"]),
            "integer": Integer(-3, 9, step=3),
            "log integer": Integer(1, 4_096, log=True),
            "float": Float(0.0, 1.0),
            "log float": Float(1e-5, 1e-1, points=9, log=True),
            "tuple": Categorical([(1, 2), (3, 4)]),
        },
        lambda p: p["binary"] or p["integer"] > 0,
    )


def all_kinds(params: Params) -> float:
    return float(params["float"] + params["binary"] + (params["matrix"] == "g++") + math.log10(params["log float"]))


@both_presets
def test_all_kinds_of_variables_together(preset: str) -> None:
    space = every_kind()
    opt = cheap(space, preset)
    asked: list[Params] = []
    for i in range(6):
        some = opt.ask(1 + i % 3)
        opt.tell(some, [None if p["cycle"] == "N" else all_kinds(p) for p in some])
        asked += some
    assert distinct(asked)
    for params in asked:
        assert list(params) == list(space.names)
        for name, value in params.items():
            choices = space.variables[name].choices
            assert value in choices
            assert type(value) in {type(c) for c in choices}
        assert space.constraint is not None
        assert space.constraint(params)
    assert set(opt.relevance().variables) == set(space.names)
    opt.state()


@both_presets
def test_a_graph_is_the_same_as_matrix_and_as_networkx_graph(preset: str) -> None:
    choices = ["a", "b", "c", "d"]
    W = np.array([[0, 1, 0, 0.25], [1, 0, 3, 0], [0, 3, 0, 1], [0.25, 0, 1, 0]])
    graph: Any = nx.Graph()
    graph.add_nodes_from(reversed(choices))
    for i, j in zip(*np.nonzero(np.triu(W)), strict=True):
        graph.add_edge(choices[i], choices[j], weight=float(W[i, j]))
    runs = []
    for given in (W, W.tolist(), graph):
        space = Space({"c": Categorical(choices, graph=given), "n": Integer(0, 5), "b": Binary()})
        opt = cheap(space, preset)
        asked = []
        for _ in range(9):
            asked.append(opt.ask())
            opt.tell(asked[-1], asked[-1]["n"] + 2.0 * (asked[-1]["c"] in ("c", "d")))
        runs.append(asked)
    assert runs[0] == runs[1] == runs[2]


@both_presets
def test_the_model_believes_in_the_graph_over_the_choices(preset: str) -> None:
    """Two close groups, {a, b, c} and {d, e, f}: values at a, b and d, e tell c and f apart, which look alike to a
    model without the graph.
    """
    W = np.full((6, 6), 0.01)
    W[:3, :3] = W[3:, 3:] = 1.0
    np.fill_diagonal(W, 0.0)
    for graph, apart in ((W, True), (None, False)):
        space = Space({"c": Categorical(list("abcdef"), graph=graph), "b": Binary()})
        opt = cheap(space, preset, burn_in=30, samples=10)
        for c, value in zip("abde", (0.0, 0.0, 10.0, 10.0), strict=True):
            opt.tell([{"c": c, "b": b} for b in (False, True)], [value, value + 0.5])
        at_c, at_f = opt.predict([{"c": "c", "b": False}, {"c": "f", "b": False}])[0]
        assert (at_f - at_c > 5.0) == apart
        if not apart:
            assert at_c == pytest.approx(at_f, rel=1e-6)


@pytest.mark.parametrize("levels", [3, 17, 33, 51])
def test_the_middle_of_a_single_path_is_a_point_like_others(levels: int) -> None:
    """At large beta only the slowest cosine of a path is left, which is zero in the middle of an odd number of values:
    its prior variance is zero up to rounding, and must not come out below zero.
    """
    for seed in range(8):
        opt = cheap(Space({"a": Integer(1, levels)}), seed=seed, samples=4, initial=2)
        for _ in range(3):
            params = opt.ask()
            opt.tell(params, float(params["a"]))
        _, std = opt.predict([{"a": a} for a in range(1, levels + 1)])
        assert np.all(np.isfinite(std))


@both_presets
def test_relevances_are_shares_whatever_the_model_believes(preset: str) -> None:
    """Pure noise over many points: the posterior mean is flat but for spikes at the data, and ratios of small
    variances must not run away.
    """
    space = Space({f"v{i}": Integer(0, 9) for i in range(6)})
    for seed in range(4):
        opt = cheap(space, preset, seed=seed)
        rng = np.random.default_rng(seed)
        opt.tell(space.decode_many(space.random_rows(rng, 20)), rng.normal(size=20))
        for share in opt.relevance().variables.values():
            assert 0.0 <= share.low <= share.high <= 1.0
            assert 0.0 <= share.mean <= 1.0


@both_presets
def test_many_values_and_many_variables(preset: str) -> None:
    """10^95 points: nothing may list them."""
    space = Space({f"o{i}": Integer(0, 999) for i in range(2)} | {f"x{i}": Categorical(range(5)) for i in range(128)})
    opt = cheap(space, preset, samples=1, burn_in=0, random_starts=20, spray_starts=5, climbers=1)
    first = opt.ask(6)
    opt.tell(first, [float(p["o0"] + p["x3"]) for p in first])
    assert distinct(first + opt.ask(2))


# ---------------------------------------------------------------- acquisitions and searches


def lowest_mean(mu: Any, sd: Any, best: Any) -> Any:
    assert mu.shape == sd.shape
    assert best.shape == mu.shape[:1]
    assert np.all(sd > 0)
    return -mu.mean(axis=0)


@both_presets
@both_ways
@pytest.mark.parametrize("acquisition", [*ACQUISITIONS, lowest_mean])
def test_every_acquisition_gives_new_permitted_points(preset: str, exhaustive: int, acquisition: Any) -> None:
    space = Space(
        {"a": Integer(0, 6), "b": Categorical(["p", "q", "r"]), "c": Binary(), "d": Ordinal([1, 2, 4])},
        lambda p: p["a"] != 3,
    )
    opt = cheap(space, preset, acquisition=acquisition, exhaustive=exhaustive)
    asked: list[Params] = []
    for n in (5, 2, 1):
        some = opt.ask(n)
        asked += some
        opt.tell(some, [None if p["b"] == "r" and p["c"] else float(p["a"] * p["d"]) for p in some])
    assert len(asked) == 8
    assert distinct(asked)
    assert all(p["a"] != 3 for p in asked)


def test_the_users_acquisition_decides() -> None:
    """Where only the mean counts, the suggestion has the lowest predicted mean of all points left."""
    space = binary(5)
    opt = cheap(space, acquisition=lowest_mean)
    first = opt.ask(12)
    opt.tell(first, [float(sum(v * (i + 1) for i, v in enumerate(p.values()))) for p in first])
    left = [p for p in space.decode_many(space.all_rows()) if p not in first]
    mean, _ = opt.predict(left)  # predictions come from the draw that the next suggestion makes
    assert opt.ask() == left[int(np.argmin(mean))]


@both_presets
@pytest.mark.parametrize("constraint", [None, lambda p: sum(p.values()) == 4], ids=["free", "constrained"])
def test_the_search_gives_new_permitted_points(preset: str, constraint: Callable[[Params], bool] | None) -> None:
    opt = cheap(binary(10, constraint), preset, exhaustive=0)
    first = opt.ask(5)
    opt.tell(first, [float(p["x0"] + p["x1"] * p["x2"]) for p in first])
    asked = first + opt.ask(2)
    assert distinct(asked)
    assert all(constraint is None or constraint(p) for p in asked)


@both_presets
@pytest.mark.parametrize(
    "changes",
    [
        {"burn_in": 0, "samples": 1},
        {"highest_order": 6},
        {"kernel": "product", "graph_scale": "connectivity"},
        {"kernel": "orders", "graph_scale": "published"},
        {"climbers": 500},
        {"random_starts": 1, "spray_starts": 0, "climbers": 1},
        {"random_starts": 501},
        {"acquisition": "ucb"},
        {"reference": "observed"},
        {"reference": "posterior"},
    ],
    ids=str,
)
def test_extreme_settings_still_give_points(preset: str, changes: dict[str, Any]) -> None:
    opt = cheap(binary(6), preset, **({"exhaustive": 0} | changes))
    asked: list[Params] = []
    for _ in range(8):
        asked.append(opt.ask())
        opt.tell(asked[-1], float(sum(asked[-1].values())))
    assert distinct(asked)


@both_presets
@both_ways
def test_nothing_is_printed(preset: str, exhaustive: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither by carbo nor by the linear algebra under it, which writes to the process's own streams."""
    opt = cheap(binary(4), preset, exhaustive=exhaustive, initial=1)
    for i in range(8):
        params = opt.ask()
        opt.tell(params, None if i == 3 else float(sum(params.values())))
    opt.ask(3)
    opt.predict(opt.pending)
    opt.relevance()
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- random cases


def random_variable(rng: np.random.Generator) -> Variable:
    k = int(rng.integers(1, 6))
    kinds: list[Callable[[], Variable]] = [
        Binary,
        lambda: Categorical([f"c{i}" for i in range(k)]),
        lambda: Categorical(range(k), graph="cycle"),
        lambda: Categorical(range(k), graph=random_weights(rng, k)),
        lambda: Ordinal(range(k)),
        lambda: Integer(-2, int(rng.integers(-2, 12)), step=int(rng.integers(1, 4))),
        lambda: Integer(1, int(rng.integers(1, 200)), log=True),
        lambda: Float(0.5, float(rng.uniform(0.5, 3.0)), points=int(rng.integers(1, 20)), log=bool(rng.integers(2))),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def random_weights(rng: np.random.Generator, k: int) -> Any:
    W = np.triu(rng.random((k, k)) * 10.0 ** float(rng.integers(-3, 4)) + 0.001, 1)
    return W + W.T


def random_space(rng: np.random.Generator, most: int) -> Space:
    """One to `most` variables; a third with an arbitrary constraint that permits a half to 4/5 of the points."""
    variables = {f"v{i}": random_variable(rng) for i in range(int(rng.integers(1, most + 1)))}
    salt = int(rng.integers(2, 6))

    def arbitrary(params: Params) -> bool:
        return zlib.crc32(repr(params).encode()) % salt != 0

    try:
        return Space(variables, arbitrary if rng.random() < 0.33 else None)
    except carbo.SpaceError:  # nothing permitted, in a space of a few points
        return Space(variables)


def random_values(rng: np.random.Generator, n: int) -> list[float | None]:
    """Ordinary, constant, huge, tiny, mixed; four in ten cases with failures."""
    ordinary = rng.normal(size=n)
    kinds: list[Callable[[], Any]] = [
        lambda: ordinary,
        lambda: np.full(n, rng.choice([0.0, 1.0, -7.3, 1e300, -1e-300])),
        lambda: ordinary * 1e300,
        lambda: ordinary * 1e-300,
        lambda: rng.choice([1e300, -1e300, 0.0, 1.0], size=n),
        lambda: 1e6 + 1e-7 * ordinary,
        lambda: 10.0 ** rng.uniform(-300, 300, size=n),
        lambda: rng.integers(0, 2, size=n),
        lambda: np.where(rng.random(n) < 0.2, 1e12, ordinary),
    ]
    values = [float(v) for v in kinds[int(rng.integers(len(kinds)))]()]
    share = rng.choice([0.0, 0.0, 0.0, 0.3, 0.7])
    return [None if rng.random() < share else v for v in values]


def random_settings(rng: np.random.Generator) -> dict[str, Any]:
    """Very cheap ones. Knowledge gradient and annealing, the dear ones, come up in one case of eighty each."""

    return {
        "samples": 2 if rng.random() < 0.2 else 1,
        "burn_in": int(rng.random() < 0.1),
        "random_starts": int(rng.integers(1, 12)),
        "spray_starts": int(rng.integers(0, 6)),
        "climbers": 2 if rng.random() < 0.2 else 1,
        "exhaustive": int(rng.choice([0, 64])),
        "initial": 1,
        "acquisition": str(rng.choice(["ei", "ucb"], p=[0.7, 0.3])),
        "reference": str(rng.choice(["observed", "posterior"])),
        "highest_order": int(rng.integers(1, 5)),
        "replicate": bool(rng.random() < 0.2),
    }


def told_case(rng: np.random.Generator, seed: int, variables: int = 4, observations: int = 6) -> Optimizer:
    """An optimiser that was told the data, and holds them and the best of them; one in four after a restart too."""
    space = random_space(rng, variables)
    opt = Optimizer(space, seed=seed, preset=str(rng.choice(PRESETS)), settings=random_settings(rng))
    rows = space.random_rows(rng, int(rng.integers(0, observations + 1)))
    if rng.random() < 0.25:
        rows = np.repeat(rows[:1], len(rows), axis=0)
    points, values = space.decode_many(rows), random_values(rng, len(rows))
    opt.tell(points, values)
    assert all(np.array_equal(space.encode(p), row) for p, row in zip(points, rows, strict=True))
    assert space.constraint is None or all(map(space.constraint, points))
    good = [v for v in values if v is not None]
    for held in (opt, Optimizer.from_state(space, opt.state())) if seed % 4 == 0 else (opt,):
        assert held.history()[0] == points
        np.testing.assert_array_equal(held.history()[1], np.array(values, dtype=float))
        assert (held.best.value if held.best else None) == min(good, default=None)
    return opt


def one_case(seed: int, variables: int = 4, observations: int = 6, rounds: int = 1) -> None:
    """A random space, random data (a quarter of them at one point only) and one suggestion or three, each round."""
    rng = np.random.default_rng(seed)
    opt = told_case(rng, seed, variables, observations)
    space = opt.space
    for _ in range(rounds):
        points, values = opt.history()
        taken = [p for p, v in zip(points, values, strict=True) if np.isnan(v) or not opt.settings.replicate]
        try:
            asked = opt.ask(1 if rng.random() < 0.9 else 3)
        except carbo.SpaceExhausted:
            assert len(space.all_rows()) == len({tuple(p.items()) for p in taken})
            return
        assert distinct(asked)
        assert not [p for p in asked if p in taken]
        assert space.constraint is None or all(map(space.constraint, asked))
        opt.tell(asked, random_values(rng, len(asked)))
    if opt.best is not None and seed % 8 == 0:
        mean, std = opt.predict(asked)
        assert np.all(np.isfinite(mean))
        assert np.all(std >= 0.0)
        assert np.all(np.isfinite(std))


def check_told(seeds: range) -> None:
    for seed in seeds:
        try:
            told_case(np.random.default_rng(seed), seed)
        except Exception as error:
            error.add_note(f"in told_case(default_rng({seed}), {seed})")
            raise


def check_cases(seeds: range, variables: int = 4, observations: int = 6, rounds: int = 1) -> None:
    for seed in seeds:
        try:
            one_case(seed, variables, observations, rounds)
        except Exception as error:
            error.add_note(f"in one_case({seed}, {variables}, {observations}, {rounds})")
            raise


@pytest.mark.parametrize("block", range(4))
def test_two_thousand_random_spaces_and_data_sets_every_fifth_with_suggestions(block: int) -> None:
    block_of = range(500 * block, 500 * (block + 1))
    check_told(block_of)
    check_cases(block_of[block::5])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_suggestions_in_all_of_the_two_thousand(block: int) -> None:
    check_cases(range(500 * block, 500 * (block + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand_more(block: int) -> None:
    check_cases(range(10_000 + 1_000 * block, 10_000 + 1_000 * (block + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_two_thousand_larger_ones_with_more_rounds(block: int) -> None:
    check_cases(range(200 * block, 200 * (block + 1)), variables=13, observations=40, rounds=3)
