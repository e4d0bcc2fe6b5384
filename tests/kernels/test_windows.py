"""The kernel's parts of variables in a row, against sums written out."""

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
from carbo.kernels.windows import COLUMNS, TOTAL, Adjacent, Rows, rows_of
from carbo.space import graphs
from carbo.space.graphs import Graph
from tests import oracles

seeds = st.integers(0, 10**6)


def any_space(rng: np.random.Generator) -> list[Graph]:
    """Mostly categories, of up to nine values; paths and constants between them."""
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
    kernel = Adjacent(tuple(spectrum(g) for g in space), highest, False)
    parts = kernel.parts(scales, rows)
    assert len(parts) == kernel.size
    plain = Orders(kernel.spectra, highest, False).parts(scales, rows)
    np.testing.assert_array_equal(parts[:highest], plain)
    expected = oracles.adjacent_parts(space, np.exp(scales.log_relevance), rows, highest, COLUMNS)
    count = kernel.rows.orders
    np.testing.assert_allclose(parts[highest:], expected[:count], rtol=0, atol=1e-12)
    assert not np.any(expected[count:])  # of orders without rows
    assert all(np.any(part) for part in expected[:count])


def test_rows_pass_over_constants_and_end_at_ordered_values() -> None:
    space = Space({"a": Binary(), "k": Categorical(["only"]), "b": Binary(), "c": Categorical(list("xyz")),
                   "n": Integer(0, 4), "d": Binary(), "e": Binary()})  # fmt: skip
    assert Rows(spectra_of(space.graphs), 3).variables == [(0, 2), (2, 3), (5, 6), (0, 2, 3)]
    assert Rows(spectra_of(space.graphs), 2).variables == [(0, 2), (2, 3), (5, 6)]
    assert len(Rows(spectra_of(space.graphs), 1)) == 0


def test_a_row_of_too_many_values_is_left_out() -> None:
    many = math.isqrt(COLUMNS) + 1  # of two such variables there are just COLUMNS features, of three too many
    space = Space({name: Categorical(range(many)) for name in "abc"} | {"d": Binary()})
    assert Rows(spectra_of(space.graphs), 3).variables == [(0, 1), (1, 2), (2, 3), (1, 2, 3)]
    larger = Space({name: Categorical(range(many + 1)) for name in "abc"})
    assert Rows(spectra_of(larger.graphs), 3).variables == []


def test_longer_rows_are_left_out_where_features_would_be_too_many() -> None:
    few, many = (spectra_of(Space({f"x{i}": Categorical(range(5)) for i in range(d)}).graphs) for d in (20, 60))
    assert 19 * 16 + 18 * 64 <= TOTAL < 59 * 16 + 58 * 64
    assert {len(some) for some in Rows(few, 3).variables} == {2, 3}
    assert {len(some) for some in Rows(many, 3).variables} == {2}
    assert Adjacent(many, 3, False).size == 4
    hundreds = spectra_of(Space({f"x{i}": Categorical(range(5)) for i in range(300)}).graphs)
    assert len(Rows(hundreds, 3)) == 0


def test_the_order_of_the_variables_counts_here_and_nowhere_else() -> None:
    rng = np.random.default_rng(0)
    spectra = spectra_of(Space({f"x{i}": Binary() for i in range(6)}).graphs)
    rows, order = rng.integers(0, 2, size=(10, 6)), np.array([3, 0, 5, 1, 4, 2])
    scales = Scales(np.zeros(6), rng.normal(size=6))
    moved = Scales(np.zeros(6), scales.log_relevance[order])
    one, other = (Adjacent(spectra, 3, False).parts(s, x) for s, x in ((scales, rows), (moved, rows[:, order])))
    np.testing.assert_allclose(one[:3], other[:3], rtol=0, atol=1e-12)
    assert np.abs(one[3:] - other[3:]).max() > 0.1
    back = Scales(np.zeros(6), scales.log_relevance[::-1])
    np.testing.assert_allclose(Adjacent(spectra, 3, False).parts(back, rows[:, ::-1]), one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("highest", [1, 2, 3])
def test_kernels_without_such_parts_have_no_rows(highest: int) -> None:
    spectra = spectra_of(Space({f"x{i}": Binary() for i in range(4)}).graphs)
    assert len(rows_of(Orders(spectra, highest, False))) == 0
    assert len(rows_of(Adjacent(spectra, highest, False))) == sum(4 - q + 1 for q in range(2, highest + 1))
    assert rows_of(Orders(spectra, highest, False)).features(np.zeros((5, 4), dtype=np.intp)).shape == (5, 0)
