"""Total effects are those of Jansen's formula with every mean computed from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from carbo.numerics.types import Floats
from carbo.surrogate.relevance import measure_relevance
from tests.spaces import space_of, wide_above
from tests.surrogate.test_neighbours import KERNELS, SAMPLES, Case, case_of, kernel_of


def plain(y: Floats) -> Floats:
    return y


def written_out(c: Case) -> Floats:
    """Total effects (d, S), one variable after another, every row predicted by itself."""
    rng = np.random.default_rng(3)
    base, other = c.space.random_rows(rng, 256), c.space.random_rows(rng, 256)
    f, effects = c.model.predict(base)[0], np.zeros((c.space.dim, SAMPLES))
    for i in range(c.space.dim):
        changed = base.copy()
        changed[:, i] = other[:, i]
        g = c.model.predict(changed)[0]
        effects[i] = np.mean((f - g) ** 2, axis=1) / np.maximum(f.var(axis=1) + g.var(axis=1), 1e-300)
    return np.minimum(effects, 1.0)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("wide", [3, 64])
@pytest.mark.parametrize("at_once", [2, 100])
def test_effects_are_those_of_means_computed_from_scratch(name: str, wide: int, at_once: int) -> None:
    rng = np.random.default_rng(0)
    with wide_above(wide):
        space = space_of(rng, ["categorical", "binary", "constant", "levels", "weighted", "cycle", "binary"])
        c = case_of(rng, space, kernel_of(name, space, 3), 40)
        expected = written_out(c)
        found = measure_relevance(np.random.default_rng(3), c.model, c.space.rows, plain, at_once=at_once)
    assert list(found.variables) == [space.names[i] for i in np.argsort(-expected.mean(axis=1), kind="stable")]
    got = np.array([found.variables[variable].mean for variable in space.names])
    np.testing.assert_allclose(got, expected.mean(axis=1), rtol=0, atol=1e-9)
    assert got[2] == 0.0  # a variable of one value


def test_the_scale_of_the_values_counts() -> None:
    """Effects on e^y differ from effects on y: the check can fail."""
    rng = np.random.default_rng(1)
    space = space_of(rng, ["categorical", "binary", "levels"])
    c = case_of(rng, space, kernel_of("orders", space), 40)
    one, two = (measure_relevance(np.random.default_rng(3), c.model, c.space.rows, scale) for scale in (plain, np.exp))
    first, second = ([r.variables[name].mean for name in space.names] for r in (one, two))
    assert not np.allclose(first, second, atol=1e-3)
