"""Elementary symmetric polynomials against sums over all subsets, their derivatives against difference quotients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbo.kernels.polynomials import (
    affine_powers,
    elementary_symmetric,
    inverse_norms,
    newton,
    norm_slopes,
    slope_by_variable,
)
from carbo.numerics.types import Floats
from tests import oracles

seeds = st.integers(0, 10**6)


@given(seed=seeds, count=st.integers(0, 6), highest=st.integers(1, 6))
def test_symmetric_polynomials_and_newtons_identities_agree_with_brute_force(
    seed: int, count: int, highest: int
) -> None:
    r = np.random.default_rng(seed).exponential(size=count)
    expected = [oracles.elementary(r.tolist(), q) for q in range(1, highest + 1)]
    np.testing.assert_allclose(elementary_symmetric(r, highest), expected, rtol=1e-13)
    powers = [np.array(np.sum(r**q)) for q in range(1, highest + 1)]
    np.testing.assert_allclose(newton(powers), expected, rtol=1e-9, atol=1e-9 * (1.0 + r.sum()) ** highest)


def test_an_order_without_a_norm_has_no_weight() -> None:
    np.testing.assert_array_equal(inverse_norms(np.array([4.0, 0.0, 0.5])), [0.25, 0.0, 2.0])


@given(seed=seeds, count=st.integers(1, 5), highest=st.integers(1, 6))
def test_an_orders_share_falls_as_its_norm_grows(seed: int, count: int, highest: int) -> None:
    """The derivative of share_q log e_q(r) by log r. Orders above the number of variables have no share and no norm."""
    rng = np.random.default_rng(seed)
    log_r, share = rng.normal(size=count), rng.normal(size=highest)
    share[count:] = 0.0

    def value(log_r: Floats) -> float:
        norms = [oracles.elementary(np.exp(log_r).tolist(), q) for q in range(1, min(count, highest) + 1)]
        return -math.fsum(share[: len(norms)] * np.log(norms))

    def along(unit: Floats) -> float:
        return oracles.richardson(lambda t: value(log_r + t * unit))

    r = np.exp(log_r)
    expected = [along(unit) for unit in np.eye(count)]
    np.testing.assert_allclose(norm_slopes(r, elementary_symmetric(r, highest), share), expected, rtol=1e-7, atol=1e-7)


@given(seed=seeds, count=st.integers(1, 6), highest=st.integers(1, 5))
@settings(max_examples=50)
def test_the_change_by_one_variable_leaves_it_out_of_every_order(seed: int, count: int, highest: int) -> None:
    rng = np.random.default_rng(seed)
    a, c = rng.normal(size=count), rng.normal(size=highest)
    e = [np.array(oracles.elementary(a.tolist(), q)) for q in range(highest)]
    expected = sum(c[q] * oracles.elementary(a[1:].tolist(), q) for q in range(highest))
    assert float(slope_by_variable(c, np.array(a[0]), e)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("m", range(2, 9))
def test_powers_of_a_complete_graphs_table_are_affine_in_it(m: int) -> None:
    z = (m * np.eye(m) - 1.0) / (m - 1)
    line, level = affine_powers(np.array([m]), 6)
    for s in range(7):
        np.testing.assert_allclose(line[s, 0] * z + level[s, 0], z**s, rtol=0, atol=1e-13)


def test_powers_of_many_sizes_are_those_of_each() -> None:
    sizes = np.array([2, 5, 3])
    line, level = affine_powers(sizes, 4)
    for i in range(3):
        alone_line, alone_level = affine_powers(sizes[i : i + 1], 4)
        np.testing.assert_array_equal(line[:, i], alone_line[:, 0])
        np.testing.assert_array_equal(level[:, i], alone_level[:, 0])
