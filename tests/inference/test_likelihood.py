"""The likelihood of the order kernel and its slopes against dense formulas and differences of them.

`dense` builds the covariance from `oracles` or from `kernel.gram`; every slope is compared with Richardson's
extrapolation of central differences, whose error is far below the tolerances.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbo import Integer, Space
from carbo.inference.data import Data
from carbo.inference.likelihood import Likelihood, Slope
from carbo.kernels.base import Scales
from carbo.kernels.orders import Orders
from carbo.kernels.spectra import Spectrum, spectra_of
from carbo.numerics.types import Floats
from tests import oracles
from tests.models import gram
from tests.spaces import any_kinds, space_of, wide_above

# -- spaces, data and settings ---------------------------------------------------------------------------------------


class Case(NamedTuple):
    """Data over a space, and one value of the kernel's parameters."""

    space: Space
    kernel: Orders
    data: Data
    scales: Scales
    log_w: Floats
    log_noise: float


def case(rng: np.random.Generator, kinds: list[str], n: int, highest: int) -> Case:
    """A case whose rows repeat now and then, with parameters as in posteriors and beyond."""
    space, d = space_of(rng, kinds), len(kinds)
    X = space.random_rows(rng, n)
    X[n // 2 :] = X[rng.integers(0, n, n - n // 2)]
    scales = Scales(rng.uniform(-2.5, 1.5, d), rng.uniform(-4.0, 2.0, d))
    kernel = Orders(spectra_of(space.rows.graphs), highest)
    return Case(space, kernel, Data(X, rng.normal(size=n)), scales, rng.uniform(-3.0, 2.0, highest),
                float(rng.uniform(-5.0, 1.0)))  # fmt: skip


def windowed(c: Case, rng: np.random.Generator) -> Case:
    """The same case with windows."""
    kernel = c.kernel.with_windows()
    return c._replace(kernel=kernel, log_w=np.append(c.log_w, rng.uniform(-3.0, 2.0, kernel.windows.orders)))


def any_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    return case(rng, any_kinds(rng, 5), int(rng.integers(1, 31)), int(rng.integers(1, 5)))


def at(c: Case) -> Slope:
    slope = Likelihood(c.kernel, c.data).at(c.scales, c.log_w, c.log_noise)
    assert slope is not None
    return slope


def numbers(slope: Slope) -> list[float]:
    """All numbers of a slope in one array."""
    return [slope.value, *np.concatenate(slope.by).tolist(), slope.log_noise, *slope.mean]


def without_mean(c: Case) -> Floats:
    """Covariance of the values given their mean, by the package's kernel."""
    K = gram(c.kernel, c.scales, np.exp(c.log_w), c.data.X)
    return np.asarray(K + math.exp(c.log_noise) * np.eye(len(K)))


def by_oracle(c: Case) -> Floats:
    """The same covariance by sums over all subsets of variables."""
    graphs = [v.graph for v in c.space.variables.values()]
    beta, r = np.exp(c.scales.log_beta), np.exp(c.scales.log_relevance)
    parts = oracles.order_parts(graphs, "connectivity", beta, r, c.data.X, c.kernel.highest)
    return np.asarray(np.tensordot(np.exp(c.log_w), parts, 1) + math.exp(c.log_noise) * np.eye(len(c.data.y)))


def log_likelihood(C0: Floats, y: Floats) -> float:
    """Log likelihood of values whose mean has the prior N(0, 1), without the constant."""
    C = C0 + 1.0
    sign, log_det = np.linalg.slogdet(C)
    assert sign == 1.0
    return float(-0.5 * log_det - 0.5 * y @ np.linalg.solve(C, y))


# -- the value -------------------------------------------------------------------------------------------------------

seeds = st.integers(0, 10**6)


@given(seed=seeds)
@settings(max_examples=60)
def test_the_value_is_the_dense_log_likelihood_with_the_mean_integrated_out(seed: int) -> None:
    c = any_case(seed)
    expected = log_likelihood(without_mean(c), c.data.y)
    assert at(c).value == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert log_likelihood(by_oracle(c), c.data.y) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(seed=seeds)
@settings(max_examples=60)
def test_the_mean_of_the_process_has_its_conditional_law(seed: int) -> None:
    """N(1'C^-1 y, 1) / (1 + 1'C^-1 1) with C the covariance given the mean: a regression on a constant."""
    c = any_case(seed)
    P = np.linalg.inv(without_mean(c))
    precision = 1.0 + P.sum()
    mean, sd = at(c).mean
    assert mean == pytest.approx(float(P.sum(axis=0) @ c.data.y) / precision, rel=1e-7, abs=1e-7)
    assert sd == pytest.approx(precision**-0.5, rel=1e-6, abs=1e-6)


# -- its slopes ------------------------------------------------------------------------------------------------------


def shifted(c: Case, name: str, i: int, t: float) -> Case:
    """The case with one parameter moved by t."""
    if name == "log_noise":
        return c._replace(log_noise=c.log_noise + t)
    if name == "log_w":
        return c._replace(log_w=c.log_w + t * (np.arange(len(c.log_w)) == i))
    values = getattr(c.scales, name)
    return c._replace(scales=c.scales._replace(**{name: values + t * (np.arange(len(values)) == i)}))


def differences(c: Case, name: str, count: int) -> Floats:
    """The slope of the dense log likelihood in each parameter of that name."""

    def along(i: int) -> float:
        return oracles.richardson(lambda t: log_likelihood(without_mean(shifted(c, name, i, t)), c.data.y))

    return np.array([along(i) for i in range(count)])


def assert_slopes(c: Case) -> None:
    slope, d = at(c), len(c.kernel.spectra)
    allowed = 1e-6 * (1.0 + abs(slope.value))
    for name, count in (("log_relevance", d), ("log_beta", d), ("log_w", len(c.log_w)), ("log_noise", 1)):
        got = np.atleast_1d(slope.log_noise if name == "log_noise" else getattr(slope.by, name))
        assert got.shape == (count,)
        np.testing.assert_allclose(got, differences(c, name, count), rtol=1e-5, atol=allowed, err_msg=name)


@given(seed=seeds)
@settings(max_examples=50)
def test_every_slope_is_the_difference_quotient(seed: int) -> None:
    assert_slopes(any_case(seed))


@given(seed=seeds)
@settings(max_examples=40)
def test_every_slope_with_parts_of_variables_one_after_another(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["binary", "binary", "categorical", "constant", "levels"], int(rng.integers(2, 7))).tolist()
    c = windowed(case(rng, kinds, int(rng.integers(1, 25)), int(rng.integers(1, 5))), rng)
    assert at(c).value == pytest.approx(log_likelihood(without_mean(c), c.data.y), rel=1e-8, abs=1e-8)
    assert_slopes(c)


@pytest.mark.parametrize("most", [1, 4])
@given(seed=seeds)
@settings(max_examples=25)
def test_slopes_where_variables_are_wide(most: int, seed: int) -> None:
    """All variables wide, or only those of more than four values; of any kind, in any order."""
    c = any_case(seed)
    narrow = at(c)
    with wide_above(most):
        wide = at(c)
        assert_slopes(c)
    np.testing.assert_allclose(numbers(narrow), numbers(wide), rtol=1e-7, atol=1e-7 * (1.0 + abs(narrow.value)))


@pytest.mark.parametrize("highest", [1, 2, 3, 5])
@pytest.mark.parametrize("kinds", [["binary"] * 5, ["categorical"] * 4, ["levels", "cycle", "weighted", "ordinal"]],
                         ids=["binary", "categorical", "graphs"])  # fmt: skip
def test_slopes_of_spaces_of_one_sort(kinds: list[str], highest: int) -> None:
    assert_slopes(case(np.random.default_rng(highest), kinds, 20, highest))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 129])
def test_slopes_of_few_and_of_many_observations(n: int) -> None:
    """The inverse is mirrored in blocks of 64 rows: sizes on both sides of a block's end."""
    assert_slopes(case(np.random.default_rng(n), ["binary", "categorical", "levels"], n, 3))


@pytest.mark.parametrize("kinds", [["constant"], ["constant", "constant level"]])
def test_a_space_of_one_point_has_no_slope_in_scales(kinds: list[str]) -> None:
    c = case(np.random.default_rng(0), kinds, 5, 1)
    slope = at(c)
    assert_slopes(c)
    assert not np.any(slope.by.log_relevance)
    assert not np.any(slope.by.log_beta)
    assert not np.any(slope.by.log_w)


def test_what_does_not_shape_the_kernel_has_no_slope() -> None:
    """Beta of complete graphs, and both scales of variables of one value."""
    c = case(np.random.default_rng(3), ["categorical", "constant", "levels", "binary"], 15, 2)
    slope = at(c)
    np.testing.assert_array_equal(slope.by.log_beta != 0.0, [False, False, True, False])
    np.testing.assert_array_equal(slope.by.log_relevance != 0.0, [True, False, True, True])


def test_an_order_above_the_number_of_variables_has_no_part_and_no_slope() -> None:
    c = case(np.random.default_rng(1), ["binary", "levels"], 12, 2)
    more = c._replace(kernel=Orders(c.kernel.spectra, 4), log_w=np.append(c.log_w, [0.3, 0.4]))
    fewer, slope = at(c), at(more)
    assert slope.value == pytest.approx(fewer.value, rel=1e-12)
    np.testing.assert_allclose(slope.by.log_w, [*fewer.by.log_w, 0.0, 0.0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slope.by.log_relevance, fewer.by.log_relevance, rtol=1e-9, atol=1e-9)


@given(seed=seeds)
@settings(max_examples=30)
def test_scaling_all_relevances_of_the_first_order_changes_nothing(seed: int) -> None:
    """Each order is normalised: the slopes of the relevances of a kernel of one order sum to zero."""
    c = any_case(seed)
    c = c._replace(kernel=Orders(c.kernel.spectra, 1), log_w=c.log_w[:1])
    slope = at(c)
    assert math.fsum(slope.by.log_relevance) == pytest.approx(
        0.0, abs=1e-7 * (1.0 + np.abs(slope.by.log_relevance).sum())
    )


@pytest.mark.parametrize("dominant", [0, 1])
def test_slopes_where_one_relevance_dominates_all_others(dominant: int) -> None:
    """Relevances at the ends of the support: the parts without the dominant variable are small differences."""
    c = case(np.random.default_rng(2), ["binary", "levels", "categorical", "binary", "weighted"], 20, 3)
    relevance = np.where(np.arange(5) == dominant, 3.0, -6.0)
    assert_slopes(c._replace(scales=c.scales._replace(log_relevance=relevance)))


@pytest.mark.parametrize("log_beta", [-12.0, math.log(100.0)])
def test_slopes_at_the_ends_of_betas_support(log_beta: float) -> None:
    c = case(np.random.default_rng(4), ["levels", "weighted", "cycle"], 20, 2)
    assert_slopes(c._replace(scales=c.scales._replace(log_beta=np.full(3, log_beta))))


# -- memory and failure ----------------------------------------------------------------------------------------------


@given(seed=seeds)
@settings(max_examples=20)
def test_nothing_is_remembered_from_one_setting_to_the_next(seed: int) -> None:
    c = any_case(seed)
    likelihood, other = Likelihood(c.kernel, c.data), shifted(c, "log_relevance", 0, 0.7)
    first = likelihood.at(c.scales, c.log_w, c.log_noise)
    assert first is not None
    kept = numbers(first)
    likelihood.at(other.scales, other.log_w + 0.5, -1.0)
    assert numbers(first) == kept
    again = likelihood.at(c.scales, c.log_w, c.log_noise)
    assert again is not None
    assert numbers(again) == kept


def test_memory_nobody_wrote_to_never_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """np.empty may hand out any number; here the largest."""
    c = case(np.random.default_rng(0), ["binary", "binary", "categorical", "levels"], 70, 3)
    clean, empty = numbers(at(c)), np.empty

    def dirty(*args: Any, **kwargs: Any) -> Any:
        out = empty(*args, **kwargs)
        if out.dtype == np.float64:
            out.fill(1.7e308)
        return out

    monkeypatch.setattr(np, "empty", dirty)
    assert numbers(at(c)) == clean


@pytest.mark.parametrize("n", [2, 3, 10, 70])
def test_a_covariance_that_is_not_positive_definite_has_no_likelihood(n: int) -> None:
    """Equal rows, and a noise that underflows to zero."""
    c = case(np.random.default_rng(0), ["binary", "levels"], n, 2)
    same = Data(np.tile(c.data.X[:1], (n, 1)), c.data.y)
    likelihood = Likelihood(c.kernel, same)
    assert likelihood.at(c.scales, np.zeros(2), -800.0) is None
    assert likelihood.at(c.scales, np.zeros(2), -3.0) is not None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_numbers_have_no_likelihood(bad: float) -> None:
    c = case(np.random.default_rng(0), ["binary", "levels"], 6, 2)
    y = np.append(c.data.y[:-1], bad)
    with np.errstate(invalid="ignore"):
        assert Likelihood(c.kernel, Data(c.data.X, y)).at(c.scales, c.log_w, c.log_noise) is None


def test_the_modes_of_long_paths_and_cycles_are_never_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modes would fill 80 gigabytes, and ten observations need ten rows of them."""
    space, rng = Space({"a": Integer(0, 99_999), "b": Integer(1, 9), "c": Integer(0, 99_999)}), np.random.default_rng(0)
    spectra = spectra_of(space.rows.graphs)
    few = spectra[1].modes
    monkeypatch.setattr(Spectrum, "modes", property(lambda s: few if s is spectra[1] else pytest.fail("asked for")))
    c = Case(space, Orders(spectra, 2), Data(space.random_rows(rng, 10), rng.normal(size=10)),
             Scales(np.full(3, -2.0), np.zeros(3)), np.zeros(2), -3.0)  # fmt: skip
    assert np.all(at(c).by.log_beta != 0.0)
