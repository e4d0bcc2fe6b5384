"""Kernels against the matrix exponential of the whole product graph, sums over subsets, and golden values.

What the search asks of a kernel (halves of rows, rows that differ in one variable) is compared with covariances that
the oracles compute from whole rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbo.kernels.base import Change, Coordinate, Kernel, Scales, centred_table, diffusion_table
from carbo.kernels.cross import cross
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import Spectrum, spectrum
from carbo.numerics.types import Floats, Ints
from carbo.space import graphs
from carbo.space.graphs import Graph, Scale
from tests import oracles
from tests.models import gram, prior_variances

SCALES: tuple[Scale, ...] = ("connectivity", "published")
ROUNDING = 1e-10
"""Allowed difference of two float64 routes to covariances of order one."""
ROWS = 12
"""Number of observations in the tests that move a coordinate."""
GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden_gp.json").read_text())

MIXED = (
    graphs.complete(3),
    graphs.path(4),
    graphs.cycle(5),
    oracles.random_weighted(np.random.default_rng(5), 3),
)
NOMINAL = (graphs.complete(2), graphs.complete(4), graphs.complete(3), graphs.complete(2))
WITH_A_CONSTANT = (graphs.path(3), graphs.complete(1), graphs.complete(2), graphs.path(1))
SPACES = {"mixed": MIXED, "nominal": NOMINAL, "constant": WITH_A_CONSTANT}


def spectra(space: Sequence[Graph], scale: Scale = "connectivity") -> tuple[Spectrum, ...]:
    return tuple(spectrum(g, scale) for g in space)


def random_scales(rng: np.random.Generator, d: int, spread: float = 1.0) -> Scales:
    return Scales(rng.normal(0.0, spread, d), rng.normal(0.0, spread, d))


def every_kernel(space: Sequence[Graph], scale: Scale = "connectivity") -> list[Kernel]:
    some = spectra(space, scale)
    active = sum(s.size > 1 for s in some)
    orders = [Orders(some, q, windowed) for q in range(1, min(active, 3) + 1) for windowed in (False, True)]
    return [Product(some), *orders]


def moved(scales: Scales, at: Coordinate, theta: float) -> Scales:
    """The scales with one coordinate changed."""
    values = getattr(scales, f"log_{at.name}").copy()
    values[at.variable] = theta
    return scales._replace(**{f"log_{at.name}": values})


def filled(change: Change, theta: float) -> Floats:
    """The signal covariance at theta, written into an array of other numbers, which must not matter."""
    out = np.full((ROWS, ROWS), 1e300, order="F")
    change.fill(theta, out)
    return out


# -- the product kernel is the diffusion kernel of the product graph -------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("scale", SCALES)
def test_product_kernel_is_the_exponential_of_the_whole_product_laplacian(name: str, scale: Scale) -> None:
    space = SPACES[name]
    rows = oracles.all_rows(space)
    for seed in range(3):
        scales = random_scales(np.random.default_rng(seed), len(space))
        expected = oracles.product_graph_kernel(space, scale, np.exp(scales.log_beta))
        got = gram(Product(spectra(space, scale)), scales, np.array([1.0]), rows)
        np.testing.assert_allclose(got, expected, rtol=0, atol=ROUNDING * expected.max())


def test_factors_of_a_pair_are_tanh_beta() -> None:
    pair = spectrum(graphs.complete(2), "published")
    for log_beta in (-12.0, -3.0, 0.0, 2.0):
        off = float(diffusion_table(pair, log_beta).at(np.array(0), np.array(1)))
        assert off == pytest.approx(math.tanh(math.exp(log_beta)), rel=1e-14)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("log_beta", [-12.0, -2.0, 0.0, 3.0, 4.6])
def test_rows_of_centred_tables_sum_to_zero_and_their_mean_diagonal_is_one(scale: Scale, log_beta: float) -> None:
    for g in (*MIXED, *NOMINAL):
        table = centred_table(spectrum(g, scale), log_beta).columns(np.arange(g.size))
        np.testing.assert_allclose(table.sum(axis=0), 0.0, atol=1e-9)
        assert np.trace(table) == pytest.approx(g.size, rel=1e-9)
        np.testing.assert_allclose(table, oracles.centred_factor(g, scale, math.exp(log_beta)), atol=1e-8)


# -- golden values ---------------------------------------------------------------------------------------------------


def golden_kernel() -> tuple[Product, Scales, Floats, Ints]:
    make = {"complete": graphs.complete, "path": graphs.path}
    space = [make[kind](size) for kind, size in zip(GOLDEN["graphs"], GOLDEN["sizes"], strict=True)]
    scales = Scales(np.array(GOLDEN["log_beta"]), np.zeros(len(space)))
    return Product(spectra(space, "published")), scales, np.array([math.exp(0.4)]), np.array(GOLDEN["X"])


def test_gram_matches_the_golden_file() -> None:
    kernel, scales, w, X = golden_kernel()
    np.testing.assert_allclose(gram(kernel, scales, w, X), GOLDEN["gram"], rtol=0, atol=1e-13)


def test_cross_covariances_match_the_golden_file() -> None:
    kernel, scales, w, X = golden_kernel()
    np.testing.assert_allclose(cross(kernel, scales, w, X[:5], X), np.array(GOLDEN["gram"])[:5], rtol=0, atol=1e-13)


# -- the order kernel ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("scale", SCALES)
def test_parts_of_the_order_kernel_are_sums_over_subsets_of_variables(name: str, scale: Scale) -> None:
    space = SPACES[name]
    highest = sum(g.size > 1 for g in space)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, scales = oracles.random_rows(rng, space, 15), random_scales(rng, len(space))
        beta, r = np.exp(scales.log_beta), np.exp(scales.log_relevance)
        expected = oracles.order_parts(space, scale, beta, r, rows, highest)
        got = Orders(spectra(space, scale), highest).parts(scales, rows)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def matching_relevances(space: Sequence[Graph], scale: Scale, log_beta: Floats) -> Floats:
    """r_i for which (1 + r_i z_i) / (1 + r_i) is the diffusion factor: the trace of exp(-beta L) without one."""
    return np.array(
        [
            float(np.sum(np.exp(-math.exp(b) * np.linalg.eigvalsh(oracles.laplacian(g, scale))))) - 1.0
            for g, b in zip(space, log_beta, strict=True)
        ]
    )


@pytest.mark.parametrize("scale", SCALES)
def test_all_orders_weighted_by_their_norms_make_the_papers_kernel_on_categories(scale: Scale) -> None:
    """prod(1 + z_i) = 1 + sum_q e_q(z)."""
    space = SPACES["nominal"]
    rng = np.random.default_rng(3)
    rows, log_beta = oracles.random_rows(rng, space, 15), rng.normal(-0.5, 0.7, len(space))
    r = matching_relevances(space, scale, log_beta)
    scales = Scales(log_beta, np.log(r))
    norms = np.array([oracles.elementary(r.tolist(), q) for q in range(1, len(space) + 1)])
    total = float(np.prod(1.0 + r))
    kernel = Orders(spectra(space, scale), len(space))
    papers = gram(Product(spectra(space, scale)), scales, np.array([1.0]), rows)
    np.testing.assert_allclose(1.0 / total + gram(kernel, scales, norms / total, rows), papers, rtol=0, atol=1e-10)


def test_a_relevance_near_zero_removes_a_variable() -> None:
    rng = np.random.default_rng(2)
    rows, scales = oracles.random_rows(rng, MIXED, ROWS), random_scales(rng, 4)
    removed = moved(scales, Coordinate("relevance", 1), -60.0)
    changed = rows.copy()
    changed[:, 1] = rng.integers(0, MIXED[1].size, ROWS)
    kernel = Orders(spectra(MIXED), 3)
    np.testing.assert_allclose(kernel.parts(removed, rows), kernel.parts(removed, changed), atol=1e-12)
    rest = [0, 2, 3]
    smaller = Orders(tuple(kernel.spectra[i] for i in rest), 3)
    expected = smaller.parts(Scales(scales.log_beta[rest], scales.log_relevance[rest]), rows[:, rest])
    np.testing.assert_allclose(kernel.parts(removed, rows), expected, atol=1e-12)


# -- moving one coordinate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("scale", SCALES)
def test_moving_one_coordinate_equals_a_full_rebuild(name: str, scale: Scale) -> None:
    """The covariance and its parts, for all kinds of variables; `fill` may be called in any order, and repeatedly."""
    space = SPACES[name]
    for kernel in every_kernel(space, scale):
        rng = np.random.default_rng(kernel.size)
        rows, scales = oracles.random_rows(rng, space, ROWS), random_scales(rng, len(space))
        w, parts = rng.exponential(size=kernel.size), kernel.parts(scales, rows)
        assert kernel.coordinates()
        for at in kernel.coordinates():
            now = float(getattr(scales, f"log_{at.name}")[at.variable])
            change = kernel.change(parts, scales, rows, w, at)
            for theta in (now, now - 1.5, now + 1.5, -3.0, 2.0, now):
                full = kernel.parts(moved(scales, at, theta), rows)
                np.testing.assert_allclose(filled(change, theta), np.tensordot(w, full, 1), rtol=0, atol=1e-9 * w.sum())
                copied = kernel.change(parts.copy(), scales, rows, w, at)
                np.testing.assert_allclose(copied.parts(theta), full, rtol=0, atol=1e-9)
            np.testing.assert_array_equal(parts, kernel.parts(scales, rows))


@pytest.mark.parametrize("name", SPACES)
def test_a_split_is_the_covariance_with_unequal_values_in_proportion_to_t(name: str) -> None:
    """The product kernel has a split for each complete graph; other variables and other kernels have none."""
    space = SPACES[name]
    for kernel in every_kernel(space):
        rng = np.random.default_rng(1)
        rows, scales = oracles.random_rows(rng, space, ROWS), random_scales(rng, len(space))
        w = rng.exponential(size=kernel.size)
        for at in kernel.coordinates():
            split = kernel.change(kernel.parts(scales, rows), scales, rows, w, at).split
            assert (split is not None) == (isinstance(kernel, Product) and space[at.variable].kind == "complete")
            if split is None:
                continue
            assert split.variable == at.variable
            x, now = rows[:, at.variable], float(scales.log_beta[at.variable])
            for theta in (now, -3.0, 2.0):
                shrunk = np.where(x[:, None] == x, 1.0, split.t(theta) / split.t(now))
                beta = np.exp(moved(scales, at, theta).log_beta)
                expected = w[0] * oracles.product_gram(space, "connectivity", beta, rows)
                np.testing.assert_allclose(split.w * split.P * shrunk, expected, rtol=0, atol=1e-9 * w.sum())


@pytest.mark.parametrize("name", SPACES)
def test_coordinates_are_those_that_change_the_covariance(name: str) -> None:
    space = SPACES[name]
    for kernel in every_kernel(space):
        rng = np.random.default_rng(0)
        rows, scales = oracles.all_rows(space), random_scales(rng, len(space))
        scales = scales._replace(log_beta=scales.log_beta - 2.0)  # a large beta leaves one mode, which no beta changes
        before = gram(kernel, scales, np.ones(kernel.size), rows)
        matter = []
        for kind in ("beta", "relevance"):
            for i in range(len(space)):
                at = Coordinate("beta" if kind == "beta" else "relevance", i)
                new = moved(scales, at, float(getattr(scales, f"log_{kind}")[i]) + 0.7)
                if not np.allclose(gram(kernel, new, np.ones(kernel.size), rows), before, atol=1e-9):
                    matter.append(at)
        assert sorted(kernel.coordinates()) == sorted(matter)


def test_a_sweep_of_moves_equals_a_rebuild() -> None:
    for kernel in every_kernel(MIXED):
        rng = np.random.default_rng(7)
        rows, scales = oracles.random_rows(rng, MIXED, ROWS), random_scales(rng, 4)
        parts, w = kernel.parts(scales, rows), np.ones(kernel.size)
        for _ in range(20):
            for at in kernel.coordinates():
                theta = float(rng.normal())
                parts = kernel.change(parts, scales, rows, w, at).parts(theta)
                scales = moved(scales, at, theta)
        np.testing.assert_allclose(parts, kernel.parts(scales, rows), rtol=0, atol=1e-8)


# -- for the search: halves of rows, and rows that differ in one variable ---------------------------------------


class Question(NamedTuple):
    """A kernel at fixed parameters, observations X (n, d) and rows (N, d)."""

    kernel: Kernel
    space: Sequence[Graph]
    scales: Scales
    w: Floats
    X: Ints
    rows: Ints

    def summands(self, i: int, rows: Ints) -> list[Floats]:
        """The terms of variable i in each sum between rows and observations."""
        entries = self.kernel.table(self.scales, i).at(rows[:, None, i], self.X[:, i])
        return self.kernel.summands(self.scales, i, entries)

    def layers(self, variables: Sequence[int], rows: Ints) -> list[Floats]:
        """The layers of these variables alone, each (N, n)."""
        sums = np.zeros((self.kernel.n_sums, len(rows), len(self.X)))
        for i in variables:
            sums += np.array(self.summands(i, rows))
        return self.kernel.layers(list(sums))

    def covariances(self, rows: Ints) -> Floats:
        """Covariances (N, n) without windows, computed by the oracles."""
        beta, r = np.exp(self.scales.log_beta), np.exp(self.scales.log_relevance)
        if isinstance(self.kernel, Product):
            return np.asarray(self.w[0] * oracles.product_gram(self.space, "connectivity", beta, rows, self.X))
        assert isinstance(self.kernel, Orders)
        highest, together = self.kernel.highest, np.concatenate([rows, self.X])
        parts = oracles.order_parts(self.space, "connectivity", beta, r, together, highest)
        return np.asarray(np.tensordot(self.w[:highest], parts, 1)[: len(rows), len(rows) :])


def questions(seed: int) -> list[Question]:
    """Every kernel over a random space, with random parameters."""
    rng = np.random.default_rng(seed)
    space = [oracles.random_graph(rng) for _ in range(4)] + [graphs.complete(3)]
    X, rows, scales = oracles.random_rows(rng, space, 7), oracles.random_rows(rng, space, 6), random_scales(rng, 5)
    return [Question(k, space, scales, rng.exponential(size=k.size), X, rows) for k in every_kernel(space)]


@given(seed=st.integers(0, 10**6))
def test_weighted_layers_are_the_covariance(seed: int) -> None:
    for q in questions(seed):
        K = np.tensordot(q.kernel.weights(q.scales, q.w), np.array(q.layers(range(5), q.rows)), 1)
        np.testing.assert_allclose(K, q.covariances(q.rows), rtol=0, atol=1e-9 * q.w.sum())


@given(seed=st.integers(0, 10**6))
def test_halves_multiply_to_the_covariance_of_the_whole_row(seed: int) -> None:
    """Any cut of the variables into halves, also with an empty half; each half may be left or right."""
    cut = np.random.default_rng(seed).random(5) < np.random.default_rng(seed + 1).random()
    left, right = np.flatnonzero(cut).tolist(), np.flatnonzero(~cut).tolist()
    for q in questions(seed):
        c = q.kernel.weights(q.scales, q.w)
        one, other = (q.kernel.half_factors(c, q.layers(half, q.rows)) for half in (left, right))
        for weighted, plain in ((one[0], other[1]), (other[0], one[1])):
            K = sum(a * b for a, b in zip(weighted, plain, strict=True))
            np.testing.assert_allclose(K, q.covariances(q.rows), rtol=0, atol=1e-9 * q.w.sum())


@given(seed=st.integers(0, 10**6))
def test_the_covariance_grows_with_one_variables_factor_by_the_rest(seed: int) -> None:
    """From u to another factor: by the slope times the difference, exactly, because the covariance is affine in u."""
    rng = np.random.default_rng(seed)
    for q in questions(seed):
        c, lower = q.kernel.weights(q.scales, q.w), q.kernel.lower_layers(q.layers(range(5), q.rows))
        before = q.covariances(q.rows)
        for i, g in enumerate(q.space):
            changed = q.rows.copy()
            changed[:, i] = rng.integers(0, g.size, len(changed))
            u, new = (q.kernel.factor(q.summands(i, rows)[0]) for rows in (q.rows, changed))
            grown = before + (new - u) * q.kernel.factor_slope(c, u, lower)
            np.testing.assert_allclose(grown, q.covariances(changed), rtol=0, atol=1e-8 * q.w.sum())


@given(seed=st.integers(0, 10**6))
def test_factors_are_entries_of_tables_scaled_by_relevance(seed: int) -> None:
    """The factors on complete graphs have a short form: one for equal values, one for unequal ones."""
    for q in questions(seed):
        same, other = q.kernel.equality_factors(q.scales)
        for i, g in enumerate(q.space):
            beta, r = math.exp(q.scales.log_beta[i]), math.exp(q.scales.log_relevance[i])
            if isinstance(q.kernel, Product):
                M = oracles.factor(g, "connectivity", beta)
            else:
                M = r * oracles.centred_factor(g, "connectivity", beta)
            found = q.kernel.factor(q.summands(i, q.rows)[0])
            np.testing.assert_allclose(found, M[q.rows[:, None, i], q.X[:, i]], rtol=0, atol=1e-8 * (1.0 + r))
            if g.kind == "complete":
                assert same[i] == pytest.approx(M[0, 0], rel=1e-12)
                assert other[i] == pytest.approx(M[0, -1], rel=1e-9) or g.size == 1


# -- shares and members of a kernel ------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6))
def test_shares_of_orders_sum_to_one_and_windows_count_at_their_order_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = [graphs.complete(2)] * int(rng.integers(1, 5)) + [graphs.path(4)] * int(rng.integers(0, 2))
    for kernel in every_kernel(space):
        w = rng.exponential(size=(3, kernel.size))
        found = kernel.variance_shares(w)
        if not isinstance(kernel, Orders):
            assert found == (None, None)
            continue
        assert found.orders is not None
        assert list(found.orders) == [str(q + 1) for q in range(kernel.highest)]
        assert math.fsum(found.orders.values()) == pytest.approx(1.0, rel=1e-12)
        windows = 0.0
        for q in range(kernel.highest):
            pair = [w[s, kernel.highest + q - 1] if 1 <= q <= kernel.windows.orders else 0.0 for s in range(3)]
            own = math.fsum((w[s, q] + pair[s]) / w[s].sum() for s in range(3)) / 3
            windows += math.fsum(pair[s] / w[s].sum() for s in range(3)) / 3
            assert found.orders[str(q + 1)] == pytest.approx(own, rel=1e-12)
        assert found.windows == (pytest.approx(windows, rel=1e-12) if kernel.windows.orders else None)


@pytest.mark.parametrize("name", SPACES)
def test_a_kernel_with_windows_is_the_kernel_and_parts_of_windows(name: str) -> None:
    space = SPACES[name]
    rng = np.random.default_rng(0)
    rows, scales = oracles.random_rows(rng, space, ROWS), random_scales(rng, len(space))
    for kernel in every_kernel(space):
        if not kernel.differentiable:
            with pytest.raises(NotImplementedError):
                kernel.with_windows()
            continue
        assert isinstance(kernel, Orders)
        windowed = kernel.with_windows()
        parts = windowed.parts(scales, rows)
        np.testing.assert_array_equal(parts[: kernel.highest], kernel.parts(scales, rows)[: kernel.highest])
        expected = oracles.adjacent_parts(space, np.exp(scales.log_relevance), rows, kernel.highest)
        some = [part for part in expected if np.any(part)]  # an order without windows has no part
        assert windowed.windowed
        assert len(parts) == windowed.size == kernel.highest + len(some)
        np.testing.assert_allclose(parts[kernel.highest :], expected[: len(some)], rtol=0, atol=1e-12)


def test_a_gradient_exists_where_a_kernel_says_so() -> None:
    """Whether the gradient is right is tested in `test_gradient`."""
    for kernel in every_kernel(MIXED):
        assert kernel.differentiable == isinstance(kernel, Orders)
        if not kernel.differentiable:
            with pytest.raises(NotImplementedError):
                kernel.gradient(np.zeros((2, 4), dtype=np.intp))


# -- cross covariances, diagonals, positive definiteness -------------------------------------------------------------


@given(seed=st.integers(0, 10**6))
def test_cross_is_a_block_of_the_gram_and_diagonal_its_diagonal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = [oracles.random_graph(rng) for _ in range(4)] + [graphs.complete(2)]
    X, rows, scales = oracles.random_rows(rng, space, 7), oracles.random_rows(rng, space, 9), random_scales(rng, 5)
    for kernel in every_kernel(space):
        w = rng.exponential(size=kernel.size)
        whole = gram(kernel, scales, w, np.concatenate([X, rows]))
        np.testing.assert_allclose(cross(kernel, scales, w, rows, X), whole[7:, :7], rtol=0, atol=1e-9 * w.sum())
        np.testing.assert_allclose(
            prior_variances(kernel, scales, w, rows), np.diagonal(whole)[7:], rtol=0, atol=1e-9 * w.sum()
        )


@given(seed=st.integers(0, 10**6))
def test_every_part_is_symmetric_positive_semidefinite_of_mean_diagonal_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = [oracles.random_graph(rng, 4) for _ in range(3)] + [graphs.complete(2)]
    scales = random_scales(rng, 4, spread=1.5)
    some, every = oracles.random_rows(rng, space, 10), oracles.all_rows(space)
    for kernel in every_kernel(space):
        for part in kernel.parts(scales, some):
            np.testing.assert_allclose(part, part.T, rtol=0, atol=1e-12)
            assert np.linalg.eigvalsh(part).min() > -1e-9 * len(part)
        np.testing.assert_allclose([np.diagonal(p).mean() for p in kernel.parts(scales, every)], 1.0, rtol=1e-9)


# -- symmetries ------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6))
def test_renaming_the_values_of_complete_graphs_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = [graphs.complete(int(k)) for k in rng.integers(1, 6, size=3)] + [graphs.path(4), graphs.complete(3)]
    rows, scales = oracles.random_rows(rng, space, 10), random_scales(rng, 5)
    renamed = rows.copy()
    for i, g in enumerate(space):
        if g.kind == "complete":
            renamed[:, i] = rng.permutation(g.size)[rows[:, i]]
    for kernel in every_kernel(space):
        one, other = kernel.parts(scales, rows), kernel.parts(scales, renamed)
        products = isinstance(kernel, Product) or len(kernel.windows) > 0  # of matrices: these round as they like
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 if products else 0)


@given(seed=st.integers(0, 10**6))
def test_reading_a_path_backwards_or_turning_a_cycle_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = [graphs.path(int(rng.integers(3, 9))), graphs.cycle(int(rng.integers(4, 9))), graphs.complete(3)]
    rows, scales = oracles.random_rows(rng, space, 10), random_scales(rng, 3)
    other = rows.copy()
    other[:, 0] = space[0].size - 1 - rows[:, 0]
    other[:, 1] = (rows[:, 1] + int(rng.integers(9))) % space[1].size
    for kernel in every_kernel(space):
        np.testing.assert_allclose(kernel.parts(scales, rows), kernel.parts(scales, other), rtol=0, atol=1e-12)


def test_relabelling_a_path_does_change_the_kernel() -> None:
    rows = oracles.all_rows([graphs.path(4)])
    kernel, scales = Product(spectra([graphs.path(4)])), Scales(np.zeros(1), np.zeros(1))
    assert not np.allclose(kernel.parts(scales, rows), kernel.parts(scales, np.array([1, 0, 2, 3])[rows]), atol=1e-3)


# -- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_beta", [-12.0, -30.0, 4.6])
@pytest.mark.parametrize("levels", [2, 5])
def test_sixty_variables_of_extreme_beta_stay_finite(log_beta: float, levels: int) -> None:
    space = [graphs.complete(2)] * 30 + [graphs.path(levels)] * 30
    rng = np.random.default_rng(0)
    rows = oracles.random_rows(rng, space, ROWS)
    scales = Scales(np.full(60, log_beta), np.zeros(60))
    for kernel in (Product(spectra(space)), Orders(spectra(space), 3, False), Orders(spectra(space), 3, True)):
        w = np.ones(kernel.size)
        K = gram(kernel, scales, w, rows)
        assert np.all(np.isfinite(K))
        assert np.linalg.eigvalsh(K).min() > -1e-9
        np.testing.assert_allclose(cross(kernel, scales, w, rows, rows), K, rtol=0, atol=1e-9)
        for at in kernel.coordinates()[::20]:
            change = kernel.change(kernel.parts(scales, rows), scales, rows, w, at)
            expected = kernel.parts(moved(scales, at, -1.0), rows)
            np.testing.assert_allclose(filled(change, -1.0), expected.sum(axis=0), rtol=0, atol=1e-9)
            np.testing.assert_allclose(change.parts(-1.0), expected, rtol=0, atol=1e-9)


def test_tiny_beta_makes_rows_independent_and_large_beta_makes_them_alike() -> None:
    space = [graphs.complete(2)] * 30 + [graphs.path(5)] * 30
    rows = oracles.random_rows(np.random.default_rng(0), space, 10)
    kernel, w = Product(spectra(space)), np.array([2.0])
    rough = gram(kernel, Scales(np.full(60, -12.0), np.zeros(60)), w, rows)
    smooth = gram(kernel, Scales(np.full(60, 4.6), np.zeros(60)), w, rows)
    np.testing.assert_allclose(rough, 2.0 * np.eye(10), atol=1e-3)
    np.testing.assert_allclose(smooth, 2.0, atol=1e-9)


@pytest.mark.parametrize("log_beta", [-2.0, 0.0, 2.0])
def test_a_path_of_a_thousand_levels_matches_the_dense_decomposition(log_beta: float) -> None:
    space = [graphs.path(1000)]
    rows = np.arange(0, 1000, 37, dtype=np.intp)[:, None]
    lam, U = np.linalg.eigh(oracles.laplacian_of_path(1000))
    weights = np.exp(-math.exp(log_beta) * lam * (2.0 / lam[1]))
    dense = oracles.unit((U * weights) @ U.T)[np.ix_(rows[:, 0], rows[:, 0])]
    scales, w = Scales(np.array([log_beta]), np.zeros(1)), np.ones(1)
    for got in (
        gram(Product(spectra(space)), scales, w, rows),
        cross(Product(spectra(space)), scales, w, rows, rows),
    ):
        np.testing.assert_allclose(got, dense, rtol=0, atol=1e-7)  # lam[1] of 1e-5 is scaled up to 2
