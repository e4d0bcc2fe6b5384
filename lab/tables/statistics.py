"""Statistics of runs: means and their errors, medians with runs that never reach a target, ranks, paired differences.

Sums are rounded once, at their end (`math.fsum`), so that a table has the same digits on every machine.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from carbo.numerics.types import Floats

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Hashable)

HALF_A_DIGIT = 0.5e-4
"""Half a unit of the fourth decimal, the last that the paper prints."""


class Summary(NamedTuple):
    """Mean, standard error and number of some runs."""

    mean: float
    error: float | None
    """Standard error of the mean: sample standard deviation over sqrt(n); None for a single run."""
    runs: int


def summary(values: Sequence[float]) -> Summary:
    """Mean and standard error of at least one value."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(mean, None, 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return Summary(mean, math.sqrt(variance / n), n)


def paired_differences(theirs: Mapping[K, float], ours: Mapping[K, float]) -> Summary | None:
    """Their values minus ours on the runs that both have: above 0 where ours are smaller. None without any."""
    shared_runs = sorted(set(theirs) & set(ours), key=repr)
    return summary([theirs[key] - ours[key] for key in shared_runs]) if shared_runs else None


def steps_to_reach(best: Floats, target: float) -> int | None:
    """Number of evaluations until the best value (n,) is the target to the printed digits; None if it never is."""
    reached = np.flatnonzero(best <= target + HALF_A_DIGIT)
    return int(reached[0]) + 1 if len(reached) else None


def median_steps(steps: Sequence[int | None]) -> float | None:
    """The median, where None counts as more than any number; None where the median is None."""
    middle = statistics.median([math.inf if step is None else step for step in steps])
    return None if math.isinf(middle) else middle


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1 for the smallest. Values that are equal to four decimals share the mean of their ranks.

    Values at points of equal quality may differ in the last digits of a float, which is no difference of methods.
    """
    rounded = [round(value, 4) for value in values]
    return [1 + sum(a < b for a in rounded) + (rounded.count(b) - 1) / 2 for b in rounded]


def mean_ranks(values: Sequence[Mapping[K, Sequence[float]]]) -> list[float]:
    """(methods,) mean rank over problems of equal weight. A problem is a map: run -> the value of each method."""
    problems = [_mean([ranks(row) for row in runs.values()]) for runs in values]
    return _mean(problems)


def shared_runs(runs: Mapping[M, Sequence[Collection[K]]]) -> tuple[list[M], list[list[K]]]:
    """Methods that share a run on every problem, and these runs. `runs`: method -> for each problem its runs.

    Methods with more runs are taken first. A method that would leave a problem without a common run is left out.
    """
    order = sorted(runs, key=lambda method: -min(map(len, runs[method]), default=0))
    chosen: list[M] = []
    common: list[set[K]] = []
    for method in order:
        theirs = [set(each) for each in runs[method]]
        both = [a & b for a, b in zip(common, theirs, strict=True)] if chosen else theirs
        if all(both):
            chosen, common = [*chosen, method], both
    return [method for method in runs if method in chosen], [sorted(each, key=repr) for each in common]


def _mean(rows: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
