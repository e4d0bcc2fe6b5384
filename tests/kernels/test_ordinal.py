"""Centred tables of paths, cycles and weighted graphs: against dense matrices, their limits, and wide ones by FFT."""

from __future__ import annotations

import math

import numpy as np
import pytest

from carbo.kernels import spectra
from carbo.kernels.ordinal import LARGEST, OrdinalTables, SpectrumStack
from carbo.kernels.spectra import WIDE, Table, spectrum
from carbo.numerics.types import Floats
from carbo.space import graphs
from carbo.space.graphs import Graph
from tests import oracles

RNG = np.random.default_rng(5)


def weighted(size: int, pieces: int = 1) -> Graph:
    """A graph with random weights, and no edges between different pieces."""
    W = np.abs(RNG.normal(size=(size, size)))
    piece = np.arange(size) % pieces
    W = (W + W.T) * (piece[:, None] == piece)
    np.fill_diagonal(W, 0.0)
    return Graph("weighted", size, W)


GRAPHS = {
    "path": graphs.path(7),
    "long path": graphs.path(WIDE + 13),
    "cycle": graphs.cycle(8),
    "long cycle, even": graphs.cycle(WIDE + 12),
    "long cycle, odd": graphs.cycle(WIDE + 13),
    "weighted": weighted(6),
    "many weights": weighted(WIDE + 5),
    "two pieces": weighted(8, pieces=2),
}
BETAS = [-12.0, -5.0, -2.5, 0.0, 2.0, 4.6]


def whole(t: Table) -> Floats:
    return t.columns(np.arange(t.size))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("log_beta", BETAS)
def test_it_is_the_matern_correlation_given_a_mean_of_zero(name: str, log_beta: float) -> None:
    g = GRAPHS[name]
    got = OrdinalTables(spectrum(g), log_beta).table()
    expected = oracles.centred_factor(g, "connectivity", math.exp(log_beta))
    np.testing.assert_allclose(whole(got), expected, rtol=0, atol=1e-8)
    some = np.array([1, 4, 0])
    np.testing.assert_allclose(
        OrdinalTables(spectrum(g), log_beta).entries(some).z, expected[np.ix_(some, some)], rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(got.diagonal(), expected.diagonal(), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("log_beta", BETAS)
def test_its_change_is_the_derivative(name: str, log_beta: float) -> None:
    s, some = spectrum(GRAPHS[name]), np.array([0, 2, 3, 5])
    assert math.exp(log_beta + 0.03) * s.slowest < LARGEST  # beyond it z is constant

    def at(t: float) -> Floats:
        return np.asarray(whole(OrdinalTables(s, t).table())[np.ix_(some, some)])

    expected = oracles.richardson(lambda t: at(log_beta + t))
    np.testing.assert_allclose(OrdinalTables(s, log_beta).entries(some).derivative(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_it_never_ceases_to_be_a_covariance(name: str) -> None:
    s = spectrum(GRAPHS[name])
    for log_beta in np.linspace(-12.0, 12.0, 25).tolist():
        tables = OrdinalTables(s, log_beta)
        z = whole(tables.table())
        assert np.linalg.eigvalsh(z).min() > -1e-7
        assert np.all(np.isfinite(tables.entries(np.arange(s.size)).derivative()))
        np.testing.assert_allclose(z.sum(axis=0), 0.0, atol=1e-6)


def test_small_beta_sets_all_values_apart_and_large_beta_weighs_modes_by_the_power_of_their_eigenvalues() -> None:
    s, k = spectrum(graphs.path(9)), 9
    apart = whole(OrdinalTables(s, -20.0).table())
    np.testing.assert_allclose(apart, (k * np.eye(k) - 1.0) / (k - 1), atol=1e-6)
    smooth = (s.modes[:, 1:] * s.lam[1:] ** -3.0) @ s.modes[:, 1:].T
    np.testing.assert_allclose(whole(OrdinalTables(s, 20.0).table()), smooth * (k / np.trace(smooth)), atol=2e-3)
    np.testing.assert_array_equal(OrdinalTables(s, 20.0).entries(np.arange(k)).derivative(), np.zeros((k, k)))


def test_the_ends_of_a_path_vary_little_more_than_its_middle() -> None:
    # The diffusion kernel without its constant mode: twice as much.
    plain = spectra.table(s := spectrum(graphs.path(51)), np.append(0.0, np.exp(-math.exp(-4.0) * s.lam[1:])))
    assert plain.diagonal()[0] > 1.8 * plain.diagonal()[25]
    level = OrdinalTables(s, -4.0).table().diagonal()
    assert level[0] < 1.3 * level[25]


def test_a_graph_without_edges_sets_all_values_apart_at_any_beta() -> None:
    s = spectrum(Graph("weighted", 4, np.zeros((4, 4))))
    np.testing.assert_allclose(whole(OrdinalTables(s, 3.0).table()), (4 * np.eye(4) - 1.0) / 3, atol=1e-12)
    np.testing.assert_allclose(OrdinalTables(s, 3.0).entries(np.arange(4)).derivative(), 0.0, atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 3.0, 9.0])
def test_several_variables_at_once_are_each_as_if_it_were_alone(shift: float) -> None:
    """Betas on both sides of the largest one, also graphs without edges. The padding value has 0 with all others."""
    chosen = [*(g for g in GRAPHS.values() if g.size <= WIDE), Graph("weighted", 3, np.zeros((3, 3)))]
    spectra = [spectrum(g) for g in chosen]
    log_betas = np.linspace(-4.0, 4.0, len(spectra)) + shift
    moving = np.exp(log_betas) * [s.slowest for s in spectra] < LARGEST
    levels = np.array([[1, 2, 0, -1] if s.size == 3 else [1, 2, 0, s.size - 1] for s in spectra])
    together = OrdinalTables(SpectrumStack.of(spectra), log_betas).entries(levels)
    z, change = together.z, together.derivative()
    for i, s in enumerate(spectra):
        some = levels[i][levels[i] >= 0]
        alone = OrdinalTables(s, float(log_betas[i])).entries(some)
        inside = np.ix_([i], range(len(some)), range(len(some)))
        np.testing.assert_allclose(z[inside][0], alone.z, rtol=0, atol=1e-9)
        np.testing.assert_allclose(change[inside][0], alone.derivative(), rtol=0, atol=1e-9)
        assert bool(np.any(change[i])) == (bool(moving[i]) and s.slowest > 0.0)
    np.testing.assert_array_equal(z[-1, 3], np.zeros(4))
    np.testing.assert_array_equal(change[-1, :, 3], np.zeros(4))
