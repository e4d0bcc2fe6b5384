"""Findings from the evaluations: the best value, the improvement, the best settings, the reasons of failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from carbo.integrations.optuna.evaluations import Evaluation
from carbo.report.numbers import exact


def better(one: float, two: float, direction: str) -> bool:
    return one < two if direction == "minimize" else one > two


def with_values(rows: Sequence[Evaluation]) -> list[tuple[Evaluation, float]]:
    """The evaluations that gave a value, each with its value."""
    return [(row, row.value) for row in rows if row.value is not None]


def trail(rows: Sequence[Evaluation], direction: str) -> list[tuple[Evaluation, float]]:
    """The evaluations that were better than all before them, each with its value. The last one is the best."""
    found: list[tuple[Evaluation, float]] = []
    for row, value in with_values(rows):
        if not found or better(value, found[-1][1], direction):
            found.append((row, value))
    return found


class Progress(NamedTuple):
    """The way from the first evaluation with a value to the best one."""

    first: Evaluation
    start: float
    best: float

    @property
    def what(self) -> str:
        """The first evaluation with a value, in words."""
        return "starting configuration" if self.first.queued else "first evaluation"

    @property
    def difference(self) -> float:
        return self.best - self.start

    @property
    def relative(self) -> float | None:
        """Change as a share of the start. None if the start is zero or the sign has changed."""
        same_side = self.start * self.best > 0 or (self.best == 0 and self.start != 0)
        return self.difference / abs(self.start) if same_side else None


def progress(rows: Sequence[Evaluation], direction: str) -> Progress | None:
    found = trail(rows, direction)
    return Progress(found[0][0], found[0][1], found[-1][1]) if found else None


class Setting(NamedTuple):
    """Params, their best evaluation, and the values of all their evaluations."""

    best: Evaluation
    value: float
    values: tuple[float, ...]


def top(rows: Sequence[Evaluation], direction: str, count: int = 5) -> list[Setting]:
    """The best distinct params, the best first. Of equal values the earlier one comes first."""
    sign = 1.0 if direction == "minimize" else -1.0
    groups: dict[tuple[tuple[str, str], ...], list[tuple[Evaluation, float]]] = {}
    for row, value in sorted(with_values(rows), key=lambda pair: sign * pair[1]):
        key = tuple(sorted((name, exact(value)) for name, value in row.params.items()))
        groups.setdefault(key, []).append((row, value))
    first = list(groups.values())[:count]
    return [Setting(group[0][0], group[0][1], tuple(value for _, value in group)) for group in first]


def reasons(rows: Sequence[Evaluation]) -> list[tuple[str, int]]:
    """The reasons of failures and their numbers, the most frequent first."""
    said = (row.reason or "no reason was recorded" for row in rows if row.standing in ("failed", "pruned"))
    return Counter(said).most_common()


def duration(rows: Sequence[Evaluation]) -> float | None:
    """Seconds from the first start to the last end."""
    starts = [row.started for row in rows if row.started is not None and row.counts]
    ends = [row.ended for row in rows if row.ended is not None and row.counts]
    return max(0.0, (max(ends) - min(starts)).total_seconds()) if starts and ends else None
