"""Windows: the kernel's parts for consecutive variables, against sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbo import Binary, Categorical, Integer, Space
from carbo.kernels.base import Scales
from carbo.kernels.orders import Orders
from carbo.kernels.spectra import spectra_of, spectrum
from carbo.kernels.windows import COLUMNS, TOTAL, Windows, features, windows_of_length
from carbo.space import graphs
from carbo.space.graphs import Graph
from tests import oracles

seeds = st.integers(0, 10**6)


def any_space(rng: np.random.Generator) -> list[Graph]:
    """A space of mostly categories of up to nine values, with paths and constants between them."""
    kinds = rng.choice(["two", "two", "more", "many", "path", "one"], int(rng.integers(1, 8)))
    of = {"two": lambda: graphs.complete(2), "more": lambda: graphs.complete(int(rng.integers(3, 6))),
          "many": lambda: graphs.complete(9), "path": lambda: graphs.path(4),
          "one": lambda: graphs.complete(1)}  # fmt: skip
    return [of[kind]() for kind in kinds]


@given(seed=seeds, highest=st.integers(1, 5))
@settings(max_examples=100)
def test_parts_are_sums_over_variables_one_after_another(seed: int, highest: int) -> None:
    rng = np.random.default_rng(seed)
    space = any_space(rng)
    rows = oracles.random_rows(rng, space, 12)
    scales = Scales(rng.normal(size=len(space)), rng.normal(size=len(space)))
    kernel = Orders(tuple(spectrum(g) for g in space), highest, True)
    parts = kernel.parts(scales, rows)
    assert len(parts) == kernel.size
    plain = Orders(kernel.spectra, highest, False).parts(scales, rows)
    np.testing.assert_array_equal(parts[:highest], plain)
    expected = oracles.adjacent_parts(space, np.exp(scales.log_relevance), rows, highest, COLUMNS)
    count = kernel.windows.orders
    np.testing.assert_allclose(parts[highest:], expected[:count], rtol=0, atol=1e-12)
    assert not np.any(expected[count:])  # orders without windows
    assert all(np.any(part) for part in expected[:count])


def test_windows_pass_over_constants_and_end_at_ordered_values() -> None:
    space = Space({"a": Binary(), "k": Categorical(["only"]), "b": Binary(), "c": Categorical(list("xyz")),
                   "n": Integer(0, 4), "d": Binary(), "e": Binary()})  # fmt: skip
    assert Windows(spectra_of(space.rows.graphs), 3).variables == [(0, 2), (2, 3), (5, 6), (0, 2, 3)]
    assert Windows(spectra_of(space.rows.graphs), 2).variables == [(0, 2), (2, 3), (5, 6)]
    assert len(Windows(spectra_of(space.rows.graphs), 1)) == 0


def test_a_window_of_too_many_values_is_left_out() -> None:
    many = math.isqrt(COLUMNS) + 1  # two such variables have COLUMNS features, three have too many
    space = Space({name: Categorical(range(many)) for name in "abc"} | {"d": Binary()})
    assert Windows(spectra_of(space.rows.graphs), 3).variables == [(0, 1), (1, 2), (2, 3), (1, 2, 3)]
    larger = Space({name: Categorical(range(many + 1)) for name in "abc"})
    assert Windows(spectra_of(larger.rows.graphs), 3).variables == []


def test_longer_windows_are_left_out_where_features_would_be_too_many() -> None:
    few, many = (spectra_of(Space({f"x{i}": Categorical(range(5)) for i in range(d)}).rows.graphs) for d in (20, 60))
    assert 19 * 16 + 18 * 64 <= TOTAL < 59 * 16 + 58 * 64
    assert {len(some) for some in Windows(few, 3).variables} == {2, 3}
    assert {len(some) for some in Windows(many, 3).variables} == {2}
    assert Orders(many, 3, True).size == 4
    hundreds = spectra_of(Space({f"x{i}": Categorical(range(5)) for i in range(300)}).rows.graphs)
    assert len(Windows(hundreds, 3)) == 0


def test_the_order_of_the_variables_counts_here_and_nowhere_else() -> None:
    rng = np.random.default_rng(0)
    spectra = spectra_of(Space({f"x{i}": Binary() for i in range(6)}).rows.graphs)
    rows, order = rng.integers(0, 2, size=(10, 6)), np.array([3, 0, 5, 1, 4, 2])
    scales = Scales(np.zeros(6), rng.normal(size=6))
    moved = Scales(np.zeros(6), scales.log_relevance[order])
    one, other = (Orders(spectra, 3, True).parts(s, x) for s, x in ((scales, rows), (moved, rows[:, order])))
    np.testing.assert_allclose(one[:3], other[:3], rtol=0, atol=1e-12)
    assert np.abs(one[3:] - other[3:]).max() > 0.1
    back = Scales(np.zeros(6), scales.log_relevance[::-1])
    np.testing.assert_allclose(Orders(spectra, 3, True).parts(back, rows[:, ::-1]), one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("highest", [1, 2, 3])
def test_kernels_without_such_parts_have_no_windows(highest: int) -> None:
    spectra = spectra_of(Space({f"x{i}": Binary() for i in range(4)}).rows.graphs)
    assert len(Orders(spectra, highest, False).windows) == 0
    assert len(Orders(spectra, highest, True).windows) == sum(4 - q + 1 for q in range(2, highest + 1))
    assert Orders(spectra, highest, False).windows.features(np.zeros((5, 4), dtype=np.intp)).shape == (5, 0)


@pytest.mark.parametrize("m", range(2, 9))
def test_inner_products_of_features_are_the_centred_table(m: int) -> None:
    F = features(m)
    assert F.shape == (m, m - 1)
    np.testing.assert_allclose(F @ F.T, (m * np.eye(m) - 1.0) / (m - 1), rtol=0, atol=1e-13)


@given(seed=seeds)
def test_windows_of_a_length_are_runs_of_categories_with_constants_left_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = any_space(rng)
    kept = [(i, g) for i, g in enumerate(space) if g.size > 1]
    for q in (1, 2, 3):
        runs = [kept[k : k + q] for k in range(len(kept) - q + 1)]
        narrow = [run for run in runs if math.prod(g.size - 1 for _, g in run) <= COLUMNS]
        expected = [tuple(i for i, _ in run) for run in narrow if all(g.kind == "complete" for _, g in run)]
        assert windows_of_length(tuple(spectrum(g) for g in space), q) == expected
