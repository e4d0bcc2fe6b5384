"""Tables between observed values, against dense ones between observations."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbo import Integer, Space
from carbo.kernels.observed_tables import ObservationTable, ValueTables, observed_tables
from carbo.kernels.spectra import spectra_of
from carbo.numerics.types import Floats, Ints
from tests import oracles
from tests.spaces import space_of, wide_above

seeds = st.integers(0, 10**6)


def ordered_case(seed: int) -> tuple[Space, list[int], Ints, Floats]:
    """A space of up to nine variables, the numbers of those with incomplete graphs, rows, and betas."""
    rng = np.random.default_rng(seed)
    space = space_of(rng, rng.choice(["ordinal", "levels", "cycle", "weighted"], rng.integers(1, 10)).tolist())
    some = [i for i, s in enumerate(spectra_of(space.rows.graphs)) if s.kind != "complete"]
    return space, some, space.random_rows(rng, int(rng.integers(1, 12))), rng.uniform(-8.0, 4.0, space.dim)


@pytest.mark.parametrize("most", [1, 4, 64])
@given(seed=seeds)
@settings(max_examples=20)
def test_tables_of_variables_taken_together_and_their_changes(most: int, seed: int) -> None:
    """Each variable has a different weight, so that mixing variables up would show."""
    space, some, X, log_beta = ordered_case(seed)
    graphs = [v.graph for v in space.variables.values()]
    weight = np.random.default_rng(seed).normal(size=space.dim)

    def exact(t: float, variables: Ints) -> Floats:
        z = [oracles.centred_factor(graphs[i], "connectivity", math.exp(log_beta[i] + t)) for i in variables]
        return np.asarray(sum(weight[i] * z[X[:, [i]], X[:, i]] for i, z in zip(variables, z, strict=True)))

    with wide_above(most):
        tables = observed_tables([(i, spectra_of(space.rows.graphs)[i]) for i in some], X)
    assert sorted(i for table in tables for i in table.variables) == some
    for table in tables:
        found, own = table.entries(log_beta[table.variables]), weight[table.variables][:, None, None]
        np.testing.assert_allclose(table.expand(own * found.z), exact(0.0, table.variables), rtol=0, atol=1e-9)
        expected = oracles.richardson(partial(exact, variables=table.variables))
        np.testing.assert_allclose(table.expand(own * found.derivative()), expected, rtol=0, atol=1e-7)


def test_variables_of_about_as_many_values_and_seen_with_as_many_are_taken_together() -> None:
    sizes = (5, 8, 4, 9, 16, 100, 7, 6, 12, 100, 70)
    spectra = list(enumerate(spectra_of(Space({f"x{i}": Integer(1, k) for i, k in enumerate(sizes)}).rows.graphs)))
    rows = np.arange(70)[:, None] % sizes
    rows[:, [7, 8]] %= 3  # three observed values each
    rows[:, [5, 9]] %= 4
    together = [table.variables.tolist() for table in observed_tables(spectra, rows)]
    assert sorted(together) == [[0, 1, 6], [2], [3, 4], [5], [7], [8], [9], [10]]
    assert [type(table) for table in observed_tables(spectra[-1:], rows)] == [ObservationTable]
    assert [type(table) for table in observed_tables(spectra[-2:-1], rows)] == [ValueTables]


@pytest.mark.parametrize("most", [1, 4, 64])
@given(seed=seeds)
@settings(max_examples=20)
def test_collecting_is_the_transpose_of_expanding(most: int, seed: int) -> None:
    space, some, X, log_beta = ordered_case(seed)
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(len(X), len(X)))
    with wide_above(most):
        tables = observed_tables([(i, spectra_of(space.rows.graphs)[i]) for i in some], X)
    for table in tables:
        a = rng.normal(size=table.entries(log_beta[table.variables]).z.shape)
        assert np.vdot(G, table.expand(a)) == pytest.approx(np.vdot(table.collect(G), a), rel=1e-9, abs=1e-9)
