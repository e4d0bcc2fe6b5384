"""The likelihood of the order kernel and its slopes against dense formulas and differences of them.

`dense` builds the covariance from `oracles` or from `kernel.gram`; every slope is compared with Richardson's
extrapolation of central differences, whose error is far below the tolerances.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from carbo import Integer, Space
from carbo.inference import likelihood as gradient
from carbo.inference import observed_tables as seen
from carbo.inference import priors
from carbo.inference.data import Data
from carbo.inference.likelihood import Likelihood, Slope, affine_powers, by_one
from carbo.inference.priors import Priors
from carbo.kernels.base import Scales
from carbo.kernels.cross import gram
from carbo.kernels.orders import Orders
from carbo.kernels.spectra import Spectrum, spectra_of
from carbo.kernels.windows import Adjacent, features
from carbo.numerics.types import Floats, Ints
from tests import oracles
from tests.spaces import any_kinds, space_of, wide_above

# -- spaces, data and settings ---------------------------------------------------------------------------------------


class Case(NamedTuple):
    """Data over a space, and a setting of the kernel's parameters."""

    space: Space
    kernel: Orders
    data: Data
    scales: Scales
    log_w: Floats
    log_noise: float


def case(rng: np.random.Generator, kinds: list[str], n: int, highest: int) -> Case:
    """Some rows repeat; parameters are where posteriors live and beyond."""
    space, d = space_of(rng, kinds), len(kinds)
    X = space.random_rows(rng, n)
    X[n // 2 :] = X[rng.integers(0, n, n - n // 2)]
    scales = Scales(rng.uniform(-2.5, 1.5, d), rng.uniform(-4.0, 2.0, d))
    kernel = Orders(spectra_of(space.graphs), highest, False)
    return Case(space, kernel, Data(X, rng.normal(size=n)), scales, rng.uniform(-3.0, 2.0, highest),
                float(rng.uniform(-5.0, 1.0)))  # fmt: skip


def adjoining(c: Case, rng: np.random.Generator) -> Case:
    """The same with parts of variables in a row."""
    kernel = Adjacent(c.kernel.spectra, c.kernel.highest, False)
    return c._replace(kernel=kernel, log_w=np.append(c.log_w, rng.uniform(-3.0, 2.0, kernel.rows.orders)))


def any_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    return case(rng, any_kinds(rng, 5), int(rng.integers(1, 31)), int(rng.integers(1, 5)))


def at(c: Case) -> Slope:
    slope = Likelihood(c.kernel, c.data).at(c.scales, c.log_w, c.log_noise)
    assert slope is not None
    return slope


def without_mean(c: Case) -> Floats:
    """Covariance of the values given their mean, by the package's kernel."""
    K = gram(c.kernel, c.scales, np.exp(c.log_w), c.data.X)
    return np.asarray(K + math.exp(c.log_noise) * np.eye(len(K)))


def by_oracle(c: Case) -> Floats:
    """The same by sums over all subsets of variables."""
    graphs = [v.graph for v in c.space.variables.values()]
    beta, r = np.exp(c.scales.log_beta), np.exp(c.scales.log_relevance)
    parts = oracles.order_parts(graphs, "connectivity", beta, r, c.data.X, c.kernel.highest)[:-1]
    return np.asarray(np.tensordot(np.exp(c.log_w), parts, 1) + math.exp(c.log_noise) * np.eye(len(c.data.y)))


def log_likelihood(C0: Floats, y: Floats) -> float:
    """Of values whose mean has the prior N(0, 1), without the constant."""
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
    """With one parameter moved by t."""
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
        got = np.atleast_1d(getattr(slope, name))
        assert got.shape == (count,)
        np.testing.assert_allclose(got, differences(c, name, count), rtol=1e-5, atol=allowed, err_msg=name)


@given(seed=seeds)
@settings(max_examples=50)
def test_every_slope_is_the_difference_quotient(seed: int) -> None:
    assert_slopes(any_case(seed))


@given(seed=seeds)
@settings(max_examples=40)
def test_every_slope_with_parts_of_variables_in_a_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["binary", "binary", "categorical", "constant", "levels"], int(rng.integers(2, 7))).tolist()
    c = adjoining(case(rng, kinds, int(rng.integers(1, 25)), int(rng.integers(1, 5))), rng)
    assert at(c).value == pytest.approx(log_likelihood(without_mean(c), c.data.y), rel=1e-8, abs=1e-8)
    assert_slopes(c)


@pytest.mark.parametrize("most", [1, 4])
@given(seed=seeds)
@settings(max_examples=25)
def test_slopes_where_variables_are_wide(most: int, seed: int) -> None:
    """Of any kind and beside any others: all variables wide, or those of more than four values."""
    c = any_case(seed)
    plain = at(c)
    with wide_above(most):
        wide = at(c)
        assert_slopes(c)
    for name, one in plain._asdict().items():
        np.testing.assert_allclose(one, getattr(wide, name), rtol=1e-7, atol=1e-7 * (1.0 + abs(plain.value)))


@pytest.mark.parametrize("highest", [1, 2, 3, 5])
@pytest.mark.parametrize("kinds", [["binary"] * 5, ["categorical"] * 4, ["levels", "cycle", "weighted", "ordinal"]],
                         ids=["binary", "categorical", "graphs"])  # fmt: skip
def test_slopes_of_spaces_of_one_sort(kinds: list[str], highest: int) -> None:
    assert_slopes(case(np.random.default_rng(highest), kinds, 20, highest))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 129])
def test_slopes_of_few_and_of_many_observations(n: int) -> None:
    """The inverse is mirrored in blocks of rows: on both sides of a block's end."""
    assert gradient.BLOCK == 64
    assert_slopes(case(np.random.default_rng(n), ["binary", "categorical", "levels"], n, 3))


@pytest.mark.parametrize("kinds", [["constant"], ["constant", "constant level"]])
def test_a_space_of_one_point_has_no_slope_in_scales(kinds: list[str]) -> None:
    c = case(np.random.default_rng(0), kinds, 5, 1)
    slope = at(c)
    assert_slopes(c)
    assert not np.any(slope.log_relevance)
    assert not np.any(slope.log_beta)
    assert not np.any(slope.log_w)


def test_what_does_not_shape_the_kernel_has_no_slope() -> None:
    """Beta of complete graphs, and both scales of variables of one value."""
    c = case(np.random.default_rng(3), ["categorical", "constant", "levels", "binary"], 15, 2)
    slope = at(c)
    np.testing.assert_array_equal(slope.log_beta != 0.0, [False, False, True, False])
    np.testing.assert_array_equal(slope.log_relevance != 0.0, [True, False, True, True])


def test_an_order_above_the_number_of_variables_has_no_part_and_no_slope() -> None:
    c = case(np.random.default_rng(1), ["binary", "levels"], 12, 2)
    more = c._replace(kernel=Orders(c.kernel.spectra, 4, False), log_w=np.append(c.log_w, [0.3, 0.4]))
    fewer, slope = at(c), at(more)
    assert slope.value == pytest.approx(fewer.value, rel=1e-12)
    np.testing.assert_allclose(slope.log_w, [*fewer.log_w, 0.0, 0.0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slope.log_relevance, fewer.log_relevance, rtol=1e-9, atol=1e-9)


@given(seed=seeds)
@settings(max_examples=30)
def test_scaling_all_relevances_of_the_first_order_changes_nothing(seed: int) -> None:
    """Each order is normalised: the slopes of the relevances of a kernel of one order sum to zero."""
    c = any_case(seed)
    c = c._replace(kernel=Orders(c.kernel.spectra, 1, False), log_w=c.log_w[:1])
    slope = at(c)
    assert math.fsum(slope.log_relevance) == pytest.approx(0.0, abs=1e-7 * (1.0 + np.abs(slope.log_relevance).sum()))


@pytest.mark.parametrize("dominant", [0, 1])
def test_slopes_where_one_relevance_dominates_all_others(dominant: int) -> None:
    """The ends of the support: what is without the dominant variable is a small difference of large numbers."""
    c = case(np.random.default_rng(2), ["binary", "levels", "categorical", "binary", "weighted"], 20, 3)
    relevance = np.where(np.arange(5) == dominant, 3.0, -6.0)
    assert_slopes(c._replace(scales=c.scales._replace(log_relevance=relevance)))


@pytest.mark.parametrize("log_beta", [-12.0, math.log(100.0)])
def test_slopes_at_the_ends_of_betas_support(log_beta: float) -> None:
    c = case(np.random.default_rng(4), ["levels", "weighted", "cycle"], 20, 2)
    assert_slopes(c._replace(scales=c.scales._replace(log_beta=np.full(3, log_beta))))


# -- memory and failure ----------------------------------------------------------------------------------------------


def plain(slope: Slope) -> list[Any]:
    return [slope.value, *slope.log_beta, *slope.log_relevance, *slope.log_w, slope.log_noise, *slope.mean]


@given(seed=seeds)
@settings(max_examples=20)
def test_nothing_is_remembered_from_one_setting_to_the_next(seed: int) -> None:
    c = any_case(seed)
    likelihood, other = Likelihood(c.kernel, c.data), shifted(c, "log_relevance", 0, 0.7)
    first = likelihood.at(c.scales, c.log_w, c.log_noise)
    assert first is not None
    kept = plain(first)
    likelihood.at(other.scales, other.log_w + 0.5, -1.0)
    assert plain(first) == kept
    again = likelihood.at(c.scales, c.log_w, c.log_noise)
    assert again is not None
    assert plain(again) == kept


def test_memory_nobody_wrote_to_never_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """np.empty may hand out any number; here the largest."""
    c = case(np.random.default_rng(0), ["binary", "binary", "categorical", "levels"], 70, 3)
    clean, empty = plain(at(c)), np.empty

    def dirty(*args: Any, **kwargs: Any) -> Any:
        out = empty(*args, **kwargs)
        if out.dtype == np.float64:
            out.fill(1.7e308)
        return out

    monkeypatch.setattr(np, "empty", dirty)
    assert plain(at(c)) == clean


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


# -- the pieces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", range(2, 9))
def test_powers_of_a_complete_graphs_table_are_affine_in_it(m: int) -> None:
    z = (m * np.eye(m) - 1.0) / (m - 1)
    line, level = affine_powers(np.array([m]), 6)
    for s in range(7):
        np.testing.assert_allclose(line[s, 0] * z + level[s, 0], z**s, rtol=0, atol=1e-13)


def test_powers_of_many_sizes_are_those_of_each() -> None:
    sizes = np.array([2, 5, 3])
    for together, alone in zip(affine_powers(sizes, 4), zip(*(affine_powers(sizes[i : i + 1], 4) for i in range(3)),
                                                            strict=True), strict=True):  # fmt: skip
        np.testing.assert_array_equal(together, np.concatenate(alone, axis=1))


@pytest.mark.parametrize("m", range(2, 9))
def test_inner_products_of_features_are_the_centred_table(m: int) -> None:
    F = features(m)
    assert F.shape == (m, m - 1)
    np.testing.assert_allclose(F @ F.T, (m * np.eye(m) - 1.0) / (m - 1), rtol=0, atol=1e-13)


def symmetric(values: Floats, q: int) -> float:
    return math.fsum(math.prod(chosen) for chosen in itertools.combinations(values.tolist(), q))


@given(seed=seeds, count=st.integers(1, 6), highest=st.integers(1, 5))
@settings(max_examples=50)
def test_the_change_by_one_variable_leaves_it_out_of_every_order(seed: int, count: int, highest: int) -> None:
    rng = np.random.default_rng(seed)
    a, c = rng.normal(size=count), rng.normal(size=highest)
    e = [np.array(symmetric(a, q)) for q in range(highest)]
    expected = sum(c[q] * symmetric(a[1:], q) for q in range(highest))
    assert float(by_one(c, np.array(a[0]), e)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def ordered_case(seed: int) -> tuple[Space, list[int], Ints, Floats]:
    """Up to nine variables; the numbers of those whose graphs are not complete, as a cycle of three is; rows; betas."""
    rng = np.random.default_rng(seed)
    space = space_of(rng, rng.choice(["ordinal", "levels", "cycle", "weighted"], rng.integers(1, 10)).tolist())
    some = [i for i, s in enumerate(spectra_of(space.graphs)) if s.kind != "complete"]
    return space, some, space.random_rows(rng, int(rng.integers(1, 12))), rng.uniform(-8.0, 4.0, space.dim)


@pytest.mark.parametrize("most", [1, 4, 64])
@given(seed=seeds)
@settings(max_examples=20)
def test_tables_of_variables_taken_together_and_their_changes(most: int, seed: int) -> None:
    """Spread over the observations with a weight for each variable, by which it is told from the others."""
    space, some, X, log_beta = ordered_case(seed)
    graphs = [v.graph for v in space.variables.values()]
    weight = np.random.default_rng(seed).normal(size=space.dim)

    def exact(t: float, variables: Ints) -> Floats:
        z = [oracles.centred_factor(graphs[i], "connectivity", math.exp(log_beta[i] + t)) for i in variables]
        return np.asarray(sum(weight[i] * z[X[:, [i]], X[:, i]] for i, z in zip(variables, z, strict=True)))

    with wide_above(most):
        parts = seen.parts([(i, spectra_of(space.graphs)[i]) for i in some], X)
    assert sorted(i for part in parts for i in part.variables) == some
    for part in parts:
        found, own = part.tables(log_beta[part.variables]), weight[part.variables][:, None, None]
        np.testing.assert_allclose(part.spread(own * found.z), exact(0.0, part.variables), rtol=0, atol=1e-9)
        expected = oracles.richardson(partial(exact, variables=part.variables))
        np.testing.assert_allclose(part.spread(own * found.change()), expected, rtol=0, atol=1e-7)


def test_variables_of_about_as_many_values_and_seen_with_as_many_are_taken_together() -> None:
    sizes = (5, 8, 4, 9, 16, 100, 7, 6, 12, 100, 70)
    spectra = list(enumerate(spectra_of(Space({f"x{i}": Integer(1, k) for i, k in enumerate(sizes)}).graphs)))
    rows = np.arange(70)[:, None] % sizes
    rows[:, [7, 8]] %= 3  # seen with three values each
    rows[:, [5, 9]] %= 4
    together = [part.variables.tolist() for part in seen.parts(spectra, rows)]
    assert sorted(together) == [[0, 1, 6], [2], [3, 4], [5], [7], [8], [9], [10]]
    assert [type(part) for part in seen.parts(spectra[-1:], rows)] == [seen.ByObservations]
    assert [type(part) for part in seen.parts(spectra[-2:-1], rows)] == [seen.ByValues]


def test_the_modes_of_long_paths_and_cycles_are_never_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would fill 80 gigabytes, of which ten observations see ten rows."""
    space, rng = Space({"a": Integer(0, 99_999), "b": Integer(1, 9), "c": Integer(0, 99_999)}), np.random.default_rng(0)
    spectra = spectra_of(space.graphs)
    few = spectra[1].modes
    monkeypatch.setattr(Spectrum, "modes", property(lambda s: few if s is spectra[1] else pytest.fail("asked for")))
    c = Case(space, Orders(spectra, 2, False), Data(space.random_rows(rng, 10), rng.normal(size=10)),
             Scales(np.full(3, -2.0), np.zeros(3)), np.zeros(2), -3.0)  # fmt: skip
    assert np.all(at(c).log_beta != 0.0)


@pytest.mark.parametrize("most", [1, 4, 64])
@given(seed=seeds)
@settings(max_examples=20)
def test_gathering_is_the_transpose_of_spreading(most: int, seed: int) -> None:
    space, some, X, log_beta = ordered_case(seed)
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(len(X), len(X)))
    with wide_above(most):
        parts = seen.parts([(i, spectra_of(space.graphs)[i]) for i in some], X)
    for part in parts:
        a = rng.normal(size=part.tables(log_beta[part.variables]).z.shape)
        assert np.vdot(G, part.spread(a)) == pytest.approx(np.vdot(part.gathered(G), a), rel=1e-9, abs=1e-9)


# -- slopes of priors ------------------------------------------------------------------------------------------------

Scalar = Callable[[float], float]
Sloped = Callable[[Floats], priors.Slopes]


def assert_slope_of(scalar: Scalar, slope: Sloped, support: tuple[float, float]) -> None:
    """Values and slopes on a grid over the support, ends included; and of no numbers at all."""
    theta = np.linspace(*support, 41)
    value, by = slope(theta)
    np.testing.assert_allclose(value, [scalar(t) for t in theta.tolist()], rtol=1e-10, atol=1e-12)

    def along(t: float) -> float:
        return oracles.richardson(lambda h: scalar(t + h))

    expected = [along(t) for t in theta.tolist()]
    np.testing.assert_allclose(by, expected, rtol=1e-7, atol=1e-7)
    assert [part.shape for part in slope(np.zeros(0))] == [(0,), (0,)]


@pytest.mark.parametrize("tau", [0.07, 1.0, 5.0])
def test_slopes_of_the_horseshoe(tau: float) -> None:
    bound = priors.horseshoe_bound
    assert_slope_of(lambda t: bound(math.exp(t), tau), lambda t: priors.horseshoe_bound_slope(t, tau), (-12.0, 9.0))
    assert_slope_of(
        lambda t: priors.horseshoe_on_log(t, tau), lambda t: priors.horseshoe_on_log_slope(t, tau), (-12.0, 9.0)
    )


@pytest.mark.parametrize("scale", [0.05, 1.0, 3.0])
def test_slopes_of_the_half_cauchy_the_gamma_and_the_normal(scale: float) -> None:
    half_cauchy, gamma, normal = priors.half_cauchy_on_log, priors.gamma_on_log, priors.normal
    assert_slope_of(lambda t: half_cauchy(t, scale), lambda t: priors.half_cauchy_on_log_slope(t, scale), (-12.0, 9.0))
    assert_slope_of(lambda t: gamma(t, 2.0, scale), lambda t: priors.gamma_on_log_slope(t, 2.0, scale), (-12.0, 4.0))
    assert_slope_of(lambda t: normal(t, 0.7, scale), lambda t: priors.normal_slope(t, 0.7, scale), (-6.0, 6.0))


def every_prior() -> list[tuple[str, str]]:
    """(parameter, name) of all priors of single parameters that have a slope, as the class declares them."""
    hints = get_type_hints(Priors)
    every = [(key, name) for key in ("beta", "noise", "relevance") for name in get_args(hints[key])]
    return [pair for pair in every if pair != ("relevance", "pooled")]


@pytest.mark.parametrize(("parameter", "name"), every_prior())
def test_every_prior_that_can_be_chosen_has_the_slope_of_its_density(parameter: str, name: str) -> None:
    other = {"beta_mean": 0.6, "beta_sd": 0.8, "beta_tau": 2.0, "noise_scale": 0.3, "relevance_scale": 0.7}
    chosen = Priors(**{parameter: name}, **other)  # type: ignore[arg-type]
    scalar, slope = getattr(chosen, f"log_{parameter}"), getattr(chosen, f"{parameter}_slope")
    assert_slope_of(scalar, slope, getattr(chosen, f"{parameter}_support"))


@given(theta=arrays(np.float64, st.integers(1, 6), elements=st.floats(-6.0, 3.0)), scale=st.floats(0.3, 3.0))
def test_the_slope_of_pooled_relevances_is_that_of_their_joint_density(theta: Floats, scale: float) -> None:
    chosen = Priors(relevance="pooled", relevance_scale=scale)
    (value,), by = chosen.relevance_slope(theta)
    level = oracles.log_pooled(0.0 * theta, scale) + (2.0 + len(theta)) * math.log(scale)
    assert value == pytest.approx(oracles.log_pooled(theta, scale) - level, rel=1e-9, abs=1e-9)

    def along(unit: Floats) -> float:
        return oracles.richardson(lambda h: oracles.log_pooled(theta + h * unit, scale))

    for i, unit in enumerate(np.eye(len(theta))):
        assert by[i] == pytest.approx(along(unit), rel=1e-5, abs=1e-5)
        given_others = chosen.log_relevance(float(theta[i]), np.delete(theta, i))
        assert given_others == pytest.approx(value, rel=1e-12, abs=1e-12)
