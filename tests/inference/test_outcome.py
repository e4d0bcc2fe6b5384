"""Values to the model's y and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from carbo.inference.outcome import LARGEST, Scale, Tail, standardise
from carbo.numerics.types import Floats

MULTIPLES = (None, 2.0, 0.5)
FINITE = st.floats(-1e300, 1e300, allow_subnormal=False)


def told(y: Floats, scale: Scale) -> Floats:
    """Values from y, written without `value` and `moments`."""
    t = [scale.centre + scale.unit * each for each in y.tolist()]
    if scale.tail is not None:
        m, s, _ = scale.tail
        t = [each if each <= m else m + s * (math.exp((each - m) / s) - 1) for each in t]
    return scale.size * np.array(t)


@pytest.mark.parametrize("multiple", MULTIPLES)
@given(values=st.lists(FINITE, min_size=1, max_size=30))
def test_any_finite_values_become_standard_ones_in_the_same_order(multiple: float | None, values: list[float]) -> None:
    v = np.array(values)
    y, scale = standardise(v, multiple)
    assert np.all(np.isfinite(y))
    order = np.argsort(v, kind="stable")
    assert np.all(np.diff(y[order]) >= -1e-12)
    np.testing.assert_allclose(y.mean(), 0.0, atol=1e-7)
    assert math.isclose(y.std(), 1.0, rel_tol=1e-6) or np.ptp(v) <= 1e-12 * np.max(np.abs(v))
    seen = np.minimum(v, LARGEST * min(scale.size, 1e270))
    np.testing.assert_allclose(scale.value(y) * scale.size, seen, atol=1e-9 * scale.size, rtol=1e-9)
    np.testing.assert_allclose(told(y, scale), seen, atol=1e-9 * scale.size, rtol=1e-9)


@pytest.mark.parametrize("multiple", MULTIPLES)
@pytest.mark.parametrize("value", [0.0, -3.0, 1e300])
def test_constant_values_become_zeros(multiple: float | None, value: float) -> None:
    y, scale = standardise(np.full(5, value), multiple)
    np.testing.assert_array_equal(y, np.zeros(5))
    mean, std = scale.moments(np.zeros((2, 1)), np.zeros((2, 1)))
    assert (mean[0], std[0]) == (pytest.approx(value), 0.0)


@pytest.mark.parametrize("multiple", MULTIPLES)
@pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0.0), (1.0, 100.0), (250.0, -7.0)])
def test_units_and_origin_of_the_values_do_not_matter(multiple: float | None, factor: float, shift: float) -> None:
    v = np.random.default_rng(3).gamma(0.7, size=40)
    np.testing.assert_allclose(standardise(factor * v + shift, multiple)[0], standardise(v, multiple)[0], atol=1e-9)


def test_the_better_half_keeps_its_proportions_and_the_tail_of_the_worse_is_drawn_in() -> None:
    v = np.sort(np.exp(np.random.default_rng(0).normal(0, 2, 100)))
    y, plain = standardise(v, 0.5)[0], standardise(v)[0]
    assert stats.linregress(v[:50], y[:50]).rvalue == pytest.approx(1.0)
    assert np.all(np.diff(np.diff(y[50:]) / np.diff(v[50:])) < 0), "ever less a step, the worse the values"
    assert stats.skew(y) < 2.5 < stats.skew(plain)


def test_a_heap_of_nearly_equal_good_values_stays_a_heap() -> None:
    """60 values within 0.01 of each other and 40 from 1 to 9: many nearly equal values in a wide range."""
    v = np.append(np.linspace(0.5, 0.51, 60), np.linspace(1, 9, 40))
    y, _ = standardise(v, 0.5)
    assert np.ptp(y[:60]) < 0.02


@pytest.mark.parametrize("multiple", MULTIPLES)
@pytest.mark.parametrize("penalty", [1e5, 1e20, 1e300])
def test_one_value_for_all_that_does_not_work_leaves_the_others_apart(multiple: float | None, penalty: float) -> None:
    """30 values from 0 to 9 and 20 penalties. Next to the penalties the 30 values would look equal."""
    v = np.append(np.linspace(0, 9, 30), np.full(20, penalty))
    y, _ = standardise(v, multiple)
    assert y[29] - y[0] > 0.01 * np.ptp(y)
    assert stats.linregress(v[:15], y[:15]).rvalue == pytest.approx(1.0)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([0, 1, 2, 3, 4, 5, 5_000, 5_000], id="not 1000 times as large"),
        pytest.param([90, 91, 92, 93, 94, 80_000], id="1000 times as far, but not as large"),
        pytest.param([0, 1, 1e9, 1e9, 1e9], id="two others"),
        pytest.param([0, 1, 2, *[1e9] * 7], id="less than a third others"),
        pytest.param([0, 0, 0, 0, 0, 1e9, 1e9], id="the others all the same"),
        pytest.param([-1e9, 0, 1, 2, 3, 4, 5], id="a gap after the best"),
        pytest.param([0, 1e-33, 4e-33, 1e-33, 0.5, 3, 70, 1000, 5], id="a heap near zero"),
        pytest.param([0.6, 0.6 + 1e-16, 0.6 + 2e-16, 0.6, 1.0, 2.0, 3.0, 400.0], id="a heap that differs by rounding"),
        pytest.param([0, 1, 2, 3, 1e9, 2e9], id="two values beyond"),
    ],
)
def test_other_values_are_only_standardised(values: list[float]) -> None:
    v = np.array(values, dtype=np.float64)
    np.testing.assert_allclose(standardise(v)[0], stats.zscore(v), atol=1e-9)


@pytest.mark.parametrize("offset", [1e4, -1e4])
def test_predictions_stay_as_near_to_the_worst_value_below_zero_as_above(offset: float) -> None:
    v = np.exp(np.random.default_rng(1).normal(0, 1.2, 40))
    at = np.array([[1.0], [3.0]]), np.array([[2.0], [0.5]])
    plain, moved = standardise(v, 0.5)[1].moments(*at), standardise(v + offset, 0.5)[1].moments(*at)
    np.testing.assert_allclose(moved[0] - offset, plain[0], rtol=1e-6)
    np.testing.assert_allclose(moved[1], plain[1], rtol=1e-6)


def test_small_differences_of_large_values_are_seen() -> None:
    """Numbers about 1e9 are 1.2e-7 apart."""
    steps = (np.arange(9) % 4).astype(np.float64)
    y, scale = standardise(1e9 + 2e-6 * steps)
    np.testing.assert_allclose(y, stats.zscore(steps), atol=0.2)
    assert scale.size * scale.unit < 1e-5


@pytest.mark.parametrize("tail", [None, Tail(0.3, 0.4, 1e9)])
def test_moments_on_the_way_back_are_those_of_draws(tail: Tail | None) -> None:
    """Against 400,000 draws of the mixture; within five standard errors of the mean, false alarm below 1e-6."""
    scale, rng = Scale(2.0, 0.1, 0.6, tail), np.random.default_rng(5)
    mu, sd = np.array([[0.2, -1.0], [0.5, -0.5]]), np.array([[0.3, 0.1], [0.6, 0.2]])
    draws = np.concatenate(
        [np.stack([told(rng.normal(mu[s, j], sd[s, j], 200_000), scale) for j in range(2)], axis=1) for s in range(2)]
    )
    mean, std = scale.moments(mu, sd)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * std / math.sqrt(len(draws)))
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.02)


@pytest.mark.parametrize("tail", [None, Tail(-1.0, 0.02, 1.0)])
def test_predictions_beyond_the_range_of_floats_stay_in_it(tail: Tail | None) -> None:
    mean, std = Scale(1e300, 0.0, 1.0, tail).moments(np.full((1, 1), 1e9), np.full((1, 1), 1e5))
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std))


def test_predictions_hardly_exceed_the_worst_value_seen() -> None:
    v = np.append(np.linspace(0, 1, 20), 30.0)
    _, scale = standardise(v, 0.5)
    mean, std = scale.moments(np.array([[3.0, 10.0]]), np.array([[5.0, 1.0]]))
    assert np.all(mean <= 31.0 * math.e)
    assert np.all(std <= 31.0 * math.e)


@pytest.mark.parametrize("multiple", MULTIPLES)
def test_the_log_slope_is_that_of_the_map_from_values_to_y(multiple: float | None) -> None:
    """The slope of y by finite differences in each value, with fixed centre, unit, median and worst."""
    v = np.random.default_rng(2).gamma(1.0, size=12)
    y, scale = standardise(v, multiple)
    at = v / scale.size
    h = 1e-6

    def as_y(values: Floats) -> Floats:
        t = values if scale.tail is None else scale.tail.warp(values)
        return np.asarray((t - scale.centre) / scale.unit)

    np.testing.assert_allclose(as_y(at), y, atol=1e-12)
    slopes = (as_y(at + h) - as_y(at - h)) / (2 * h)
    assert scale.log_slope == pytest.approx(np.log(slopes).sum(), abs=1e-4)
