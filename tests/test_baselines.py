"""The laboratory's methods through their one contract: tell rows and values, ask for the next row.

The common problem is additive: the number of binary variables that differ from a hidden row. Under uniform rows its
values are binomial, so that "better than random search" is an exact test, with random search as its broken twin.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import itertools
import logging
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from carbo import Binary, Categorical, Float, Integer, Ordinal, Space
from carbo.bench.baselines import METHODS, Method, Start, Strategy, method
from carbo.bench.baselines.annealing import COLD, HOT, mean_hops
from carbo.bench.baselines.evolution import POPULATION, SAMPLE
from carbo.bench.baselines.packaged import ordered
from carbo.errors import CarboError, SettingsError
from carbo.graph import Floats, Graph, Ints, cycle, path
from carbo.settings import DEFAULT, PAPER, Settings
from tests.checks import assert_plausible, assert_rejected, suspicious

LOCAL = ("annealing", "evolution", "genetic")
PACKAGED = ("tpe-hyperopt", "tpe", "smac", "gp-optuna")
OWN = ("paper", "default", "combo-gm")
SLOW = ("smac", "gp-optuna", *OWN)
"""A tenth of a second a suggestion or more."""
ALL = ("random", *LOCAL, *PACKAGED, *OWN)
BITS, RELEVANT = 20, 6
BINARY = Space({f"b{i}": Binary() for i in range(BITS)})
MIXED = Space(
    {
        "flag": Binary(),
        "kind": Categorical(["a", "b", "c", "d", "e"]),
        "size": Ordinal([16, 32, 64]),
        "hour": Categorical(range(24), graph="cycle"),
        "rate": Float(0.0, 1.0),
        "count": Integer(1, 7),
        "only": Categorical(["one"]),
    }
)


def ready(name: str) -> Method:
    """The method; the test is skipped where a package of it is not installed."""
    for package in METHODS[name].packages:
        pytest.importorskip(package)
    return method(name)


def distance(row: Ints) -> float:
    """How many of the RELEVANT first variables differ from 1, 0, 1, 0, ...; the others do not count."""
    return float(np.sum(row[:RELEVANT] == np.arange(RELEVANT) % 2))


def told(strategy: Strategy, space: Space, evaluate: Callable[[Ints], float], n: int, seed: int) -> None:
    """n random rows with their values."""
    for row in space.random_rows(np.random.default_rng([2, seed]), n):
        strategy.tell(row, evaluate(row))


def asked(strategy: Strategy, evaluate: Callable[[Ints], float], n: int) -> Ints:
    """n rows asked for, told in turn."""
    rows = []
    for _ in range(n):
        rows.append(strategy.ask())
        strategy.tell(rows[-1], evaluate(rows[-1]))
    return np.array(rows)


def mixed_value(row: Ints) -> float:
    return float(np.sum(row / MIXED.sizes))


# ---------------------------------------------------------------- every method


@pytest.mark.parametrize("name", ALL)
def test_rows_lie_inside_a_mixed_space_and_a_seed_repeats_them(name: str) -> None:
    def rows(seed: int) -> Ints:
        strategy = ready(name).start(MIXED, seed, 20)
        told(strategy, MIXED, mixed_value, 12, seed=0)
        return asked(strategy, mixed_value, 3 if name in SLOW else 8)

    once, again, other = rows(5), rows(5), rows(6)
    assert MIXED.decode_many(once)  # SpaceError for a row outside
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)


def chance(start: Start, name: str, seed: int) -> float:
    """The probability that uniform rows have as small a sum of values as the method's latest ones: exact."""
    n = {"smac": 16}.get(name, 10 if name in SLOW else 100)
    strategy = start(BINARY, seed, 60 + n)
    told(strategy, BINARY, distance, 60, seed)
    latest = asked(strategy, distance, n)[-50:]
    return float(stats.binom.cdf(sum(map(distance, latest)), len(latest) * RELEVANT, 0.5))
