"""The space against brute force, round trips and the user's mistakes."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from carbo.errors import SpaceError
from carbo.kernels.spectra import spectra_of, spectrum
from carbo.numerics.types import Ints
from carbo.space.graphs import path
from carbo.space.row_space import RowSet, RowSpace, row_key, row_keys
from carbo.space.space import Params, Space
from carbo.space.variables import Binary, Categorical, Float, Integer, Ordinal, Variable

FALSE_ALARM = 1e-6
"""Probability that a chi-square check fails although the claim is true; the seeds are fixed besides."""


ANY_SPEED = settings(deadline=None, max_examples=50)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---------------------------------------------------------------- strategies

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
choice_lists = st.lists(scalars, min_size=1, max_size=6, unique=True)
finite = st.floats(-1e6, 1e6)


@st.composite
def weighted(draw: st.DrawFn) -> Variable:
    k = draw(st.integers(1, 5))
    W = np.ones((k, k)) * draw(st.floats(0.01, 100))
    return Categorical([f"c{i}" for i in range(k)], graph=W)


def positive(low: float, span: float) -> tuple[float, float]:
    return 10.0**low, 10.0 ** (low + span)


variables_of_any_kind = st.one_of(
    st.builds(Binary),
    st.builds(Categorical, choice_lists, st.sampled_from([None, "complete", "path", "cycle"])),
    st.builds(Ordinal, choice_lists),
    weighted(),
    st.builds(lambda a, n, s: Integer(a, a + n, s), st.integers(-100, 100), st.integers(0, 40), st.integers(1, 7)),
    st.builds(lambda a, n: Integer(a, a + n, log=True), st.integers(1, 100), st.integers(0, 10**6)),
    st.builds(lambda a, w, n: Float(a, a + w, n), finite, st.floats(0.001, 1e6), st.integers(1, 60)),
    st.builds(
        lambda e, n: Float(e[0], e[1], n, log=True),
        st.builds(positive, st.floats(-9, 3), st.floats(0.01, 9)),
        st.integers(1, 60),
    ),
)
spaces = st.dictionaries(st.text(min_size=1), variables_of_any_kind, min_size=1, max_size=5).map(Space)


# ---------------------------------------------------------------- what variables mean


@pytest.mark.parametrize(
    ("variable", "choices", "kind"),
    [
        (Binary(), (False, True), "complete"),
        (Categorical(["a", "b", "c"]), ("a", "b", "c"), "complete"),
        (Categorical(["a", "b", "c", "d"], graph="path"), ("a", "b", "c", "d"), "path"),
        (Categorical(["N", "E", "S", "W"], graph="cycle"), ("N", "E", "S", "W"), "cycle"),
        (Categorical(["a", "b", "c"], graph=np.ones((3, 3))), ("a", "b", "c"), "weighted"),
        (Ordinal([16, 32, 64]), (16, 32, 64), "path"),
        (Ordinal(["low", "mid", "high"]), ("low", "mid", "high"), "path"),
        (Ordinal(v for v in (3, 1, 2)), (3, 1, 2), "path"),
        (Integer(-2, 1), (-2, -1, 0, 1), "path"),
        (Integer(0, 10, step=4), (0, 4, 8), "path"),
        (Integer(1, 5, log=True), (1, 2, 3, 4, 5), "path"),
        (Integer(7, 7), (7,), "complete"),
        (Integer(7, 7, log=True), (7,), "complete"),
        (Float(0.0, 1.0, points=5), (0.0, 0.25, 0.5, 0.75, 1.0), "path"),
        (Float(1, 100, points=3, log=True), (1.0, 10.0, 100.0), "path"),
        (Float(2.5, 2.5), (2.5,), "complete"),
        (Float(0, 1, points=1), (0.0,), "complete"),
        (Float(Fraction(1, 2), 1, points=2), (0.5, 1.0), "complete"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_a_variable_has_these_choices_and_this_graph(variable: Variable, choices: tuple[Any, ...], kind: str) -> None:
    assert variable.choices == choices
    assert [type(c) for c in variable.choices] == [type(c) for c in choices]
    assert (variable.size, variable.graph.size, variable.graph.kind) == (len(choices), len(choices), kind)


def test_numpy_choices_become_native_ones() -> None:
    for values in (np.arange(3), np.linspace(0, 1, 3), np.array(["a", "b"]), [np.float32(0.5), np.int8(3)]):
        assert all(type(c) in (int, float, str) for c in Ordinal(values).choices)
    low: Any = np.int64(1)
    assert type(Integer(low, 3).choices[0]) is int


@ANY_SPEED
@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.booleans())
def test_float_end_points_are_exact_and_the_grid_ascends(a: float, b: float, log: bool) -> None:
    low, high = sorted((a, b))
    if high < low * 1.001:
        high = low
    grid = Float(low, high, log=log).choices
    assert (grid[0], grid[-1]) == (low, high)
    assert list(grid) == sorted(set(grid))


def test_a_logarithmic_integer_has_at_most_51_values_evenly_spaced_where_rounding_allows() -> None:
    values = np.array(Integer(1, 10**9, log=True).choices)
    assert (values[0], values[-1]) == (1, 10**9)
    assert 40 < len(values) <= 51
    ratios = values[-30:] / values[-31:-1]
    np.testing.assert_allclose(ratios, 10 ** (9 / 50), rtol=1e-3)


def test_a_networkx_graph_over_the_choices_is_mapped_to_their_order() -> None:
    compilers = nx.MultiGraph()
    compilers.add_edge("g++", "gcc", weight=2.0)
    compilers.add_edge("gcc", "g++")  # parallel edges add up
    compilers.add_edge("clang", "gcc", weight=0.5)
    weights = Categorical(["clang", "gcc", "g++"], graph=compilers).graph.weights
    np.testing.assert_array_equal(weights, [[0, 0.5, 0], [0.5, 0, 3], [0, 3, 0]])


def test_a_disconnected_graph_warns_with_the_name_of_the_variable() -> None:
    with pytest.warns(UserWarning, match=r"variable 'cc'.*disconnected \(3 pieces\)"):
        Space({"cc": Categorical(["x", "y", "z"], graph=np.zeros((3, 3)))})


def test_variables_are_frozen_equal_by_meaning_and_show_their_call() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        Binary().choices = (1, 2)  # type: ignore[misc]
    assert Ordinal([1, 2]) == Ordinal((1, 2)) != Categorical([1, 2])
    assert Float(0, 1) == Float(0.0, 1.0) != Float(0.0, 1.0, log=False, points=3)
    assert hash(Ordinal([1, 2])) == hash(Ordinal((1, 2)))
    assert repr(Integer(1, 8, log=True)) == "Integer(low=1, high=8, step=1, log=True)"


# ---------------------------------------------------------------- refusals


def refuses(complaint: str, variables: Any, constraint: Any = None) -> None:
    """Space construction raises SpaceError with the complaint, what was got and a way out."""
    with pytest.raises(SpaceError, match=complaint) as caught:
        Space(variables, constraint)
    assert re.search(r"expected .*, got .*; ", str(caught.value))


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (lambda: Categorical([]), "at least one choice"),
        (lambda: Ordinal(()), "at least one choice"),
        (lambda: Categorical("abc"), r"a list of choices, got 'abc'; put the choices in \["),
        (lambda: Categorical(3), "a list of choices"),  # type: ignore[arg-type]
        (lambda: Ordinal(np.array(3)), "a list of choices"),
        (lambda: Categorical({"a", "b"}), "choices in an order, got a set"),
        (lambda: Categorical(["a", "b", "a"]), "distinct choices, got 'a' twice"),
        (lambda: Ordinal([1, True]), "distinct choices, got 1 and True; these are equal in Python"),
        (lambda: Ordinal([0, 1, 1.0]), "distinct choices, got 1 and 1.0; these are equal in Python"),
        (lambda: Categorical([[1], [2]]), r"hashable choices, got \[1\]; use strings or tuples"),
        (lambda: Categorical([0.5, math.nan]), "choices that equal themselves, got NaN"),
        (lambda: Ordinal([np.nan]), "choices that equal themselves, got NaN"),
        (lambda: Categorical(["a", "b"], graph="star"), "one of complete, path, cycle as graph, got 'star'"),
        (lambda: Categorical(["a", "b"], graph=np.ones((3, 3))), "2 x 2 graph matrix"),
        (lambda: Categorical(["a", "b"], graph=[[0, 1], [2, 0]]), "symmetric"),
        (lambda: Categorical(["a", "b"], graph=[[0, -1], [-1, 0]]), ">= 0"),
        (lambda: Categorical(["a", "b"], graph=nx.path_graph(["a", "c"])), "nodes are the choices.* at 'b', 'c'"),
        (lambda: Categorical(["a", "b"], graph=nx.Graph([("a", "b", {"weight": "x"})])), "a number as edge weight"),
        (lambda: Categorical(["a", "b"], graph=7), "2 x 2 graph matrix"),
        (lambda: Integer(3, 1), "low <= high, got low=3, high=1; swap"),
        (lambda: Integer(0, 9, step=0), "step >= 1, got step=0"),
        (lambda: Integer(0, 9, step=-1), "step >= 1, got step=-1"),
        (lambda: Integer(0, 9, step=1.5), "a whole number as step, got 1.5"),  # type: ignore[arg-type]
        (lambda: Integer(0.0, 9), "a whole number as low, got 0.0"),  # type: ignore[arg-type]
        (lambda: Integer(0, "9"), "a whole number as high, got '9'"),  # type: ignore[arg-type]
        (lambda: Integer(False, 9), "a whole number as low, got False"),
        (lambda: Integer(0, math.inf), "a whole number as high, got inf"),  # type: ignore[arg-type]
        (lambda: Integer(0, 2**70), r"high below 2\*\*62"),
        (lambda: Integer(0, 10**9), "at most 100000 choices, got 1000000001; use a larger step"),
        (lambda: Integer(0, 9, log=True), "low > 0 with log=True, got low=0"),
        (lambda: Integer(1, 9, step=2, log=True), "step=1 with log=True, got step=2"),
        (lambda: Integer(1, 9, log="yes"), "True or False as log, got 'yes'"),  # type: ignore[arg-type]
        (lambda: Float(2.0, 1.0), "low <= high, got low=2.0, high=1.0; swap"),
        (lambda: Float(0.0, math.inf), "a finite high, got inf"),
        (lambda: Float(math.nan, 1.0), "a finite low, got nan"),
        (lambda: Float(0.0, 10**400), "a finite high, got 1000"),
        (lambda: Float("0", 1.0), "a number as low, got '0'"),  # type: ignore[arg-type]
        (lambda: Float(0.0, None), "a number as high, got None"),  # type: ignore[arg-type]
        (lambda: Float(-1e308, 1.5e308), "a finite high - low"),
        (lambda: Float(0.0, 1.0, points=0), "points >= 1, got points=0"),
        (lambda: Float(0.0, 1.0, points=5.0), "a whole number as points, got 5.0"),  # type: ignore[arg-type]
        (lambda: Float(0.0, 1.0, points=10**7), "at most 100000 choices"),
        (lambda: Float(0.0, 1.0, log=True), "low > 0 with log=True, got low=0.0"),
        (lambda: Float(-1.0, 1.0, log=True), "low > 0 with log=True, got low=-1.0"),
        (lambda: Float(1.0, 1.0 + 1e-15), "51 distinct points"),
        (lambda: [1, 2, 3], "a variable, got "),
        (lambda: Binary, "a variable, got "),
        (lambda: None, "a variable, got None"),
    ],
)
def test_an_unusable_variable_is_refused_by_the_space_under_its_name(
    variable: Callable[[], Any], expected: str
) -> None:
    refuses(rf"variable 'knob': expected .*{expected}", {"fine": Binary(), "knob": variable()})


@pytest.mark.parametrize("name", ["", 3, None, ("a",)])
def test_a_name_must_be_a_string_with_something_in_it(name: Any) -> None:
    refuses("expected a non-empty string as its name", {name: Binary()})


def test_a_space_needs_a_dict_with_something_in_it() -> None:
    refuses("space: expected at least one variable", {})
    refuses("space: expected a dict", [Binary()])
    refuses("space: expected a dict", None)


def test_reading_an_unusable_variable_outside_a_space_names_its_kind() -> None:
    with pytest.raises(SpaceError, match="'Ordinal': expected at least one choice"):
        _ = Ordinal([]).choices


def test_a_constraint_must_be_callable() -> None:
    refuses("constraint: expected a function of params", {"x": Binary()}, constraint="x")


@pytest.mark.parametrize(("count", "tried"), [(3, "all 8 combinations"), (60, "all of 100000 rows tried")])
def test_a_constraint_that_nothing_satisfies_is_refused(count: int, tried: str) -> None:
    variables = {f"x{i}": Binary() for i in range(count)}
    with pytest.raises(SpaceError, match=f"constraint: expected True for some points, got False for {tried}"):
        Space(variables, lambda p: False)


def test_a_constraint_that_forgets_to_return_is_told_so() -> None:
    refuses("check that it returns True", {"x": Binary()}, lambda p: None)


def test_a_constraint_that_raises_is_chained_and_names_the_params() -> None:
    with pytest.raises(SpaceError, match=r"KeyError: 'y' for params \{'x': False\}") as caught:
        Space({"x": Binary()}, lambda p: bool(p["y"]))
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_constraint_that_raises_later_is_chained_too() -> None:
    space = Space({"x": Integer(0, 5)}, lambda p: 1 / (p["x"] - 4) < 0)
    with pytest.raises(SpaceError, match=r"ZeroDivisionError.*\{'x': 4\}"):
        space.feasible([[4]])


# ---------------------------------------------------------------- params and rows


@ANY_SPEED
@given(spaces, st.integers(0, 2**32 - 1))
def test_decode_and_encode_are_inverse(space: Space, seed: int) -> None:
    rows = space.random_rows(rng(seed), 5)
    params = space.decode_many(rows)
    np.testing.assert_array_equal(space.encode_many(params), rows)
    assert params == [space.decode(row) for row in rows]
    for p in params:
        assert list(p) == list(space.names)
        assert all(any(value is c for c in space.variables[name].choices) for name, value in p.items())


@ANY_SPEED
@given(spaces, st.integers(0, 2**32 - 1))
def test_params_survive_json_and_numpy(space: Space, seed: int) -> None:
    row = space.random_rows(rng(seed), 1)[0]
    params = space.decode(row)
    np.testing.assert_array_equal(space.encode(json.loads(json.dumps(params))), row)
    numbers = {k: np.float64(v) if isinstance(v, float) else v for k, v in params.items()}
    np.testing.assert_array_equal(space.encode(numbers), row)


def test_encode_takes_names_in_any_order_and_equal_values_of_other_types() -> None:
    space = Space({"b": Binary(), "i": Integer(0, 5), "f": Float(-1, 1)})
    row = space.encode({"f": 0, "i": 3.0, "b": np.bool_(True)})
    assert row.dtype == np.intp
    assert row.tolist() == [1, 3, 25]
    assert space.encode({"f": np.int32(0), "i": np.uint8(3), "b": 1}).tolist() == row.tolist()


def test_a_float_counts_as_a_grid_point_within_a_billionth_and_no_further() -> None:
    space = Space({"lr": Float(1e-5, 1e-1, points=9, log=True), "shift": Float(-1, 1, points=3)})
    point = space.decode([4, 1])
    for off in (1 + 5e-10, 1 - 5e-10):
        assert space.encode({"lr": point["lr"] * off, "shift": 1e-11}).tolist() == [4, 1]
    for lr, shift in ((point["lr"] * (1 + 1e-8), 0.0), (point["lr"], 1e-8), (math.nan, 0), (math.inf, 0), (10**400, 0)):
        with pytest.raises(SpaceError, match=r"variable '(lr|shift)'"):
            space.encode({"lr": lr, "shift": shift})


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"opt": "adam"}, "expected the names 'opt', 'size', got 'size' missing"),
        ({"opt": "adam", "size": 16, "sise": 1}, "got unknown 'sise'"),
        ({"opt": "adam", "sise": 1}, "got 'size' missing and unknown 'sise'"),
        ({"opt": "adm", "size": 16}, "variable 'opt': expected one of 'adam', 'sgd', got 'adm'; the nearest is 'adam'"),
        ({"opt": "adam", "size": 60}, "variable 'size': expected one of 16, 32, 64, got 60; the nearest is 64"),
        ({"opt": "adam", "size": [16]}, r"variable 'size': expected one of 16, 32, 64, got \[16\]; give one of these"),
        ({"opt": "adam", "size": None}, "variable 'size'.*got None"),
        ({"opt": "adam", "size": np.arange(3)}, "variable 'size'.*got array"),
        ([1, 2], "params: expected a dict"),
    ],
)
def test_params_that_do_not_fit_are_refused_with_the_way_out(params: Any, complaint: str) -> None:
    with pytest.raises(SpaceError, match=complaint):
        Space({"opt": Categorical(["adam", "sgd"]), "size": Ordinal([16, 32, 64])}).encode(params)


def test_long_lists_of_choices_are_cut_short_in_messages() -> None:
    with pytest.raises(SpaceError, match=r"got -1; the nearest is 0$") as caught:
        Space({"i": Integer(0, 999)}).encode({"i": -1})
    assert "(1000 in all)" in str(caught.value)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("row", [[2, 0], [0, 3], [-1, 0], [0], [0, 0, 0], [0.0, 1.0], [["a", "b"]], [None, 0]])
def test_rows_that_do_not_fit_are_refused(row: Any) -> None:
    space = Space({"a": Binary(), "b": Ordinal(["x", "y", "z"])})
    for use in (space.decode, space.neighbours):
        with pytest.raises(SpaceError, match="expected"):
            use(row)


def test_no_rows_are_rows() -> None:
    space = Space({"a": Binary(), "b": Binary()}, lambda p: p["a"])
    assert space.encode_many([]).shape == space.random_rows(rng(), 0).shape == (0, 2)
    assert space.decode_many([]) == []
    assert space.feasible([]).shape == (0,)
    assert [len(part) for part in space.rows.neighbours([])] == [0, 0]


def test_row_keys_tell_rows_apart_whatever_their_integer_type() -> None:
    rows = Space({"a": Integer(0, 9), "b": Integer(0, 9)}).all_rows()
    assert len(set(row_keys(rows))) == 100
    assert row_keys(rows.astype(np.int8)) == [row_key(row) for row in rows] == [row_key(r) for r in rows.tolist()]


@pytest.mark.parametrize("colliding", [False, True])
@given(seed=st.integers(0, 10**6), n=st.integers(0, 40), sizes=st.lists(st.sampled_from([1, 2, 3, 99_999]), min_size=1))
@ANY_SPEED
def test_a_set_of_rows_is_one_of_keys(colliding: bool, seed: int, n: int, sizes: list[int]) -> None:
    """The answer is right even if different rows have the same digest."""
    each, k = rng(seed), np.array(sizes, dtype=np.intp)
    inside, asked = each.integers(0, k, size=(n, len(k))), each.integers(0, k, size=(300, len(k)))
    asked[: n // 2] = inside[: n // 2]
    keys = set(row_keys(inside))
    found = RowSet(keys, k)
    if colliding:
        found._factors[:] = 1.0
        found._digests = np.unique(found._digest(inside))
    np.testing.assert_array_equal(found.contains(asked), [key in keys for key in row_keys(asked)])
    assert found.contains(asked[:0]).shape == (0,)


# ---------------------------------------------------------------- neighbours


def brute_force_neighbours(space: Space, row: Ints) -> set[bytes]:
    """Every feasible row that differs in one variable, along an edge of its Laplacian's non-zeros."""
    found = set()
    for other in space.all_rows():
        (changed,) = np.nonzero(other != row)
        if len(changed) == 1:
            i = int(changed[0])
            variable = space.variables[space.names[i]]
            k, kind, gap = variable.size, variable.graph.kind, abs(int(other[i]) - int(row[i]))
            weights = variable.graph.weights
            joined = {"complete": True, "path": gap == 1, "cycle": gap in (1, k - 1)}
            if joined[kind] if weights is None else weights[row[i], other[i]] > 0:
                found.add(row_key(other))
    return found


MIXED: dict[str, Variable] = {
    "b": Binary(),
    "one": Categorical(["only"]),
    "c": Categorical(list("abcd")),
    "o": Ordinal([1, 5, 9, 12]),
    "r": Categorical(list("NESWX"), graph="cycle"),
    "w": Categorical(list("pqr"), graph=[[0, 0.5, 0], [0.5, 0, 2], [0, 2, 0]]),
}


@pytest.mark.parametrize("constraint", [None, lambda p: p["b"] or p["o"] > 4], ids=["free", "constrained"])
def test_neighbours_are_those_of_brute_force(constraint: Any) -> None:
    space = Space(MIXED, constraint)
    rows = space.random_rows(rng(), 40)
    for row in rows:
        found = row_keys(space.neighbours(row))
        assert len(found) == len(set(found))
        assert set(found) == brute_force_neighbours(space, row)
    together, owner = space.rows.neighbours(rows)
    np.testing.assert_array_equal(together, np.concatenate([space.neighbours(row) for row in rows]))
    np.testing.assert_array_equal(owner, np.repeat(np.arange(40), [len(space.neighbours(row)) for row in rows]))


@ANY_SPEED
@given(spaces, st.integers(0, 2**32 - 1))
def test_being_neighbours_is_mutual(space: Space, seed: int) -> None:
    row = space.random_rows(rng(seed), 1)[0]
    for other in space.neighbours(row)[:20]:
        assert row_key(row) in row_keys(space.neighbours(other))


def test_moves_are_the_neighbours_in_three_integers() -> None:
    space = Space(MIXED)
    rows = space.random_rows(rng(), 8)
    owner, column, value = space.rows.moves(rows)
    rebuilt = rows[owner]
    rebuilt[np.arange(len(rebuilt)), column] = value
    np.testing.assert_array_equal(rebuilt, space.rows.neighbours(rows)[0])


def test_a_value_without_edges_has_no_neighbours_of_its_own() -> None:
    with pytest.warns(UserWarning, match="disconnected"):
        space = Space({"w": Categorical(["a", "b", "c"], graph=[[0, 1, 0], [1, 0, 0], [0, 0, 0]])})
    assert [space.neighbours([v]).tolist() for v in range(3)] == [[[1]], [[0]], []]


def test_neighbours_of_twenty_rows_of_sixty_variables_take_less_than_a_millisecond() -> None:
    for variable in (Binary(), Ordinal([1, 2, 3, 4, 5])):
        space = Space({f"x{i}": variable for i in range(60)})
        rows = space.random_rows(rng(), 20)
        times = []
        for _ in range(50):
            begin = time.perf_counter()
            space.rows.neighbours(rows)
            times.append(time.perf_counter() - begin)
        assert min(times) < 1e-3


# ---------------------------------------------------------------- random rows


def assert_uniform(drawn: Ints, population: Ints) -> None:
    """Chi-square test: every row of the population comes equally often, and no other row comes."""
    cells = dict.fromkeys(row_keys(population), 0)
    for key in row_keys(drawn):
        cells[key] += 1
    counts, expected = np.array(list(cells.values())), len(drawn) / len(cells)
    assert np.sum((counts - expected) ** 2 / expected) < chi2.isf(FALSE_ALARM, len(cells) - 1)


def test_random_rows_are_uniform() -> None:
    space = Space({"b": Binary(), "c": Categorical(list("abc")), "o": Ordinal(range(5))})
    assert_uniform(space.random_rows(rng(), 20_000), space.all_rows())


def test_random_rows_are_uniform_over_what_a_constraint_permits() -> None:
    space = Space({"a": Integer(0, 9), "b": Integer(0, 9)}, lambda p: p["a"] < p["b"])
    assert len(space.all_rows()) == 45
    assert_uniform(space.random_rows(rng(), 9_000), space.all_rows())


def test_the_uniformity_check_catches_a_lopsided_sampler() -> None:
    space = Space({"a": Integer(0, 9), "b": Integer(0, 9)}, lambda p: p["a"] < p["b"])
    lopsided = np.sort(space.all_rows()[(rng().random(9_000) ** 1.1 * 45).astype(np.intp)], axis=1)
    with pytest.raises(AssertionError):
        assert_uniform(lopsided, space.all_rows())


def test_a_rare_constraint_on_a_space_that_can_be_listed_is_drawn_from_exactly() -> None:
    space = Space({f"x{i}": Integer(0, 9) for i in range(5)}, lambda p: len(set(p.values())) == 1 and p["x0"] > 4)
    population = space.all_rows()
    assert (space.cardinality, len(population)) == (10**5, 5)  # one row in 20,000
    assert_uniform(space.random_rows(rng(), 2_000), population)


def at_most(most: int) -> Callable[[Params], bool]:
    return lambda params: sum(params.values()) <= most


def test_a_constraint_met_by_one_row_in_1e12_is_walked_and_never_violated() -> None:
    space = Space({f"x{i}": Binary() for i in range(60)}, at_most(5))
    rows = space.random_rows(rng(), 1_000)
    assert rows.shape == (1_000, 60)
    assert rows.sum(axis=1).max() <= 5
    # Among uniform rows 91 % have five of the sixty. The tolerance is wide, because the walk's rows are correlated.
    sizes = np.array([math.comb(60, m) for m in range(6)], dtype=np.float64)
    assert np.mean(rows.sum(axis=1) == 5) == pytest.approx(sizes[5] / sizes.sum(), abs=0.1)
    assert rows.any(axis=0).all()


def test_a_constraint_met_by_one_row_in_1e5_of_a_large_space_is_honoured() -> None:
    space = Space({f"x{i}": Binary() for i in range(28)}, at_most(3))
    assert sum(math.comb(28, m) for m in range(4)) / space.cardinality == pytest.approx(1.4e-5, rel=0.02)
    rows = space.random_rows(rng(), 300)
    assert rows.sum(axis=1).max() <= 3
    assert space.feasible(rows).all()


def test_a_constraint_met_by_one_row_in_1e4_without_a_pattern_to_find_is_honoured() -> None:
    space = Space({f"x{i}": Integer(0, 9) for i in range(10)}, lambda p: all(p[f"x{i}"] == 3 for i in range(4)))
    assert np.all(space.random_rows(rng(), 300)[:, :4] == 3)


def test_swaps_keep_an_exact_count_reachable() -> None:
    space = Space({f"x{i}": Binary() for i in range(40)}, lambda p: sum(p.values()) == 3)
    rows = space.random_rows(rng(), 500)
    assert np.all(rows.sum(axis=1) == 3)
    assert len(set(row_keys(rows))) > 50


def test_the_same_seed_gives_the_same_rows_whatever_was_asked_before() -> None:
    def make() -> Space:
        return Space({f"x{i}": Binary() for i in range(30)}, at_most(2))

    fresh, used = make(), make()
    used.random_rows(rng(5), 70)
    used.neighbours(used.random_rows(rng(6), 1)[0])
    np.testing.assert_array_equal(fresh.random_rows(rng(7), 100), used.random_rows(rng(7), 100))


# ---------------------------------------------------------------- the constraint's memory


def test_neighbours_and_random_rows_never_leave_the_constraint() -> None:
    space = Space(MIXED, lambda p: (p["c"] == "a") == p["b"])
    rows = space.random_rows(rng(), 50)
    assert space.feasible(rows).all()
    assert space.feasible(space.rows.neighbours(rows)[0]).all()
    expected = [(p["c"] == "a") == p["b"] for p in space.decode_many(Space(MIXED).all_rows())]
    np.testing.assert_array_equal(space.feasible(Space(MIXED).all_rows()), expected)


def test_a_row_asked_about_twice_is_decided_once() -> None:
    asked: list[Params] = []

    def constraint(params: Params) -> bool:
        asked.append(params)
        return True

    space = Space({"x": Integer(0, 9)}, constraint)
    asked.clear()
    for _ in range(3):
        space.feasible([[4], [5]])
    assert asked == [{"x": 4}, {"x": 5}]


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carbo.space.row_space.CACHE_BYTES", 1_080)  # ten verdicts on one variable
    permits = RowSpace.of(["x"], [path(100)], lambda row: row[0] % 2 == 0)
    np.testing.assert_array_equal(permits.feasible(np.arange(100)[:, None]), np.arange(100) % 2 == 0)
    assert len(permits.verdicts) <= 10


# ---------------------------------------------------------------- size


def test_all_rows_lists_the_product_with_the_last_variable_fastest() -> None:
    space = Space(MIXED)
    expected = list(itertools.product(*(range(k) for k in space.sizes)))
    np.testing.assert_array_equal(space.all_rows(), expected)
    assert space.cardinality == len(expected)
    with pytest.raises(SpaceError, match="expected at most 10 combinations"):
        space.all_rows(limit=10)


def test_three_hundred_variables_of_a_thousand_values_are_never_listed() -> None:
    begin = time.process_time()
    values = [f"v{i}" for i in range(1_000)]
    space = Space({f"x{i}": Categorical(values) if i % 2 else Ordinal(values) for i in range(300)}, lambda p: True)
    assert space.cardinality == 1_000**300
    assert (space.dim, space.sizes.tolist()) == (300, [1_000] * 300)
    rows = space.random_rows(rng(), 10)
    np.testing.assert_array_equal(space.encode_many(space.decode_many(rows)), rows)
    assert len(space.rows.moves(rows[:1]).value) == 150 * 999 + 2 * 150 - np.isin(rows[0, ::2], [0, 999]).sum()
    assert len(spectra_of(space.rows.graphs, "connectivity")) == 300
    assert len(space.fingerprint()) == 64
    assert len(repr(space)) < 2_000
    with pytest.raises(SpaceError, match=r"about 10\^900\.0"):
        space.all_rows()
    assert time.process_time() - begin < 5.0


def test_one_value_variables_are_part_of_the_space_without_neighbours() -> None:
    space = Space({"a": Categorical([None]), "b": Float(1, 1), "c": Binary()})
    assert space.cardinality == 2
    assert space.neighbours([0, 0, 1]).tolist() == [[0, 0, 0]]
    assert space.decode([0, 0, 1]) == {"a": None, "b": 1.0, "c": True}


# ---------------------------------------------------------------- spectra and descriptions


def test_spectra_are_those_of_the_graphs() -> None:
    space = Space(MIXED)
    for variable, own in zip(space.variables.values(), spectra_of(space.rows.graphs, "published"), strict=True):
        np.testing.assert_array_equal(own.lam, spectrum(variable.graph, "published").lam)
    assert spectra_of(space.rows.graphs, "connectivity")[2].lam[1] == pytest.approx(2.0)


@ANY_SPEED
@given(spaces)
def test_a_description_survives_json_and_makes_the_same_space(space: Space) -> None:
    again = Space.from_description(json.loads(json.dumps(space.describe(), allow_nan=False)))
    assert again == space
    assert again.fingerprint() == space.fingerprint()
    assert hash(again) == hash(space)
    for name, variable in space.variables.items():
        assert again.variables[name] == variable
        assert [type(c) for c in again.variables[name].choices] == [type(c) for c in variable.choices]


def test_descriptions_are_plain() -> None:
    space = Space({"c": Categorical(["a", "b"]), "i": Integer(1, 4), "b": Binary()}, lambda p: p["b"])
    assert space.describe() == {
        "variables": [
            {"name": "c", "kind": "categorical", "choices": ["a", "b"], "graph": "complete"},
            {"name": "i", "kind": "integer", "low": 1, "high": 4, "step": 1, "log": False},
            {"name": "b", "kind": "binary"},
        ],
        "constrained": True,
    }


def test_a_described_constraint_must_be_given_again() -> None:
    description = Space({"b": Binary()}, lambda p: p["b"]).describe()
    with pytest.raises(SpaceError, match="pass constraint="):
        Space.from_description(description)
    assert Space.from_description(description, lambda p: p["b"]).all_rows().tolist() == [[1]]


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"variables": [{"name": "x", "kind": "binary"}]},
        {"variables": [{"name": "x", "kind": "star"}], "constrained": False},
        {"variables": [{"kind": "binary"}], "constrained": False},
        {"variables": [{"name": "x", "kind": "integer", "floor": 1}], "constrained": False},
        {"variables": [{"name": "x", "kind": "binary"}] * 2, "constrained": False},
        {"variables": ["x"], "constrained": False},
        [],
    ],
)
def test_what_is_no_description_is_refused(description: Any) -> None:
    with pytest.raises(SpaceError, match="description: expected"):
        Space.from_description(description)


class Paint(Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize("choices", [[(1, 2), (3, 4)], list(Paint), [1.0, math.inf], [math.sin, math.cos]])
def test_choices_that_json_cannot_hold_work_but_are_not_described(choices: list[Any]) -> None:
    space = Space({"x": Categorical(choices)})
    assert [space.decode([i])["x"] for i in range(2)] == choices
    assert space.encode({"x": choices[1]}).tolist() == [1]
    assert space.fingerprint() != Space({"x": Categorical(choices[::-1])}).fingerprint()
    with pytest.raises(SpaceError, match="variable 'x': expected choices that JSON can hold"):
        space.describe()


def test_fingerprints_tell_spaces_apart() -> None:
    variants: list[dict[str, Variable]] = [
        {"a": Binary(), "b": Binary()},
        {"b": Binary(), "a": Binary(), "c": Binary()},
        {"a": Binary(), "c": Binary()},
        {"a": Binary(), "b": Ordinal([0, 1])},
        {"a": Binary(), "b": Categorical([0, 1])},
        {"a": Binary(), "b": Categorical([0, 2])},
        {"a": Binary(), "b": Categorical(["0", "1"])},
        {"a": Binary(), "b": Categorical([(0,), 1])},
        {"a": Binary(), "b": Categorical(["(0,)", 1])},
        {"a": Binary(), "b": Categorical([0, 1], graph=[[0, 2], [2, 0]])},
        {"a": Binary(), "b": Float(0, 1, points=2)},
    ]
    prints = {Space(v).fingerprint() for v in variants} | {Space(variants[0], lambda p: True).fingerprint()}
    assert len(prints) == len(variants) + 1
    swapped = Space({"b": Binary(), "a": Binary()})
    assert swapped != Space(variants[0])  # rows would mean something else


def test_fingerprints_are_the_same_in_another_process() -> None:
    code = (
        "from carbo.space.space import Space\nfrom carbo.space.variables import Categorical, Float, Ordinal\n"
        "class Thing: pass\n"
        "print(Space({'x': Categorical(['a', 'b']), 'f': Float(0, 1), 'o': Ordinal([Thing(), (1, 2)])}).fingerprint())"
    )
    runs = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.strip()) == 64


def test_spaces_can_be_copied_and_pickled() -> None:
    space = Space(MIXED)
    for twin in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert twin == space
        np.testing.assert_array_equal(twin.neighbours([0] * 6), space.neighbours([0] * 6))


def test_a_space_shows_its_variables_and_no_more_than_eight() -> None:
    assert repr(Space({"a": Binary()}, lambda p: True)) == "Space({'a': Binary()}, constraint=...)"
    assert "... (60 in all)" in repr(Space({f"x{i}": Binary() for i in range(60)}))


@pytest.mark.parametrize("shape", ["path", "cycle"])
@pytest.mark.parametrize("size", [3, 4, 5, 8, 9, 33])
def test_leaps_reach_powers_of_two_and_nothing_else(shape: str, size: int) -> None:
    space = Space({"x": Categorical(range(size), graph=shape)})
    for here in range(size):
        rows, _ = space.rows.neighbours([[here]], leaps=True)
        steps = [2**j for j in range(10)]
        reached = {(here + sign * step) for step in steps for sign in (1, -1)}
        if shape == "cycle":
            wanted = {v % size for v in reached if abs(v - here) <= size // 2}
        else:
            wanted = {v for v in reached if 0 <= v < size}
        assert sorted(rows[:, 0].tolist()) == sorted(wanted - {here})
