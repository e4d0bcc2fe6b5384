"""Kernels against the matrix exponential of the whole product graph, sums over subsets, and golden values."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbo.kernels.base import Coordinate, Curve, Kernel, Scales, Split, centred, diffusion
from carbo.kernels.cross import cross, diagonal, gram
from carbo.kernels.orders import Orders, newton, symmetric
from carbo.kernels.product import Product
from carbo.kernels.spectra import Spectrum, spectrum
from carbo.kernels.windows import Adjacent
from carbo.numerics.types import Floats, Ints
from carbo.space import graphs
from carbo.space.graphs import Graph, Scale
from tests import oracles

SCALES: tuple[Scale, ...] = ("connectivity", "published")
ROUNDING = 1e-10
"""Allowed difference of two float64 routes to covariances of order one."""
ROWS = 12
"""Observations of the tests that swap a coordinate."""
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
    orders = [Orders(some, q, product) for q in range(1, min(active, 3) + 1) for product in (False, True)]
    return [Product(some), *orders, Adjacent(some, min(active, 3), False)]


def moved(scales: Scales, at: Coordinate, theta: float) -> Scales:
    """The scales with one coordinate changed."""
    values = getattr(scales, f"log_{at.name}").copy()
    values[at.variable] = theta
    return scales._replace(**{f"log_{at.name}": values})


def along(change: Split | Curve, rows: Ints, now: float, theta: float) -> Floats:
    """The signal covariance a swap gives at theta."""
    if isinstance(change, Split):
        x = rows[:, change.variable]
        return np.asarray(change.w * change.P * np.where(x[:, None] == x, 1.0, change.t(theta) / change.t(now)))
    out = np.empty((ROWS, ROWS), order="F")
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
        off = float(diffusion(pair, log_beta).at(np.array(0), np.array(1)))
        assert off == pytest.approx(math.tanh(math.exp(log_beta)), rel=1e-14)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("log_beta", [-12.0, -2.0, 0.0, 3.0, 4.6])
def test_rows_of_centred_tables_sum_to_zero_and_their_mean_diagonal_is_one(scale: Scale, log_beta: float) -> None:
    for g in (*MIXED, *NOMINAL):
        table = centred(spectrum(g, scale), log_beta).columns(np.arange(g.size))
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
        expected = oracles.order_parts(
            space, scale, np.exp(scales.log_beta), np.exp(scales.log_relevance), rows, highest
        )
        got = Orders(spectra(space, scale), highest, True).parts(scales, rows)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        without = Orders(spectra(space, scale), highest, False).parts(scales, rows)
        np.testing.assert_allclose(without, expected[:-1], rtol=0, atol=1e-9 * np.abs(expected).max())


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
    norms = [sum(math.prod(c) for c in _subsets(r, q)) for q in range(1, len(space) + 1)]
    total = float(np.prod(1.0 + r))
    kernel = Orders(spectra(space, scale), len(space), True)
    papers = gram(Product(spectra(space, scale)), scales, np.array([1.0]), rows)
    weights = np.append(np.array(norms) / total, 0.0)
    np.testing.assert_allclose(1.0 / total + gram(kernel, scales, weights, rows), papers, rtol=0, atol=1e-10)
    np.testing.assert_allclose(kernel.parts(scales, rows)[-1], papers, rtol=0, atol=1e-10)


def _subsets(r: Floats, q: int) -> list[tuple[float, ...]]:
    return list(itertools.combinations(r.tolist(), q))


def test_symmetric_polynomials_and_newtons_identities_agree_with_brute_force() -> None:
    r = np.random.default_rng(0).exponential(size=6)
    expected = [sum(math.prod(c) for c in _subsets(r, q)) for q in range(1, 7)]
    np.testing.assert_allclose(symmetric(r, 6), expected, rtol=1e-13)
    np.testing.assert_allclose(newton([np.array(np.sum(r**q)) for q in range(1, 7)]), expected, rtol=1e-10)


def test_a_relevance_near_zero_removes_a_variable() -> None:
    rng = np.random.default_rng(2)
    rows, scales = oracles.random_rows(rng, MIXED, ROWS), random_scales(rng, 4)
    removed = moved(scales, Coordinate("relevance", 1), -60.0)
    changed = rows.copy()
    changed[:, 1] = rng.integers(0, MIXED[1].size, ROWS)
    kernel = Orders(spectra(MIXED), 3, True)
    np.testing.assert_allclose(kernel.parts(removed, rows), kernel.parts(removed, changed), atol=1e-12)
    rest = [0, 2, 3]
    smaller = Orders(tuple(kernel.spectra[i] for i in rest), 3, True)
    expected = smaller.parts(Scales(scales.log_beta[rest], scales.log_relevance[rest]), rows[:, rest])
    np.testing.assert_allclose(kernel.parts(removed, rows), expected, atol=1e-12)


# -- moving one coordinate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("scale", SCALES)
def test_swapping_one_coordinate_equals_a_full_rebuild(name: str, scale: Scale) -> None:
    space = SPACES[name]
    for kernel in every_kernel(space, scale):
        rng = np.random.default_rng(kernel.size)
        rows, scales = oracles.random_rows(rng, space, ROWS), random_scales(rng, len(space))
        w, parts = rng.exponential(size=kernel.size), kernel.parts(scales, rows)
        assert kernel.coordinates()
        for at in kernel.coordinates():
            now = float(getattr(scales, f"log_{at.name}")[at.variable])
            change = kernel.swap(parts, scales, rows, w, at)
            for theta in (now, now - 1.5, now + 1.5, -3.0, 2.0):
                new = moved(scales, at, theta)
                full = gram(kernel, new, w, rows)
                np.testing.assert_allclose(along(change, rows, now, theta), full, rtol=0, atol=1e-9 * w.sum())
                np.testing.assert_allclose(
                    kernel.swapped(parts.copy(), scales, rows, at, theta), kernel.parts(new, rows), rtol=0, atol=1e-9
                )


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


def test_a_sweep_of_swaps_equals_a_rebuild() -> None:
    for kernel in every_kernel(MIXED):
        rng = np.random.default_rng(7)
        rows, scales = oracles.random_rows(rng, MIXED, ROWS), random_scales(rng, 4)
        parts = kernel.parts(scales, rows)
        for _ in range(20):
            for at in kernel.coordinates():
                theta = float(rng.normal())
                parts, scales = kernel.swapped(parts, scales, rows, at, theta), moved(scales, at, theta)
        np.testing.assert_allclose(parts, kernel.parts(scales, rows), rtol=0, atol=1e-8)


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
            diagonal(kernel, scales, w, rows), np.diagonal(whole)[7:], rtol=0, atol=1e-9 * w.sum()
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
        products = isinstance(kernel, Product | Adjacent)  # of matrices, which round as the machine likes
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
    rows = oracles.random_rows(rng, space, 10)
    scales = Scales(np.full(60, log_beta), np.zeros(60))
    for kernel in (Product(spectra(space)), Orders(spectra(space), 3, False), Orders(spectra(space), 3, True)):
        w = np.ones(kernel.size)
        K = gram(kernel, scales, w, rows)
        assert np.all(np.isfinite(K))
        assert np.linalg.eigvalsh(K).min() > -1e-9
        np.testing.assert_allclose(cross(kernel, scales, w, rows, rows), K, rtol=0, atol=1e-9)
        for at in kernel.coordinates()[::20]:
            np.testing.assert_allclose(
                kernel.swapped(kernel.parts(scales, rows), scales, rows, at, -1.0),
                kernel.parts(moved(scales, at, -1.0), rows),
                rtol=0,
                atol=1e-9,
            )


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
