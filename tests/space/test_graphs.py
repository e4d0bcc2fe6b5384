"""Graphs and spectra against dense linear algebra: scipy's expm, numpy's eigvalsh, networkx's Laplacian."""

from __future__ import annotations

import time
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from carbo.errors import SpaceError
from carbo.kernels import spectra
from carbo.numerics.types import Floats
from carbo.space import graphs
from carbo.space.graphs import Graph, Scale

SIZES = range(1, 12)
SCALES: tuple[Scale, ...] = ("connectivity", "published")
ROUNDING = 1e-11
"""Allowed relative difference of two float64 routes to the same numbers, of order 10 by 10."""


def random_weights(rng: np.random.Generator, k: int) -> Floats:
    W = np.triu(rng.exponential(size=(k, k)) * (rng.random((k, k)) < 0.6), 1)
    W += np.eye(k, k=1) * 0.1  # a thin path keeps it connected
    return np.asarray(W + W.T)


def every_graph() -> list[Graph]:
    rng = np.random.default_rng(0)
    made = [make(k) for make in (graphs.complete, graphs.path, graphs.cycle) for k in SIZES]
    return made + [graphs.from_weights(random_weights(rng, k), k, "w") for k in SIZES]


def dense_laplacian(graph: Graph, scale: Scale) -> Floats:
    """The oracle: networkx's Laplacian, scaled by its own eigenvalues."""
    k = graph.size
    if graph.weights is not None:
        made = nx.from_numpy_array(graph.weights)
    elif graph.kind == "complete":
        made = nx.complete_graph(k)
    else:
        made = nx.cycle_graph(k) if graph.kind == "cycle" else nx.path_graph(k)
    L = np.asarray(nx.laplacian_matrix(made, nodelist=range(k)).toarray(), dtype=np.float64)
    if scale == "published" or k == 1:
        return L
    lam = np.linalg.eigvalsh(L)
    return np.asarray(L * (2.0 / lam[lam > 1e-9].min()))


def dense_table(L: Floats, beta: float) -> Floats:
    """exp(-beta L), scaled to mean diagonal one."""
    K = np.asarray(expm(-beta * L))
    return np.asarray(K * len(K) / np.trace(K))


@pytest.mark.parametrize("graph", every_graph(), ids=lambda g: f"{g.kind}{g.size}")
@pytest.mark.parametrize("scale", SCALES)
class TestAgainstDenseAlgebra:
    def test_the_laplacian_is_that_of_networkx(self, graph: Graph, scale: Scale) -> None:
        np.testing.assert_allclose(graphs.laplacian(graph), dense_laplacian(graph, "published"), rtol=ROUNDING)

    def test_the_spectrum_is_that_of_the_dense_laplacian(self, graph: Graph, scale: Scale) -> None:
        s = spectra.spectrum(graph, scale)
        expected = np.linalg.eigvalsh(dense_laplacian(graph, scale))
        np.testing.assert_allclose(s.lam, expected, rtol=ROUNDING, atol=ROUNDING * max(1.0, expected[-1]))
        assert s.size == graph.size
        assert s.lam[0] == 0.0
        assert np.all(np.diff(s.lam) >= 0)

    @pytest.mark.parametrize("beta", [0.0, 0.01, 0.7, 30.0])
    def test_the_table_is_the_matrix_exponential(self, graph: Graph, scale: Scale, beta: float) -> None:
        s = spectra.spectrum(graph, scale)
        found = spectra.table(s, np.exp(-beta * s.lam)).columns(np.arange(s.size))
        np.testing.assert_allclose(found, dense_table(dense_laplacian(graph, scale), beta), rtol=0, atol=1e-10)

    def test_the_modes_are_orthonormal_eigenvectors_the_constant_one_first(self, graph: Graph, scale: Scale) -> None:
        s, L = spectra.spectrum(graph, scale), dense_laplacian(graph, scale)
        U = s.modes
        np.testing.assert_allclose(U.T @ U, np.eye(s.size), rtol=0, atol=1e-12)
        np.testing.assert_allclose(L @ U, U * s.lam, rtol=0, atol=1e-11 * max(1.0, s.lam[-1]))
        np.testing.assert_allclose(np.abs(U[:, 0]), s.size**-0.5)

    def test_any_coefficients_of_the_modes_sum_to_the_same_function_of_the_laplacian(
        self, graph: Graph, scale: Scale
    ) -> None:
        s = spectra.spectrum(graph, scale)
        c = 1.0 / (1.0 + s.lam)  # the regularised Laplacian kernel (I + L)^-1
        K = np.linalg.inv(np.eye(s.size) + dense_laplacian(graph, scale))
        found = spectra.table(s, c).columns(np.arange(s.size))
        np.testing.assert_allclose(found, K * s.size / np.trace(K), rtol=0, atol=1e-11)


@pytest.mark.parametrize("graph", every_graph(), ids=lambda g: f"{g.kind}{g.size}")
def test_at_broadcasts_and_agrees_with_columns(graph: Graph) -> None:
    s = spectra.spectrum(graph)
    t = spectra.table(s, np.exp(-0.3 * s.lam))
    M = t.columns(np.arange(s.size))
    rng = np.random.default_rng(1)
    a, b = rng.integers(s.size, size=(7, 1)), rng.integers(s.size, size=(1, 5))
    np.testing.assert_array_equal(t.at(a, b), M[a, b])
    np.testing.assert_allclose(M, M.T, rtol=0, atol=1e-14)
    assert np.trace(M) / s.size == pytest.approx(1.0, abs=1e-12)


def test_two_values_have_the_tanh_correlation_of_a_single_edge() -> None:
    for make in (graphs.complete, graphs.path, graphs.cycle):
        s = spectra.spectrum(make(2))
        M = spectra.table(s, np.exp(-0.4 * s.lam)).columns(np.arange(2))
        assert M[0, 1] == pytest.approx(np.tanh(0.4), rel=1e-12)


def test_small_paths_and_cycles_are_the_complete_graphs_they_equal() -> None:
    assert [graphs.path(k).kind for k in (1, 2, 3)] == ["complete", "complete", "path"]
    assert [graphs.cycle(k).kind for k in (1, 2, 3, 4)] == ["complete", "complete", "complete", "cycle"]


def test_the_weighted_route_agrees_with_the_closed_forms() -> None:
    for make in (graphs.complete, graphs.path, graphs.cycle):
        closed = make(9)
        W = -graphs.laplacian(closed)
        np.fill_diagonal(W, 0.0)
        a, b = spectra.spectrum(closed), spectra.spectrum(graphs.from_weights(W, 9, "w"))
        np.testing.assert_allclose(a.lam, b.lam, rtol=0, atol=ROUNDING)
        columns = [spectra.table(s, np.exp(-0.2 * s.lam)).columns(np.arange(9)) for s in (a, b)]
        np.testing.assert_allclose(columns[0], columns[1], rtol=0, atol=1e-12)


def test_connectivity_scale_ignores_the_unit_of_the_weights() -> None:
    W = random_weights(np.random.default_rng(2), 6)
    one, thousand = (spectra.spectrum(graphs.from_weights(W * unit, 6, "w")) for unit in (1.0, 1000.0))
    np.testing.assert_allclose(one.lam, thousand.lam, rtol=1e-10, atol=1e-10)
    assert one.lam[1] == pytest.approx(2.0)


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_tables_are_positive_semidefinite(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for graph in (
        graphs.complete(k),
        graphs.path(k),
        graphs.cycle(k),
        graphs.from_weights(random_weights(rng, k), k, "w"),
    ):
        s = spectra.spectrum(graph)
        M = spectra.table(s, np.exp(-rng.exponential() * s.lam)).columns(np.arange(k))
        assert np.linalg.eigvalsh(M)[0] > -1e-12


def test_a_thousand_levels_cost_no_decomposition() -> None:
    begin = time.process_time()
    for make in (graphs.complete, graphs.path, graphs.cycle):
        for beta in np.linspace(0.1, 1.0, 20):
            s = spectra.spectrum(make(1_000))
            spectra.table(s, np.exp(-beta * s.lam))
    assert time.process_time() - begin < 1.0  # sixty eigh of this size take tens of seconds


class TestDisconnected:
    W = np.kron(np.eye(2), np.ones((3, 3)))

    def test_it_warns_naming_the_variable_and_the_number_of_pieces(self) -> None:
        with pytest.warns(UserWarning, match=r"variable 'cc'.*disconnected \(2 pieces\)"):
            graphs.from_weights(self.W, 6, "cc")

    def test_the_constant_vector_comes_first_and_pieces_share_nothing(self) -> None:
        with pytest.warns(UserWarning, match="disconnected"):
            graph = graphs.from_weights(self.W, 6, "cc")
        s = spectra.spectrum(graph)
        assert s.vectors is not None
        np.testing.assert_allclose(s.vectors[:, 0], 1 / np.sqrt(6))
        np.testing.assert_allclose(s.vectors.T @ s.vectors, np.eye(6), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(s.lam[:2], [0.0, 0.0])
        M = spectra.table(s, np.exp(-5.0 * s.lam)).columns(np.arange(6))
        np.testing.assert_allclose(M[:3, 3:], 0.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(M, dense_table(graphs.laplacian(graph) * 2 / 3, 5.0), rtol=0, atol=1e-12)

    def test_a_graph_without_edges_is_the_identity(self) -> None:
        with pytest.warns(UserWarning, match="4 pieces"):
            s = spectra.spectrum(graphs.from_weights(np.zeros((4, 4)), 4, "cc"))
        M = spectra.table(s, np.exp(-s.lam)).columns(np.arange(4))
        np.testing.assert_allclose(M, np.eye(4), rtol=0, atol=1e-12)

    @settings(deadline=None, max_examples=50)
    @given(st.integers(1, 9), st.floats(0, 0.5), st.integers(0, 2**32 - 1))
    def test_components_are_counted_like_networkx(self, k: int, density: float, seed: int) -> None:
        W = np.triu(np.random.default_rng(seed).random((k, k)) < density, 1).astype(np.float64)
        W = W + W.T
        assert graphs.components(W) == nx.number_connected_components(nx.from_numpy_array(W))


class TestWeights:
    def test_a_networkx_graph_is_read_with_its_weights(self) -> None:
        made = nx.Graph()
        made.add_edge(2, 0, weight=0.25)
        made.add_edge(1, 2)
        graph = graphs.from_weights(made, 3, "cc")
        assert graph.weights is not None
        np.testing.assert_array_equal(graph.weights, [[0, 0, 0.25], [0, 0, 1], [0.25, 1, 0]])

    def test_the_diagonal_is_ignored_and_the_input_is_left_alone(self) -> None:
        W = np.ones((3, 3))
        graph = graphs.from_weights(W, 3, "cc")
        np.testing.assert_array_equal(W, np.ones((3, 3)))
        np.testing.assert_array_equal(graphs.laplacian(graph), graphs.laplacian(graphs.complete(3)))
        assert graph.weights is not None
        assert not graph.weights.flags.writeable

    @pytest.mark.parametrize(
        ("weights", "complaint"),
        [
            (np.ones((2, 3)), r"3 x 3 graph matrix, got shape \(2, 3\)"),
            (np.ones(3), r"3 x 3 graph matrix, got shape \(3,\)"),
            ([[0, 1, np.nan], [1, 0, 1], [np.nan, 1, 0]], "finite"),
            ([[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]], "finite"),
            ([[0, 1, -2], [1, 0, 1], [-2, 1, 0]], ">= 0, got -2"),
            ([[0, 1, 2], [1, 0, 1], [3, 1, 0]], r"symmetric.*2 at \(0, 2\) and 3 at \(2, 0\)"),
            ("abc", "matrix of real numbers or a networkx graph"),
            ([[0, 1], [1]], "matrix of real numbers or a networkx graph"),
            (nx.path_graph(4), "nodes"),
        ],
    )
    def test_what_is_no_graph_is_refused_by_name(self, weights: object, complaint: str) -> None:
        with pytest.raises(SpaceError, match=rf"variable 'cc': expected.*{complaint}"):
            graphs.from_weights(weights, 3, "cc")

    def test_a_connected_graph_does_not_warn(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graphs.from_weights(np.ones((3, 3)), 3, "cc")
