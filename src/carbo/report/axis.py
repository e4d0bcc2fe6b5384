"""Axes: places of values on a line, with ticks at round numbers.

Places are percentages of the line's length, so that a chart needs no size.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from carbo.report.numbers import figure

LARGEST = sys.float_info.max
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
"""Units of labels that would be long, below TOO_LARGE."""
TOO_LARGE = 1e15
ROBUST = 10
"""With fewer values than this, all are drawn."""
FAR = 3.0
"""A value is far off if it is that many ranges of the better values beyond them."""


class Axis(NamedTuple):
    """A line from `low` to `high`; `log`: places go by the logarithm."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    log: bool = False

    def place(self, value: float) -> float:
        """0 at low to 100 at high. Values beyond are placed at the ends."""
        unit = max(abs(self.low), abs(self.high))  # differences of the largest floats would overflow
        at, low, high = (math.log(v) if self.log else v / unit for v in (value, self.low, self.high))
        return 100.0 * min(max((at - low) / (high - low), 0.0), 1.0)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def thinned(self, room: int) -> Axis:
        """The axis with evenly chosen ticks, as many as their labels have room for, in characters."""
        steps = range(1, len(self.ticks) + 1)
        every = next((n for n in steps if sum(len(label) + 2 for label in self.labels[::n]) <= room), len(self.ticks))
        return self._replace(ticks=self.ticks[::every], labels=self.labels[::every])


def linear(low: float, high: float, most: int = 6) -> Axis:
    """From at most `low` to at least `high`, both at a tick."""
    if low == high:
        margin = abs(low) / 10 or 1.0
        low, high = max(low - margin, -LARGEST), min(high + margin, LARGEST)
    step = _step(high / most - low / most)
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = tuple((first + k) * step for k in range(last - first + 1))
    if not all(map(math.isfinite, ticks)) or any(a >= b for a, b in pairwise(ticks)):  # where floats end, or are sparse
        return Axis(low, high, (low, high), (figure(low, 3), figure(high, 3)))
    unit, letter = next(((u, letter) for u, letter in UNITS if u <= max(-low, high) < TOO_LARGE), (1.0, ""))
    labels = tuple(_label(tick / unit, step / unit) + (letter if tick else "") for tick in ticks)
    return Axis(min(low, ticks[0]), max(high, ticks[-1]), ticks, labels)  # a division may have rounded to the tick


def counting(first: int, last: int, most: int = 6) -> Axis:
    """Whole numbers, with a little room at both ends."""
    room = max(0.5, 0.015 * (last - first))
    step = max(1, round(_step((last - first) / most)))
    ticks = range(-(-first // step) * step, last + 1, step)
    return Axis(first - room, last + room, tuple(map(float, ticks)), tuple(f"{tick:,}" for tick in ticks))


def _step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, not below `rough`."""
    power = 10.0 ** math.floor(math.log10(max(rough, 1e-307)))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def _label(tick: float, step: float) -> str:
    """The label of a tick, with the digits that distinguish neighbouring ticks."""
    if abs(tick) < step / 2:
        return "0"
    digits = math.floor(math.log10(abs(tick))) - math.floor(math.log10(step)) + 1
    return figure(float(f"{tick:.{max(digits, 1)}g}"), max(digits, 1))


def logarithmic(low: float, high: float) -> Axis:
    """Powers of ten that take in both, of seconds."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    ticks = tuple(10.0**k for k in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, tuple(map(_seconds, ticks)), log=True)


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size * 0.999:
            return f"{figure(value / size, 3)} {unit}"
    return f"{value:.0e} s"


def range_to_draw(values: Sequence[float], direction: str) -> tuple[float, float]:
    """The range to draw: that of all values, without those that are far off on the worse side."""
    low, high = min(values), max(values)
    if len(values) < ROBUST:
        return low, high
    sign = 1.0 if direction == "minimize" else -1.0
    losses = np.sort(sign * np.asarray(values)) / (max(abs(low), abs(high)) or 1.0)
    usual = np.quantile(losses, 0.8)
    limit = losses[0] + (1 + FAR) * (usual - losses[0])
    if usual == losses[0] or losses[-1] <= limit:
        return low, high
    kept = [v for v, loss in zip(sorted(values, key=lambda v: sign * v), losses, strict=True) if loss <= limit]
    return min(kept), max(kept)
