"""The statistical harness: does a sample come from a law? One stated false-alarm rate for every test.

How it is used: draw starting points exactly from a law, apply the transition under test to each of them
independently, and ask whether the points still follow the law. There is no autocorrelation to allow for, and the
p-values need no correction. A claim made with `assert_plausible` has a broken twin given to `assert_rejected`:
a check that cannot fail proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats

from carbo.numerics.types import Floats

FALSE_ALARM = 1e-6
"""Probability that one `assert_plausible` fails although its claim is true; the seeds are fixed besides."""
BINS, PER_BIN = 20, 40
"""Most bins of the chi-square check, and draws expected in each: fewer, and its p-values would not be exact enough."""


def p_value(sample: Floats, cdf: Callable[[Floats], Floats]) -> float:
    """Of independent draws against an exact distribution: Kolmogorov-Smirnov and chi-square, the smaller doubled."""
    u = np.asarray(cdf(np.asarray(sample, dtype=np.float64)))
    assert np.all((u >= 0.0) & (u <= 1.0)), "a draw lies outside the law's support"
    ks = float(stats.kstest(u, "uniform").pvalue)
    counts, _ = np.histogram(u, bins=min(BINS, max(2, len(u) // PER_BIN)), range=(0.0, 1.0))
    chi_square = float(stats.chisquare(counts).pvalue)
    return min(1.0, 2.0 * min(ks, chi_square))


def p_value_two(one: Floats, two: Floats) -> float:
    """Of two independent samples against each other."""
    return float(stats.ks_2samp(one, two, method="asymp").pvalue)


def suspicious(p_values: Mapping[str, float]) -> dict[str, float]:
    """Those too small to be chance: the false-alarm rate is shared out equally (Bonferroni)."""
    return {name: p for name, p in p_values.items() if not p >= FALSE_ALARM / len(p_values)}


def assert_plausible(p_values: Mapping[str, float]) -> None:
    """All of these laws hold."""
    found = suspicious(p_values)
    assert not found, f"not the law that was claimed (p-values, false-alarm rate {FALSE_ALARM:g}): {found}"


def assert_rejected(p_values: Mapping[str, float]) -> None:
    """The broken twin: at least one of these laws does not hold, and the harness sees it."""
    assert suspicious(p_values), f"the harness did not see what was broken on purpose: {dict(p_values)}"
